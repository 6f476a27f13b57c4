from datetime import date

import pyarrow as pa
import pytest

from gpn_scale.data.column_kinds import MAX_CATEGORIES, inferred_kind, is_empty
from gpn_scale.data.column_values import ColumnReader

SENTENCES = [f"the word {number} is here" for number in range(MAX_CATEGORIES + 1)]
NAMES = [f"name{number}" for number in range(200)]


def kind_of(values, kind=None):
    return inferred_kind(ColumnReader(pa.chunked_array([pa.array(values, kind)])))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "2.5", ""], "number"),
        (["1", "0", "1"], "number"),
        (["1", "inf"], "number"),
        (["1", "1,5"], "category"),
        (["yes", "No", None], "boolean"),
        (["true", "0"], "boolean"),
        (["yes", "yes"], "category"),
        (["t", "m"], "category"),
        (["2024-01-01", "2024-01-01T10:00Z"], "date"),
        (["2024-01-01", "2024-02-30"], "category"),
        (["DE", "FR", "DE"], "category"),
        (SENTENCES, "text"),
        (SENTENCES[:-1], "identifier"),
        (["New York", "Rome", "Paris"] * 9, "category"),
        (NAMES, "identifier"),
        (NAMES[:19], "category"),
        (NAMES[:20], "identifier"),
        (NAMES * 2, "category"),
        ([*NAMES, *NAMES[:20]], "identifier"),
        ([*NAMES, *NAMES[:40]], "category"),
        (["", "NA", None], "empty"),
        ([], "empty"),
    ],
)
def test_kinds_of_text(values, expected):
    assert kind_of(values, pa.string()) == expected
    assert kind_of(values, pa.dictionary(pa.int32(), pa.string())) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 0], "number"),
        ([1.5, float("nan")], "number"),
        ([float("nan"), None], "empty"),
        ([True, True], "boolean"),
        ([date(2024, 1, 1)], "date"),
        ([None], "empty"),
    ],
)
def test_kinds_of_typed_columns(values, expected):
    assert kind_of(values) == expected


def test_a_column_of_text_with_few_values_of_several_words_is_a_category():
    assert kind_of(["very old", "very new"] * 30) == "category"


def test_emptiness():
    assert is_empty(ColumnReader(pa.chunked_array([[None, "nan"]])))
    assert not is_empty(ColumnReader(pa.chunked_array([[None, 0.0]])))
