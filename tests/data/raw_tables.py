"""Raw tables for tests: a small mixed one, and drawn ones."""

from datetime import date

import pyarrow as pa
from hypothesis import strategies as st

from gpn_scale.data.column_values import MISSING_TOKENS

NAMES = ["amount", "country", "active", "opened", "note", "memo"]
MIXED = pa.table(
    {
        "amount": ["1.5", "", "4", "-2e1", "NA", "7", "0.25", "3"],
        "country": ["DE", "FR", "DE", None, "FR", "DE", "IT", "DE"],
        "active": [True, False, True, True, None, False, True, False],
        "opened": [date(2024, 1, day) for day in range(1, 9)],
        "note": ["old red house", "red", "a new boat", "", "old boat", "x", "red red", "house"],
    }
)
KINDS = {"note": "text"}


def columns(rows: int) -> st.SearchStrategy[pa.Array]:
    """Columns of text, numbers, booleans and dates, nasty values and gaps included."""
    letters = st.characters(exclude_categories=("Cs",))
    word = st.text(letters, max_size=6) | st.sampled_from(MISSING_TOKENS)
    nasty = st.sampled_from(["2024-02-30", "inf", "-1e999", "1e5", "0x1f", "yes", "NO", "1,5", "%"])
    few = st.sampled_from(["DE", "FR", " DE", "de"])
    lists = [
        st.lists(st.none() | word, min_size=rows, max_size=rows).map(_texts),
        st.lists(st.none() | nasty | word, min_size=rows, max_size=rows).map(_texts),
        st.lists(st.none() | few, min_size=rows, max_size=rows).map(_texts),
        st.lists(st.none() | st.floats(), min_size=rows, max_size=rows).map(_floats),
        st.lists(st.floats(-9, 9).map(str), min_size=rows, max_size=rows).map(_texts),
        st.lists(st.none() | st.booleans(), min_size=rows, max_size=rows).map(_booleans),
        st.lists(st.none() | st.dates(), min_size=rows, max_size=rows).map(_dates),
    ]
    return st.one_of(lists)


@st.composite
def raw_tables(draw: st.DrawFn, min_rows: int = 0) -> pa.Table:
    """Tables of up to 6 columns and 12 rows."""
    rows = draw(st.integers(min_rows, 12))
    names = draw(st.lists(st.text(max_size=4), max_size=6, unique=True))
    return pa.table([draw(columns(rows)) for _ in names], names=names)


def _texts(values: list[str | None]) -> pa.Array:
    return pa.array(values, pa.string())


def _floats(values: list[float | None]) -> pa.Array:
    return pa.array(values, pa.float64())


def _booleans(values: list[bool | None]) -> pa.Array:
    return pa.array(values, pa.bool_())


def _dates(values: list[date | None]) -> pa.Array:
    return pa.array(values, pa.date32())
