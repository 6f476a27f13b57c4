"""How long does a batch take to assemble, and how many encodings does the order `local` save?

    python benchmarks/bench_batches.py --dataset ogbn-arxiv-sim --data-dir DIR --ppr STORE

Prints two JSON lines. First, encodings of an epoch (mean of three) at random, in the order `local`,
and for comparison with roots sorted by the store's cluster or by METIS parts of the whole graph,
shuffled in the same groups. Second, milliseconds per batch by tail and order in one thread, median
and spread over the batches of an epoch; tails and orders take turns.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from gpn_scale.config import DiffusionConfig, MinibatchConfig, TailKind
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph import Graph
from gpn_scale.data.metis import metis_partition
from gpn_scale.data.splits import stratified_split
from gpn_scale.ppr.batches import GROUPS_PER_BATCH, BatchLoader, epoch_cost
from gpn_scale.ppr.grouping import shuffled_groups
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.tails import make_tail

EPOCHS = 3
ORDERS = ("random", "local")


class Bench:
    """A graph, its store, and loaders over its training nodes."""

    def __init__(self, graph: Graph, store: PPRStore, batch_size: int, epoch_batches: int) -> None:
        assert graph.split is not None
        self.graph, self.store, self.roots = graph, store, graph.split.train
        self.batch_size, self.epoch_batches = batch_size, epoch_batches
        stored = store.parameters
        self.diffusion = DiffusionConfig(
            teleport=stored["teleport"],
            normalisation=stored["normalisation"],
            steps="inf" if stored["steps"] == "inf" else int(stored["steps"]),
            self_loops=stored["self_loops"],
        )

    def loader(self, order: Any, tail: TailKind) -> BatchLoader:
        """Batches as training has them, without threads."""
        config = MinibatchConfig(batch_size=self.batch_size, order=order, tail=tail, workers=0)
        made = make_tail(config, self.store, self.graph, self.diffusion)
        features = self.graph.features
        return BatchLoader(self.roots, self.store, made, features, "none", config, rng_seed=1)

    def encodings(self) -> dict[str, Any]:
        """Encodings of an epoch, by order."""
        began = time.perf_counter()
        local = self.loader("local", "truncated")
        seconds = time.perf_counter() - began
        chosen: dict[str, Callable[[int], list[NDArray[np.int64]]]] = {
            "random": self.loader("random", "truncated").epoch_roots,
            "local": local.epoch_roots,
        }
        if self.store.cluster_of_node is not None:
            chosen["by_cluster"] = self.grouped(self.store.cluster_of_node[self.roots])
        chosen["by_graph_part"] = self.grouped(self.graph_parts())
        costs = {
            name: [epoch_cost(order(epoch), self.store) for epoch in range(EPOCHS)]
            for name, order in chosen.items()
        }
        means = {
            name: float(np.mean([cost.encodings for cost in each])) for name, each in costs.items()
        }
        return {
            "batches": local.num_batches,
            "distinct": costs["random"][0].distinct,
            "encodings": means,
            "local_saves": 1.0 - means["local"] / means["random"],
            "ordering_seconds": seconds,
        }

    def grouped(self, key: NDArray[Any]) -> Callable[[int], list[NDArray[np.int64]]]:
        """An epoch's batches as of the order `local`, of roots sorted by `key`."""
        ordering = np.argsort(key, kind="stable")

        def epoch_roots(epoch: int) -> list[NDArray[np.int64]]:
            rng = np.random.default_rng(epoch)
            order = shuffled_groups(ordering, self.batch_size // GROUPS_PER_BATCH, rng)
            cuts = np.arange(self.batch_size, len(order), self.batch_size)
            return np.split(self.roots[order], cuts)

        return epoch_roots

    def graph_parts(self) -> NDArray[np.int32]:
        """METIS parts of all nodes, balanced by roots, two for a group; of the roots."""
        weight = np.zeros(self.graph.num_nodes, np.int64)
        weight[self.roots] = 1
        parts = 2 * GROUPS_PER_BATCH * len(self.roots) // self.batch_size
        found = metis_partition(
            self.graph.indptr, self.graph.indices, max(parts, 1), node_weight=weight
        )
        assert found is not None, "pymetis is not installed"
        return found[self.roots]

    def milliseconds(self) -> dict[str, Any]:
        """Time per batch by tail and order: median and slowest - fastest."""
        ways = [(tail, order) for tail in get_args(TailKind) for order in ORDERS]
        epochs = {(tail, order): self.loader(order, tail).epoch(0) for tail, order in ways}
        times: dict[tuple[str, str], list[float]] = {way: [] for way in ways}
        for _ in range(self.epoch_batches + 1):
            for way in ways:
                began = time.perf_counter()
                next(epochs[way])
                times[way].append(1e3 * (time.perf_counter() - began))
        return {
            # The first batch finds the features and rows not yet in memory.
            f"{tail}_{order}": [float(np.median(each[1:])), max(each[1:]) - min(each[1:])]
            for (tail, order), each in times.items()
        }


def main() -> None:
    """Both questions, one JSON line each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--dataset", default="ogbn-arxiv-sim")
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--ppr", type=Path, required=True, help="store with clusters")
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--batches", type=int, default=20, help="batches to time, at most")
    options = parser.parse_args()
    graph = load_graph(options.dataset, options.data_dir)
    if graph.split is None:
        graph = stratified_split(graph, rng_seed=1)
    assert graph.split is not None
    store = PPRStore.open(options.ppr, graph_fingerprint=graph.structure_fingerprint())
    whole_batches = len(graph.split.train) // options.batch_size
    timed = min(options.batches, whole_batches - 1)
    bench = Bench(graph, store, options.batch_size, timed)
    facts = {"dataset": options.dataset, "roots": len(bench.roots), "k": store.k}
    facts |= {"batch_size": options.batch_size}
    print(json.dumps(facts | bench.encodings()), flush=True)
    print(json.dumps(facts | {"timed_batches": timed} | bench.milliseconds()), flush=True)


if __name__ == "__main__":
    main()
