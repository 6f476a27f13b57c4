"""How long do top-k PageRank rows take, and how good are they, by `topk_ppr` and by others?

    python benchmarks/bench_ppr_rivals.py [--dataset synthetic:nodes=20000] [--data-dir DIR]
        [--packages topk_ppr,PyG,...] [--roots 50] [--write FILE]

The same roots on the same graph for all packages, in one process: edges in both directions and a
loop at every node, so that all of them walk alike. The time is that of all roots in one call (or
one call per root where a package has no other), median of the repeats, without compilation and
without what a package does once per graph; the sweep of all nodes is divided by their number.
Quality is that of the k largest entries of each row against the exact row (power iteration to
1e-12): recall, the L1 error on the exact k largest, and the largest excess over an exact weight.
Packages that are not installed are skipped, and named below the table. `--write FILE` writes it.
"""

import argparse
import platform
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numba
import numpy as np
import scipy.sparse

from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph import Graph
from gpn_scale.diffusion.transition import steps_to_tolerance, transition_matrix
from gpn_scale.files import write_text
from precompute import TopKRows, topk_ppr

EXACT = 1e-12
"""Mass that the exact rows leave undistributed."""
CONVERGED = 1e-6
"""Tolerance of packages that iterate."""
LOOSE = 0.5
"""Tolerance at which a push does next to nothing, to measure what a call costs besides."""

Pairs = list[tuple[np.ndarray, np.ndarray]]
"""Ids and weights of the k largest entries, by root."""
Ways = dict[str, Callable[[], Pairs]]
"""Name of a row of the table -> the call that is timed."""


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """What all packages compute."""

    matrix: scipy.sparse.csr_array
    """Adjacency in both directions, with loops, (N, N)."""
    roots: np.ndarray
    k: int
    teleport: float
    threads: int

    @property
    def num_nodes(self) -> int:
        """Number N of nodes."""
        return int(self.matrix.shape[0])

    def top(self, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ids and weights of the k largest entries of a full row."""
        k = min(self.k, len(row))
        ids = np.argpartition(-row, k - 1)[:k]
        return ids, row[ids]


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A row of the table."""

    name: str
    milliseconds: float
    spread: float
    recall: float
    error: float
    excess: float
    bounded: str


def ours(task: Task, graph: Graph) -> dict[str, tuple[Callable[[], TopKRows], int]]:
    """Return the calls of `topk_ppr`, and by how many roots their time is divided."""
    options = {"k": task.k, "teleport": task.teleport, "self_loops": True, "threads": task.threads}
    roots = task.roots
    return {
        "topk_ppr, push": (lambda: topk_ppr(graph, roots, method="push", **options), len(roots)),
        "topk_ppr, push, 1e-4": (
            lambda: topk_ppr(graph, roots, method="push", tolerance=1e-4, **options),
            len(roots),
        ),
        "topk_ppr, all nodes": (
            lambda: topk_ppr(graph, method="sweep", **options),
            graph.num_nodes,
        ),
    }


def pyg(task: Task) -> tuple[Ways, float]:
    """Return pushes by PyG, and the seconds of a call that are not for its roots."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch
        from torch_geometric.utils import get_ppr
    entries = task.matrix.tocoo()
    edges = torch.from_numpy(np.stack([entries.row, entries.col]).astype(np.int64))
    roots = torch.from_numpy(task.roots.astype(np.int64))

    def rows(eps: float, count: int) -> Pairs:
        index, weight = get_ppr(
            edges, task.teleport, eps, target=roots[:count], num_nodes=task.num_nodes
        )
        wanted, row = task.roots[:count], index[0].numpy()
        pairs: Pairs = []
        for start, stop in zip(
            np.searchsorted(row, wanted), np.searchsorted(row, wanted, "right"), strict=True
        ):
            places, values = task.top(weight[start:stop].numpy())
            pairs.append((index[1, start:stop].numpy()[places], values))
        return pairs

    assert (np.diff(task.roots) > 0).all()  # entries come in the order of targets
    rows(LOOSE, 1)
    seconds = median_seconds(lambda: rows(LOOSE, 1), 3)[0]
    count = len(task.roots)
    ways: Ways = {f"PyG get_ppr, {eps:g}": lambda eps=eps: rows(eps, count) for eps in (1e-4, 1e-6)}
    return ways, seconds


def scikit_network(task: Task) -> tuple[Ways, float]:
    """Return rows by scikit-network's power iteration."""
    from sknetwork.ranking import PageRank

    adjacency = scipy.sparse.csr_matrix(task.matrix)
    steps = steps_to_tolerance(task.teleport, CONVERGED)
    rank = PageRank(1 - task.teleport, solver="piteration", n_iter=steps, tol=CONVERGED)
    name = "scikit-network, power iteration"
    return {
        name: lambda: [task.top(rank.fit_predict(adjacency, {int(r): 1.0})) for r in task.roots]
    }, 0.0


def igraph(task: Task) -> tuple[Ways, float]:
    """Return rows by igraph's direct method."""
    from igraph import Graph as IGraph

    entries = task.matrix.tocoo()
    graph = IGraph(task.num_nodes, np.stack([entries.row, entries.col], 1).tolist(), directed=True)

    def row(root: int) -> tuple[np.ndarray, np.ndarray]:
        values = graph.personalized_pagerank(damping=1 - task.teleport, reset_vertices=[root])
        return task.top(np.asarray(values))

    return {"igraph, PRPACK": lambda: [row(int(root)) for root in task.roots]}, 0.0


def fast_pagerank(task: Task) -> tuple[Ways, float]:
    """Return rows by fast-pagerank's power iteration."""
    from fast_pagerank import pagerank_power

    adjacency = scipy.sparse.csr_matrix(task.matrix)

    def row(root: int) -> tuple[np.ndarray, np.ndarray]:
        start = np.zeros(task.num_nodes)
        start[root] = 1.0
        values = pagerank_power(
            adjacency, p=1 - task.teleport, personalize=start, tol=CONVERGED, max_iter=1000
        )
        return task.top(np.asarray(values))

    return {"fast-pagerank, power iteration": lambda: [row(int(r)) for r in task.roots]}, 0.0


RIVALS = {
    "PyG": ("torch-geometric", pyg),
    "scikit-network": ("scikit-network", scikit_network),
    "igraph": ("igraph", igraph),
    "fast-pagerank": ("fast-pagerank", fast_pagerank),
}
"""Package -> its distribution, and the function that returns its calls."""


def exact_rows(task: Task) -> np.ndarray:
    """Return the exact rows of the roots, (N, B), by power iteration in float64."""
    weight = np.asarray(task.matrix.sum(1)).ravel()
    step = (scipy.sparse.diags_array(1.0 / weight) @ task.matrix).T.tocsr()
    start = np.zeros((task.num_nodes, len(task.roots)))
    start[task.roots, np.arange(len(task.roots))] = task.teleport
    rows = start.copy()
    for _ in range(steps_to_tolerance(task.teleport, EXACT)):
        rows = (1 - task.teleport) * (step @ rows) + start
    return rows


def median_seconds(call: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Return the median and the spread of the times of a call."""
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return sorted(seconds)[len(seconds) // 2], max(seconds) - min(seconds)


def quality(task: Task, exact: np.ndarray, pairs: Pairs) -> tuple[float, float, float]:
    """Return recall, L1 error on the exact top k, and the largest excess over the truth."""
    recall, error, excess = [], [], []
    for column, (ids, weights) in enumerate(pairs):
        truth = exact[:, column]
        top = np.argsort(-truth, kind="stable")[: task.k]
        top = top[truth[top] > 0]
        row = np.zeros(len(truth))
        row[ids] = weights
        recall.append((row[top] > 0).mean())
        error.append(np.abs(truth[top] - row[top]).sum())
        excess.append((row - truth).max())
    return float(np.mean(recall)), float(np.mean(error)), float(np.max(excess))


def measure_ours(task: Task, graph: Graph, exact: np.ndarray, repeats: int) -> list[Measured]:
    """Measure `topk_ppr`; what a call costs besides its roots is subtracted from pushes."""
    measured = []
    few = task.roots[:1]
    options = {"k": task.k, "teleport": task.teleport, "self_loops": True, "threads": task.threads}
    options |= {"method": "push", "tolerance": LOOSE}
    topk_ppr(graph, few, **options)  # compiles
    besides = median_seconds(lambda: topk_ppr(graph, few, **options), 3)[0]
    for name, (call, count) in ours(task, graph).items():
        rows = call()
        seconds, spread = median_seconds(call, repeats)
        if count == len(task.roots):
            seconds = max(seconds - besides, 0.0)
        at = np.searchsorted(rows.roots, task.roots)
        pairs = [
            (ids[ids >= 0], w[ids >= 0]) for ids, w in zip(rows.ids, rows.weights, strict=True)
        ]
        parts = quality(task, exact, [pairs[place] for place in at])
        left = f"{rows.missing_mass[at].mean():.3f}"
        measured.append(Measured(name, 1e3 * seconds / count, 1e3 * spread / count, *parts, left))
    return measured


def measure_rival(
    task: Task, exact: np.ndarray, prepare: Callable[[Task], tuple[Ways, float]], repeats: int
) -> list[Measured]:
    """Measure the calls of one package."""
    ways, besides = prepare(task)
    count = len(task.roots)
    measured = []
    for name, call in ways.items():
        pairs = call()
        seconds, spread = median_seconds(call, repeats)
        per_root = 1e3 * max(seconds - besides, 0.0) / count
        parts = quality(task, exact, pairs)
        measured.append(Measured(name, per_root, 1e3 * spread / count, *parts, "-"))
    return measured


def table(measured: list[Measured]) -> str:
    """Return the table as Markdown."""
    lines = [
        "| package | ms per root | spread | recall | L1 error | largest excess | missing mass |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {m.name} | {m.milliseconds:.3g} | {m.spread:.2g} | {m.recall:.4f} | {m.error:.2g} | "
        f"{m.excess:.1g} | {m.bounded} |"
        for m in measured
    ]
    return "\n".join(lines)


def installed(distribution: str) -> str | None:
    """Return the installed version of a package; None without it."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def main() -> None:
    """Measure all packages and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--dataset", default="synthetic:nodes=20000,features=2")
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--packages", default=",".join(["topk_ppr", *RIVALS]))
    parser.add_argument("--roots", type=int, default=50)
    parser.add_argument("--k", type=int, default=32)
    parser.add_argument("--teleport", type=float, default=0.15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--write", type=Path, help="file for the table")
    options = parser.parse_args()
    graph = load_graph(options.dataset, options.data_dir)
    numba.set_num_threads(options.threads)  # PyG's push is numba's as well
    transition = transition_matrix(graph, "rw", True)
    arrays = (np.ones(len(transition.indices)), transition.indices, transition.indptr)
    rng = np.random.default_rng(0)
    task = Task(
        scipy.sparse.csr_array(arrays, shape=(graph.num_nodes, graph.num_nodes)),
        np.sort(rng.choice(graph.num_nodes, options.roots, replace=False)),
        options.k,
        options.teleport,
        options.threads,
    )
    exact = exact_rows(task)
    chosen, skipped, versions = options.packages.split(","), [], []
    measured = measure_ours(task, graph, exact, options.repeats) if "topk_ppr" in chosen else []
    for name, (distribution, prepare) in RIVALS.items():
        if name in chosen and installed(distribution) is None:
            skipped.append(name)
        elif name in chosen:
            measured += measure_rival(task, exact, prepare, options.repeats)
            versions.append(f"{distribution} {installed(distribution)}")
    text = "\n".join(
        [
            f"{graph.num_nodes:,} nodes, {task.matrix.nnz:,} entries with loops, "
            f"{options.roots} roots, k = {options.k}, teleport {options.teleport:g}, "
            f"{options.threads} thread(s) where a package uses them, median of {options.repeats}.",
            "",
            table(measured),
            "",
            f"Python {platform.python_version()}; {', '.join(versions) or 'no other package'}.",
            f"Not installed, and skipped: {', '.join(skipped) or 'none'}.",
        ]
    )
    print(text)
    if options.write is not None:
        command = " ".join(sys.argv[1:])
        write_text(options.write, f"`python benchmarks/bench_ppr_rivals.py {command}`\n\n{text}\n")


if __name__ == "__main__":
    main()
