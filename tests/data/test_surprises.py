import json

import pyarrow as pa
import pytest

from gpn_scale.data.column_rules import CategoryRule, NumberRule
from gpn_scale.data.column_values import ColumnReader
from gpn_scale.data.surprises import ColumnSurprise, listed


def surprise_of(rule, values):
    reader = ColumnReader(pa.chunked_array([values]))
    return ColumnSurprise.of(rule, reader, rule.encoded(reader))


def test_nothing_unusual_is_no_surprise():
    rule = CategoryRule(column="c", categories=("a", "b"), missing_fraction=0.5)
    assert surprise_of(rule, ["a", None, "b", "NA"]) is None


def test_unknown_categories_are_counted():
    rule = CategoryRule(column="c", categories=("a",))
    surprise = surprise_of(rule, ["a", " z", "y", "z"])
    assert (surprise.unknown, surprise.first_unknown, surprise.num_rows) == (3, "z", 4)
    assert surprise.sentences == (
        "3 values of 'c' are not among those of training (first: 'z'); they count as no category.",
    )


def test_more_missing_values_than_in_training_are_counted():
    rule = NumberRule(column="n", centre=0.0, scale=1.0, missing_fraction=0.01)
    surprise = surprise_of(rule, ["1", "", "2", "x"])
    assert (surprise.missing, surprise.unreadable, surprise.first_unreadable) == (1, 1, "x")
    assert surprise.sentences == (
        "1 value of 'n' cannot be read as finite numbers (first: 'x'); it counts as missing.",
        "1 value of 'n' is missing (25.0%; in training 1.0%); the rule of training fills it.",
    )


@pytest.mark.parametrize(("missing", "is_counted"), [(20, False), (31, False), (33, True)])
def test_as_many_missing_values_as_chance_explains_are_not_counted(missing, is_counted):
    rule = NumberRule(column="n", centre=0.0, scale=1.0, missing_fraction=0.2)
    surprise = surprise_of(rule, [""] * missing + ["1"] * (100 - missing))
    assert (surprise is not None) == is_counted


def test_counts_are_json():
    rule = CategoryRule(column="c", categories=("a",))
    record = json.loads(json.dumps(surprise_of(rule, ["z"]).to_dict()))
    assert record["column"] == "c"
    assert record["unknown"] == 1


def test_long_values_are_cut_in_sentences():
    rule = CategoryRule(column="c", categories=("a",))
    (sentence,) = surprise_of(rule, ["z" * 500]).sentences
    assert len(sentence) < 200


def test_listed_names():
    assert listed(["a"]) == "'a'"
    assert listed([]) == ""
