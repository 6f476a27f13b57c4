"""How many rows per second does precompute make, at which quality, compared with PyG's `get_ppr`?

    python benchmarks/bench_ppr_throughput.py --dataset NAME --data-dir DIR

For each setting: all rows by sweeps on 2 threads (compilation not included), recall of the exact
top-k and L1 error on it for 200 sampled roots (exact by power iteration to 1e-9), and throughput
and quality of `torch_geometric.utils.get_ppr(eps=1e-5)` on samples of roots in the same run. Prints
one JSON line per setting. `get_ppr` supports neither weights nor sym, so its figures at the same
teleport are used. Two settings sweep just long enough for the quality of `get_ppr`; the others use
our defaults.
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numba
import numpy as np
import scipy.sparse

from gpn_scale.config import DiffusionConfig, PPRConfig
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph import Graph
from gpn_scale.diffusion.transition import steps_to_tolerance, transition_matrix
from precompute.mpi import SingleProcess
from precompute.padded_row_kernels import finish_rows_into
from precompute.row_engine import RowEngine
from precompute.row_kernels import PaddedRows
from precompute.scratch_memory import new_rows

SETTINGS = [
    (0.2, 32, 64, 0, "rw"),
    (0.2, 32, 64, 0, "sym"),
    (0.2, 32, 48, 7, "rw"),
    (0.2, 32, 32, 7, "sym"),
    (0.1, 64, 192, 0, "rw"),
    (0.1, 64, 192, 0, "sym"),
]
"""Teleport, k, entries kept while sweeping, sweeps (0: until rows hardly grow), normalisation."""


def exact_rows(engine: RowEngine, roots: np.ndarray, teleport: float) -> np.ndarray:
    """Return the rows of `roots` by power iteration to 1e-9 in float64, (N, roots)."""
    weight = engine.weight.astype(np.float64)
    shape = (engine.num_nodes, engine.num_nodes)
    transposed = scipy.sparse.csr_array(
        (weight, engine.indices, engine.indptr), shape=shape
    ).T.tocsr()
    start = np.zeros((engine.num_nodes, len(roots)))
    start[roots, np.arange(len(roots))] = teleport
    rows = start.copy()
    for _ in range(steps_to_tolerance(teleport, 1e-9)):
        rows = (1 - teleport) * (transposed @ rows) + start
    return rows


def quality(rows: PaddedRows, exact: np.ndarray, roots: np.ndarray, k: int) -> dict[str, float]:
    """Return recall of the exact top-k, L1 error on it and the largest excess over the truth."""
    recall, error, excess = [], [], []
    for column, root in enumerate(roots):
        truth = exact[:, column]
        top = np.argsort(-truth, kind="stable")[:k]
        got = np.zeros(len(truth))
        size = rows.sizes[root]
        got[rows.ids[root, :size]] = rows.weights[root, :size]
        recall.append((got[top] > 0).mean())
        error.append(np.abs(truth[top] - got[top]).sum())
        excess.append((got - truth).max())
    return {
        "recall": float(np.mean(recall)),
        "l1_error": float(np.mean(error)),
        "largest_excess": float(np.max(excess)),
    }


def measure_ours(
    graph: Graph, teleport: float, k: int, keep: int, limit: int, normalisation: Any, options: Any
) -> dict[str, Any]:
    """Return throughput and quality of sweeps."""
    diffusion = DiffusionConfig(teleport=teleport, normalisation=normalisation, steps="inf")
    config = PPRConfig(
        diffusion=diffusion,
        k=k,
        keep=keep,
        sweeps=limit,
        sweep_tolerance=options.sweep_tolerance,
    )
    transition = transition_matrix(graph, normalisation, True)
    engine = RowEngine(transition, config, SingleProcess(), threads=options.threads)
    nodes = np.arange(graph.num_nodes)
    sweeps = []
    seconds = []
    for _ in range(options.repeats):
        began = time.perf_counter()
        rows = engine.sweep(lambda sweep, _: sweeps.append(sweep)).of(nodes)
        finish_rows_into(k, *rows)
        seconds.append(time.perf_counter() - began)
    roots = np.random.default_rng(0).choice(graph.num_nodes, options.sample, replace=False)
    exact = exact_rows(engine, roots, teleport)
    median = sorted(seconds)[len(seconds) // 2]
    return {
        "seconds": median,
        "spread_seconds": max(seconds) - min(seconds),
        "roots_per_second": graph.num_nodes / median,
        "sweeps": max(sweeps),
        **quality(rows, exact, roots, k),
    }


def measure_pyg(graph: Graph, teleport: float, k: int, options: Any) -> dict[str, float]:
    """Return throughput and quality of PyG's push at eps=1e-5, on the graph with self-loops."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch
        from torch_geometric.utils import get_ppr
    numba.set_num_threads(options.threads)
    transition = transition_matrix(graph, "rw", True)
    source = np.repeat(np.arange(graph.num_nodes), np.diff(transition.indptr))
    edges = torch.from_numpy(np.stack([source, transition.indices]).astype(np.int64))
    targets = torch.from_numpy(
        np.random.default_rng(1).choice(graph.num_nodes, options.pyg_roots, replace=False)
    )
    get_ppr(edges, alpha=teleport, eps=1e-3, target=targets[:2], num_nodes=graph.num_nodes)
    began = time.perf_counter()
    get_ppr(edges, alpha=teleport, eps=1e-5, target=targets[:2], num_nodes=graph.num_nodes)
    overhead = time.perf_counter() - began
    began = time.perf_counter()
    get_ppr(edges, alpha=teleport, eps=1e-5, target=targets, num_nodes=graph.num_nodes)
    # The cost of a call beside its roots (sorting the edges) is not counted.
    rate = options.pyg_roots / (time.perf_counter() - began - overhead)
    roots = np.random.default_rng(0).choice(graph.num_nodes, options.sample, replace=False)
    rows = new_rows(graph.num_nodes, k)
    for some in np.array_split(
        roots, -(-len(roots) // 10)
    ):  # its rows are not cut, and take much memory
        pairs, mass = get_ppr(
            edges,
            alpha=teleport,
            eps=1e-5,
            target=torch.from_numpy(some),
            num_nodes=graph.num_nodes,
        )
        keep_top_into(rows, pairs.numpy(), mass.numpy(), k)
    config = PPRConfig(diffusion=DiffusionConfig(teleport=teleport, normalisation="rw"), k=k)
    engine = RowEngine(transition, config, SingleProcess(), threads=options.threads)
    found = quality(rows, exact_rows(engine, roots, teleport), roots, k)
    return {
        "pyg_roots_per_second": rate,
        "pyg_recall": found["recall"],
        "pyg_l1_error": found["l1_error"],
    }


def keep_top_into(rows: PaddedRows, pairs: np.ndarray, mass: np.ndarray, k: int) -> None:
    """Write the k largest entries of each root of a list of (root, node) pairs to its row."""
    for root in np.unique(pairs[0]):
        places = np.flatnonzero(pairs[0] == root)
        places = places[np.argsort(-mass[places], kind="stable")[:k]]
        rows.ids[root, : len(places)] = pairs[1][places]
        rows.weights[root, : len(places)] = mass[places]
        rows.sizes[root] = len(places)


def main() -> None:
    """Measure all settings and print one JSON line each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--dataset", required=True, help="name of a graph in --data-dir")
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sample", type=int, default=200, help="roots for quality")
    parser.add_argument("--pyg-roots", type=int, default=1000)
    parser.add_argument("--sweep-tolerance", type=float, default=PPRConfig().sweep_tolerance)
    parser.add_argument("--settings", type=int, nargs="+", default=range(len(SETTINGS)))
    options = parser.parse_args()
    graph = load_graph(options.dataset, options.data_dir)
    pyg: dict[float, dict[str, float]] = {}
    for teleport, k, keep, limit, normalisation in [SETTINGS[index] for index in options.settings]:
        if teleport not in pyg:
            pyg[teleport] = measure_pyg(graph, teleport, k, options)
        ours = measure_ours(graph, teleport, k, keep, limit, normalisation, options)
        setting = {"teleport": teleport, "k": k, "keep": keep, "normalisation": normalisation}
        ratio = ours["roots_per_second"] / pyg[teleport]["pyg_roots_per_second"]
        print(json.dumps(setting | ours | pyg[teleport] | {"times_pyg": ratio}), flush=True)


if __name__ == "__main__":
    main()
