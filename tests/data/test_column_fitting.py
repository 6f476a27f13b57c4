import numpy as np
import pyarrow as pa
import pytest

from gpn_scale.data.column_fitting import (
    LeftOutColumn,
    fitted_column,
    missing_faults,
    unreadable_fault,
)
from gpn_scale.data.column_kinds import MAX_CATEGORIES
from gpn_scale.data.column_rules import CategoryRule, HashedCategoryRule, NumberRule, TextRule


def fitted(values, kind=None, **options):
    return fitted_column("x", pa.chunked_array([pa.array(values, kind)]), **options)


def test_numbers():
    rule = fitted(["1", "3", ""]).result
    expected = NumberRule(
        column="x", centre=2.0, scale=1.0, missing_fraction=1 / 3, marks_missing=True
    )
    assert rule == expected


def test_categories_are_ordered_by_count_and_name():
    rule = fitted(["b", "c", "a", "b", "c"]).result
    assert rule == CategoryRule(column="x", categories=("b", "c", "a"))


@pytest.mark.parametrize(("count", "rule"), [(0, CategoryRule), (1, HashedCategoryRule)])
def test_too_many_categories_are_hashed(count, rule):
    values = [f"v{number}" for number in range(MAX_CATEGORIES + count)] * 3
    assert isinstance(fitted(values).result, rule)


def test_texts_keep_their_frequent_words():
    rule = fitted_column("x", pa.chunked_array([["red boat", "red house"]]), kind="text").result
    assert isinstance(rule, TextRule)
    assert set(rule.frequent_words) == {"", "red", "boat", "house"}


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (["", None], "it has no value"),
        ([2.5, 2.5], "all its values are equal"),
        (["a", "a"], "all its values are equal"),
        ([True, True], "all its values are equal"),
        ([f"id{row}" for row in range(30)], "it looks like an identifier"),
    ],
)
def test_columns_without_information_are_left_out(values, reason):
    result = fitted(values).result
    assert isinstance(result, LeftOutColumn)
    assert result.sentence.startswith(f"The column 'x' is left out, since {reason}")


def test_a_column_of_numbers_and_few_words_says_which_value_is_no_number():
    result = fitted([None, *(f"{row}.5" for row in range(1200)), "unknown"]).result
    assert isinstance(result, LeftOutColumn)
    assert result.sentence == (
        "The column 'x' is left out, since only 1,200 of its 1,201 values are numbers: 'unknown' "
        "in row 1,202 is none. Write numbers or leave the cells empty to use the column."
    )


def test_a_constant_with_gaps_is_kept_for_its_gaps():
    assert fitted([7, None]).result == NumberRule(
        column="x", centre=7.0, scale=1.0, missing_fraction=0.5, marks_missing=True
    )
    assert isinstance(fitted([7, None], missing="fill").result, LeftOutColumn)


def test_an_identifier_that_has_a_kind_is_used():
    values = pa.chunked_array([[f"id{row}" for row in range(60)]])
    assert isinstance(fitted_column("x", values, kind="category").result, HashedCategoryRule)
    assert isinstance(fitted_column("x", values, kind="text").result, TextRule)


@pytest.mark.parametrize(
    ("values", "kind", "row", "value", "count"),
    [
        (["1", "old", "", "older"], "number", 2, "old", 2),
        (["1", "inf"], "number", 2, "inf", 1),
        ([1.0, float("inf")], "number", 2, "inf", 1),
        (["yes", "perhaps"], "boolean", 2, "perhaps", 1),
        (["2024-02-30", "2024-02-28"], "date", 1, "2024-02-30", 1),
        ([20240101], "date", 1, "20240101", 1),
        ([True], "number", 1, "True", 1),
    ],
)
def test_values_that_contradict_a_kind_are_one_fault(values, kind, row, value, count):
    result, (fault,) = fitted_column("x", pa.chunked_array([values]), kind=kind, file="f.csv")
    assert result is None
    assert (fault.file, fault.column, fault.row, fault.value) == ("f.csv", "x", row, value)
    assert fault.count == count
    assert fault.advice.startswith("write ")


def test_inferred_numbers_must_be_finite():
    assert fitted(["1", "inf"]).faults[0].value == "inf"


@pytest.mark.parametrize("values", [["1", "", "2", "NA"], ["a", None, "b", "NA"]])
def test_missing_values_can_be_refused(values):
    result, (fault,) = fitted(values, missing="refuse")
    assert result is None
    assert (fault.row, fault.count, fault.value) == (2, 2, None)
    assert missing_faults("x", np.zeros(2, bool), "refuse", "f") == ()
    assert fitted(values, missing="fill").result.marks_missing is False


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int64()), pa.binary(), pa.time32("s"), pa.duration("s")]
)
def test_types_without_a_kind_are_a_fault(kind):
    fault = unreadable_fault("x", pa.chunked_array([pa.array([], kind)]), "f")
    assert fault.value == str(kind)
    assert fault.advice.startswith("drop it, or turn it into numbers")


def test_text_that_is_not_unicode_is_a_fault():
    offsets, text = pa.py_buffer(np.array([0, 2], np.int32)), pa.py_buffer(b"\xff\xfe")
    broken = pa.chunked_array([pa.StringArray.from_buffers(1, offsets, text)])
    result, (fault,) = fitted_column("x", broken)
    assert result is None
    assert fault.advice == "write the text in UTF-8"
