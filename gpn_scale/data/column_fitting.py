"""Fits a rule to one raw column, or determines its faults or why it is left out.

Shapes: N rows.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpn_scale.data.column_kinds import (
    MAX_CATEGORIES,
    ColumnKind,
    MissingRule,
    inferred_kind,
    is_empty,
)
from gpn_scale.data.column_rules import (
    HASHED_WORDS,
    CategoryRule,
    ColumnRule,
    HashedCategoryRule,
    NumberRule,
    TextRule,
    numeric_values,
)
from gpn_scale.data.column_values import ColumnReader, NumericValues, TextValues, is_readable
from gpn_scale.data.faults import Fault
from gpn_scale.data.hashed_text import frequent_words
from gpn_scale.data.standardisation import Standardisation

EXPECTED = {
    "number": "a finite number",
    "boolean": "true or false, yes or no",
    "date": "an ISO date such as 2024-12-31",
    "category": "text",
    "text": "text",
}
"""What a value of each kind looks like, for advice."""

_NO_VALUE = "it has no value"
_CONSTANT = "all its values are equal"
_IDENTIFIER = "it looks like an identifier: nearly every value is a different single word"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutColumn:
    """A raw column that does not become a feature, with the reason.

    >>> LeftOutColumn(column="memo", reason="it has no value").sentence
    "The column 'memo' is left out, since it has no value."
    """

    column: str
    reason: str

    @property
    def sentence(self) -> str:
        """One sentence that names the column and the reason."""
        return f"The column {self.column!r} is left out, since {self.reason}."


class FittedColumn(NamedTuple):
    """Result of fitting one column: a rule, the reason why it is left out, or faults.

    >>> fitted_column("age", pa.chunked_array([["31", "old"]]), kind="number").faults[0].value
    'old'
    """

    result: ColumnRule | LeftOutColumn | None
    faults: tuple[Fault, ...] = ()


def fitted_column(
    name: str,
    column: pa.ChunkedArray,
    *,
    kind: ColumnKind | None = None,
    missing: MissingRule = "flag",
    file: str = "nodes",
) -> FittedColumn:
    """Return the rule for a raw column.

    >>> fitted_column("size", pa.chunked_array([[1, 3]])).result.centre
    2.0

    Args:
        name: Name of the column.
        column: Its values.
        kind: Its kind; None to infer it.
        missing: What happens to missing values.
        file: Name of the file, for faults.
    """
    if fault := unreadable_fault(name, column, file):
        return FittedColumn(None, (fault,))
    reader = ColumnReader(column)
    inferred = inferred_kind(reader) if kind is None or is_empty(reader) else kind
    if inferred == "empty":
        return FittedColumn(LeftOutColumn(column=name, reason=_NO_VALUE))
    if inferred == "identifier":
        reason = _nearly_numeric(reader) or _IDENTIFIER
        return FittedColumn(LeftOutColumn(column=name, reason=reason))
    if inferred in ("category", "text"):
        faults = missing_faults(name, reader.text.missing, missing, file)
        result = None if faults else _text_rule(name, reader.text, inferred, missing)
        return FittedColumn(result, faults)
    numbers = numeric_values(reader, inferred)
    faults = missing_faults(name, numbers.missing, missing, file)
    if numbers.wrong.any():
        faults = (*faults, wrong_fault(name, reader, numbers.wrong, inferred, file))
    return FittedColumn(None if faults else _number_rule(name, numbers, inferred, missing), faults)


def _nearly_numeric(reader: ColumnReader) -> str:
    """Return what keeps a column of mostly numbers from being one; empty if few are numbers."""
    wrong, given = reader.numbers.wrong, ~reader.numbers.missing
    num_given, num_numbers = int(given.sum()), int((given & ~wrong).sum())
    if 2 * num_numbers <= num_given:
        return ""
    row = int(wrong.argmax())
    return (
        f"only {num_numbers:,} of its {num_given:,} values are numbers: {reader.cell(row)!r} in "
        f"row {row + 1:,} is none. Write numbers or leave the cells empty to use the column"
    )


def unreadable_fault(name: str, column: pa.ChunkedArray, file: str) -> Fault | None:
    """Return a fault if a column has a type without a kind, or is not valid text; else None.

    >>> unreadable_fault("spots", pa.chunked_array([[[1, 2]]]), "nodes").value
    'list<item: int64>'
    """
    if not is_readable(column.type):
        return Fault(
            file=file,
            column=name,
            value=str(column.type),
            advice="drop it, or turn it into numbers, text, booleans or dates",
        )
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return Fault(file=file, column=name, advice="write the text in UTF-8")
    return None


def missing_faults(
    name: str, rows_without: NDArray[np.bool_], missing: MissingRule, file: str
) -> tuple[Fault, ...]:
    """Return one fault for all missing values of a column, if the rule refuses them.

    >>> missing_faults("age", np.array([False, True, True]), "refuse", "nodes")[0].count
    2
    """
    count = int(rows_without.sum())
    if missing != "refuse" or not count:
        return ()
    row = int(rows_without.argmax()) + 1
    advice = "fill the missing values, or let them be filled or flagged"
    return (Fault(file=file, row=row, column=name, count=count, advice=advice),)


def wrong_fault(
    name: str, reader: ColumnReader, wrong: NDArray[np.bool_], kind: ColumnKind, file: str
) -> Fault:
    """Return one fault for all values of a column that are not of its kind.

    >>> reader = ColumnReader(pa.chunked_array([["soon"]]))
    >>> wrong_fault("due", reader, np.array([True]), "date", "nodes").advice
    'write an ISO date such as 2024-12-31, leave it empty, or choose another kind'
    """
    row = int(wrong.argmax())
    return Fault(
        file=file,
        row=row + 1,
        column=name,
        value=reader.cell(row),
        count=int(wrong.sum()),
        advice=f"write {EXPECTED[kind]}, leave it empty, or choose another kind",
    )


def _number_rule(
    name: str, numbers: NumericValues, kind: ColumnKind, missing: MissingRule
) -> NumberRule | LeftOutColumn:
    given = numbers.value[~numbers.missing]
    marks = missing == "flag" and len(given) < len(numbers.value)
    if given.min() == given.max() and not marks:
        return LeftOutColumn(column=name, reason=_CONSTANT)
    centre, scale = Standardisation.of(given)
    return NumberRule(
        column=name,
        number_kind=kind,
        centre=centre,
        scale=scale,
        missing_fraction=float(numbers.missing.mean()),
        marks_missing=marks,
    )


def _text_rule(
    name: str, text: TextValues, kind: str, missing: MissingRule
) -> ColumnRule | LeftOutColumn:
    counts, rows_without = text.counts, text.missing
    marks = missing == "flag" and bool(rows_without.any())
    if len(counts) == 1 and not marks:
        return LeftOutColumn(column=name, reason=_CONSTANT)
    fraction = float(rows_without.mean())
    if kind == "text":
        common = frequent_words(text.distinct, counts, HASHED_WORDS)
        return TextRule(
            column=name, frequent_words=common, missing_fraction=fraction, marks_missing=marks
        )
    if len(counts) > MAX_CATEGORIES:
        return HashedCategoryRule(column=name, missing_fraction=fraction, marks_missing=marks)
    pairs = zip((-counts).tolist(), text.distinct.to_pylist(), strict=True)
    return CategoryRule(
        column=name,
        categories=tuple(category for _, category in sorted(pairs)),
        missing_fraction=fraction,
        marks_missing=marks,
    )
