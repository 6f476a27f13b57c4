"""Raw values of a node beside the usual values of the training nodes, as the user gave them.

Shapes: T training nodes.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpn_scale.data.column_values import ColumnReader
from gpn_scale.data.graph import Graph
from gpn_scale.data.preparation import Preparation
from gpn_scale.data.raw_columns import RawColumns

_TEXT_LENGTH = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class RawValue:
    """The value of a node in a raw column, and the usual one.

    >>> str(RawValue(name="volume", value=253302.83, usual=3070.64, strangeness=1.0))
    'volume 253303 (usually 3070.64)'
    """

    name: str
    value: float | str | None
    """Value of the node; None if it is missing."""
    usual: float | str | None
    """Median of numbers, or the most frequent value, over the training nodes; None without any."""
    strangeness: float
    """Fraction of training nodes that are nearer to the usual value, or have another value."""

    def __str__(self) -> str:
        usual = "" if self.usual is None else f" (usually {_shown(self.usual)})"
        return f"{self.name} {_shown(self.value)}{usual}"


def _shown(value: float | str | None) -> str:
    if value is None:
        return "missing"
    text = f"{value:.6g}" if isinstance(value, float) else value
    return text if len(text) <= _TEXT_LENGTH else f"{text[: _TEXT_LENGTH - 1]}…"


@dataclass(frozen=True, slots=True)
class _UsualNumber:
    """The median of a column of numbers, and how far training nodes are from it, sorted."""

    usual: float | None
    distance_T: NDArray[np.float64]

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> "_UsualNumber":
        values = _numbers(column)
        values = values[np.isfinite(values)]
        if not len(values):
            return cls(None, values)
        median = float(np.median(values))
        return cls(median, np.sort(np.abs(values - median)))

    def strangeness(self, value: float | str | None) -> float:
        """Return the fraction of training nodes that are nearer to the median."""
        if self.usual is None or not isinstance(value, float):
            return 0.0
        nearer = np.searchsorted(self.distance_T, abs(value - self.usual))
        return float(nearer) / max(len(self.distance_T), 1)


@dataclass(frozen=True, slots=True)
class _UsualText:
    """The most frequent value of a column, and the fractions of all values."""

    usual: str | None
    fraction: dict[str, float]

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> "_UsualText":
        texts = [_text(value) for value in column.to_pylist() if value is not None]
        counts = Counter(texts)
        if not counts:
            return cls(None, {})
        largest = max(counts.values())
        usual = min(text for text, count in counts.items() if count == largest)
        return cls(usual, {text: count / len(texts) for text, count in counts.items()})

    def strangeness(self, value: float | str | None) -> float:
        """Return the fraction of training nodes that have another value."""
        return 0.0 if value == self.usual else 1.0 - self.fraction.get(str(value), 0.0)


class UsualColumns:
    """The usual values of all raw columns of a graph.

    >>> from gpn_scale import Graph
    >>> nodes = {"id": ["a", "b", "c"], "age": [30, 32, 90], "split": ["train", "train", "test"]}
    >>> nodes["label"] = ["x", "y", "x"]
    >>> graph = Graph.from_tables(nodes, {"source": ["a"], "target": ["b"]})
    >>> [str(value) for value in UsualColumns.of(graph).values(2)]
    ['age 90 (usually 31)']

    Args:
        raw: The raw columns.
        preparation: Which of them become features, and how.
        usual: The usual values by column.
    """

    def __init__(
        self,
        raw: RawColumns,
        preparation: Preparation,
        usual: dict[str, _UsualNumber | _UsualText],
    ) -> None:
        self._raw, self._preparation, self._usual = raw, preparation, usual

    @classmethod
    def of(cls, graph: Graph) -> "UsualColumns | None":
        """Return the usual values of a graph's raw columns; None for a graph without any."""
        raw, preparation = graph.raw_columns, graph.preparation
        if raw is None or preparation is None:
            return None
        train = np.arange(0) if graph.split is None else graph.split.train
        names = [rule.column for rule in preparation.rules]
        table = raw.table().select(names).take(pa.array(train))
        usual: dict[str, _UsualNumber | _UsualText] = {}
        for rule in preparation.rules:
            kind = _UsualNumber if rule.kind == "number" else _UsualText
            usual[rule.column] = kind.of(table[rule.column])
        return cls(raw, preparation, usual)

    def values(self, node: int) -> list[RawValue]:
        """Return the values of a node in the order of the columns."""
        row = self._raw.rows(node, node + 1)
        values = []
        for rule in self._preparation.rules:
            column, usual = row[rule.column], self._usual[rule.column]
            value: Any = column[0].as_py()
            if rule.kind == "number":
                number = float(_numbers(column)[0])
                value = number if np.isfinite(number) else None
            elif value is not None:
                value = _text(value)
            values.append(
                RawValue(
                    name=rule.column,
                    value=value,
                    usual=usual.usual,
                    strangeness=usual.strangeness(value),
                )
            )
        return values


def _numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return a column of numbers; NaN for what is missing or no number."""
    numbers = ColumnReader(column).numbers
    return np.where(numbers.missing | numbers.wrong, np.nan, numbers.value)


def _text(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
