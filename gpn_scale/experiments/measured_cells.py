"""Measured cells of a matrix as one small CSV file, from which tables can be made again.

The file has a line per cell and metric. It holds what the leaderboard shows and the fingerprint of
the model's setting, and nothing else, so that it can be kept in a repository. Files of earlier
versions have no fingerprints; their cells have the fingerprint "", which stands for any setting.
"""

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from gpn_scale.errors import RunError
from gpn_scale.experiments.cells import Cell, CellResult
from gpn_scale.experiments.matrix_directory import MatrixDirectory
from gpn_scale.experiments.stored_results import stored_results
from gpn_scale.experiments.trained import FRACTIONS
from gpn_scale.reading import read_text
from gpn_scale.table_text import csv_text, from_csv_cell

TRAINING = "training"
"""Name under which the cost of a training stands among the experiments of its cell."""
_COLUMNS = ("dataset", "model", "class_set", "split", "init", "experiment", "metric", "value")
_FINGERPRINT = "fingerprint"
_ALL_CLASSES = "none"
_MIB = 1 << 20

Cells = Mapping[Cell, CellResult]


def read_cells(folder: Path) -> dict[Cell, CellResult]:
    """Return the measured cells in a folder, which has one table per graph.

    Raises:
        RunError: there is no such folder, or a file in it is not such a table.
    """
    if not folder.is_dir():
        raise RunError(f"{folder} is not a folder, expected one with tables of measured cells")
    cells: dict[Cell, CellResult] = {}
    for path in sorted(folder.glob("*.csv")):
        cells |= cells_from_csv(read_text(path), path)
    return cells


def without_measured(
    cells: Iterable[Cell],
    measured: Cells,
    experiments: Sequence[str],
    fractions: Sequence[float] = FRACTIONS,
    *,
    fingerprint_of: Callable[[Cell], str],
) -> list[Cell]:
    """Return the cells that lack a result of one of the experiments among the measured cells.

    Args:
        cells: The cells.
        measured: Measured cells. One counts if its setting is that of the cell, or unknown.
        experiments: Names of experiments.
        fractions: Fractions of nodes or edges that the shifts change.
        fingerprint_of: Function that returns the fingerprint of a cell's setting.
    """

    def is_measured(cell: Cell) -> bool:
        result = measured.get(cell)
        if cell.unfinished(result, experiments, fractions):
            return False
        fingerprint = "" if result is None else result.fingerprint
        return not fingerprint or fingerprint == fingerprint_of(cell)

    return [cell for cell in cells if not is_measured(cell)]


def matrix_cells(path: Path) -> dict[Cell, CellResult]:
    """Return all finished cells in the directory of a matrix, with the costs of their trainings.

    Raises:
        RunError: a file is damaged or was written by another version.
    """
    directory, cells = MatrixDirectory(path), {}
    for cell, result in stored_results(path).items():
        cost, results = directory.cost(cell), dict(result.results)
        if cost is not None:
            added = cost.added_bytes / _MIB
            results[TRAINING] = {"cpu_seconds": cost.cpu_seconds, "added_mib": added}
        cells[cell] = CellResult(result.fingerprint, results)
    return cells


def merged_cells(first: Cells, second: Cells) -> dict[Cell, CellResult]:
    """Return the cells of both; of an experiment that both have, the second result counts.

    If a cell has different settings, only its second result is kept, since one cell has one
    setting. If the first setting is unknown, its other experiments stay, and so does the unknown
    setting.
    """
    cells = dict(first)
    for cell, result in second.items():
        earlier = cells.get(cell, CellResult(result.fingerprint))
        others = earlier.results.keys() - result.results.keys()
        if not others or earlier.fingerprint not in ("", result.fingerprint):
            cells[cell] = result
        else:
            results = {**earlier.results, **result.results}
            cells[cell] = CellResult(earlier.fingerprint, results)
    return cells


def cells_to_csv(cells: Cells, is_kept: Callable[[str, str, str], bool]) -> str:
    """Return a line per cell and metric, in a fixed order, with five digits; NaN is left out.

    Args:
        cells: The cells.
        is_kept: Whether a metric is written, from model, experiment and metric.
    """
    rows: list[Sequence[object]] = [(*_COLUMNS, _FINGERPRINT)]
    for cell in sorted(cells):
        class_set = str(cell.class_set) if cell.left_out else _ALL_CLASSES
        head = (cell.dataset, cell.model, class_set, cell.split, cell.init)
        fingerprint = cells[cell].fingerprint
        for experiment, metrics in sorted(cells[cell].results.items()):
            for metric, value in metrics.items():
                if is_kept(cell.model, experiment, metric) and not math.isnan(value):
                    rows.append([*head, experiment, metric, f"{value:.5g}", fingerprint])
    return csv_text(rows)


def cells_from_csv(text: str, source: Path | str) -> dict[Cell, CellResult]:
    """Return the cells that `cells_to_csv` wrote, or an earlier version without fingerprints.

    Args:
        text: The table.
        source: Where it comes from, for messages.

    Raises:
        RunError: the text is not such a table.
    """
    reader, columns = csv.DictReader(io.StringIO(text)), (*_COLUMNS, _FINGERPRINT)
    if tuple(reader.fieldnames or ()) not in (columns, _COLUMNS):
        raise RunError(f"{source} begins with {reader.fieldnames}, expected {','.join(columns)}")
    cells: dict[Cell, CellResult] = {}
    for row in reader:
        try:
            left_out = row["class_set"] != _ALL_CLASSES
            class_set = int(row["class_set"]) if left_out else 0
            seeds = int(row["split"]), int(row["init"])
            value = float(row["value"])
            names = from_csv_cell(row["dataset"]), from_csv_cell(row["model"])
            cell = Cell(*names, left_out, *seeds, class_set)
            if (fingerprint := row.get(_FINGERPRINT, "")) is None:
                raise ValueError("it has no fingerprint")
            result = cells.setdefault(cell, CellResult(fingerprint))
            if fingerprint != result.fingerprint:
                raise ValueError(f"fingerprint {fingerprint!r}, but before {result.fingerprint!r}")
        except (TypeError, ValueError) as error:
            raise RunError(f"{source}, line {reader.line_num} is damaged ({error})") from error
        result.results.setdefault(row["experiment"], {})[row["metric"]] = value
    return cells
