"""Ids and labels of all types become texts in one form."""

from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data import text_columns
from gpn_scale.data.text_columns import (
    MAX_LENGTH,
    joined,
    text_array,
    text_column,
    value_faults,
    without_point,
)
from gpn_scale.data.wrong_values import LISTED_VALUES
from tests.mapped import is_mapped


def texts(values, kind=None):
    return text_column(pa.chunked_array([pa.array(values, kind)])).texts.to_pylist()


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([7, None, -1], pa.int8(), ["7", None, "-1"]),
        ([2**64 - 1], pa.uint64(), ["18446744073709551615"]),
        ([7.0, None, float("nan"), -3.0], pa.float64(), ["7", None, None, "-3"]),
        ([7.0], pa.float32(), ["7"]),
        ([Decimal("7.00"), None], pa.decimal128(9, 2), ["7", None]),
        (["7", "007", "", None, " 7"], None, ["7", "007", None, None, " 7"]),
        (["7.0", None, "-12.00"], None, ["7", None, "-12"]),
        (["7.0", "7.5"], None, ["7.0", "7.5"]),
        (["7.0", "x"], pa.large_string(), ["7.0", "x"]),
        ([True, False, None], None, ["true", "false", None]),
        ([date(2020, 1, 2)], None, ["2020-01-02"]),
        ([None, None], pa.null(), [None, None]),
        (["", ""], None, [None, None]),
        ([], pa.string(), []),
    ],
)
def test_values_have_one_form(values, kind, expected):
    assert texts(values, kind) == expected


@given(st.lists(st.none() | st.integers(-(2**53) + 1, 2**53 - 1), min_size=1))
def test_whole_numbers_are_the_same_ids_in_every_type(numbers):
    expected = [None if number is None else str(number) for number in numbers]
    as_text = [None if number is None else str(float(number)) for number in numbers]
    short = [None if number is None else f"{number}.0" for number in numbers]
    assert texts(numbers, pa.int64()) == expected
    assert texts(numbers, pa.float64()) == expected
    assert texts(short, pa.string()) == expected
    if all(text is None or text.endswith(".0") for text in as_text):
        assert texts(as_text, pa.string()) == expected


@given(st.lists(st.text(min_size=1, max_size=4).filter(lambda text: not text.endswith(".0"))))
def test_other_texts_stay(values):
    values = [value for value in values if "\0" not in value]
    values = [value for value in values if value.encode("utf-8", "ignore").decode() == value]
    assert texts(values, pa.string()) == values


@pytest.mark.parametrize(
    ("values", "wrong", "advice"),
    [
        ([0.5, 7.0, None], [True, False, False], "write integers or text"),
        ([float("inf"), 1e300], [True, True], "write integers or text"),
        ([[1], None], [True, False], "not values of type list"),
        (["a" * (MAX_LENGTH + 1), "b"], [True, False], "at most 500 characters"),
        (["a\0", "b", None], [True, False, False], "no NUL character"),
    ],
)
def test_values_that_are_no_ids_are_marked(values, wrong, advice):
    column = text_column(pa.chunked_array([values]))
    assert column.wrong.tolist() == wrong
    assert advice in column.advice


def test_right_columns_have_no_advice():
    column = text_column(pa.chunked_array([["a", None]]))
    assert not column.wrong.any()
    assert column.advice == ""


def test_the_point_goes_from_whole_numbers_alone():
    assert without_point(pa.array(["7.0", "7.01", "a7.0", None])).to_pylist() == [
        "7",
        "7.01",
        "a7.0",
        None,
    ]


def test_chunks_are_joined():
    assert joined(pa.chunked_array([], pa.string())).to_pylist() == []
    assert joined(pa.chunked_array([[1], [2, 3]])).to_pylist() == [1, 2, 3]


def test_equal_values_are_one_fault_and_many_are_counted():
    values = pa.array([*"abcdefgh", "a", None, None], pa.large_string())
    faults = value_faults(values, np.ones(11, bool), file="f", column="c", advice="fix it")
    listed = [(fault.row, fault.value, fault.count) for fault in faults]
    assert listed[:2] == [(1, "a", 2), (2, "b", 1)]
    assert listed[LISTED_VALUES:] == [(LISTED_VALUES + 1, None, 5)]
    assert faults[-1].advice == "the same for 4 more values"
    assert {fault.advice for fault in faults[:-1]} == {"fix it"}
    assert {(fault.file, fault.column) for fault in faults} == {("f", "c")}


def test_a_missing_value_is_a_fault_without_a_value():
    values = pa.array(["a", None], pa.large_string())
    (fault,) = value_faults(values, np.array([False, True]), file="f", column="c", advice="fix")
    assert (fault.row, fault.value) == (2, None)
    assert value_faults(values, np.zeros(2, bool), file="f", column="c", advice="fix") == []


def test_the_column_decides_about_points_unless_it_is_told():
    pointed, mixed = pa.chunked_array([["7.0", None]]), pa.chunked_array([["7.0", "x"]])
    assert text_column(pointed).has_points is True
    assert text_column(mixed).has_points is False
    assert text_column(pa.chunked_array([pa.array(["", None])])).has_points is None
    assert text_column(pointed, shorten=False).texts.to_pylist() == ["7.0", None]
    assert text_column(mixed, shorten=True).texts.to_pylist() == ["7", "x"]


@pytest.mark.parametrize("memory_bytes", [0, 1000])
@pytest.mark.parametrize("values", [["a", "bcd", "\U0001f600"], [], ["x"]])
def test_texts_become_an_array(monkeypatch, tmp_path, values, memory_bytes):
    monkeypatch.setattr(text_columns, "MEMORY_BYTES", memory_bytes)
    monkeypatch.setattr(text_columns, "_CHUNK_TEXTS", 2)
    array = text_array(pa.array(values, pa.large_string()), tmp_path)
    assert array.tolist() == values
    assert array.dtype == np.array(values, np.str_).dtype
    assert is_mapped(array) == (len(values) > 0 and memory_bytes == 0)
