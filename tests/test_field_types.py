from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.errors import ConfigError
from gpn_scale.field_types import (
    checks_fields,
    describe,
    parse_assignments,
    parse_value,
    require,
    shown,
    unknown_field,
)


@dataclass(frozen=True, slots=True, kw_only=True)
@checks_fields("meal", cups=100)
class Meal:
    drink: Literal["tea", "coffee"] = "tea"
    cups: int | Literal["many"] = 1
    table: str = "any"

    def __post_init__(self) -> None:
        require(self.cups == "many" or self.cups > 0, "meal.cups", self.cups, "at least 1, or many")


@given(st.text())
def test_other_texts_than_the_choices_are_refused(text):
    if text in ("tea", "coffee"):
        assert Meal(drink=text).drink == text
    else:
        with pytest.raises(ConfigError) as refused:
            Meal(drink=text)
        assert str(refused.value) == f"meal.drink is {shown(text)}, expected tea or coffee"
        assert refused.value.arguments == ("meal.drink",)


@pytest.mark.parametrize("cups", [2, np.int64(2), "many"])
def test_whole_numbers_or_choices_are_taken(cups):
    assert replace(Meal(), cups=cups).cups == cups


@pytest.mark.parametrize("cups", ["few", 1.5, None, True])
def test_neither_number_nor_choice_is_refused(cups):
    with pytest.raises(ConfigError, match=r"meal\.cups is .*, expected a whole number or many"):
        replace(Meal(), cups=cups)


def test_checks_of_the_class_itself_come_after():
    with pytest.raises(ConfigError, match=r"meal\.cups is 0, expected at least 1, or many"):
        Meal(cups=0)
    with pytest.raises(ConfigError, match=r"meal\.drink is 'milk'"):
        Meal(drink="milk", cups=0)


def test_upper_bounds_are_named():
    assert Meal(cups=100).cups == 100
    with pytest.raises(ConfigError, match=r"meal\.cups is 101, expected at most 100"):
        Meal(cups=101)
    with pytest.raises(ConfigError, match=r"meal\.cups is 9999.*\(1,000 characters\), expected at"):
        Meal(cups=int("9" * 1000))


def test_fields_without_choices_take_anything():
    assert Meal(table="corner").table == "corner"


def test_a_sum_of_fields_names_them_all():
    with pytest.raises(ConfigError, match=r"a\.b \+ a\.c is 2, expected below 1") as refused:
        require(False, "a.b + a.c", 2, "below 1")
    assert refused.value.arguments == ("a.b", "a.c")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (int, "7", 7),
        (float, "1e-3", 1e-3),
        (str, "7", "7"),
        (bool, "On", True),
        (bool, "0", False),
        (Literal["a", "b"], "b", "b"),
        (int | Literal["inf"], "7", 7),
        (int | Literal["inf"], "inf", "inf"),
    ],
)
def test_texts_become_values_of_the_type(kind, text, value):
    parsed = parse_value(kind, text, "key")
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (int, "a whole number"),
        (float, "a number"),
        (bool, "true or false"),
        (Literal["a", "b"], "a or b"),
        (int | Literal["inf"], "a whole number or inf"),
    ],
)
def test_texts_that_are_no_values_are_refused(kind, expected):
    assert describe(kind) == expected
    with pytest.raises(ConfigError, match=f"key is 'fish', expected {expected}") as refused:
        parse_value(kind, "fish", "key")
    assert refused.value.arguments == ("key",)


def test_assignments_are_split_at_the_first_equals_sign():
    assert parse_assignments(["data.dataset = a=b", "mode=exact"]) == [
        ("data.dataset", "a=b"),
        ("mode", "exact"),
    ]
    with pytest.raises(ConfigError, match=r"'mode', expected section\.field=value"):
        parse_assignments(["mode"])


def test_an_unknown_field_is_compared_with_the_known_ones():
    known = ["mode", "train.epochs", "encoder.layers"]
    assert unknown_field("train.epoch", known).endswith("did you mean train.epochs?")
    assert unknown_field("flow.layers", known).endswith("did you mean encoder.layers?")
    assert unknown_field("xyz", known).endswith(f"its fields are {', '.join(known)}")
