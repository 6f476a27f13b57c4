"""`Preparation`: turns raw columns into features; fitted once, then applied to later tables.

Shapes: N rows, F features.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa
import scipy.sparse

from gpn_scale.data.column_fitting import (
    EXPECTED,
    FittedColumn,
    LeftOutColumn,
    fitted_column,
    missing_faults,
    unreadable_fault,
)
from gpn_scale.data.column_kinds import KINDS, MISSING_RULES, ColumnKind, MissingRule
from gpn_scale.data.column_rules import ColumnRule, EncodedColumn
from gpn_scale.data.column_values import ColumnReader
from gpn_scale.data.faults import Fault, TableFaults
from gpn_scale.data.feature_labels import FeatureLabel, distinct_names
from gpn_scale.data.feature_matrix import is_sparse, joined_features
from gpn_scale.data.graph import Features, Graph
from gpn_scale.data.rule_records import (
    RecordReader,
    left_out_column,
    rule_from_record,
    rule_record,
    structural_rule,
)
from gpn_scale.data.structural import STRUCTURE, StructuralRule, fitted_structure
from gpn_scale.data.surprises import ColumnSurprise, listed
from gpn_scale.errors import ConfigError, GraphError

UNREADABLE_LIMIT = 0.25
"""Largest fraction of the given values of a column that may be of another kind and then count as
missing; a column with more is refused."""


class PreparedColumns(NamedTuple):
    """The features of a table, with notes on it.

    >>> preparation = Preparation.fit(pa.table({"kind": ["old", "new"]}))
    >>> preparation.apply(pa.table({"kind": ["odd", "new"]})).notes
    ("1 value of 'kind' is not among those of training (first: 'odd'); it counts as no category.",)
    """

    features: Features
    """Dense float32 or sparse, (N, F)."""
    notes: tuple[str, ...]
    """Notes on what is unusual about the table, one sentence each."""
    surprises: tuple[ColumnSurprise, ...]
    """The counts behind the notes, one record per column that has any."""
    preparation: "Preparation"
    """The preparation that made the features."""


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """The rules by which raw columns become features.

    Fit a preparation to the table of the training graph. A model then applies it to every other
    table, so that equal values become equal features.

    >>> table = pa.table({"age": ["31", "", "29"], "country": ["DE", "FR", "DE"]})
    >>> preparation = Preparation.fit(table)
    >>> preparation.feature_names
    ('age', 'age is missing', 'country=DE', 'country=FR')
    >>> preparation.apply(table).features.tolist()
    [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [-1.0, 0.0, 1.0, 0.0]]
    >>> preparation.column_of("country=FR"), preparation.column_of(1)
    ('country', 'age')
    """

    rules: tuple[ColumnRule, ...]
    """One rule per raw column that becomes features, in the order of the fitting table."""
    missing: MissingRule = "flag"
    """What happens to missing values."""
    structural: bool = False
    """Whether structural features follow those of the columns."""
    structure: tuple[StructuralRule, ...] = ()
    """Rules of the structural features; () until the preparation is fitted to a graph."""
    left_out: tuple[LeftOutColumn, ...] = ()
    """Raw columns of the fitting table that do not become features."""

    @classmethod
    def fit(
        cls,
        columns: pa.Table,
        *,
        kinds: Mapping[str, ColumnKind] | None = None,
        missing: MissingRule = "flag",
        structural: bool = False,
        file: str = "nodes",
    ) -> "Preparation":
        """Fit a preparation to a table, and return it.

        Args:
            columns: Raw feature columns. Numbers, booleans and dates may also be given as text.
            kinds: Kinds of columns that replace the inferred ones (see `inferred_kind`).
            missing: `flag` fills missing values and, for columns that have any, adds a feature that
                marks them; `fill` only fills them; `refuse` makes each of them a fault.
            structural: Whether features of the network follow those of the columns.
            file: Name of the file, for faults.

        Raises:
            ConfigError: `missing` is not one of the three.
            TableFaults: columns cannot be used; it lists all faults of all columns.
        """
        if missing not in MISSING_RULES:
            raise ConfigError(
                f"missing is {missing!r}, expected one of {', '.join(MISSING_RULES)}",
                arguments=("missing",),
            )
        kinds = kinds or {}
        faults = [*_repeated_columns(columns, file), *_kind_faults(columns, kinds, file)]
        fitted: list[FittedColumn] = []
        for name in _distinct_columns(columns):
            kind = kinds[name] if kinds.get(name) in KINDS else None
            column = columns[name]
            fitted.append(fitted_column(name, column, kind=kind, missing=missing, file=file))
        faults += [fault for each in fitted for fault in each.faults]
        if faults:
            raise TableFaults(faults, arguments=("missing", "kinds"))
        results = [each.result for each in fitted]
        return cls(
            rules=tuple(each for each in results if isinstance(each, ColumnRule)),
            missing=missing,
            structural=structural,
            left_out=tuple(each for each in results if isinstance(each, LeftOutColumn)),
        )

    def fitted_to(self, graph: Graph) -> "Preparation":
        """Return the preparation with centre and scale of the structural features of `graph`.

        >>> from gpn_scale import build_graph
        >>> preparation = Preparation(rules=(), structural=True)
        >>> preparation.fitted_to(build_graph([0], [1])).feature_names
        ('log degree', 'log mean degree of neighbours')
        """
        if not self.structural or self.structure:
            return self
        return replace(self, structure=fitted_structure(graph))

    def apply(
        self, columns: pa.Table, *, file: str = "nodes", graph: Graph | None = None
    ) -> PreparedColumns:
        """Return the features of a table whose columns are matched by name.

        Columns without a rule are ignored. Missing values follow the rule, and so do values of
        another kind if they are at most `UNREADABLE_LIMIT` of the given ones.

        Args:
            columns: Raw feature columns, in any order.
            file: Name of the file, for faults.
            graph: The graph of these N nodes; without it there are no structural features.

        Raises:
            TableFaults: columns are missing or of another kind; it lists all faults.
            GraphError: the numbers of rows and nodes differ.
        """
        self._check_rows(columns, graph)
        faults = _repeated_columns(columns, file)
        repeated = {fault.column for fault in faults}
        blocks: list[scipy.sparse.csr_array] = []
        surprises: list[ColumnSurprise] = []
        for rule in self.rules:
            if rule.column in repeated:
                continue
            if rule.column not in columns.column_names:
                advice = f"add the column, or train again without it{self._renamed(columns)}"
                faults.append(Fault(file=file, column=rule.column, advice=advice))
                continue
            column = columns[rule.column]
            if fault := unreadable_fault(rule.column, column, file):
                faults.append(fault)
                continue
            reader = ColumnReader(column)
            encoded = rule.encoded(reader)
            faults += self._value_faults(rule, reader, encoded, file)
            if (surprise := ColumnSurprise.of(rule, reader, encoded)) is not None:
                surprises.append(surprise)
            blocks.append(encoded.features)
        if faults:
            raise TableFaults(faults)
        num_rows = columns.num_rows if graph is None else graph.num_nodes
        if graph is not None:
            blocks += [rule.encoded(graph) for rule in self.structure]
        sentences = [text for surprise in surprises for text in surprise.sentences]
        notes = (*self._notes_on_columns(columns), *sentences)
        features = joined_features(blocks, num_rows, sparse=self.is_sparse)
        return PreparedColumns(features, notes, tuple(surprises), self)

    @property
    def notes(self) -> tuple[str, ...]:
        """Columns of the fitting table that were left out, with the reason, one sentence each."""
        return tuple(column.sentence for column in self.left_out)

    @property
    def num_features(self) -> int:
        """Number of features F."""
        return sum(rule.width for rule in self.rules) + len(self.structure)

    @property
    def is_sparse(self) -> bool:
        """Whether features are stored as compressed rows; the rule is that of `feature_matrix`."""
        filled = sum(rule.filled for rule in self.rules) + len(self.structure)
        return is_sparse(self.num_features, filled)

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """Distinct names of the features, (F,)."""
        return distinct_names(self._labels)

    def column_of(self, feature: str | int) -> str:
        """Return the raw column behind a feature; structural features have `network structure`.

        Args:
            feature: Its name or its position.

        Raises:
            ConfigError: the feature does not exist.
        """
        position = self._positions.get(feature, -1) if isinstance(feature, str) else int(feature)
        if not 0 <= position < self.num_features:
            raise ConfigError(
                f"feature is {feature!r}, expected one of the {self.num_features} feature names or "
                "its position"
            )
        return self._labels[position].column

    def to_dict(self) -> dict[str, Any]:
        """Return the preparation as JSON values."""
        return {
            "missing": self.missing,
            "structural": self.structural,
            "rules": [rule_record(rule) for rule in self.rules],
            "structure": [asdict(rule) for rule in self.structure],
            "left_out": [asdict(column) for column in self.left_out],
        }

    @classmethod
    def from_dict(cls, values: Any) -> "Preparation":
        """Return the preparation that `to_dict` turned into JSON values.

        >>> preparation = Preparation.fit(pa.table({"age": [31, 29]}))
        >>> Preparation.from_dict(preparation.to_dict()) == preparation
        True

        Raises:
            GraphError: an entry is missing or has a wrong type or value.
        """
        fields = RecordReader(values, "it")
        missing: Any = fields.text("missing", MISSING_RULES)
        return cls(
            rules=tuple(map(rule_from_record, fields.items("rules"))),
            missing=missing,
            structural=fields.flag("structural"),
            structure=tuple(map(structural_rule, fields.items("structure"))),
            left_out=tuple(map(left_out_column, fields.items("left_out"))),
        )

    @cached_property
    def _labels(self) -> tuple[FeatureLabel, ...]:
        labels = [FeatureLabel(rule.column, label) for rule in self.rules for label in rule.labels]
        return (*labels, *(FeatureLabel(STRUCTURE, rule.label) for rule in self.structure))

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: position for position, name in enumerate(self.feature_names)}

    def _check_rows(self, columns: pa.Table, graph: Graph | None) -> None:
        if self.rules and graph is not None and columns.num_rows != graph.num_nodes:
            raise GraphError(
                f"the columns have {columns.num_rows} rows but graph {graph.name!r} has "
                f"{graph.num_nodes} nodes, expected one row per node"
            )

    def _value_faults(
        self, rule: ColumnRule, reader: ColumnReader, encoded: EncodedColumn, file: str
    ) -> list[Fault]:
        """Return a fault if most values are of another kind, else one if some must not miss."""
        num_wrong = int(encoded.unreadable.sum())
        num_given = len(encoded.missing) - int(encoded.missing.sum())
        if num_wrong <= UNREADABLE_LIMIT * num_given:
            rows_without = encoded.missing | encoded.unreadable
            return list(missing_faults(rule.column, rows_without, self.missing, file))
        row = int(encoded.unreadable.argmax())
        advice = f"write {EXPECTED[rule.kind]}: the column is a {rule.kind} of the model"
        return [
            Fault(
                file=file,
                row=row + 1,
                column=rule.column,
                value=reader.cell(row),
                count=num_wrong,
                advice=advice,
            )
        ]

    def _renamed(self, columns: pa.Table) -> str:
        """Return a hint at columns that training did not have, one of which may be a lost one."""
        extra = self._extra_columns(columns)
        return f"; was {listed(extra)} renamed?" if extra else ""

    def _extra_columns(self, columns: pa.Table) -> list[str]:
        """Return the names of columns that training did not have."""
        own = {each.column for each in (*self.rules, *self.left_out)}
        return [name for name in columns.column_names if name not in own]

    def _notes_on_columns(self, columns: pa.Table) -> tuple[str, ...]:
        extra = self._extra_columns(columns)
        if not extra:
            return ()
        subject, verb = ("column", "was") if len(extra) == 1 else ("columns", "were")
        return (f"The {subject} {listed(extra)} {verb} not in training and {verb} ignored.",)


def prepared_features(
    preparation: Preparation, columns: pa.Table, graph: Graph, *, file: str = "nodes"
) -> PreparedColumns:
    """Return the features of a graph's nodes: those of their raw columns, then structural ones.

    A preparation with structural features that has no graph yet is fitted to this one; the result
    has the fitted preparation.

    >>> from gpn_scale import build_graph
    >>> table = pa.table({"age": [31, 29, 30]})
    >>> preparation = Preparation.fit(table, structural=True)
    >>> prepared_features(preparation, table, build_graph([0, 1], [1, 2])).features.shape
    (3, 3)

    Raises:
        TableFaults: columns are missing or of another kind.
    """
    return preparation.fitted_to(graph).apply(columns, file=file, graph=graph)


def _repeated_columns(columns: pa.Table, file: str) -> list[Fault]:
    counts = Counter(columns.column_names)
    advice = "rename one of the columns of this name"
    return [
        Fault(file=file, column=name, count=count, advice=advice)
        for name, count in counts.items()
        if count > 1
    ]


def _distinct_columns(columns: pa.Table) -> list[str]:
    """Return the names that one column only has."""
    return [name for name, count in Counter(columns.column_names).items() if count == 1]


def _kind_faults(columns: pa.Table, kinds: Mapping[str, ColumnKind], file: str) -> list[Fault]:
    faults = []
    for name, kind in kinds.items():
        if name not in columns.column_names:
            advice = f"give a kind to one of {listed(columns.column_names)}"
            faults.append(Fault(file=file, column=name, advice=advice))
        if kind not in KINDS:
            advice = f"choose one of {', '.join(KINDS)}"
            faults.append(Fault(file=file, column=name, value=str(kind), advice=advice))
    return faults
