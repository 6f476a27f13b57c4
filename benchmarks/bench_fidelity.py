"""Is minibatch mode the exact model, in uncertainty as well as in accuracy?

    python benchmarks/bench_fidelity.py --data-dir DIR [--datasets A,B] [--seeds 5] [--write FILE]

Trains both modes with the same settings, splits and seeds, and compares; and compares alpha_0 from
stored rows with exact diffusion of the same weights over tails, k and numbers of clusters. Every
finished run is a small JSON file in --cells; a second call goes on where the first stopped.
"""

import argparse
import json
import multiprocessing
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

DATASETS = ("CoraML", "CiteSeer", "AmazonPhotos", "CoauthorCS")
TAILS = ("truncated", "renormalised", "stationary", "sampled", "clustered")
KS, CLUSTERS = (16, 32, 64, 128), (8, 32, 128)
MAIN_K, MAIN_CLUSTERS = 32, 32
METRICS = {
    "accuracy": ("clean", "accuracy"),
    "ECE": ("clean", "ece"),
    "ID accuracy": ("left_out", "id_accuracy"),
    "AUC-ROC epistemic": ("left_out", "auroc_epistemic"),
    "AUC-ROC epistemic, no network": ("left_out", "auroc_epistemic_no_network"),
}


class Cell(NamedTuple):
    """One training run; `tail` is empty in exact mode."""

    dataset: str
    experiment: str
    tail: str
    seed: int

    def path(self, cells: Path) -> Path:
        """Where its numbers are kept."""
        name = f"{self.dataset}_{self.experiment}_{self.tail or 'exact'}_{self.seed}.json"
        return cells / name


class Job(NamedTuple):
    """What a worker process needs to know."""

    cell: Cell
    data_dir: Path
    cells: Path
    assignments: list[str]
    threads: int


def store_path(cells: Path, dataset: str, k: int, clusters: int) -> Path:
    """Where the rows of a dataset lie."""
    return cells / "stores" / f"{dataset}_{k}_{clusters}"


def build_stores(dataset: str, data_dir: Path, cells: Path, ks: list[tuple[int, int]]) -> None:
    """Rows of all nodes by the real command, of the diffusion of the dataset's recipe."""
    from gpn_scale.data.datasets import load_graph
    from launch.recipes import recipe_for
    from precompute.cli import main as precompute

    teleport = recipe_for(dataset, load_graph(dataset, data_dir)).diffusion.teleport
    for k, clusters in ks:
        out = store_path(cells, dataset, k, clusters)
        if not (out / "manifest.json").exists():
            words = ["--dataset", dataset, "--data-dir", str(data_dir), "--out", str(out)]
            words += ["--teleport", str(teleport), "--k", str(k), "--clusters", str(clusters)]
            assert precompute([*words, "--resume"]) == 0


def run_cell(job: Job) -> None:
    """Trains one cell and writes its numbers."""
    import torch

    from gpn_scale.config import override, parse_assignments
    from gpn_scale.data.datasets import load_graph
    from gpn_scale.data.splits import prepare_graph
    from gpn_scale.estimator import GPNClassifier
    from gpn_scale.evaluation.evaluate import classification_metrics, out_of_distribution_metrics
    from gpn_scale.files import write_json
    from launch.recipes import LEFT_OUT_CLASSES, in_minibatches, recipe_for

    cell = job.cell
    torch.set_num_threads(job.threads)
    graph = load_graph(cell.dataset, job.data_dir)
    left_out = LEFT_OUT_CLASSES[cell.dataset] if cell.experiment == "left_out" else 0
    pairs = [("split.rng_seed", str(cell.seed)), ("train.rng_seed", str(cell.seed))]
    pairs += [("data.left_out_classes", str(left_out))]
    if cell.tail:
        pairs += [("minibatch.tail", cell.tail)]
    pairs += parse_assignments(job.assignments)
    recipe = recipe_for(cell.dataset, graph)
    config = override(in_minibatches(recipe, graph) if cell.tail else recipe, pairs)
    graph = prepare_graph(graph, config)
    assert graph.split is not None
    store = store_path(job.cells, cell.dataset, MAIN_K, MAIN_CLUSTERS) if cell.tail else None
    classifier = GPNClassifier(config)
    trainer = classifier.trainer(graph, store)
    prediction = classifier.fit(graph, trainer=trainer).predict(graph)
    metrics: dict[str, Any] = classification_metrics(prediction, graph, graph.split.test)
    metrics |= out_of_distribution_metrics(prediction, graph)
    metrics |= {
        "best_epoch": trainer.progress.best_epoch,
        "val_cross_entropy": trainer.progress.best_cross_entropy,
    }
    if not cell.tail and cell.experiment == "left_out":
        metrics["rows"] = compare_rows(classifier, prediction, graph, job)
    write_json(cell.path(job.cells), metrics)


def compare_rows(classifier: Any, exact: Any, graph: Any, job: Job) -> list[dict[str, Any]]:
    """The same weights, predicted from stored rows: how far from exact diffusion?"""
    from dataclasses import replace

    from scipy.stats import spearmanr

    from gpn_scale.evaluation.evaluate import out_of_distribution_metrics

    found = []
    config = classifier.config
    for k, clusters, tail in row_settings():
        store = store_path(job.cells, job.cell.dataset, k, clusters)
        if not store.exists():
            continue
        minibatch = replace(config.minibatch, tail=tail)
        classifier.config = replace(config, minibatch=minibatch)
        nodes = np.arange(graph.num_nodes)
        rows = classifier.predict(graph, nodes=nodes, store=store)
        log_ratio = np.log(rows.prediction.alpha_0 / exact.alpha_0)
        inside = (rows.alpha_0_lower <= exact.alpha_0) & (exact.alpha_0 <= rows.alpha_0_upper)
        ood = out_of_distribution_metrics(rows.prediction, graph)
        found.append(
            {
                "k": k,
                "clusters": clusters,
                "tail": tail,
                "spearman": float(spearmanr(rows.prediction.alpha_0, exact.alpha_0).statistic),
                "median_log_ratio": float(np.median(log_ratio)),
                "iqr_log_ratio": float(np.subtract(*np.quantile(log_ratio, [0.75, 0.25]))),
                "inside_interval": float(inside.mean()),
                "id_accuracy": ood["id_accuracy"],
                "auroc_epistemic": ood["auroc_epistemic"],
            }
        )
    classifier.config = config
    return found


def row_settings() -> Iterator[tuple[int, int, str]]:
    """(k, clusters, tail) of the table of rows."""
    for k in KS:
        for tail in TAILS:
            for clusters in CLUSTERS if tail == "clustered" else [MAIN_CLUSTERS]:
                yield k, clusters, tail


def matrix(datasets: list[str], seeds: int, tail_seeds: int) -> Iterator[Cell]:
    """Both modes for all seeds; every other tail, too, for the first few."""
    for seed in range(1, seeds + 1):
        for dataset in datasets:
            for experiment in ("clean", "left_out"):
                yield Cell(dataset, experiment, "", seed)
                yield Cell(dataset, experiment, "clustered", seed)
    for seed in range(1, tail_seeds + 1):
        for dataset in datasets:
            for tail in TAILS[:-1]:
                yield Cell(dataset, "left_out", tail, seed)


def read(cell: Cell, cells: Path) -> dict[str, Any] | None:
    """The numbers of a cell, if it has run."""
    path = cell.path(cells)
    return json.loads(path.read_text()) if path.exists() else None


def mean_and_error(values: list[float]) -> tuple[float, float]:
    """Mean and its standard error, which is NaN for a single value."""
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return statistics.mean(values), error


def paired_table(datasets: list[str], cells: Path, seeds: int) -> str:
    """Minibatch minus exact, per seed; mean and standard error in points."""
    lines = ["| graph | " + " | ".join(METRICS) + " |", "|---" * (len(METRICS) + 1) + "|"]
    for dataset in datasets:
        row = []
        for experiment, key in METRICS.values():
            pairs = [
                [read(Cell(dataset, experiment, tail, seed), cells) for tail in ("", "clustered")]
                for seed in range(1, seeds + 1)
            ]
            done = [(a[key], b[key]) for a, b in pairs if a is not None and b is not None]
            if not done:
                row.append("-")
                continue
            mean, error = mean_and_error([100 * (b - a) for a, b in done])
            exact = 100 * statistics.mean(a for a, _ in done)
            row.append(f"{mean:+.2f} ± {error:.2f} (exact {exact:.1f}, seeds: {len(done)})")
        lines.append(f"| {dataset} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def training_table(datasets: list[str], cells: Path, seeds: int) -> str:
    """Left-out AUC-ROC and accuracy after training with each tail; prediction is exact."""
    ways = ("", *TAILS)
    names = ["exact", *TAILS]
    lines = ["| graph | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for dataset in datasets:
        row = []
        for tail in ways:
            found = [read(Cell(dataset, "left_out", tail, s), cells) for s in range(1, seeds + 1)]
            done = [metrics for metrics in found if metrics is not None]
            if not done:
                row.append("-")
                continue
            keys = ("id_accuracy", "auroc_epistemic", "auroc_epistemic_no_network")
            values = [100 * statistics.mean(m[key] for m in done) for key in keys]
            row.append(" / ".join(f"{value:.1f}" for value in values))
        lines.append(f"| {dataset} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def rows_table(dataset: str, cells: Path, seeds: int) -> str:
    """Rows against exact diffusion of the same weights, means over seeds."""
    found = [read(Cell(dataset, "left_out", "", seed), cells) for seed in range(1, seeds + 1)]
    tables = [metrics["rows"] for metrics in found if metrics is not None]
    if not tables or not tables[0]:
        return ""
    lines = [
        f"### {dataset} ({len(tables)} seeds)",
        "",
        "| tail | " + " | ".join(f"k = {k}" for k in KS) + " |",
        "|---" * (len(KS) + 1) + "|",
    ]
    settings = {(row["tail"], row["clusters"]) for row in tables[0]}
    for tail, clusters in sorted(settings, key=lambda s: (TAILS.index(s[0]), s[1])):
        row = []
        for k in KS:
            wanted = (tail, clusters, k)
            same = [
                entry
                for table in tables
                for entry in table
                if (entry["tail"], entry["clusters"], entry["k"]) == wanted
            ]
            if not same:
                row.append("-")
                continue
            mean = {key: statistics.mean(e[key] for e in same) for key in same[0] if key != "tail"}
            row.append(
                f"{mean['spearman']:.4f}; {mean['median_log_ratio']:+.2f}, "
                f"{mean['iqr_log_ratio']:.2f}; {100 * mean['auroc_epistemic']:.1f}"
            )
        name = f"clustered, P = {clusters}" if tail == "clustered" else tail
        lines.append(f"| {name} | " + " | ".join(row) + " |")
    inside = min(entry["inside_interval"] for table in tables for entry in table)
    auroc = 100 * statistics.mean(m["auroc_epistemic"] for m in found if m is not None)
    lines += ["", f"Exact AUC-ROC {auroc:.1f}; alpha_0 inside the interval: {inside:.2%} at least."]
    return "\n".join(lines)


def report(options: argparse.Namespace, datasets: list[str]) -> str:
    """All tables."""
    seeds, cells = options.seeds, options.cells
    parts = [
        "## Minibatch minus exact mode, paired seeds, in points",
        paired_table(datasets, cells, seeds),
        "## Trained with each tail (k = 32, P = 32), predicted by exact diffusion",
        f"ID accuracy / AUC-ROC epistemic / without network, first {options.tail_seeds} seeds.",
        training_table(datasets, cells, options.tail_seeds),
        "## alpha_0 from rows against exact diffusion of the same weights",
        "Spearman correlation; median and interquartile range of the log ratio; left-out AUC-ROC.",
        *(rows_table(dataset, cells, seeds) for dataset in datasets),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def main() -> None:
    """Runs what is missing, prints the tables, and puts them into --write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--datasets", default=",".join(DATASETS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tail-seeds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--threads", type=int, default=1, help="per process")
    parser.add_argument("--only-main-store", action="store_true", help="k = 32, P = 32 alone")
    parser.add_argument("--set", action="append", default=[], help="override the recipes")
    parser.add_argument("--cells", type=Path, default=Path("runs/fidelity"))
    parser.add_argument("--write", type=Path, help="Markdown file; the tables replace its end")
    options = parser.parse_args()
    options.cells.mkdir(parents=True, exist_ok=True)
    datasets = options.datasets.split(",")
    wanted = [(MAIN_K, MAIN_CLUSTERS)]
    if not options.only_main_store:
        wanted = [(k, clusters) for k in KS for clusters in CLUSTERS]
    for dataset in datasets:
        build_stores(dataset, options.data_dir, options.cells, wanted)
    todo = [
        Job(cell, options.data_dir, options.cells, options.set, options.threads)
        for cell in matrix(datasets, options.seeds, options.tail_seeds)
        if not cell.path(options.cells).exists()
    ]
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        for done, _ in enumerate(pool.imap_unordered(run_cell, todo), start=1):
            print(f"{done} of {len(todo)} runs done", flush=True)
    text = report(options, datasets)
    print(text)
    if options.write:
        before = options.write.read_text().partition("## Minibatch minus exact mode")[0]
        options.write.write_text(before + text)


if __name__ == "__main__":
    main()
