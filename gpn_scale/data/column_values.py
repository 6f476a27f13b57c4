"""Values of a raw column as numbers, booleans, dates or text, with a mask of missing values.

Blanks at both ends of texts are ignored. A value is missing if it is null, NaN, or one of
`MISSING_TOKENS`. Each distinct text is parsed only once, so repeated texts cost little.

Shapes: N rows, V distinct values.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

MISSING_TOKENS = ("", "NA", "N/A", "n/a", "<NA>", "NaN", "nan", "null", "NULL", "None", "#N/A")
"""Texts that stand for a missing value."""
TRUE_TOKENS = ("true", "yes", "t", "y", "1")
"""Texts that stand for true, in any case."""
FALSE_TOKENS = ("false", "no", "f", "n", "0")
"""Texts that stand for false, in any case."""
LARGEST = 1e300
"""Largest number whose differences and squares can be added up; larger ones count as infinite."""

_NUMBER = r"^[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|(?i:inf|infinity))$"
_DAY = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
_TIME = r"(?:[01]\d|2[0-3])(?::[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?)?"
_ZONE = r"(?:Z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)"
_DATE = rf"^{_DAY}(?:[T ]{_TIME}{_ZONE}?)?$"
_ZONED = rf"[T ]{_TIME}{_ZONE}$"
_TEXT_TYPES = {"string", "large_string", "string_view"}
_WHOLE_FLOATS = 2.0**53
_TICKS_PER_DAY = {"s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}


class TextValues(NamedTuple):
    """A column as text: its distinct values, and the position of every row's value among them.

    >>> column = ColumnReader(pa.chunked_array([["DE", "NA", " FR ", "DE"]])).text
    >>> column.distinct.to_pylist(), column.code.tolist(), column.counts.tolist()
    (['DE', 'FR'], [0, -1, 1, 0], [2, 1])
    """

    distinct: pa.Array
    """Distinct given values in the order of their first rows, as large_string, (V,)."""
    code: NDArray[np.int64]
    """Position in `distinct` per row, -1 where the value is missing, (N,)."""

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which rows have no value, (N,)."""
        return np.asarray(self.code < 0)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of rows per distinct value, (V,)."""
        return np.bincount(self.code[self.code >= 0], minlength=len(self.distinct))

    def spread(self, per_value: NDArray[Any], fill: Any) -> NDArray[Any]:
        """Return one of V values per row, and `fill` where the value is missing, (N,)."""
        return np.append(per_value, np.array([fill], per_value.dtype))[self.code]


class NumericValues(NamedTuple):
    """A column as numbers.

    >>> column = ColumnReader(pa.chunked_array([["1.5", "", "abc", "inf"]])).numbers
    >>> column.value.tolist(), column.missing.tolist(), column.wrong.tolist()
    ([1.5, nan, nan, inf], [False, True, False, False], [False, False, True, True])
    """

    value: NDArray[np.float64]
    """The numbers; NaN where a value is missing or not a number, (N,)."""
    missing: NDArray[np.bool_]
    """Which rows have no value, (N,)."""

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Which rows have a value that is not a number or exceeds `LARGEST`, (N,)."""
        return np.asarray(~self.missing & ~(np.abs(self.value) <= LARGEST))


def is_text(kind: pa.DataType) -> bool:
    """Return whether an Arrow type holds text, perhaps encoded by a dictionary.

    >>> is_text(pa.dictionary(pa.int8(), pa.string())), is_text(pa.binary())
    (True, False)
    """
    return str(_plain(kind)) in _TEXT_TYPES


def is_number(kind: pa.DataType) -> bool:
    """Return whether an Arrow type holds integers, floating-point numbers or decimals.

    >>> is_number(pa.uint8()), is_number(pa.bool_())
    (True, False)
    """
    kind = _plain(kind)
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def is_date(kind: pa.DataType) -> bool:
    """Return whether an Arrow type holds dates or points in time.

    >>> is_date(pa.timestamp("ns", "UTC")), is_date(pa.time32("s"))
    (True, False)
    """
    kind = _plain(kind)
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def is_readable(kind: pa.DataType) -> bool:
    """Return whether a `ColumnReader` can read a column of this Arrow type.

    >>> is_readable(pa.null()), is_readable(pa.list_(pa.int64()))
    (True, False)
    """
    plain = _plain(kind)
    simple = bool(pa.types.is_boolean(plain) or pa.types.is_null(plain))
    return simple or is_text(plain) or is_number(plain) or is_date(plain)


class ColumnReader:
    """The values of one raw column, read on first use as text, numbers, booleans or dates.

    >>> reader = ColumnReader(pa.chunked_array([["2024-02-29", "yes", None]]))
    >>> reader.dates.value.tolist(), reader.booleans.value.tolist()
    ([19782.0, nan, nan], [nan, 1.0, nan])

    Args:
        column: A column of a readable type (`is_readable`).
    """

    def __init__(self, column: pa.ChunkedArray) -> None:
        self.type = _plain(column.type)
        """Arrow type of the values."""
        self._column = column.cast(self.type)

    def cell(self, row: int) -> str:
        """Return one value as it was given, as text."""
        return str(self._column[row].as_py())

    @cached_property
    def text(self) -> TextValues:
        """The column as text; whole numbers have no decimal point."""
        floating = pa.types.is_floating(self.type)
        column = self._column
        texts = _float_texts(column) if floating else column.cast(pa.large_string())
        encoded = pc.utf8_trim_whitespace(texts).combine_chunks().dictionary_encode()
        every = encoded.dictionary
        code = pc.fill_null(encoded.indices, len(every)).to_numpy(zero_copy_only=False)
        tokens = pa.array(MISSING_TOKENS, pa.large_string())
        given = ~np.asarray(pc.is_in(every, value_set=tokens), np.bool_)
        place = np.append(np.where(given, np.cumsum(given) - 1, -1), -1)
        return TextValues(every.filter(pa.array(given, pa.bool_())), place[code].astype(np.int64))

    @cached_property
    def numbers(self) -> NumericValues:
        """The column as numbers; booleans and dates do not count as numbers."""
        if is_text(self.type):
            return self._parsed(parsed_numbers)
        if not is_number(self.type):
            return self._no_numbers()
        numbers = self._column.cast(pa.float64(), safe=False).to_numpy()
        return NumericValues(numbers, np.isnan(numbers))

    @cached_property
    def booleans(self) -> NumericValues:
        """Booleans, or `TRUE_TOKENS` and `FALSE_TOKENS`, as 1 and 0."""
        return self._no_numbers() if is_date(self.type) else self._parsed(parsed_booleans)

    @cached_property
    def dates(self) -> NumericValues:
        """Dates, points in time or ISO 8601 texts as days since 1970-01-01.

        A time with a zone counts in UTC; one without a zone counts as if it were in UTC.
        """
        if is_text(self.type):
            return self._parsed(parsed_dates)
        if not is_date(self.type):
            return self._no_numbers()
        in_days = pa.types.is_date32(self.type)
        whole = self._column.cast(pa.int32() if in_days else pa.int64())
        days = whole.cast(pa.float64(), safe=False).to_numpy()
        if not in_days:
            unit = "ms" if pa.types.is_date64(self.type) else self.type.unit
            days = days / _TICKS_PER_DAY[unit]
        return NumericValues(days, np.isnan(days))

    def _parsed(self, parse: Callable[[pa.Array], NDArray[np.float64]]) -> NumericValues:
        text = self.text
        return NumericValues(text.spread(parse(text.distinct), np.nan), text.missing)

    def _no_numbers(self) -> NumericValues:
        """Return a column of which no value is a number."""
        missing = np.asarray(self._column.is_null(nan_is_null=True), np.bool_)
        return NumericValues(np.full(len(missing), np.nan), missing)


def parsed_numbers(texts: pa.Array) -> NDArray[np.float64]:
    """Return texts as numbers, NaN for other texts, (V,).

    >>> parsed_numbers(pa.array(["-1.5e3", ".5", "12 EUR", "Infinity"])).tolist()
    [-1500.0, 0.5, nan, inf]
    """
    return _parsed(texts, _NUMBER, lambda numbers: numbers.cast(pa.float64()))


def parsed_booleans(texts: pa.Array) -> NDArray[np.float64]:
    """Return texts as 1 for true and 0 for false, NaN where one is neither, (V,).

    >>> parsed_booleans(pa.array(["TRUE", "n", "2"])).tolist()
    [1.0, 0.0, nan]
    """
    lower = pc.utf8_lower(texts.cast(pa.large_string()))
    is_true, is_false = (
        np.asarray(pc.is_in(lower, value_set=pa.array(tokens, pa.large_string())), np.bool_)
        for tokens in (TRUE_TOKENS, FALSE_TOKENS)
    )
    return np.where(is_true, 1.0, np.where(is_false, 0.0, np.nan))


def parsed_dates(texts: pa.Array) -> NDArray[np.float64]:
    """Return ISO dates and date-times as days since 1970-01-01, NaN for other texts, (V,).

    >>> parsed_dates(pa.array(["2024-02-29", "2023-02-29", "1970-01-01T06:00+06:00"])).tolist()
    [19782.0, nan, 0.0]
    """
    return _parsed(texts, _DATE, _days)


def _days(texts: pa.Array) -> NDArray[np.float64]:
    """Return texts that look like dates as days, NaN for days that their month does not have."""
    month = np.asarray(pc.utf8_slice_codeunits(texts, 0, 7), np.str_).astype("M8[M]")
    day = np.asarray(pc.utf8_slice_codeunits(texts, 8, 10).cast(pa.int64()))
    exists = (month.astype("M8[D]") + (day - 1)).astype("M8[M]") == month
    micros = pc.replace_substring_regex(texts, r"(\.\d{6})\d+", r"\1")  # Arrow takes no more
    zoned = np.asarray(pc.match_substring_regex(texts, _ZONED), np.bool_)
    days = np.full(len(texts), np.nan)
    for mask, kind in ((zoned, pa.timestamp("us", "UTC")), (~zoned, pa.timestamp("us"))):
        chosen = mask & exists
        stamps = micros.filter(pa.array(chosen, pa.bool_())).cast(kind).cast(pa.int64())
        days[chosen] = np.asarray(stamps) / _TICKS_PER_DAY["us"]
    return days


def _parsed(texts: pa.Array, pattern: str, parse: Callable[[pa.Array], Any]) -> NDArray[np.float64]:
    """Return the numbers that `parse` makes of texts that match the pattern, else NaN, (V,)."""
    texts = texts.cast(pa.large_string())
    matching = pc.match_substring_regex(texts, pattern)
    numbers = np.full(len(texts), np.nan)
    numbers[np.asarray(matching, np.bool_)] = np.asarray(parse(texts.filter(matching)))
    return numbers


def _float_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return floating-point numbers as text, null for NaN; whole ones look like integers."""
    numbers = column.cast(pa.float64())
    numbers = pc.if_else(pc.is_nan(numbers), pa.scalar(None, pa.float64()), numbers)
    whole = pc.equal(numbers, pc.floor(numbers))
    whole = pc.and_(whole, pc.less(pc.abs(numbers), _WHOLE_FLOATS))
    integers = pc.if_else(whole, numbers, 0.0).cast(pa.int64()).cast(pa.large_string())
    return pc.if_else(whole, integers, numbers.cast(pa.large_string()))


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values of a column that a dictionary may encode."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind
