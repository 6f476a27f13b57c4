"""Converts rules of columns to JSON values and back, with checks for damaged values."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from gpn_scale.data.column_fitting import LeftOutColumn
from gpn_scale.data.column_rules import (
    CategoryRule,
    ColumnRule,
    HashedCategoryRule,
    NumberRule,
    TextRule,
)
from gpn_scale.data.structural import MEASURES, StructuralRule
from gpn_scale.errors import GraphError

_NUMBER_KINDS = ("number", "boolean", "date")
_MAX_COLUMNS = 1 << 24


def rule_record(rule: ColumnRule) -> dict[str, Any]:
    """Return a rule as JSON values.

    >>> rule_record(CategoryRule(column="country", categories=("DE",)))["rule"]
    'category'
    """
    kinds = {NumberRule: "number", CategoryRule: "category", TextRule: "text"}
    return {"rule": kinds.get(type(rule), "hashed category"), **_listed(asdict(rule))}


def rule_from_record(record: Any) -> ColumnRule:
    """Return the rule that `rule_record` turned into JSON values.

    >>> rule = HashedCategoryRule(column="city", marks_missing=True)
    >>> rule_from_record(rule_record(rule)) == rule
    True

    Raises:
        GraphError: an entry is missing or has a wrong type or value.
    """
    fields = RecordReader(record, "a rule")
    what = fields.text("rule", ("number", "category", "hashed category", "text"))
    common: dict[str, Any] = {
        "column": fields.text("column"),
        "missing_fraction": fields.number("missing_fraction", 0.0, 1.0),
        "marks_missing": fields.flag("marks_missing"),
    }
    if what == "category":
        return CategoryRule(categories=fields.texts("categories"), **common)
    if what == "text":
        return TextRule(frequent_words=fields.texts("frequent_words"), **common)
    if what == "hashed category":
        return HashedCategoryRule(num_columns=fields.count("num_columns"), **common)
    kind: Any = fields.text("number_kind", _NUMBER_KINDS)
    centre, scale = fields.number("centre"), fields.scale("scale")
    return NumberRule(number_kind=kind, centre=centre, scale=scale, **common)


def structural_rule(record: Any) -> StructuralRule:
    """Return a structural rule from its JSON values, which are those of `dataclasses.asdict`.

    >>> structural_rule({"measure": "degree", "centre": 1, "scale": 2.0}).centre
    1.0

    Raises:
        GraphError: an entry is missing or has a wrong type or value.
    """
    fields = RecordReader(record, "a structural rule")
    measure: Any = fields.text("measure", MEASURES)
    return StructuralRule(
        measure=measure, centre=fields.number("centre"), scale=fields.scale("scale")
    )


def left_out_column(record: Any) -> LeftOutColumn:
    """Return a column that was left out from its JSON values.

    >>> left_out_column({"column": "memo", "reason": "it has no value"}).column
    'memo'

    Raises:
        GraphError: an entry is missing or is no text.
    """
    fields = RecordReader(record, "a column that is left out")
    return LeftOutColumn(column=fields.text("column"), reason=fields.text("reason"))


class RecordReader:
    """Checked entries of a JSON object.

    >>> RecordReader({"scale": -1.0}, "a rule").scale("scale")
    Traceback (most recent call last):
        ...
    gpn_scale.errors.GraphError: the preparation of columns is damaged: a rule has -1.0 for \
'scale', expected a positive number; import the tables again

    Args:
        record: The JSON value.
        what: What it is, for messages.
    """

    def __init__(self, record: Any, what: str) -> None:
        self._what = what
        if not isinstance(record, Mapping):
            raise self._error(f"is {record!r}", "an object")
        self._record = record

    def entry(self, key: str) -> Any:
        """Return an entry of any type."""
        if key not in self._record:
            raise self._error(f"has no entry {key!r}", "one")
        return self._record[key]

    def text(self, key: str, choices: tuple[str, ...] | None = None) -> str:
        """Return an entry that is a text, perhaps one of a few."""
        value = self.entry(key)
        if not isinstance(value, str) or (choices is not None and value not in choices):
            expected = "text" if choices is None else f"one of {', '.join(choices)}"
            raise self._wrong(key, expected)
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Return an entry that is a list of texts."""
        if not all(isinstance(value, str) for value in self.items(key)):
            raise self._wrong(key, "a list of texts")
        return tuple(self.items(key))

    def items(self, key: str) -> list[Any]:
        """Return an entry that is a list."""
        value = self.entry(key)
        if not isinstance(value, list):
            raise self._wrong(key, "a list")
        return value

    def flag(self, key: str) -> bool:
        """Return an entry that is true or false."""
        value = self.entry(key)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def number(self, key: str, low: float = -math.inf, high: float = math.inf) -> float:
        """Return an entry that is a finite number within limits."""
        value = self.entry(key)
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        if not plain or not math.isfinite(value) or not low <= value <= high:
            limits = "" if math.isinf(low) else f" from {low} to {high}"
            raise self._wrong(key, f"a finite number{limits}")
        return float(value)

    def scale(self, key: str) -> float:
        """Return an entry that is a positive, finite number."""
        value = self.number(key)
        if value <= 0:
            raise self._wrong(key, "a positive number")
        return value

    def count(self, key: str) -> int:
        """Return an entry that is a number of columns."""
        value = self.entry(key)
        if type(value) is not int or not 0 < value <= _MAX_COLUMNS:
            raise self._wrong(key, f"a number of columns up to {_MAX_COLUMNS}")
        return value

    def _wrong(self, key: str, expected: str) -> GraphError:
        shown = repr(self._record[key])
        shown = shown if len(shown) <= 40 else f"{shown[:37]}..."
        return self._error(f"has {shown} for {key!r}", expected)

    def _error(self, given: str, expected: str) -> GraphError:
        return GraphError(
            f"the preparation of columns is damaged: {self._what} {given}, expected {expected}; "
            "import the tables again"
        )


def _listed(values: dict[str, Any]) -> dict[str, Any]:
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in values.items()
    }
