"""Kinds of raw columns, and inference of a column's kind from its values."""

from typing import Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpn_scale.data.column_values import (
    ColumnReader,
    is_date,
    is_number,
    is_text,
    parsed_booleans,
)

ColumnKind = Literal["number", "category", "boolean", "date", "text"]
MissingRule = Literal["flag", "fill", "refuse"]
"""What happens to missing values: fill them and add a column that marks them, fill them, or
refuse the table."""

KINDS: tuple[ColumnKind, ...] = get_args(ColumnKind)
MISSING_RULES: tuple[MissingRule, ...] = get_args(MissingRule)
MAX_CATEGORIES = 50
"""Number of categories that get a feature each; a column with more is hashed."""
TEXT_WORDS = 2.0
"""Mean number of words per value from which a column of many distinct values is text."""
IDENTIFIER_VALUES = 20
"""Number of distinct values from which a column may be an identifier."""
IDENTIFIER_FRACTION = 0.9
"""Fraction of distinct values among the given ones from which a column is an identifier."""


def inferred_kind(reader: ColumnReader) -> ColumnKind | Literal["empty", "identifier"]:
    """Return the kind inferred from a column's values; `empty` if it has none.

    Numbers, booleans, dates and points in time keep their type. A column of text is the first of

    - number, if every value is one (0 and 1 are numbers);
    - boolean, if every value is one of true/false, yes/no, t/f, y/n in any case, and both a true
      and a false one occur;
    - date, if every value is an ISO 8601 date or date-time;
    - text, if it has more than `MAX_CATEGORIES` distinct values of `TEXT_WORDS` words on average;
    - identifier, if it has at least `IDENTIFIER_VALUES` distinct values, which are at least
      `IDENTIFIER_FRACTION` of all;
    - category.

    >>> inferred_kind(ColumnReader(pa.chunked_array([["yes", "no", None]])))
    'boolean'
    >>> inferred_kind(ColumnReader(pa.chunked_array([[f"A{row}" for row in range(20)]])))
    'identifier'
    """
    if is_empty(reader):
        return "empty"
    if is_number(reader.type):
        return "number"
    if pa.types.is_boolean(reader.type):
        return "boolean"
    if is_date(reader.type):
        return "date"
    if not np.isnan(reader.numbers.value[~reader.text.missing]).any():
        return "number"
    truths = parsed_booleans(reader.text.distinct)
    if not np.isnan(truths).any() and truths.min() < truths.max():
        return "boolean"
    if not reader.dates.wrong.any():
        return "date"
    return _text_kind(reader)


def is_empty(reader: ColumnReader) -> bool:
    """Return whether a column has no values.

    >>> is_empty(ColumnReader(pa.chunked_array([["NA", "", None]])))
    True
    """
    values = reader.text if is_text(reader.type) else reader.numbers
    return bool(values.missing.all())


def _text_kind(reader: ColumnReader) -> Literal["text", "identifier", "category"]:
    counts = reader.text.counts
    num_distinct, num_given = len(counts), int(counts.sum())
    blanks = np.asarray(pc.count_substring_regex(reader.text.distinct, r"\s+"))
    words_per_value = 1.0 + int((blanks * counts).sum()) / num_given
    if num_distinct > MAX_CATEGORIES and words_per_value >= TEXT_WORDS:
        return "text"
    if num_distinct >= max(IDENTIFIER_VALUES, IDENTIFIER_FRACTION * num_given):
        return "identifier"
    return "category"
