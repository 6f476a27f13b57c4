from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precompute.rounding import (
    round_down_to_single,
    round_up_to_half,
    round_up_to_single,
    rounded_down,
    sum_rounded_down,
)

VALUES = st.lists(st.floats(0, 60_000), min_size=1).map(np.array)


@given(VALUES)
def test_rounding_goes_to_the_next_number_in_one_direction(values):
    for round_values, kind, up in (
        (round_up_to_single, np.float32, True),
        (round_up_to_half, np.float16, True),
        (round_down_to_single, np.float32, False),
    ):
        rounded = round_values(values)
        assert rounded.dtype == kind
        wide = rounded.astype(np.float64)
        assert (wide >= values if up else wide <= values).all()
        beyond = np.nextafter(rounded, kind(0.0 if up else np.inf)).astype(np.float64)
        exact = (wide == values) | (beyond < values if up else beyond > values)
        assert exact.all()


@given(VALUES)
def test_the_compiled_rounding_is_the_same(values):
    single = [rounded_down(value) for value in values]
    np.testing.assert_array_equal(np.array(single, np.float32), round_down_to_single(values))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_sums_are_never_above_the_exact_one(values):
    total = 0.0
    for value in values:
        total = sum_rounded_down(total, value)
    exact = sum(map(Fraction, values))
    assert Fraction(total) <= exact
    assert Fraction(total) >= exact * (1 - Fraction(len(values), 2**52))


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_representable_numbers_stay(value):
    for round_values in (round_up_to_single, round_up_to_half, round_down_to_single):
        assert round_values(np.array([value])) == value
