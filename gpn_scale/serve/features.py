"""The columns of a node beside the usual values of the training nodes.

Raw columns are shown as the user gave them. A graph without raw columns shows its features.

Shapes: F columns, T training nodes.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpn_scale.data.column_values import ColumnReader
from gpn_scale.data.features import take_rows
from gpn_scale.data.graph import CSRFeatures, Graph
from gpn_scale.data.preparation import Preparation
from gpn_scale.data.raw_columns import RawColumns
from gpn_scale.inference.encoder_inputs import required_features
from gpn_scale.serve.answers import Answer, finite
from gpn_scale.serve.served_model import ServedModel
from gpn_scale.triage.occlusion import training_median

MOST_COLUMNS = 200
"""Number of columns that an answer has."""
_KINDS = {"boolean": "flag"}


def column_kinds(graph: Graph) -> list[tuple[str, str]]:
    """Return name and kind of every column that can be given for a node."""
    if graph.preparation is not None and graph.raw_columns is not None:
        return [(rule.column, _KINDS.get(rule.kind, rule.kind)) for rule in graph.preparation.rules]
    return [(feature_name(graph, column), "feature") for column in range(graph.num_features)]


def feature_name(graph: Graph, column: int) -> str:
    """Return the name of a feature, or its number if it has none."""
    return str(column) if graph.feature_names is None else str(graph.feature_names[column])


def node_features(model: ServedModel, node: int) -> Answer:
    """Return the columns of a node, those that differ most from the training nodes first."""
    graph = model.graph
    if graph.preparation is not None and graph.raw_columns is not None:
        columns = _raw_values(model, graph.preparation, graph.raw_columns, node)
        number = len(graph.preparation.rules)
    else:
        columns, number = _feature_values(model, node), graph.num_features
    return {"id": model.ids.text(node), "num_columns": number, "columns": columns}


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

    def strangeness(self, value: Any) -> float:
        """Return the fraction of training nodes that are nearer to the median."""
        number = value if isinstance(value, float) else np.nan
        if self.usual is None or not np.isfinite(number):
            return 0.0
        nearer = np.searchsorted(self.distance_T, abs(number - self.usual))
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

    def strangeness(self, value: Any) -> float:
        """Return the fraction of training nodes that have another value."""
        return 0.0 if value == self.usual else 1.0 - self.fraction.get(str(value), 0.0)


def _raw_values(
    model: ServedModel, preparation: Preparation, raw: RawColumns, node: int
) -> list[Answer]:
    row = raw.rows(node, node + 1)
    usual = model.once("usual columns", lambda: _usual_columns(model.graph, preparation, raw))
    answers, strangeness = [], []
    for rule in preparation.rules:
        column = row[rule.column]
        value: Any = column[0].as_py()
        if rule.kind == "number":
            value = finite(float(_numbers(column)[0]))
        elif value is not None:
            value = _text(value)
        typical = usual[rule.column]
        strangeness.append(typical.strangeness(value))
        answers.append({"name": rule.column, "value": value, "usual": typical.usual})
    order = np.argsort(-np.array(strangeness), kind="stable")[:MOST_COLUMNS]
    return [answers[place] for place in order]


def _usual_columns(
    graph: Graph, preparation: Preparation, raw: RawColumns
) -> dict[str, _UsualNumber | _UsualText]:
    train = np.arange(0) if graph.split is None else graph.split.train
    table = raw.table().select([rule.column for rule in preparation.rules]).take(pa.array(train))
    return {
        rule.column: (
            _UsualNumber.of(table[rule.column])
            if rule.kind == "number"
            else _UsualText.of(table[rule.column])
        )
        for rule in preparation.rules
    }


def _numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return a column of numbers; NaN for what is missing or no number."""
    numbers = ColumnReader(column).numbers
    return np.where(numbers.missing | numbers.wrong, np.nan, numbers.value)


def _text(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _feature_values(model: ServedModel, node: int) -> list[Answer]:
    """Return the features of a node that are not 0."""
    graph = model.graph
    features = required_features(graph)
    row = take_rows(features, np.array([node]))
    usual_F, spread_F = model.once("usual features", lambda: _usual_features(graph))
    columns: NDArray[np.integer]
    if isinstance(row, CSRFeatures):
        columns, values = row.indices, np.asarray(row.values, np.float64)
    else:
        columns = np.flatnonzero(row[0])
        values = np.asarray(row[0][columns], np.float64)
    gap = np.abs(values - usual_F[columns]) / spread_F[columns]
    order = np.argsort(-gap, kind="stable")[:MOST_COLUMNS]
    return [_feature(graph, int(columns[i]), float(values[i]), usual_F) for i in order]


def _feature(graph: Graph, column: int, value: float, usual_F: Sequence[float]) -> Answer:
    return {
        "name": feature_name(graph, column),
        "value": finite(value),
        "usual": finite(float(usual_F[column])),
    }


def _usual_features(graph: Graph) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return median and spread of every feature over the training nodes, (F,) and (F,)."""
    features = required_features(graph)
    spread_F = np.ones(graph.num_features)
    if graph.split is None:
        return np.zeros(graph.num_features), spread_F
    median_F = training_median(features, graph.split.train).astype(np.float64)
    rows = take_rows(features, graph.split.train)
    if not isinstance(rows, CSRFeatures):
        spread_F = np.asarray(rows, np.float64).std(0)
        spread_F[spread_F == 0.0] = 1.0
    return median_F, spread_F
