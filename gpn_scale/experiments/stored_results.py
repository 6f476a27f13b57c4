"""All results in the directory of a matrix, and differences between its models."""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import unquote

from gpn_scale.data.splits import CLASS_SETS
from gpn_scale.evaluation.prediction_metrics import Metrics
from gpn_scale.experiments.cells import Cell, CellResult, kind_name
from gpn_scale.experiments.matrix_directory import MatrixDirectory
from gpn_scale.experiments.standard_errors import Seeds, mean_and_error
from gpn_scale.experiments.tables import Entry, unit_of, with_relative

_KINDS = {kind_name(False): (False, 0)} | {
    kind_name(True, class_set): (True, class_set) for class_set in range(CLASS_SETS)
}
"""Whether classes are left out, and which, by the name of a folder."""


def stored_results(path: Path) -> dict[Cell, CellResult]:
    """Return the results of all cells in the directory of a matrix, in the order of `cells_of`.

    Raises:
        RunError: a file is damaged or was written by another version.
    """
    directory = MatrixDirectory(path)
    results = {}
    for cell in sorted(_cells(path), key=lambda cell: (cell.split, cell.init, *cell)):
        result = directory.result(cell)
        if result is not None and result.results:
            results[cell] = result
    return results


def paired_differences(
    results: Mapping[Cell, CellResult], model: str, reference: str
) -> list[Entry]:
    """Return means and errors of the differences `model` - `reference` over common seeds.

    Each pair of runs has the same seeds, so that effects of seeds on both models cancel.
    """
    values: dict[tuple[str, str, str], dict[Seeds, float]] = {}
    for cell, result in results.items():
        other = results.get(cell._replace(model=reference)) if cell.model == model else None
        if other is None:
            continue
        for experiment, metrics in result.results.items():
            if experiment in other.results:
                for metric, difference in _differences(metrics, other.results[experiment]):
                    runs = values.setdefault((cell.dataset, experiment, metric), {})
                    runs[cell.seeds] = difference
    name = f"{model} - {reference}"
    return [
        Entry(dataset, name, experiment, metric, *mean_and_error(runs), len(runs))
        for (dataset, experiment, metric), runs in values.items()
    ]


def _differences(own: Metrics, other: Metrics) -> Iterable[tuple[str, float]]:
    first, second = with_relative(own), with_relative(other)
    for metric in first:
        if metric in second:
            difference = first[metric] - second[metric]
            if not math.isnan(difference):
                yield metric, unit_of(metric) * difference


def _cells(path: Path) -> Iterable[Cell]:
    """Yield the cells that have a file `cells/GRAPH/MODEL/KIND/splitS_initI.json`."""
    for file in (path / "cells").glob("*/*/*/split*_init*.json"):
        dataset, model, kind, name = file.relative_to(path / "cells").parts
        split, _, init = name.removesuffix(".json").removeprefix("split").partition("_init")
        if kind in _KINDS and split.isdecimal() and init.isdecimal():
            left_out, class_set = _KINDS[kind]
            names = (unquote(dataset), unquote(model))  # see `files.file_name`
            cell = Cell(*names, left_out, int(split), int(init), class_set)
            if cell.name == f"{dataset}/{model}/{kind}/{name.removesuffix('.json')}":
                yield cell
