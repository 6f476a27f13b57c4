"""Finds the columns that make a node's features foreign, by giving each its usual value.

A column is replaced by its median over the training nodes, and the node's feature evidence is
recomputed. The column whose replacement restores most evidence is the most foreign one. Columns
that belong together, such as all features made from one raw column, are replaced together.

For sparse features, only the node's own nonzero columns are tried: a bag of words has thousands of
columns, and a missing word is hardly ever what is strange.

Shapes: B nodes, F feature columns, T training nodes, G groups of columns.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpn_scale.csr import entries_of
from gpn_scale.data.features import take_rows
from gpn_scale.data.graph import CSRFeatures, Features, Graph, NodeIds
from gpn_scale.inference.encoder_inputs import required_features
from gpn_scale.inference.trained_model import TrainedModel

_LEAST_GAIN = 0.1
"""Gain in log evidence below which a column does not count as foreign."""
_ENTRIES_AT_ONCE = 1 << 24
"""Number of feature values of the changed rows that are computed together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignColumn:
    """A column, or a group of columns, that makes a node's features foreign.

    >>> column = ForeignColumn(name="age", value=912.0, usual=41.0, gain=3.0)
    >>> str(column)
    'age 912 (usually 41)'
    """

    name: str
    value: float | None
    """Value of the node; None for a group of several columns."""
    usual: float | None
    """Median over the training nodes; None for a group of several columns."""
    gain: float
    """Increase of the logarithm of the feature evidence with the usual value."""

    def __str__(self) -> str:
        if self.value is None or self.usual is None:
            return self.name
        return f"{self.name} {self.value:.4g} (usually {self.usual:.4g})"


def training_median(features: Features, train: NodeIds) -> NDArray[np.float32]:
    """Return the median of every column over the training nodes, (F,).

    >>> training_median(np.array([[1.0], [2.0], [9.0], [50.0]], np.float32), np.array([0, 1, 2]))
    array([2.], dtype=float32)
    """
    rows = take_rows(features, train)
    if not isinstance(rows, CSRFeatures):
        return np.asarray(np.median(rows.astype(np.float32), axis=0), np.float32)
    median_F = np.zeros(rows.num_columns, np.float32)
    count_F = np.bincount(rows.indices, minlength=rows.num_columns)
    for column in np.flatnonzero(2 * count_F >= len(train)):  # all others are 0
        values = np.zeros(len(train), np.float32)
        own = rows.values[rows.indices == column]
        values[: len(own)] = own
        median_F[column] = np.median(values)
    return median_F


def foreign_columns(
    trained: TrainedModel,
    graph: Graph,
    nodes: NodeIds,
    *,
    count: int = 3,
    raw_columns: Sequence[str] | None = None,
) -> list[tuple[ForeignColumn, ...]]:
    """Return the columns that make each node's features foreign, the most foreign one first.

    >>> from gpn_scale import GPNClassifier, load_graph
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> graph = load_graph("synthetic:nodes=300,classes=2,features=4")
    >>> trained = GPNClassifier(RunConfig(train=TrainConfig(epochs=20))).fit(graph).trained
    >>> from gpn_scale.data.splits import stratified_split
    >>> graph = stratified_split(graph, rng_seed=1)
    >>> strange = graph.marks["foreign_features"][:2]
    >>> [len(columns) <= 3 for columns in foreign_columns(trained, graph, strange)]
    [True, True]

    Args:
        trained: The model.
        graph: Graph with features and a split.
        nodes: Node ids, (B,).
        count: Largest number of columns to name per node.
        raw_columns: Name of the raw column behind each feature column, (F,); features of one raw
            column are replaced together. None if every feature column stands for itself.
    """
    features = required_features(graph)
    assert graph.split is not None
    median_F = training_median(features, graph.split.train)
    groups = _Groups.of(graph, raw_columns)
    return [
        _strongest(trained, _row(features, int(node)), median_F, groups, count) for node in nodes
    ]


@dataclass(frozen=True, slots=True, eq=False)
class _Groups:
    """Groups of columns that are replaced together."""

    names: list[str]
    """Names of the groups, (G,)."""
    of_column: NDArray[np.int64]
    """Group of each column, (F,)."""

    @classmethod
    def of(cls, graph: Graph, raw_columns: Sequence[str] | None) -> "_Groups":
        if raw_columns is not None:
            names = list(dict.fromkeys(map(str, raw_columns)))
            place = {name: group for group, name in enumerate(names)}
            return cls(names, np.array([place[str(name)] for name in raw_columns], np.int64))
        columns = np.arange(graph.num_features)
        if graph.feature_names is None:
            return cls([f"column {column}" for column in columns], columns)
        return cls([str(name) for name in graph.feature_names], columns)

    def touched(self, is_tried_F: NDArray[np.bool_]) -> dict[str, NDArray[np.int64]]:
        """Return the columns of each group with a column to try, by the group's name."""
        groups = np.unique(self.of_column[is_tried_F])
        return {self.names[group]: np.flatnonzero(self.of_column == group) for group in groups}


def _row(features: Features, node: int) -> NDArray[np.float32] | CSRFeatures:
    if isinstance(features, CSRFeatures):
        return features.rows(node, node + 1)
    row: NDArray[np.float32] = np.asarray(features[node], np.float32)
    return row


def _strongest(
    trained: TrainedModel,
    row: NDArray[np.float32] | CSRFeatures,
    median_F: NDArray[np.float32],
    groups: _Groups,
    count: int,
) -> tuple[ForeignColumn, ...]:
    """Return the foreign columns of one node."""
    dense_F = row.to_dense()[0] if isinstance(row, CSRFeatures) else row
    is_tried_F = dense_F != median_F
    if isinstance(row, CSRFeatures):
        is_tried_F &= dense_F != 0.0
    tried = groups.touched(is_tried_F)
    pieces = [_log_evidence(trained, changed) for changed in _changed(row, median_F, tried)]
    before, after_G = pieces[0][0], np.concatenate([pieces[0][1:], *pieces[1:]])
    gain_G = after_G - before
    names = list(tried)
    order = np.argsort(-gain_G, kind="stable")[:count]
    return tuple(
        _foreign_column(names[i], tried[names[i]], dense_F, median_F, float(gain_G[i]))
        for i in order
        if gain_G[i] >= _LEAST_GAIN
    )


def _foreign_column(
    name: str,
    columns: NDArray[np.int64],
    dense_F: NDArray[np.float32],
    median_F: NDArray[np.float32],
    gain: float,
) -> ForeignColumn:
    single = int(columns[0]) if len(columns) == 1 else None
    return ForeignColumn(
        name=name,
        value=None if single is None else float(dense_F[single]),
        usual=None if single is None else float(median_F[single]),
        gain=gain,
    )


def _changed(
    row: NDArray[np.float32] | CSRFeatures,
    median_F: NDArray[np.float32],
    tried: Mapping[str, NDArray[np.int64]],
) -> Iterator[Features]:
    """Yield the row itself, then with each group replaced, in blocks of rows."""
    replaced = [np.empty(0, np.int64), *tried.values()]
    width = len(row.values) if isinstance(row, CSRFeatures) else len(row)
    block = max(1, _ENTRIES_AT_ONCE // max(width, 1))
    for start in range(0, len(replaced), block):
        groups = replaced[start : start + block]
        if isinstance(row, CSRFeatures):
            indptr, source = entries_of(row.indptr, np.zeros(len(groups), np.int64))
            indices, values = row.indices[source], row.values[source].copy()
            for i, columns in enumerate(groups):
                own = slice(indptr[i], indptr[i + 1])
                values[own] = np.where(
                    np.isin(indices[own], columns), median_F[indices[own]], values[own]
                )
            yield CSRFeatures(
                indptr=indptr, indices=indices, values=values, num_columns=row.num_columns
            )
        else:
            rows = np.repeat(row[None], len(groups), axis=0)
            for i, columns in enumerate(groups):
                rows[i, columns] = median_F[columns]
            yield rows


def _log_evidence(trained: TrainedModel, rows: Features) -> NDArray[np.float64]:
    """Return the logarithm of the total feature evidence of feature rows, (B,)."""
    evidence_BC = trained.evidence(rows, np.arange(rows.shape[0]))
    log_B: NDArray[np.float64] = evidence_BC.double().sum(1).log().cpu().numpy()
    return log_B
