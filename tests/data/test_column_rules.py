from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from gpn_scale.data.column_rules import (
    CategoryRule,
    HashedCategoryRule,
    NumberRule,
    TextRule,
    numeric_values,
    one_per_row,
)
from gpn_scale.data.column_values import ColumnReader
from gpn_scale.data.hashed_text import hashed_columns, word_matrix


def reader(values, kind=None):
    return ColumnReader(pa.chunked_array([pa.array(values, kind)]))


def test_numbers_are_standardised_and_gaps_are_marked():
    rule = NumberRule(column="age", centre=2.0, scale=4.0, marks_missing=True)
    encoded = rule.encoded(reader(["4", "", "abc", "inf", "2"]))
    expected = [[0.5, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [0.0, 0.0]]
    assert encoded.features.toarray().tolist() == expected
    assert encoded.missing.tolist() == [False, True, False, False, False]
    assert encoded.unreadable.tolist() == [False, False, True, True, False]
    assert not encoded.unknown.any()
    assert rule.labels == ("age", "age is missing")


@pytest.mark.parametrize(
    ("kind", "text", "number"),
    [("number", "3", 3.0), ("boolean", "Yes", 1.0), ("date", "1970-01-05", 4.0)],
)
def test_kinds_of_numbers(kind, text, number):
    rule = NumberRule(column="x", number_kind=kind, centre=0.0, scale=1.0)
    assert rule.kind == kind
    assert rule.encoded(reader([text])).features.toarray().tolist() == [[number]]
    assert numeric_values(reader([text]), kind).value.tolist() == [number]


def test_categories_have_a_feature_each():
    rule = CategoryRule(column="c", categories=("b", "a"), marks_missing=True)
    encoded = rule.encoded(reader(["a", "b ", "z", None]))
    expected = [[0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert encoded.features.toarray().tolist() == expected
    assert encoded.unknown.tolist() == [False, False, True, False]
    assert rule.labels == ("c=b", "c=a", "c is missing")


def test_hashed_categories_share_a_number_of_features():
    rule = HashedCategoryRule(column="c", num_columns=8)
    values = ["a", None, "b", "a"]
    dense = rule.encoded(reader(values)).features.toarray()
    assert dense.sum(axis=1).tolist() == [1, 0, 1, 1]
    assert dense[0].argmax() == hashed_columns(pa.array(["a"]), 8)[0]
    assert not rule.encoded(reader(values)).unknown.any()


def test_texts_have_their_hashed_words():
    rule = TextRule(column="t", frequent_words=("", "red", "", ""), marks_missing=True)
    encoded = rule.encoded(reader(["red boat", None, "red boat", "?"]))
    expected = word_matrix(pa.array(["red boat"]), 4).toarray()[0]
    assert encoded.features.toarray()[:, :4].tolist() == [
        expected.tolist(),
        [0] * 4,
        expected.tolist(),
        [0] * 4,
    ]
    assert encoded.features.toarray()[:, 4].tolist() == [0, 1, 0, 0]
    assert rule.labels == ("t#0", "t: red", "t#2", "t#3", "t is missing")


@pytest.mark.parametrize(
    "rule",
    [
        NumberRule(column="x", centre=0.0, scale=1.0),
        CategoryRule(column="x", categories=("a",)),
        HashedCategoryRule(column="x"),
        TextRule(column="x", frequent_words=("", "b")),
    ],
)
@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("marks", [False, True])
def test_tables_of_no_and_one_row(rule, rows, marks):
    rule = replace(rule, marks_missing=marks)
    encoded = rule.encoded(reader(["a"] * rows, pa.string()))
    assert encoded.features.shape == (rows, len(rule.labels))
    assert rule.width == len(rule.labels)
    assert encoded.features.dtype == np.float32
    assert rule.filled >= 1


def test_one_per_row_without_any():
    assert one_per_row(np.array([-1, -1]), 2).nnz == 0
