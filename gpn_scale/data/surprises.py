"""Surprises: values of a later table that the fitting table did not have, counted per column."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gpn_scale.data.column_kinds import ColumnKind
from gpn_scale.data.column_rules import ColumnRule, EncodedColumn
from gpn_scale.data.column_values import ColumnReader

_SHOWN = 5
_PLURAL = {
    "number": "finite numbers",
    "boolean": "booleans",
    "date": "dates",
    "category": "text",
    "text": "text",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSurprise:
    """Numbers of values of a column that are unlike those of the fitting table.

    >>> surprise = ColumnSurprise(column="country", kind="category", num_rows=99, unknown=2)
    >>> surprise.sentences
    ("2 values of 'country' are not among those of training; they count as no category.",)
    """

    column: str
    kind: ColumnKind
    num_rows: int
    """Number of rows of the table."""
    unknown: int = 0
    """Number of values that are not categories of the fitting table."""
    first_unknown: str | None = None
    unreadable: int = 0
    """Number of values that are not of the column's kind; they count as missing."""
    first_unreadable: str | None = None
    missing: int = 0
    """Number of missing values, if there are more than the fitting table lets expect; else 0."""
    missing_in_training: float = 0.0
    """Fraction of missing values in the fitting table."""

    @classmethod
    def of(
        cls, rule: ColumnRule, reader: ColumnReader, encoded: EncodedColumn
    ) -> "ColumnSurprise | None":
        """Return the surprise of a column, or None if nothing is unusual."""
        unknown, unreadable = int(encoded.unknown.sum()), int(encoded.unreadable.sum())
        num_rows, missing = len(encoded.missing), int(encoded.missing.sum())
        if missing <= _usual_limit(rule.missing_fraction, num_rows):
            missing = 0
        if not (unknown or unreadable or missing):
            return None
        first = int(encoded.unknown.argmax()), int(encoded.unreadable.argmax())
        return cls(
            column=rule.column,
            kind=rule.kind,
            num_rows=num_rows,
            unknown=unknown,
            first_unknown=reader.cell(first[0]).strip() if unknown else None,
            unreadable=unreadable,
            first_unreadable=reader.cell(first[1]).strip() if unreadable else None,
            missing=missing,
            missing_in_training=rule.missing_fraction,
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """One sentence per kind of surprise."""
        column, texts = repr(self.column), []
        if self.unknown:
            texts.append(
                f"{_values(self.unknown)} of {column} {_are(self.unknown)} not among those of "
                f"training{_first(self.first_unknown)}; {_they(self.unknown)} as no category."
            )
        if self.unreadable:
            texts.append(
                f"{_values(self.unreadable)} of {column} cannot be read as {_PLURAL[self.kind]}"
                f"{_first(self.first_unreadable)}; {_they(self.unreadable)} as missing."
            )
        if self.missing:
            share = self.missing / self.num_rows
            texts.append(
                f"{_values(self.missing)} of {column} {_are(self.missing)} missing ({share:.1%}; "
                f"in training {self.missing_in_training:.1%}); the rule of training fills "
                f"{'it' if self.missing == 1 else 'them'}."
            )
        return tuple(texts)

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as JSON values."""
        return asdict(self)


def listed(names: Sequence[str]) -> str:
    """Return the first few names in quotes, and how many more there are.

    >>> listed(["a", "b"]), listed(list("abcdefg"))
    ("'a', 'b'", "'a', 'b', 'c', 'd', 'e' and 2 more")
    """
    shown = ", ".join(repr(name) for name in names[:_SHOWN])
    more = len(names) - _SHOWN
    return f"{shown} and {more:,} more" if more > 0 else shown


def _values(count: int) -> str:
    return f"{count:,} value{'' if count == 1 else 's'}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _they(count: int) -> str:
    return "it counts" if count == 1 else "they count"


def _first(value: str | None) -> str:
    return "" if value is None else f" (first: {value[:60]!r})"


def _usual_limit(fraction: float, num_rows: int) -> float:
    """Return the number of missing values that chance explains: three standard errors above it."""
    return fraction * num_rows + 3.0 * math.sqrt(num_rows * fraction * (1.0 - fraction))
