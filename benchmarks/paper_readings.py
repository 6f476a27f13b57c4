"""Which reading of the paper's scores reproduces its numbers? Trains nothing.

    python benchmarks/paper_readings.py --matrix DIR --data-dir DIR [--paper DIR] [--model GPN]

Measures every trained cell of the matrix (`make results`) in several ways:

- misclassification by alpha_0, as in the paper's text, and by the pseudo-counts of the class that
  is predicted with network (also for the counts without network);
- isolated perturbations against the same nodes before the perturbation, and against all test nodes;
- isolated perturbations of many choices of 100 nodes, since the paper's runs share one choice.

Prints Markdown tables of means with standard errors, in percent, or writes them between the markers
of the file --write.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from results_paper import GRAPHS, page_parser, publish

from gpn_scale.cli.evaluate_options import split_datasets
from gpn_scale.config import RunConfig
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph import Graph
from gpn_scale.data.shifts import noise_rows
from gpn_scale.data.splits import prepare_graph
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.detection import detection_metrics
from gpn_scale.evaluation.prediction_metrics import Metrics
from gpn_scale.experiments.measures import ISOLATED_NODES
from gpn_scale.experiments.paper_figures import Figure, PaperKey, read_paper
from gpn_scale.experiments.standard_errors import Seeds, mean_and_error
from gpn_scale.experiments.tables import Entry, cell_text
from gpn_scale.experiments.trained import Trained
from gpn_scale.train.checkpoint import load_tensors

CANDIDATES, DRAWS = 2000, 400
"""Nodes that are perturbed one at a time, and choices of 100 of them."""
Paper = Mapping[PaperKey, Figure]
Reading = dict[str, Metrics]
"""Numbers of each reading by its name, under the metric names of the experiment."""


def misclassification(trained: Trained) -> Reading:
    """Measure how well several candidates for the epistemic score detect errors."""
    graph, prediction = trained.graph, trained.prediction
    assert graph.split is not None
    test = graph.split.test
    own, every = prediction.rows(test), np.arange(len(test))
    wrong = own.predicted_class != graph.labels[test]
    alone = own.probabilities_no_network.argmax(1) != graph.labels[test]
    counts = own.alpha_0 * own.probabilities[every, own.predicted_class]
    no_network = own.alpha_0_no_network * own.probabilities_no_network[every, own.predicted_class]
    return {
        "alpha_0 (ours)": detection_metrics(own.scores(every), wrong),
        "counts of the predicted class": detection_metrics(
            {"epistemic": -counts, "epistemic_no_network": -no_network}, wrong
        ),
        "alpha_0, of errors without network": detection_metrics(
            {"epistemic_no_network": own.epistemic_no_network}, alone
        ),
    }


def isolated(trained: Trained) -> Reading:
    """Compare perturbed nodes with the same nodes, and with all test nodes, unperturbed."""
    graph = trained.graph
    assert graph.split is not None
    rng = np.random.default_rng(trained.rng_seed)
    count = min(ISOLATED_NODES, len(graph.split.test))
    nodes = np.sort(rng.choice(graph.split.test, count, replace=False))
    readings: Reading = {}
    for noise in ("bernoulli", "normal"):
        rows = noise_rows(noise, count, graph.num_features, trained.rng_seed)
        after = trained.perturbed.isolated(nodes, rows.__getitem__).scores(np.arange(count))
        for reading, negatives in (
            ("the same nodes (ours)", nodes),
            ("all test nodes", graph.split.test),
        ):
            before = trained.prediction.scores(negatives)
            both = {name: np.append(before[name], after[name]) for name in after}
            metrics = detection_metrics(both, np.arange(len(negatives) + count) >= len(negatives))
            readings.setdefault(reading, {}).update(
                {f"{name}@{noise}": value for name, value in metrics.items()}
            )
    return readings


def choices(trained: Trained) -> dict[str, NDArray[np.float64]]:
    """Measure `DRAWS` choices of 100 perturbed nodes against all unperturbed test nodes.

    The area of a choice is the mean over its nodes of the fraction of negatives with lower scores.
    """
    graph = trained.graph
    assert graph.split is not None
    rng, test = np.random.default_rng(trained.rng_seed), graph.split.test
    nodes = np.sort(rng.choice(test, min(CANDIDATES, len(test)), replace=False))
    count = min(ISOLATED_NODES, len(nodes))
    drawn = np.stack([rng.choice(len(nodes), count, replace=False) for _ in range(DRAWS)])
    before, metrics = trained.prediction.scores(test), {}
    for noise in ("bernoulli", "normal"):
        rows = noise_rows(noise, len(nodes), graph.num_features, trained.rng_seed)
        after = trained.perturbed.isolated(nodes, rows.__getitem__)
        right = after.predicted_class == graph.labels[nodes]
        metrics[f"accuracy@{noise}"] = right[drawn].mean(1)
        for name, score in after.scores(np.arange(len(nodes))).items():
            ordered = np.sort(before[name])
            below = np.searchsorted(ordered, score) + np.searchsorted(ordered, score, "right")
            metrics[f"auroc_{name}@{noise}"] = (below / (2.0 * len(test)))[drawn].mean(1)
    return metrics


def choices_table(
    values: Mapping[tuple[str, str], Sequence[NDArray[np.float64]]], paper: Paper
) -> str:
    """Return the spread of runs with one choice each, and whether the paper's figure is inside."""
    lines = [
        ["graph", "metric", "runs", "mean", "95 % of runs and choices", "paper", "inside"],
        ["---"] * 7,
    ]
    for (dataset, metric), runs in values.items():
        figure = paper.get(PaperKey(dataset, "GPN", "isolated", metric))
        pooled = 100.0 * np.concatenate(runs)
        low, high = np.quantile(pooled, [0.025, 0.975])
        beside = ["n.a.", "n.a."]
        if figure is not None:
            beside = [f"{figure.value:.1f}", "yes" if low <= figure.value <= high else "**no**"]
        spread = [f"{pooled.mean():.1f}", f"{low:.1f} to {high:.1f}"]
        lines.append([dataset, metric, f"{len(runs)}", *spread, *beside])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


EXPERIMENTS: dict[str, Callable[[Trained], Reading]] = {
    "misclassification": misclassification,
    "isolated": isolated,
}


def trained_cells(matrix: Path, dataset: str, model: str) -> list[tuple[int, Path]]:
    """Return (seed of the experiments, model file) of each training with all classes."""
    cells = []
    for path in sorted((matrix / "cells" / dataset / model / "all_classes").glob("*.safetensors")):
        split, init = path.stem.removeprefix("split").split("_init")
        cells.append((int(split) * 1000 + int(init), path))
    return cells


def trained_of(path: Path, rng_seed: int, graph: Graph) -> Trained:
    """Load a cell's model and the graph with its split."""
    tensors, facts = load_tensors(path)
    config = RunConfig.from_dict(facts["config"])
    classifier, prepared = GPNClassifier(config), prepare_graph(graph, config)
    classifier.load_state(prepared, tensors, path)
    return Trained(classifier, prepared, rng_seed)


def table(experiment: str, entries: Sequence[Entry]) -> str:
    """Return a table with a line per reading (`Entry.model`) and a column per metric."""
    metrics = list(dict.fromkeys(entry.metric for entry in entries))
    by_place = {(e.dataset, e.model, e.metric): e for e in entries}
    lines = [["graph", "runs", f"{experiment} by", *metrics], ["---"] * (3 + len(metrics))]
    for dataset, reading in dict.fromkeys((e.dataset, e.model) for e in entries):
        own = [by_place.get((dataset, reading, metric)) for metric in metrics]
        runs = next(f"{entry.runs}" for entry in own if entry is not None)
        lines.append([dataset, runs, reading, *map(cell_text, own)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def names_of(options: argparse.Namespace) -> list[str]:
    """Return the names of the graphs, in the order of docs/results.md."""
    if options.datasets:
        return list(split_datasets(options.datasets))
    names = {path.name for path in (options.matrix / "cells").iterdir()}
    return [*(name for name in GRAPHS if name in names), *sorted(names.difference(GRAPHS))]


def main() -> None:
    """Print the tables, or write them into the file --write."""
    parser = page_parser(__doc__)
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--datasets", help="names of graphs; default: all of the matrix")
    parser.add_argument("--model", default="GPN")
    options = parser.parse_args()
    paper: dict[PaperKey, Figure] = {} if options.paper is None else read_paper(options.paper)
    values: dict[tuple[str, str, str, str], dict[Seeds, float]] = {}
    chosen: dict[tuple[str, str], list[NDArray[np.float64]]] = {}
    trainings = 0
    for dataset in names_of(options):
        cells = trained_cells(options.matrix, dataset, options.model)
        graph = load_graph(dataset, options.data_dir) if cells else None
        for rng_seed, path in cells:
            assert graph is not None
            trained = trained_of(path, rng_seed, graph)
            trainings += 1
            for metric, areas in choices(trained).items():
                chosen.setdefault((dataset, metric), []).append(areas)
            for experiment, measure in EXPERIMENTS.items():
                for reading, metrics in measure(trained).items():
                    for metric, value in metrics.items():
                        key = (experiment, dataset, reading, metric)
                        values.setdefault(key, {})[divmod(rng_seed, 1000)] = 100 * value
    texts = {"choices": choices_table(chosen, paper)}
    for experiment in EXPERIMENTS:
        entries = [
            Entry(
                *(dataset, reading, experiment, metric, *mean_and_error(runs), len(runs)),
                paper.get(PaperKey(dataset, "GPN", experiment, metric)),
            )
            for (of, dataset, reading, metric), runs in values.items()
            if of == experiment
        ]
        texts[f"readings-{experiment}"] = table(experiment, entries) if entries else "No runs yet."
    publish(texts, options.write, trainings)


if __name__ == "__main__":
    main()
