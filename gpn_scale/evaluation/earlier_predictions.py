"""Predictions of an earlier run, read from its table of predictions.

Shapes: M nodes of the table, N read nodes, C classes.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from gpn_scale.data.earlier_nodes import EarlierNodes
from gpn_scale.data.graph import MISSING_LABEL, Split
from gpn_scale.data.table_files import read_parquet
from gpn_scale.errors import FileError, RunError
from gpn_scale.evaluation.prediction import AbstractPrediction, FloatArray
from gpn_scale.evaluation.prediction_table import MARK
from gpn_scale.reading import check_file


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EarlierPrediction(AbstractPrediction):
    """Class probabilities and scores that a table of predictions holds.

    >>> half = np.full((1, 2), 0.5)
    >>> EarlierPrediction(probabilities=half, epistemic=np.array([-8.0])).score("epistemic")
    array([-8.])
    """

    epistemic: FloatArray
    """-alpha_0, (N,)."""
    p_known: FloatArray | None = None
    """P-value of being known, (N,); None for a model without p-values."""

    def score(self, name: str) -> FloatArray | None:
        """Return a score of every node, (N,); None for scores that are not read."""
        if name == "aleatoric":
            return self.aleatoric
        if name == "p_known":
            return None if self.p_known is None else np.float32(1.0) - self.p_known
        return self.epistemic if name == "epistemic" else None


@dataclass(frozen=True, slots=True)
class EarlierPredictions:
    """The table of predictions of all nodes that a run has written.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     table = pa.table({"node": [0, 1], "label": [1, None], "split": ["train", None]})
    ...     parquet.write_table(table, Path(folder, "predictions.parquet"))
    ...     nodes = EarlierPredictions(Path(folder, "predictions.parquet")).nodes()
    >>> nodes.labels.tolist(), nodes.split.train.tolist()
    ([1, -1], [0])
    """

    path: Path

    def nodes(self) -> EarlierNodes:
        """Return the nodes of the run's graph.

        Raises:
            RunError: the table is missing or damaged.
        """
        optional = [name for name in self._names() if name == "node_name" or name.startswith(MARK)]
        table = self._read(["node", "label", "split", *optional])
        try:
            marks = [np.asarray(table[name]) for name in optional if name.startswith(MARK)]
            names = None
            if "node_name" in optional:
                names = np.array(table["node_name"].to_pylist(), np.str_)
            subset = np.array(table["split"].cast(pa.string()).to_pylist(), object)
            labels = table["label"].fill_null(MISSING_LABEL).to_numpy()
            if not np.array_equal(table["node"].to_numpy(), np.arange(table.num_rows)):
                raise self._damaged("its rows are not those of all nodes in their order")
            return EarlierNodes(
                labels=labels.astype(np.int32),
                split=Split(**{n: np.flatnonzero(subset == n) for n in ("train", "val", "test")}),
                names=names,
                marked=np.flatnonzero(np.any(marks, axis=0)) if marks else np.empty(0, np.int64),
            )
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise self._damaged(str(error).partition("\n")[0]) from error

    def prediction(self) -> EarlierPrediction:
        """Return probabilities and scores of all nodes.

        Raises:
            RunError: the table is missing or damaged.
        """
        names = self._names()
        classes = [name for name in names if name.startswith("probability_")]
        known = [name for name in ("p_known",) if name in names]
        table = self._read([*classes, "epistemic", *known])
        try:
            columns = [_floats(table[f"probability_{label}"]) for label in range(len(classes))]
            return EarlierPrediction(
                probabilities=np.stack(columns, axis=1),
                epistemic=_floats(table["epistemic"]),
                p_known=_floats(table["p_known"]) if known else None,
            )
        except (pa.ArrowException, KeyError, ValueError) as error:
            raise self._damaged(str(error).partition("\n")[0]) from error

    def _names(self) -> list[str]:
        try:
            check_file(self.path)
            return list(parquet.read_schema(self.path).names)
        except (OSError, FileError, pa.ArrowException) as error:
            raise self._damaged(str(error).partition("\n")[0]) from error

    def _read(self, columns: list[str]) -> Any:
        try:
            return read_parquet(self.path, columns)
        except (OSError, FileError, KeyError, pa.ArrowException) as error:
            raise self._damaged(str(error).partition("\n")[0]) from error

    def _damaged(self, reason: str) -> RunError:
        return RunError(
            f"{self.path} cannot be read ({reason}), expected the predictions that training "
            "writes: train again",
            arguments=("run",),
        )


def _floats(column: pa.ChunkedArray) -> NDArray[np.float32]:
    return np.asarray(column.to_numpy(), np.float32)
