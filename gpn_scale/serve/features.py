"""The columns of a node, next to the usual values of the training nodes.

Raw columns are shown as the user gave them. A graph without raw columns shows its features.

Shapes: F columns, T training nodes.
"""

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.features import take_rows
from gpn_scale.data.graph import CSRFeatures, Graph
from gpn_scale.inference.encoder_inputs import required_features
from gpn_scale.serve.answers import Answer, finite
from gpn_scale.serve.served_model import ServedModel
from gpn_scale.triage.occlusion import training_median
from gpn_scale.triage.raw_values import UsualColumns

MOST_COLUMNS = 200
"""Number of columns that an answer has."""


def column_kinds(graph: Graph) -> list[tuple[str, str]]:
    """Return name and kind of every column that can be given for a node."""
    if graph.preparation is not None and graph.raw_columns is not None:
        return [(rule.column, rule.kind) for rule in graph.preparation.rules]
    return [(feature_name(graph, column), "feature") for column in range(graph.num_features)]


def feature_name(graph: Graph, column: int) -> str:
    """Return the name of a feature, or its number if it has none."""
    return str(column) if graph.feature_names is None else str(graph.feature_names[column])


def node_features(model: ServedModel, node: int) -> Answer:
    """Return the columns of a node, those that differ most from the training nodes first."""
    graph = model.graph
    usual = usual_columns(model)
    if usual is not None:
        columns = _raw_answers(usual, node)
        number = len(column_kinds(graph))
    else:
        columns, number = _feature_values(model, node), graph.num_features
    return {"id": model.ids.text(node), "num_columns": number, "columns": columns}


def usual_columns(model: ServedModel) -> UsualColumns | None:
    """Return the usual values of raw columns, computed once; None for a graph without any."""
    return model.once("usual columns", lambda: UsualColumns.of(model.graph))


def _raw_answers(usual: UsualColumns, node: int) -> list[Answer]:
    values = usual.values(node)
    order = np.argsort([-each.strangeness for each in values], kind="stable")[:MOST_COLUMNS]
    named = [values[place] for place in order]
    return [{"name": each.name, "value": each.value, "usual": each.usual} for each in named]


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


def _feature(graph: Graph, column: int, value: float, usual_F: NDArray[np.float64]) -> Answer:
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
