"""The files of a matrix of runs: a model, results and the cost of training per cell."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gpn_scale import __version__
from gpn_scale.checked_json import read_checked_json, write_checked_json
from gpn_scale.errors import RunError
from gpn_scale.experiments.cells import Cell, CellResult
from gpn_scale.experiments.trained import FRACTIONS
from gpn_scale.experiments.training_cost import TrainingCost
from gpn_scale.files import make_folder


class MatrixDirectory:
    """The directory of a matrix.

    Args:
        path: The directory; created on the first write.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def result(self, cell: Cell) -> CellResult | None:
        """Return the stored result of a cell; None before its first experiment.

        Raises:
            RunError: the file is damaged or was written by another version.
        """
        path = self._file(cell, ".json")
        if not path.exists():
            return None
        try:
            stored = read_checked_json(path)
            version, fingerprint, results = (
                stored[name] for name in ("version", "fingerprint", "results")
            )
            # JSON has no NaN, which stands for a detection without positives, for instance.
            metrics = {
                name: {key: _number(each) for key, each in values.items()}
                for name, values in results.items()
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise RunError(f"{path} is damaged ({error}): delete it and run again") from error
        if version != __version__:
            raise RunError(
                f"{path} was written by version {version}, this is {__version__}: use another "
                "directory, or delete the file and run again",
                arguments=("out",),
            )
        return CellResult(fingerprint, metrics)

    def result_of(self, cell: Cell, fingerprint: str) -> CellResult | None:
        """Return the stored result of a cell whose setting has this fingerprint.

        Raises:
            RunError: the result comes from another configuration or version.
        """
        result = self.result(cell)
        if result is not None and result.fingerprint != fingerprint:
            raise RunError(
                f"{self._file(cell, '.json')} was made with another configuration: use another "
                "directory, or delete the file and run again",
                arguments=("out",),
            )
        return result

    def unfinished(
        self,
        cell: Cell,
        experiments: Iterable[str],
        fingerprint: str,
        fractions: Sequence[float] = FRACTIONS,
    ) -> list[str]:
        """Return the experiments of the cell that have no result, or not for all fractions.

        Raises:
            RunError: the stored result comes from another configuration or version.
        """
        return cell.unfinished(self.result_of(cell, fingerprint), experiments, fractions)

    def write_result(self, cell: Cell, result: CellResult) -> None:
        """Replace the stored result of a cell."""
        results = {
            name: {key: None if math.isnan(value) else value for key, value in metrics.items()}
            for name, metrics in result.results.items()
        }
        content = {"version": __version__, "fingerprint": result.fingerprint, "results": results}
        path = self._file(cell, ".json")
        make_folder(path.parent)
        write_checked_json(path, content)

    def cost(self, cell: Cell) -> TrainingCost | None:
        """Return what the training of a cell cost; None if it was not measured.

        Raises:
            RunError: the file is damaged.
        """
        path = self._cost_file(cell)
        if not path.exists():
            return None
        try:
            stored = read_checked_json(path)
            return TrainingCost(**{key: _number(each) for key, each in stored.items()})
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise RunError(f"{path} is damaged ({error}): delete it") from error

    def write_cost(self, cell: Cell, cost: TrainingCost) -> None:
        """Replace what is stored about the cost of a cell's training."""
        path = self._cost_file(cell)
        make_folder(path.parent)
        write_checked_json(path, asdict(cost))

    def model_file(self, cell: Cell) -> Path:
        """Return the path of the cell's trained model."""
        return self._file(cell, ".safetensors")

    def lock_file(self, name: str) -> Path:
        """Return the path of a lock, by the name of the cell or store that it protects."""
        return self.path / "locks" / name

    def _cost_file(self, cell: Cell) -> Path:
        # A folder of its own: below `cells/`, files are the same whenever a matrix is run again.
        return self.path / "costs" / f"{cell.name}.json"

    def _file(self, cell: Cell, suffix: str) -> Path:
        return self.path / "cells" / (cell.name + suffix)


def _number(value: Any) -> Any:
    """Return a number of JSON as it is, and NaN for null.

    Raises:
        TypeError: it is something else.
    """
    if not isinstance(value, int | float | None):
        raise TypeError(f"{str(value)[:40]!r} is not a number")
    return math.nan if value is None else value
