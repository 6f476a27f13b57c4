"""Columns of ids and labels as text in one canonical form, independent of their stored type.

The integer 7, the number 7.0 and the text "7" are the same id; the text "007" is another one.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpn_scale.data.faults import Fault
from gpn_scale.data.wrong_values import WrongValues
from gpn_scale.scratch import MEMORY_BYTES, release_pages, scratch_array

MAX_LENGTH = 500
"""Number of characters that an id or a label may have; NumPy stores all as wide as the longest."""

_WHOLE_NUMBER = r"^-?\d+\.0+$"
_WHOLE_FLOATS = 2.0**53
_CHUNK_TEXTS = 1 << 18
_NOTHING = pa.scalar(None, pa.large_string())


class TextColumn(NamedTuple):
    """Texts of a column, and its rows that cannot be an id or a label.

    >>> text_column(pa.chunked_array([[7.0, None]])).texts.to_pylist()
    ['7', None]
    """

    texts: pa.Array
    """The values as `large_string`, null where they are missing."""
    wrong: NDArray[np.bool_]
    """Whether a value can be no id or label, per row."""
    advice: str = ""
    """What to do about the wrong values."""
    has_points: bool | None = None
    """Whether all texts are written as whole numbers with a decimal point; None if that was not
    asked, or there is no text."""


def text_column(column: pa.ChunkedArray, *, shorten: bool | None = None) -> TextColumn:
    """Return integers, whole numbers, booleans, dates and texts as texts; "" counts as missing.

    If all texts of the column are written as whole numbers with a decimal point ("7.0", as pandas
    writes integers with gaps), they become integers.

    >>> text_column(pa.chunked_array([["7.0", "", "12.0"]])).texts.to_pylist()
    ['7', None, '12']
    >>> text_column(pa.chunked_array([[0.5, 7.0]])).wrong.tolist()
    [True, False]

    Args:
        column: The values.
        shorten: Whether texts such as "7.0" become integers; None to decide it by all of them.
    """
    kind = column.type
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _from_floats(column)
    try:
        texts = joined(column.cast(pa.large_string()))
    except pa.ArrowException:
        every = np.asarray(column.is_valid())
        nothing = pa.nulls(len(column), pa.large_string())
        return TextColumn(nothing, every, f"write integers or text, not values of type {kind}")
    texts = pc.if_else(pc.equal(texts, ""), _NOTHING, texts)
    has_points = _all_match(texts, _WHOLE_NUMBER) if shorten is None else None
    texts = without_point(texts) if shorten or has_points else texts
    long = pc.greater(pc.utf8_length(texts), MAX_LENGTH)
    wrong = np.asarray(pc.fill_null(pc.or_(long, pc.match_substring(texts, "\0")), False))
    advice = f"write at most {MAX_LENGTH} characters, and no NUL character"
    return TextColumn(texts, wrong, advice if wrong.any() else "", has_points)


def without_point(texts: pa.Array) -> pa.Array:
    """Return the texts with ".0" removed from the end of those that are whole numbers.

    >>> without_point(pa.array(["7.0", "1.5", "v2.0"])).to_pylist()
    ['7', '1.5', 'v2.0']
    """
    return pc.replace_substring_regex(texts, r"^(-?\d+)\.0+$", r"\1")


def joined(column: pa.ChunkedArray) -> pa.Array:
    """Return the chunks of a column as one array.

    >>> joined(pa.chunked_array([["a"], ["b"]])).to_pylist()
    ['a', 'b']
    """
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def text_array(texts: pa.Array, directory: Path | None = None) -> NDArray[np.str_]:
    """Return texts as a NumPy array, each as wide as the longest; a large one is in a file.

    >>> text_array(pa.array(["a", "bcd"]))
    array(['a', 'bcd'], dtype='<U3')

    Args:
        texts: The texts, without null.
        directory: Folder of the file; None for the system's default.
    """
    longest = max(pc.max(pc.utf8_length(texts)).as_py() or 0, 1)
    kind = np.dtype(f"<U{longest}")
    shape, size = (len(texts),), len(texts) * kind.itemsize
    array: NDArray[np.str_] = np.empty(shape if size <= MEMORY_BYTES else 0, kind)
    if size > MEMORY_BYTES:
        array = scratch_array(shape, directory, kind, advice="free some disk space")
    for start in range(0, len(texts), _CHUNK_TEXTS):
        part = texts.slice(start, _CHUNK_TEXTS)
        array[start : start + len(part)] = part.to_numpy(zero_copy_only=False)
        release_pages(array)
    return array


def value_faults(
    texts: pa.Array, wrong: NDArray[Any], *, file: str, column: str, advice: str
) -> list[Fault]:
    """Return a fault for each of the first distinct values in rows `wrong`, and one for the rest.

    >>> texts = pa.array(["a", "b", "a", "c"])
    >>> faults = value_faults(texts, np.array([1, 0, 1, 0]) > 0, file="f", column="x", advice="fix")
    >>> [(fault.row, fault.value, fault.count) for fault in faults]
    [(1, 'a', 2)]

    Args:
        texts: Values of the column, as text.
        wrong: Whether a row is at fault, (N,).
        file: Name of the table.
        column: Name of the column.
        advice: What to do.
    """
    values = WrongValues()
    values.add(texts, wrong)
    return values.faults(file, column, advice)


def _from_floats(column: pa.ChunkedArray) -> TextColumn:
    # pandas turns integers with gaps into floating-point numbers with NaN.
    numbers = joined(pc.cast(column, pa.float64(), safe=False))
    nan = pc.fill_null(pc.is_nan(numbers), False)
    numbers = pc.if_else(nan, pa.scalar(None, pa.float64()), numbers)
    whole = pc.and_(pc.equal(numbers, pc.floor(numbers)), pc.less(pc.abs(numbers), _WHOLE_FLOATS))
    wrong = np.asarray(pc.fill_null(pc.invert(whole), False))
    texts = pc.if_else(
        whole,
        pc.if_else(whole, numbers, pa.scalar(0.0)).cast(pa.int64()).cast(pa.large_string()),
        numbers.cast(pa.large_string()),
    )
    return TextColumn(texts, wrong, "write integers or text" if wrong.any() else "")


def _all_match(texts: pa.Array, pattern: str) -> bool | None:
    """Return whether all texts match a pattern; None if there is none."""
    # Most columns fail at their beginning, which is cheap to see.
    for part in (texts.slice(0, 1000), texts):
        matches = pc.match_substring_regex(part, pattern)
        if matches.null_count < len(part) and not pc.all(matches).as_py():
            return False
    return True if texts.null_count < len(texts) else None
