"""Does exact mode reproduce the paper's GPN? Trains the matrix and writes docs/results.md's table.

    python benchmarks/results_exact.py --data-dir DIR [--splits 5 --inits 2] [--datasets A,B]

Every finished run is a small JSON file in --cells; a second call goes on where the first stopped.
"""

import argparse
import json
import multiprocessing
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

DATASETS = ("CoraML", "CiteSeer", "AmazonPhotos", "CoauthorCS")
COLUMNS = {
    "clean accuracy": ("clean", "accuracy"),
    "clean ECE": ("clean", "ece"),
    "ID accuracy": ("left_out", "id_accuracy"),
    "AUC-ROC aleatoric": ("left_out", "auroc_aleatoric"),
    "AUC-ROC epistemic": ("left_out", "auroc_epistemic"),
    "AUC-ROC epistemic, no network": ("left_out", "auroc_epistemic_no_network"),
}
PAPER = {
    "CoraML": (81.16, 11.68, 88.51, 83.25, 86.28, 80.95),
    "CiteSeer": (66.13, 7.42, 69.79, 72.46, 70.74, 66.65),
    "AmazonPhotos": (90.44, 11.95, 94.01, 82.72, 91.98, 76.57),
    "CoauthorCS": (86.88, 18.92, 88.21, 69.49, 92.09, 88.84),
}
"""GPN's rows of the paper's table of clean and left-out-class results (Stadler et al., 2021)."""
BEGIN, END = "<!-- results_exact begin -->", "<!-- results_exact end -->"


class Cell(NamedTuple):
    """One run of the matrix."""

    dataset: str
    experiment: str
    split: int
    init: int

    def path(self, cells: Path) -> Path:
        """Where its numbers are kept."""
        return cells / f"{self.dataset}_{self.experiment}_{self.split}_{self.init}.json"


def run_cell(arguments: tuple[Cell, Path, Path, list[str]]) -> None:
    """Trains one cell on one thread and writes its numbers."""
    import torch

    from gpn_scale.config import override, parse_assignments
    from gpn_scale.data.datasets import load_graph
    from gpn_scale.data.splits import prepare_graph
    from gpn_scale.estimator import GPNClassifier
    from gpn_scale.evaluation.evaluate import classification_metrics, out_of_distribution_metrics
    from gpn_scale.files import write_json
    from launch.recipes import LEFT_OUT_CLASSES, recipe_for

    cell, data_dir, cells, assignments = arguments
    torch.set_num_threads(1)
    graph = load_graph(cell.dataset, data_dir)
    left_out = LEFT_OUT_CLASSES[cell.dataset] if cell.experiment == "left_out" else 0
    pairs = [("split.rng_seed", str(cell.split)), ("train.rng_seed", str(cell.init))]
    pairs += [("data.left_out_classes", str(left_out)), *parse_assignments(assignments)]
    config = override(recipe_for(cell.dataset, graph), pairs)
    graph = prepare_graph(graph, config)
    assert graph.split is not None
    prediction = GPNClassifier(config).fit(graph).predict(graph)
    metrics: dict[str, Any] = classification_metrics(prediction, graph, graph.split.test)
    metrics |= out_of_distribution_metrics(prediction, graph)
    write_json(cell.path(cells), metrics)


def matrix(datasets: list[str], splits: int, inits: int) -> Iterator[Cell]:
    """All cells, one split of every dataset before the next."""
    for split in range(1, splits + 1):
        for dataset in datasets:
            for experiment in ("clean", "left_out"):
                for init in range(1, inits + 1):
                    yield Cell(dataset, experiment, split, init)


def table(datasets: list[str], cells: Path, splits: int, inits: int) -> str:
    """Mean and standard error per column beside the paper's figure, in percent."""
    header = "| graph | " + " | ".join(COLUMNS) + " |"
    lines = [header, "|---" * (len(COLUMNS) + 1) + "|"]
    for dataset in datasets:
        row = []
        for column, (experiment, key) in enumerate(COLUMNS.values()):
            values = [
                100 * json.loads(Cell(dataset, experiment, s, i).path(cells).read_text())[key]
                for s in range(1, splits + 1)
                for i in range(1, inits + 1)
            ]
            mean = statistics.mean(values)
            error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
            paper = PAPER[dataset][column]
            row.append(f"{mean:.1f} ± {error:.1f} (paper {paper:.1f}, {mean - paper:+.1f})")
        lines.append(f"| {dataset} | " + " | ".join(row) + " |")
    return "\n".join(lines)


def main() -> None:
    """Runs what is missing, prints the table, and puts it into --write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--datasets", default=",".join(DATASETS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--inits", type=int, default=2)
    parser.add_argument("--processes", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--set", action="append", default=[], help="override the recipes")
    parser.add_argument("--cells", type=Path, default=Path("runs/results_exact"))
    parser.add_argument("--write", type=Path, help="Markdown file with the table's markers")
    options = parser.parse_args()
    options.cells.mkdir(parents=True, exist_ok=True)
    datasets = options.datasets.split(",")
    todo = [
        (cell, options.data_dir, options.cells, options.set)
        for cell in matrix(datasets, options.splits, options.inits)
        if not cell.path(options.cells).exists()
    ]
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        for done, _ in enumerate(pool.imap_unordered(run_cell, todo), start=1):
            print(f"{done} of {len(todo)} runs done", flush=True)
    text = table(datasets, options.cells, options.splits, options.inits)
    print(text)
    if options.write:
        before, _, rest = options.write.read_text().partition(BEGIN)
        after = rest.partition(END)[2]
        options.write.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


if __name__ == "__main__":
    main()
