"""A study of GPN+ on the validation side: its options, its trainings, its file and its tables.

Every split and every set of left-out classes is one training, with a seed of its own. Measurements
are kept in a file, if there is one, together with the script and its options, and are not made
again by the same script with the same options.
"""

import argparse
import json
import math
import sys
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from ablation_case import Case, Key

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
Train = Callable[..., Case]
"""A function that trains with further changes `section.field=value` of the recipe."""
_CHOICES = ("datasets", "data_dir", "splits", "class_sets", "values")
"""Options that say which trainings are made, not what they are."""


def study_parser(description: str, *, splits: int) -> argparse.ArgumentParser:
    """Return a parser with the options of all studies; `splits` is the default number."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    add, default = parser.add_argument, "synthetic:nodes=2000,classes=6,unseen_classes=0"
    add("--datasets", default=default, help="names of graphs, with commas")
    add("--data-dir", type=Path, default=Path("data"))
    add("--splits", type=int, default=splits, help="number of splits")
    add("--class-sets", default="0,1,2,3,4", help="sets of left-out classes")
    add("--left-out-classes", type=int, help="number; default: the paper's, or 2 of other graphs")
    add("--epochs", type=int, help="maximum number; default: the recipe's")
    add("--set", action="append", default=[], help="change of the recipe")
    add("--values", type=Path, help="JSON lines of all measurements, with their options")
    return parser


def study(options: argparse.Namespace, measured: Callable[[Case], dict[Key, float]]) -> Values:
    """Return the measurements of all trainings; `measured` makes those of one."""
    return study_with(options, lambda train: measured(train()))


def study_with(
    options: argparse.Namespace, measured: Callable[[Train], dict[Key, float]]
) -> Values:
    """Return the measurements of all trainings; `measured` trains as often as it needs to."""
    names = list(split_datasets(options.datasets))
    graphs = {dataset: load_graph(dataset, options.data_dir) for dataset in names}
    made = made_with(options)
    values: Values = {dataset: stored(options.values, dataset, made) for dataset in names}
    class_sets = [int(class_set) for class_set in options.class_sets.split(",")]
    for split, class_set in product(range(1, options.splits + 1), class_sets):
        for dataset in names:
            if (split, class_set) not in values[dataset]:
                train = partial(trained_case, graphs[dataset], dataset, split, class_set, options)
                values[dataset][split, class_set] = measured(train)
                store(options.values, dataset, split, class_set, values, made)
    return values


def made_with(options: argparse.Namespace) -> dict[str, Any]:
    """Return the script and the options that its measurements depend on, as JSON has them."""
    chosen = {name: value for name, value in vars(options).items() if name not in _CHOICES}
    return {"script": Path(sys.argv[0]).stem, "options": chosen}


def trained_case(
    graph: Graph, dataset: str, split: int, class_set: int, options: argparse.Namespace, *more: str
) -> Case:
    """Train GPN+ without some classes, and divide the validation nodes.

    `more` are changes `section.field=value` of the recipe beyond those of the options.
    """
    count, rng_seed = options.left_out_classes, 100 * split + class_set
    if count is None:
        count = LEFT_OUT_CLASSES.get(paper_dataset(dataset) or "", 2)
    changes = [("split.rng_seed", f"{split}"), ("train.rng_seed", f"{rng_seed}")]
    if options.epochs is not None:
        changes.append(("train.epochs", f"{options.epochs}"))
    changes += parse_assignments([*options.set, *more])
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


def stored(
    path: Path | None, dataset: str, made: Mapping[str, Any]
) -> dict[Seeds, dict[Key, float]]:
    """Return the measurements of a graph that the file has, made with `made_with`."""
    lines = path.read_text(encoding="utf-8").splitlines() if path and path.exists() else []
    wanted = {"dataset": dataset, **made}
    records = [record for record in map(json.loads, lines) if wanted.items() <= record.items()]
    return {
        (record["split"], record["class_set"]): {
            (table, line, column): value for table, line, column, value in record["values"]
        }
        for record in records
    }


def store(
    path: Path | None,
    dataset: str,
    split: int,
    class_set: int,
    values: Values,
    made: Mapping[str, Any],
) -> None:
    """Append the measurements of a training to the file."""
    if path is not None:
        own = [[*key, value] for key, value in values[dataset][split, class_set].items()]
        record = {"dataset": dataset, "split": split, "class_set": class_set, **made, "values": own}
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def all_keys(values: Values) -> list[Key]:
    """Return the keys of all measurements, in the order in which they were made."""
    runs = [run for own in values.values() for run in own.values()]
    return list(dict.fromkeys(key for run in runs for key in run))


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
