"""What does an update of a store cost, against building it again, and do its bounds hold?

    python benchmarks/bench_update.py [--dataset synthetic:nodes=20000] [--data-dir DIR] [--run RUN]
    python benchmarks/bench_update.py --series 20 [--dataset ...]
    python benchmarks/bench_update.py --edges 10000 --nodes 0 --no-rebuild --dataset ...

Builds a store, then adds edges between random nodes (10, 1,000 and 10,000) and new nodes with five
edges each (1 % of all), each to a copy of the store, and updates it. Prints the fraction of rows
that were computed again, the time against that of a rebuild in the same process, and the largest
true movement of sampled rows that stayed, over their bound. With `--run`, the model of a run
predicts sampled nodes, and rank correlations of alpha_0 from the updated store are printed: with
the rebuilt one, whose clusters METIS drew anew, and with one of the same clusters in which all rows
that can have moved was computed again (tolerance 0). `--series`
makes many small updates in a row and folds them. `--write FILE` writes the table.
"""

import argparse
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.stats

from gpn_scale import GPNClassifier, Graph, PPRStore, load_graph
from gpn_scale.config import DiffusionConfig, PPRConfig
from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import CSRFeatures
from gpn_scale.diffusion.transition import transition_matrix
from precompute.build import build_store
from precompute.compact import compact_store
from precompute.exact_mass import arriving_mass
from precompute.update import UpdatePlan, update_store

SAMPLED_ROWS = 200
EDGES_PER_NODE = 5


def changed(graph: Graph, edges: int, nodes: int, rng: np.random.Generator) -> Graph:
    """Return the graph with random edges between old nodes, and new nodes with five edges each."""
    total = graph.num_nodes + nodes
    source = rng.integers(graph.num_nodes, size=edges)
    target = rng.integers(graph.num_nodes, size=edges)
    new = np.repeat(np.arange(graph.num_nodes, total), EDGES_PER_NODE)
    joined = rng.integers(graph.num_nodes, size=len(new))
    row = np.repeat(np.arange(graph.num_nodes, dtype=np.int32), graph.out_degree)
    features = graph.features
    if nodes and features is not None:
        assert not isinstance(features, CSRFeatures), "new nodes need dense features here"
        features = np.concatenate([features, features[rng.integers(graph.num_nodes, size=nodes)]])
    labels = np.append(graph.labels, np.full(nodes, -1, np.int32))
    return build_graph(
        np.concatenate([row, source, new]),
        np.concatenate([graph.indices, target, joined]),
        num_nodes=total,
        features=features,
        labels=labels,
        num_classes=graph.num_classes,
        split=graph.split,
    )


def largest_excess(
    before: PPRStore, after: PPRStore, old: Graph, new: Graph, diffusion: DiffusionConfig
) -> float:
    """Return the largest true movement of sampled rows that stayed, over the bound on it."""
    roots = before.roots
    bounds = after.moved(roots)
    stayed = roots[bounds > 0.0]
    if not len(stayed):
        return 0.0
    chosen = np.random.default_rng(0).choice(stayed, min(SAMPLED_ROWS, len(stayed)), replace=False)
    matrices = []
    for graph in (old, new):
        transition = transition_matrix(graph, diffusion.normalisation, diffusion.self_loops)
        matrices.append((transition.indptr, transition.indices, transition.weight))
    steps = 200 if diffusion.steps == "inf" else diffusion.steps
    largest = 0.0
    for root in chosen.tolist():
        rows = []
        for graph, matrix in zip((old, new), matrices, strict=True):
            start = np.zeros(graph.num_nodes)
            start[root] = 1.0
            rows.append(arriving_mass(*matrix, start, teleport=diffusion.teleport, steps=steps))
        rows[0] = np.append(rows[0], np.zeros(new.num_nodes - old.num_nodes))
        moved = np.abs(rows[1] - rows[0]).sum()
        largest = max(largest, float(moved / after.moved([root])[0]))
    return largest


def largest_overshoot(store: PPRStore, graph: Graph, diffusion: DiffusionConfig) -> float:
    """Return by how much kept weights of sampled rows exceed the true ones, over their bound."""
    stayed = store.roots[store.moved(store.roots) > 0.0]
    chosen = np.random.default_rng(0).choice(stayed, min(SAMPLED_ROWS, len(stayed)), replace=False)
    transition = transition_matrix(graph, diffusion.normalisation, diffusion.self_loops)
    matrix = (transition.indptr, transition.indices, transition.weight)
    steps = 200 if diffusion.steps == "inf" else diffusion.steps
    largest = 0.0
    for root in chosen.tolist():
        start = np.zeros(graph.num_nodes)
        start[root] = 1.0
        true = arriving_mass(*matrix, start, teleport=diffusion.teleport, steps=steps)
        ids, weights = store.row(root)
        above = np.maximum(weights - true[ids], 0.0).sum()
        largest = max(largest, float(above / store.moved([root])[0]))
    return largest


def alpha_correlations(run: Path, graph: Graph, updated: Path, others: list[Path]) -> list[float]:
    """Return rank correlations of alpha_0 that a frozen model predicts, with each other store."""
    model = GPNClassifier.load(run / "model.safetensors")
    nodes = np.random.default_rng(1).choice(
        graph.num_nodes, min(20_000, graph.num_nodes), replace=False
    )
    alpha_0, *values = [
        model.predict_nodes(graph, nodes, path).prediction.alpha_0 for path in (updated, *others)
    ]
    return [float(scipy.stats.spearmanr(alpha_0, other).statistic) for other in values]


def seconds_of(work: "object", *arguments: object, **options: object) -> tuple[float, object]:
    """Return the time of a call, and its result."""
    began = time.perf_counter()
    result = work(*arguments, **options)  # type: ignore[operator]
    return time.perf_counter() - began, result


def single_updates(graph: Graph, config: PPRConfig, work: Path, options: argparse.Namespace) -> str:
    """Update copies of one store after changes of several sizes; return the table."""
    build_seconds, _ = seconds_of(build_store, graph, config, work / "old")
    build_seconds, _ = seconds_of(build_store, graph, config, work / "old", existing="overwrite")
    lines = [
        f"build: {build_seconds:.2f} s",
        "",
        "| change | rows again | seconds | rebuild | ratio | moved / bound | Spearman alpha_0 "
        "| same clusters |",
        "|---|---|---|---|---|---|---|---|",
    ]
    one_percent = graph.num_nodes // 100 if options.nodes is None else options.nodes
    sizes = [(edges, 0) for edges in options.edges] + ([(0, one_percent)] if one_percent else [])
    for edges, nodes in sizes:
        new = changed(graph, edges, nodes, np.random.default_rng(edges + nodes))
        shutil.copytree(work / "old", work / "updated")
        before = PPRStore.open(work / "updated")
        tolerance = options.tolerance
        seconds, plan = seconds_of(update_store, work / "updated", new, tolerance=tolerance)
        assert isinstance(plan, UpdatePlan)
        rebuild, correlations = float("nan"), [float("nan")] * 2
        if not options.no_rebuild:
            rebuild, _ = seconds_of(build_store, new, config, work / "rebuilt")
            if options.run is not None:
                shutil.copytree(work / "old", work / "all_rows")
                update_store(work / "all_rows", new, tolerance=0.0)
                others = [work / "rebuilt", work / "all_rows"]
                correlations = alpha_correlations(options.run, new, work / "updated", others)
        after = PPRStore.open(work / "updated")
        excess = largest_excess(before, after, graph, new, config.diffusion)
        name = f"{edges:,} edges" if edges else f"{nodes:,} nodes with {EDGES_PER_NODE} edges"
        fraction = plan.computed_rows / plan.num_roots
        lines.append(
            f"| {name} | {plan.computed_rows:,} ({fraction:.2%}) | {seconds:.2f} | {rebuild:.2f} "
            f"| {seconds / rebuild:.3f} | {excess:.2f} | {correlations[0]:.5f} "
            f"| {correlations[1]:.5f} |"
        )
        print(lines[-1], flush=True)
        del before, after
        for folder in ("updated", "rebuilt", "all_rows"):
            shutil.rmtree(work / folder, ignore_errors=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return "\n".join([*lines, "", f"peak memory {peak:.2f} GiB"])


def series(graph: Graph, config: PPRConfig, work: Path, options: argparse.Namespace) -> str:
    """Update a store many times in a row, fold it, and compare it with a rebuilt one."""
    build_store(graph, config, work / "store")
    rng = np.random.default_rng(0)
    total = 0.0
    for _ in range(options.series):
        graph = changed(graph, options.edges[0], 0, rng)
        seconds, _ = seconds_of(update_store, work / "store", graph, tolerance=options.tolerance)
        total += seconds
    before_bytes = folder_bytes(work / "store")
    compact_seconds, left = seconds_of(compact_store, work / "store")
    rebuild, _ = seconds_of(build_store, graph, config, work / "rebuilt")
    store = PPRStore.open(work / "store")
    moved = store.moved(store.roots)
    excess = largest_overshoot(store, graph, config.diffusion)
    size, other = folder_bytes(work / "store"), folder_bytes(work / "rebuilt")
    return "\n".join(
        [
            "| updates | edges each | seconds each | rebuild | compact | moved, largest | "
            "too much / bound | size before compact | after | of a rebuilt store |",
            "|---|---|---|---|---|---|---|---|---|---|",
            f"| {options.series} | {options.edges[0]:,} | {total / options.series:.2f} "
            f"| {rebuild:.2f} s | {compact_seconds:.2f} s | {moved.max():.4f} | {excess:.2f} "
            f"| {before_bytes / 2**20:.1f} MiB | {size / 2**20:.1f} MiB | {size / other:.3f} |",
            "",
            f"left after compact: {left or 'nothing'}",
        ]
    )


def folder_bytes(folder: Path) -> int:
    """Return the size of all files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    """Measure and print the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--dataset", default="synthetic:nodes=20000", help="graph")
    parser.add_argument("--data-dir", type=Path, default=Path("data"), help="folder of the graph")
    parser.add_argument("--run", type=Path, help="run whose model predicts from both stores")
    parser.add_argument("--edges", type=int, nargs="+", default=[10, 1_000, 10_000])
    parser.add_argument("--nodes", type=int, help="new nodes (default: 1 %% of all)")
    parser.add_argument("--tolerance", type=float, default=0.01)
    parser.add_argument("--k", type=int, default=32)
    parser.add_argument("--clusters", type=int, default=32)
    parser.add_argument("--steps", default="10", help="number of steps, or inf")
    parser.add_argument("--teleport", type=float, default=0.2)
    parser.add_argument("--normalisation", choices=["sym", "rw"], default="sym")
    parser.add_argument("--series", type=int, help="number of updates in a row")
    parser.add_argument("--no-rebuild", action="store_true", help="leave out the comparison")
    parser.add_argument("--work", type=Path, help="folder for the stores (default: temporary)")
    parser.add_argument("--write", type=Path, help="file for the table")
    options = parser.parse_args()
    diffusion = DiffusionConfig(
        teleport=options.teleport,
        normalisation=options.normalisation,
        steps="inf" if options.steps == "inf" else int(options.steps),
    )
    config = PPRConfig(diffusion=diffusion, k=options.k, clusters=options.clusters)
    graph = load_graph(options.dataset, options.data_dir)
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        measure = single_updates if options.series is None else series
        text = measure(graph, config, Path(folder), options)
    print(text)
    if options.write is not None:
        command = " ".join(sys.argv[1:])
        options.write.write_text(f"`bench_update.py {command}`\n\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
