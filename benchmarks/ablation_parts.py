"""Which parts, and which way of joining them, should GPN+ use?

    python benchmarks/ablation_parts.py --datasets CoraML,CiteSeer --data-dir DIR [--splits 3]
        [--class-sets 0,1,2,3,4] [--left-out-classes 3] [--set SECTION.FIELD=VALUE]
        [--values FILE]

Decides on the validation side alone. A random half of the validation nodes calibrates, the other
half are the known nodes, and the unknown nodes are those nodes of left-out classes that the split
puts into the validation set. Test nodes are never looked at. Every class set and split is a
training with a seed of its own. With --left-out-classes 0 each class set is one more seed, and
only probabilities and features of noise are measured. --values keeps the measurements of every
training, and those that the file has are not made again.

Prints Markdown tables of means with standard errors over class sets and splits, in percent.
"""

import argparse
import json
import math
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import numpy as np
from ablation_case import Case, Key
from ablation_encoders import encoders
from ablation_measures import (
    joins,
    parts,
    probabilities,
    single_scores,
    surroundings,
    validity,
)

from gpn_scale.cli.evaluate_options import split_datasets
from gpn_scale.config import override
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph import Graph
from gpn_scale.data.splits import prepare_graph
from gpn_scale.estimator import GPNClassifier
from gpn_scale.experiments.standard_errors import Seeds, mean_and_error
from gpn_scale.field_types import parse_assignments
from gpn_scale.recipes import LEFT_OUT_CLASSES, paper_dataset, recipe_for

Values = dict[str, dict[Seeds, dict[Key, float]]]
"""Measured values by graph, and by split and class set."""
TITLES = {
    "scores": "Single scores, left-out AUC-ROC",
    "parts": "Parts, left-out AUC-ROC of p_known",
    "joins": "Ways to join the parts, left-out AUC-ROC",
    "surroundings": "Weight of the surroundings, AUC-ROC",
    "validity": "p_known of the known nodes",
    "probabilities": "Class probabilities of the known nodes",
    "encoders": "Separate and shared encoders",
}


def main() -> None:
    """Measure all trainings and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--datasets",
        default="synthetic:nodes=2000,classes=6,unseen_classes=0",
        help="names of graphs, with commas",
    )
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--splits", type=int, default=3, help="number of splits")
    parser.add_argument("--class-sets", default="0,1,2,3,4", help="sets of left-out classes")
    parser.add_argument(
        "--left-out-classes", type=int, help="number; default: the paper's, or 2 of other graphs"
    )
    parser.add_argument("--epochs", type=int, help="maximum number; default: the recipe's")
    parser.add_argument("--set", action="append", default=[], help="change of the recipe")
    parser.add_argument("--values", type=Path, help="JSON lines of all measurements")
    options = parser.parse_args()
    names = list(split_datasets(options.datasets))
    graphs = {dataset: load_graph(dataset, options.data_dir) for dataset in names}
    values: Values = {dataset: stored(options.values, dataset) for dataset in names}
    class_sets = [int(class_set) for class_set in options.class_sets.split(",")]
    for split, class_set in product(range(1, options.splits + 1), class_sets):
        for dataset in names:
            if (split, class_set) not in values[dataset]:
                case = trained_case(graphs[dataset], dataset, split, class_set, options)
                values[dataset][split, class_set] = measured(case)
                store(options.values, dataset, split, class_set, values)
    print("\n".join(tables(values)))


def trained_case(
    graph: Graph, dataset: str, split: int, class_set: int, options: argparse.Namespace
) -> Case:
    """Train GPN+ without some classes, and divide the validation nodes."""
    count, rng_seed = options.left_out_classes, 100 * split + class_set
    if count is None:
        count = LEFT_OUT_CLASSES.get(paper_dataset(dataset) or "", 2)
    changes = [("split.rng_seed", f"{split}"), ("train.rng_seed", f"{rng_seed}")]
    if options.epochs is not None:
        changes.append(("train.epochs", f"{options.epochs}"))
    changes += parse_assignments(options.set)
    config = override(recipe_for(dataset, graph), changes)
    left_out = [("data.left_out_classes", f"{count}"), ("data.left_out_set", f"{class_set}")]
    whole, prepared = prepare_graph(graph, config), prepare_graph(graph, override(config, left_out))
    assert whole.split is not None
    assert prepared.split is not None
    classifier = GPNClassifier(config, device="cpu").fit(prepared)
    val = np.random.default_rng(rng_seed).permutation(prepared.split.val)
    return Case(
        classifier=classifier,
        graph=prepared,
        calibration=np.sort(val[::2]),
        known=np.sort(val[1::2]),
        unknown=np.setdiff1d(whole.split.val, prepared.split.val),
        rng_seed=rng_seed,
    )


def measured(case: Case) -> dict[Key, float]:
    """Return all measurements of a training; without unknown nodes, those that need none."""
    measures = [surroundings, validity, probabilities]
    if len(case.unknown):
        measures += [single_scores, parts, joins, encoders]
    return {key: value for measure in measures for key, value in measure(case).items()}


def stored(path: Path | None, dataset: str) -> dict[Seeds, dict[Key, float]]:
    """Return the measurements of a graph that the file has."""
    lines = path.read_text(encoding="utf-8").splitlines() if path and path.exists() else []
    records = [record for record in map(json.loads, lines) if record["dataset"] == dataset]
    return {
        (record["split"], record["class_set"]): {
            (table, line, column): value for table, line, column, value in record["values"]
        }
        for record in records
    }


def store(path: Path | None, dataset: str, split: int, class_set: int, values: Values) -> None:
    """Append the measurements of a training to the file."""
    if path is not None:
        own = [[*key, value] for key, value in values[dataset][split, class_set].items()]
        record = {"dataset": dataset, "split": split, "class_set": class_set, "values": own}
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def tables(values: Values) -> list[str]:
    """Return the lines of all tables."""
    keys = list(
        dict.fromkeys(key for runs in values.values() for run in runs.values() for key in run)
    )
    lines = [f"{len(runs)} trainings on {dataset}." for dataset, runs in values.items()]
    for table, title in TITLES.items():
        own = [key for key in keys if key[0] == table]
        if own:
            lines += ["", f"## {title}", "", *table_lines(values, own)]
    return lines


def table_lines(values: Values, keys: list[Key]) -> list[str]:
    """Return the means of each graph and over graphs, then differences from the first line."""
    table, columns = keys[0][0], list(dict.fromkeys(column for _, _, column in keys))
    names = list(dict.fromkeys(line for _, line, _ in keys))
    if "auroc" in columns:
        return _by_graph(values, table, names, [c for c in columns if c != "auroc"])
    lines = [["graph", table, *columns], ["---"] * (2 + len(columns))]
    for dataset in (*values, "mean") if len(values) > 1 else values:
        for name in names:
            cells = [_cell(_runs(values, (table, name, c), dataset)) for c in columns]
            lines.append([dataset, name, *cells])
    for name in names[1:]:
        cells = [_cell(_differences(values, (table, name, c), names[0])) for c in columns]
        lines.append([f"mean minus {names[0]}, paired", name, *cells])
    return [f"| {' | '.join(line)} |" for line in lines]


def _by_graph(values: Values, table: str, names: list[str], others: list[str]) -> list[str]:
    """Return a column of AUC-ROC per graph, the mean, paired differences, and other means."""
    heads = [table, *values, "mean", "mean minus first line, paired", *others]
    lines = [heads, ["---"] * len(heads)]
    for name in names:
        key = (table, name, "auroc")
        cells = [_cell(_runs(values, key, place)) for place in (*values, "mean")]
        cells.append(_cell(_differences(values, key, names[0])) if name != names[0] else "")
        cells += [_cell(_runs(values, (table, name, other), "mean")) for other in others]
        lines.append([name, *cells])
    return [f"| {' | '.join(line)} |" for line in lines]


def _differences(values: Values, key: Key, first: str) -> dict[Seeds, float]:
    """Return the mean over graphs of a value minus that of the first line of its table."""
    table, _, column = key
    subtracted = _runs(values, (table, first, column), "mean")
    return {seeds: v - subtracted[seeds] for seeds, v in _runs(values, key, "mean").items()}


def _runs(values: Values, key: Key, dataset: str) -> dict[Seeds, float]:
    """Return a value by split and class set, of one graph or as the mean of all graphs."""
    if dataset != "mean":
        return {seeds: run[key] for seeds, run in values[dataset].items() if key in run}
    seeds = set.intersection(*(set(runs) for runs in values.values()))
    by_seeds = {s: [runs[s].get(key, math.nan) for runs in values.values()] for s in sorted(seeds)}
    return {s: float(np.mean(numbers)) for s, numbers in by_seeds.items()}


def _cell(runs: Mapping[Seeds, float]) -> str:
    mean, error = mean_and_error(runs)
    return f"{100 * mean:.1f}" if math.isnan(error) else f"{100 * mean:.1f} ± {100 * error:.1f}"


if __name__ == "__main__":
    main()
