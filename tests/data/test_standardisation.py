from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.standardisation import FARTHEST, Standardisation

NUMBERS = st.floats(-1e300, 1e300)
SQUARABLE = st.floats(-1e9, 1e9).map(lambda value: value if abs(value) > 1e-100 else 0.0)
"""Numbers whose variance is a float other than 0, as the reference below needs it."""


@given(st.lists(SQUARABLE, min_size=1))
def test_centre_and_scale_are_those_of_exact_arithmetic(values):
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / len(exact)
    variance = sum((value - mean) ** 2 for value in exact) / len(exact)
    got = Standardisation.of(np.array(values))
    size = max(map(abs, values))
    assert got.centre == pytest.approx(float(mean), rel=1e-12, abs=1e-15 * size)
    if variance:
        assert got.scale == pytest.approx(float(variance) ** 0.5, rel=1e-6, abs=1e-15 * size)
    else:
        assert got.scale == 1.0


@given(st.lists(NUMBERS, min_size=1).flatmap(lambda v: st.tuples(st.just(v), st.permutations(v))))
def test_the_order_makes_no_difference(pair):
    values, permuted = map(np.array, pair)
    assert Standardisation.of(values) == Standardisation.of(permuted)


@given(st.lists(NUMBERS, min_size=1))
def test_numbers_of_any_size_give_finite_features(values):
    given_values = np.array(values)
    scaled = Standardisation.of(given_values).applied(given_values)
    assert scaled.dtype == np.float32
    assert np.isfinite(scaled).all()
    assert np.abs(scaled).max() <= np.sqrt(len(values)) + 1e-3


def test_a_constant_has_scale_one():
    assert Standardisation.of(np.full(3, 0.1)) == (0.1, 1.0)
    assert Standardisation.of(np.empty(0)) == (0.0, 1.0)


def test_later_numbers_are_limited_and_gaps_are_zero():
    later = np.array([np.nan, -1e300, 1e300])
    assert Standardisation(1.0, 1e-9).applied(later).tolist() == [0.0, -FARTHEST, FARTHEST]
