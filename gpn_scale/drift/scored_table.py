"""`ScoredTable`: the checked columns of a table of predictions that a comparison needs.

Shapes: N nodes of the table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpn_scale.data.graph import NodeIds
from gpn_scale.errors import ConfigError
from gpn_scale.evaluation.p_values import PARTS
from gpn_scale.evaluation.prediction_table import MARK, Origin

P_VALUES = ("known", *PARTS)
"""The p-values that tables may have: that a node is known, and of each part."""
REQUIRED = ("node", "predicted_class", "aleatoric")
"""Columns that every table of predictions has."""
OPTIONAL = (
    "node_name",
    "predicted_class_name",
    *(f"p_{name}" for name in P_VALUES),
    "reason",
    "split",
    "abstain",
)
"""Columns that a table may have."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoredTable:
    """Predictions of nodes, as far as a comparison needs them.

    >>> table = ScoredTable.of(
    ...     pa.table({"node": [0, 1], "predicted_class": [0, 1], "aleatoric": [-0.75, -0.5]})
    ... )
    >>> table.ids.to_pylist(), table.class_names, table.probability.tolist()
    (['0', '1'], ('0', '1'), [0.75, 0.5])
    """

    name: str
    """Name of the table in texts."""
    node: NodeIds
    """Position of each node in its graph, (N,)."""
    ids: pa.Array
    """Distinct ids of the nodes as large_string: the user's own, or positions; (N,)."""
    has_names: bool
    """Whether ids are the user's own."""
    class_names: tuple[str, ...]
    """Names of the predicted classes, or their numbers if they have no names."""
    predicted: NDArray[np.int64]
    """Position in `class_names` of each node's class, (N,)."""
    predicted_number: NDArray[np.int64]
    """Number of each node's class in the model, (N,)."""
    has_class_names: bool
    """Whether classes have names."""
    num_classes: int | None
    """Number of classes of the model; None if the table does not show it."""
    probability: NDArray[np.float64]
    """Calibrated probability of the predicted class, (N,)."""
    p: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """P-values by name (`P_VALUES`), (N,) each; {} for a model without them."""
    reason: pa.Array | None = None
    """Reason why each node looks unknown; None for a model without p-values."""
    joint: str = "p_known"
    """Column of the p-value `known`: `p_known`, or `p_common` if it was recomputed."""
    used: NDArray[np.bool_]
    """Whether training or validation has used a node, (N,)."""
    validation: NDArray[np.bool_]
    """Whether a node is a validation node, (N,)."""
    marked: NDArray[np.bool_]
    """Whether a node is marked as unknown, (N,)."""
    abstain: NDArray[np.bool_] | None = None
    """Whether a node is not answered, (N,); None without a promise."""
    origin: Origin = field(default_factory=Origin)
    """Origin of the predictions."""

    @classmethod
    def of(
        cls,
        table: pa.Table,
        *,
        name: str = "the table",
        origin: Origin | None = None,
        num_classes: int | None = None,
    ) -> "ScoredTable":
        """Return a table of predictions, checked; further columns are ignored.

        Args:
            table: Columns as `write_predictions` writes them; numbers may be texts, as in CSV.
            name: What the table is called in texts.
            origin: Where the predictions come from, if it is known.
            num_classes: Number of classes of the model; None to count columns of probabilities.

        Raises:
            ConfigError: it is not a table of predictions, is empty, or has a node twice.
        """
        check_columns(table.column_names, name)
        if not table.num_rows:
            raise ConfigError(
                f"{name} has no rows, expected a row per predicted node: predict again",
                arguments=("compare",),
            )
        columns = _Columns(table, name)
        node, numbers = columns.integers("node"), columns.integers("predicted_class")
        names, class_texts = columns.texts("node_name"), columns.texts("predicted_class_name")
        ids = _as_texts(node) if names is None else names
        _check_distinct(ids, name)
        labels = (_as_texts(numbers) if class_texts is None else class_texts).dictionary_encode()
        return cls(
            name=name,
            node=node,
            ids=ids,
            has_names=names is not None,
            class_names=tuple(labels.dictionary.to_pylist()),
            predicted=np.asarray(labels.indices, np.int64),
            predicted_number=numbers,
            has_class_names=class_texts is not None,
            num_classes=num_classes or num_classes_of(table.column_names),
            probability=columns.fractions("aleatoric", sign=-1.0),
            p=columns.p_values(),
            reason=columns.texts("reason", may_miss=True),
            used=columns.is_in_split("train", "val"),
            validation=columns.is_in_split("val"),
            marked=columns.marked(),
            abstain=columns.flags("abstain"),
            origin=origin or Origin(),
        )

    @property
    def num_nodes(self) -> int:
        """Number of nodes N."""
        return len(self.node)


def num_classes_of(names: Sequence[str]) -> int | None:
    """Return for how many classes a table has probabilities; None if it has none.

    >>> num_classes_of(["node", "probability_0", "probability_1"])
    2
    """
    return sum(name.startswith("probability_") for name in names) or None


def needed_columns(names: Sequence[str]) -> list[str]:
    """Return those of a table's columns that a comparison reads.

    >>> needed_columns(["node", "alpha_0", "mark_isolated", "probability_0"])
    ['node', 'mark_isolated']
    """
    return [name for name in names if name in (*REQUIRED, *OPTIONAL) or name.startswith(MARK)]


def check_columns(names: Sequence[str], table: str) -> None:
    """Refuse anything that is not a table of predictions.

    >>> check_columns(["node", "predicted_class", "aleatoric"], "november.csv")

    Raises:
        ConfigError: a column is missing.
    """
    if missing := [name for name in REQUIRED if name not in names]:
        raise ConfigError(
            f"{table} is not a table of predictions: it has no column {missing[0]!r}; expected a "
            "run, or a table written by a prediction",
            arguments=("compare",),
        )


class _Columns:
    """The columns of a table, converted and checked one by one."""

    def __init__(self, table: pa.Table, name: str) -> None:
        self._table, self._name = table, name

    def integers(self, column: str) -> NDArray[np.int64]:
        values = self._cast(column, pa.int64())
        if values.null_count or (len(values) and pc.min(values).as_py() < 0):
            raise self._damaged(column, "a number of at least 0 in every row")
        return np.asarray(values)

    def fractions(self, column: str, sign: float = 1.0) -> NDArray[np.float64]:
        values = sign * np.asarray(pc.fill_null(self._cast(column, pa.float64()), np.nan))
        if not ((values >= 0) & (values <= 1 + 1e-6)).all():
            span = "0 to 1" if sign > 0 else "-1 to 0"
            raise self._damaged(column, f"a number from {span} in every row")
        # Predictions are float32; CSV has fewer digits, which this makes equal again.
        return values.astype(np.float32).astype(np.float64)

    def p_values(self) -> dict[str, NDArray[np.float64]]:
        p_values = {}
        for name in P_VALUES:
            if not self._is_absent(f"p_{name}"):
                p_values[name] = self.fractions(f"p_{name}")
        return p_values if "known" in p_values else {}

    def flags(self, column: str) -> NDArray[np.bool_] | None:
        if self._is_absent(column):
            return None
        values = self._cast(column, pa.bool_())
        if values.null_count:
            raise self._damaged(column, "true or false in every row")
        return np.asarray(values)

    def texts(self, column: str, *, may_miss: bool = False) -> pa.Array | None:
        """Return a column of texts; None if it is absent."""
        if self._is_absent(column):
            return None
        values = self._cast(column, pa.large_string())
        if values.null_count and not may_miss:
            raise self._damaged(column, "a text in every row")
        return values

    def is_in_split(self, *names: str) -> NDArray[np.bool_]:
        """Return whether each node is in one of these subsets of the split."""
        subsets = self.texts("split", may_miss=True)
        if subsets is None:
            return np.zeros(self._table.num_rows, np.bool_)
        return np.asarray(pc.is_in(subsets, value_set=pa.array(names, pa.large_string())))

    def marked(self) -> NDArray[np.bool_]:
        """Return whether each node has any mark."""
        marked = np.zeros(self._table.num_rows, np.bool_)
        for name in self._table.column_names:
            flags = self.flags(name) if name.startswith(MARK) else None
            if flags is not None:
                marked |= flags
        return marked

    def _is_absent(self, column: str) -> bool:
        """Return whether the table has no such column, or one without any value."""
        if column not in self._table.column_names:
            return True
        return bool(self._table[column].null_count == self._table.num_rows)

    def _cast(self, column: str, kind: pa.DataType) -> pa.Array:
        values = self._table[column]
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        try:
            return values.cast(kind).combine_chunks()
        except pa.ArrowException as error:
            raise self._damaged(column, f"values of type {kind}") from error

    def _damaged(self, column: str, expected: str) -> ConfigError:
        return ConfigError(
            f"{self._name} is not a table of predictions: its column {column!r} has other values; "
            f"expected {expected}",
            arguments=("compare",),
        )


def _as_texts(numbers: NDArray[np.int64]) -> pa.Array:
    return pa.array(numbers).cast(pa.large_string())


def _check_distinct(ids: pa.Array, name: str) -> None:
    counts = ids.value_counts()
    repeated = counts.filter(pc.greater(counts.field("counts"), 1))
    if len(repeated):
        raise ConfigError(
            f"{name} has the node {repeated[0]['values'].as_py()!r} more than once; expected a row "
            "per node: predict each node once",
            arguments=("compare",),
        )
