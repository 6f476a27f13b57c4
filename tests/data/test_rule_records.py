import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.column_rules import CategoryRule, HashedCategoryRule, NumberRule, TextRule
from gpn_scale.data.rule_records import (
    RecordReader,
    left_out_column,
    rule_from_record,
    rule_record,
    structural_rule,
)
from gpn_scale.errors import GraphError

TEXT = st.text(max_size=5)
COMMON = {"column": TEXT, "missing_fraction": st.floats(0, 1), "marks_missing": st.booleans()}
RULES = st.one_of(
    st.builds(
        NumberRule,
        centre=st.floats(allow_nan=False, allow_infinity=False),
        scale=st.floats(0, 1e300, exclude_min=True),
        number_kind=st.sampled_from(["number", "boolean", "date"]),
        **COMMON,
    ),
    st.builds(CategoryRule, categories=st.lists(TEXT).map(tuple), **COMMON),
    st.builds(HashedCategoryRule, num_columns=st.integers(1, 999), **COMMON),
    st.builds(TextRule, frequent_words=st.lists(TEXT).map(tuple), **COMMON),
)
NUMBER = rule_record(NumberRule(column="age", centre=1.0, scale=2.0))


@given(RULES)
def test_rules_come_back_from_json(rule):
    assert rule_from_record(json.loads(json.dumps(rule_record(rule)))) == rule


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rule": "odd"}, "has 'odd' for 'rule', expected one of number, category"),
        ({"column": 3}, "has 3 for 'column', expected text"),
        ({"scale": 0.0}, "has 0.0 for 'scale', expected a positive number"),
        ({"scale": True}, "has True for 'scale', expected a finite number"),
        ({"centre": float("inf")}, "has inf for 'centre', expected a finite number"),
        ({"missing_fraction": 2}, "has 2 for 'missing_fraction', expected .* from 0.0 to 1.0"),
        ({"marks_missing": 1}, "has 1 for 'marks_missing', expected true or false"),
        ({"number_kind": "text"}, "has 'text' for 'number_kind', expected one of number, boolean"),
        ({"rule": "category"}, "has no entry 'categories', expected one"),
        ({"rule": "category", "categories": "DE"}, "'DE' for 'categories', expected a list"),
        ({"rule": "category", "categories": [1]}, r"\[1\] for 'categories', expected a list of te"),
        ({"rule": "hashed category", "num_columns": 0}, "has 0 for 'num_columns', expected a numb"),
        ({"column": ["long"] * 99}, r"\.\.\. for 'column', expected text"),
    ],
)
def test_damaged_rules_are_refused_in_one_sentence(changes, message):
    with pytest.raises(GraphError, match=f"damaged: a rule .*{message}") as caught:
        rule_from_record(NUMBER | changes)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith("import the tables again")


def test_other_records_are_checked():
    with pytest.raises(GraphError, match="it is 7, expected an object"):
        RecordReader(7, "it")
    with pytest.raises(
        GraphError, match="a structural rule has 'size' for 'measure', expected one"
    ):
        structural_rule({"measure": "size"})
    with pytest.raises(GraphError, match="a column that is left out has no entry 'reason'"):
        left_out_column({"column": "memo"})
