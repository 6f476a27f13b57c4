"""Rules that turn one raw column into features; each is fitted once and then applied to any table.

Shapes: N rows, W features of a rule.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse
from numpy.typing import NDArray

from gpn_scale.data.column_kinds import ColumnKind
from gpn_scale.data.column_values import ColumnReader, NumericValues
from gpn_scale.data.hashed_text import hashed_columns, word_matrix
from gpn_scale.data.standardisation import Standardisation

HASHED_CATEGORIES = 256
"""Number of features of a column with too many categories for a feature each."""
HASHED_WORDS = 1024
"""Number of features of a column of text."""
ASSUMED_WORDS = 16
"""Number of distinct words in a text, to estimate how many features of a row are not 0."""


class EncodedColumn(NamedTuple):
    """The features of one raw column, and masks of the values that the rule could not use.

    >>> rule = CategoryRule(column="country", categories=("DE", "FR"))
    >>> encoded = rule.encoded(ColumnReader(pa.chunked_array([["FR", "XK", None]])))
    >>> encoded.features.toarray().tolist(), encoded.unknown.tolist()
    ([[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]], [False, True, False])
    """

    features: scipy.sparse.csr_array
    """Float32, (N, W)."""
    missing: NDArray[np.bool_]
    """Which rows have no value, (N,)."""
    unreadable: NDArray[np.bool_]
    """Which rows have a value that is not of the rule's kind and counts as missing, (N,)."""
    unknown: NDArray[np.bool_]
    """Which rows have a category that the fitting table did not have, (N,)."""


@dataclass(frozen=True, kw_only=True)
class AbstractColumnRule(ABC):
    """Rule by which one raw column becomes features.

    >>> rule = NumberRule(column="age", centre=30.0, scale=10.0, marks_missing=True)
    >>> rule.kind, rule.labels
    ('number', ('age', 'age is missing'))
    """

    column: str
    """Name of the raw column."""
    missing_fraction: float = 0.0
    """Fraction of missing values in the fitting table."""
    marks_missing: bool = False
    """Whether a last feature is 1 where the value is missing."""

    @property
    @abstractmethod
    def kind(self) -> ColumnKind:
        """How the values of the column are read."""

    @property
    @abstractmethod
    def filled(self) -> int:
        """Number of features that are not 0 in a usual row."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the features, (W,); several rules may share a name."""
        marks = (f"{self.column} is missing",) if self.marks_missing else ()
        return (*self._value_labels(), *marks)

    def encoded(self, reader: ColumnReader) -> EncodedColumn:
        """Return the features of a column of any table."""
        encoded = self._encoded_values(reader)
        if not self.marks_missing:
            return encoded
        marks = one_per_row(np.where(encoded.missing | encoded.unreadable, 0, -1), 1)
        joined = scipy.sparse.hstack([encoded.features, marks], format="csr")
        return encoded._replace(features=scipy.sparse.csr_array(joined))

    @property
    def width(self) -> int:
        """Number W of features, counted without making their names, which a file may ask for."""
        return self._num_values + self.marks_missing

    @property
    @abstractmethod
    def _num_values(self) -> int:
        """Number of features of given values."""

    @abstractmethod
    def _value_labels(self) -> tuple[str, ...]:
        """Return the names of the features of given values."""

    @abstractmethod
    def _encoded_values(self, reader: ColumnReader) -> EncodedColumn:
        """Return the features without the one that marks missing values."""


@dataclass(frozen=True, kw_only=True)
class NumberRule(AbstractColumnRule):
    """Numbers, booleans (1 and 0) or dates (days), standardised; a missing one becomes 0.

    >>> rule = NumberRule(column="age", centre=30.0, scale=10.0)
    >>> reader = ColumnReader(pa.chunked_array([["45", "", "old"]]))
    >>> rule.encoded(reader).features.toarray().ravel().tolist()
    [1.5, 0.0, 0.0]
    """

    centre: float
    scale: float
    number_kind: ColumnKind = "number"
    """`number`, `boolean` or `date`."""

    @property
    def kind(self) -> ColumnKind:
        """How the values of the column are read."""
        return self.number_kind

    @property
    def filled(self) -> int:
        """Number of features that are not 0 in a usual row."""
        return 1

    @property
    def _num_values(self) -> int:
        """Number of features of given values."""
        return 1

    def _value_labels(self) -> tuple[str, ...]:
        return (self.column,)

    def _encoded_values(self, reader: ColumnReader) -> EncodedColumn:
        numbers = numeric_values(reader, self.number_kind)
        wrong = numbers.wrong
        value = np.where(wrong, np.nan, numbers.value)
        scaled = Standardisation(self.centre, self.scale).applied(value)
        features = scipy.sparse.csr_array(scaled[:, None])
        return EncodedColumn(features, numbers.missing, wrong, np.zeros(len(value), np.bool_))


@dataclass(frozen=True, kw_only=True)
class CategoryRule(AbstractColumnRule):
    """One feature per category, which is 1 in the rows of that category.

    >>> CategoryRule(column="country", categories=("DE", "FR")).labels
    ('country=DE', 'country=FR')
    """

    categories: tuple[str, ...]
    """Distinct categories of the fitting table, the most frequent first."""

    @property
    def kind(self) -> ColumnKind:
        """How the values of the column are read."""
        return "category"

    @property
    def filled(self) -> int:
        """Number of features that are not 0 in a usual row."""
        return 1

    @property
    def _num_values(self) -> int:
        """Number of features of given values."""
        return len(self.categories)

    def _value_labels(self) -> tuple[str, ...]:
        return tuple(f"{self.column}={category}" for category in self.categories)

    def _encoded_values(self, reader: ColumnReader) -> EncodedColumn:
        text = reader.text
        known = pa.array(self.categories, pa.large_string())
        place = np.asarray(pc.fill_null(pc.index_in(text.distinct, value_set=known), -1), np.int64)
        position = text.spread(place, -1)
        unknown = np.asarray((position < 0) & ~text.missing)
        features = one_per_row(position, len(self.categories))
        return EncodedColumn(features, text.missing, np.zeros_like(unknown), unknown)


@dataclass(frozen=True, kw_only=True)
class HashedCategoryRule(AbstractColumnRule):
    """One of a fixed number of features is 1, chosen by a hash of the category.

    Any text has a feature, so no category is unknown, but several may share one.

    >>> HashedCategoryRule(column="city", num_columns=2).labels
    ('city#0', 'city#1')
    """

    num_columns: int = HASHED_CATEGORIES

    @property
    def kind(self) -> ColumnKind:
        """How the values of the column are read."""
        return "category"

    @property
    def filled(self) -> int:
        """Number of features that are not 0 in a usual row."""
        return 1

    @property
    def _num_values(self) -> int:
        """Number of features of given values."""
        return self.num_columns

    def _value_labels(self) -> tuple[str, ...]:
        return tuple(f"{self.column}#{place}" for place in range(self.num_columns))

    def _encoded_values(self, reader: ColumnReader) -> EncodedColumn:
        text = reader.text
        position = text.spread(hashed_columns(text.distinct, self.num_columns), -1)
        none = np.zeros(len(position), np.bool_)
        return EncodedColumn(one_per_row(position, self.num_columns), text.missing, none, none)


@dataclass(frozen=True, kw_only=True)
class TextRule(AbstractColumnRule):
    """Hashed word counts of a text, divided by their Euclidean norm (`word_matrix`).

    >>> TextRule(column="note", frequent_words=("library", "")).labels
    ('note: library', 'note#1')
    """

    frequent_words: tuple[str, ...]
    """The most frequent word of every feature in the fitting table; "" if there was none."""

    @property
    def kind(self) -> ColumnKind:
        """How the values of the column are read."""
        return "text"

    @property
    def filled(self) -> int:
        """Number of features that are not 0 in a usual row."""
        return ASSUMED_WORDS

    @property
    def _num_values(self) -> int:
        """Number of features of given values."""
        return len(self.frequent_words)

    def _value_labels(self) -> tuple[str, ...]:
        return tuple(
            f"{self.column}: {word}" if word else f"{self.column}#{place}"
            for place, word in enumerate(self.frequent_words)
        )

    def _encoded_values(self, reader: ColumnReader) -> EncodedColumn:
        text = reader.text
        num_columns = len(self.frequent_words)
        matrix = word_matrix(text.distinct, num_columns)
        empty = scipy.sparse.csr_array((1, num_columns), dtype=np.float32)
        stacked = scipy.sparse.csr_array(scipy.sparse.vstack([matrix, empty], format="csr"))
        none = np.zeros(len(text.code), np.bool_)
        return EncodedColumn(stacked[text.code], text.missing, none, none)


ColumnRule = NumberRule | CategoryRule | HashedCategoryRule | TextRule


def numeric_values(reader: ColumnReader, kind: ColumnKind) -> NumericValues:
    """Return a column read as numbers, booleans or dates.

    >>> numeric_values(ColumnReader(pa.chunked_array([["1970-01-02"]])), "date").value.tolist()
    [1.0]
    """
    if kind == "number":
        return reader.numbers
    return reader.booleans if kind == "boolean" else reader.dates


def one_per_row(position: NDArray[np.int64], width: int) -> scipy.sparse.csr_array:
    """Return rows that are 1 in the given column, and 0 everywhere if it is -1, (N, W).

    >>> one_per_row(np.array([1, -1]), 3).toarray().tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    given = position >= 0
    indptr = np.append(0, np.cumsum(given)).astype(np.int32)
    entries = (np.ones(int(indptr[-1]), np.float32), position[given].astype(np.int32), indptr)
    return scipy.sparse.csr_array(entries, shape=(len(position), width))
