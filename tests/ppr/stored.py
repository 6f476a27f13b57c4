"""Stores of exact rows, cut to k, for tests of what is read from them."""

from typing import Any

import numpy as np

from gpn_scale.config import DiffusionConfig
from gpn_scale.data.graph import Graph
from gpn_scale.ppr.rows import Rows
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.writer import StoreWriter
from tests.oracles import dense_diffusion, dense_ppr, dense_transition


def exact_rows(graph: Graph, diffusion: DiffusionConfig) -> np.ndarray:
    """Every node's full row, dense."""
    transition = dense_transition(graph, diffusion.normalisation, diffusion.self_loops)
    if diffusion.steps == "inf":
        return dense_ppr(transition, diffusion.teleport)
    return dense_diffusion(transition, diffusion.teleport, diffusion.steps)


def write_store(
    folder: str,
    graph: Graph,
    diffusion: DiffusionConfig,
    *,
    k: int,
    clusters: int = 0,
    roots: list[int] | None = None,
    parameters: dict[str, Any] | None = None,
) -> PPRStore:
    """The k heaviest entries of the exact rows; clusters are node ids modulo their number."""
    exact = np.maximum(exact_rows(graph, diffusion), 0.0)  # an inverse may be off by round-off
    chosen = list(range(graph.num_nodes)) if roots is None else roots
    cluster_of_node = (np.arange(graph.num_nodes) % max(clusters, 1)).astype(np.int32)
    ids, weights, sizes, missing, cut = [], [], [], [], []
    for root in chosen:
        kept = [node for node in np.argsort(-exact[root], kind="stable") if exact[root, node] > 0]
        kept = kept[:k]
        rest = exact[root].copy()
        rest[kept] = 0.0
        ids += kept
        weights += exact[root, kept].tolist()
        sizes.append(len(kept))
        missing.append(rest.sum())
        cut.append(np.bincount(cluster_of_node, rest, minlength=clusters)[:clusters])
    writer = StoreWriter.begin(
        folder,
        graph_fingerprint=graph.structure_fingerprint(),
        parameters=parameters or {"teleport": diffusion.teleport},
        num_nodes=graph.num_nodes,
        roots=None if roots is None else np.array(roots, np.int64),
        num_clusters=clusters,
        rows_per_shard=max(len(chosen), 1),
        k=k,
    )
    if clusters:
        writer.write_clusters(cluster_of_node)
    for index in range(writer.num_shards):
        rows = Rows(
            row_ptr=np.cumsum([0, *sizes]),
            ids=np.array(ids, np.int32),
            weights=np.array(weights, np.float32),
            missing_mass=np.array(missing, np.float32),
            cut_mass=np.array(cut, np.float16).reshape(len(sizes), clusters),
        )
        writer.write_shard(index, rows)
    writer.finish(exact[chosen].sum(0) if clusters else None)
    return PPRStore.open(folder)
