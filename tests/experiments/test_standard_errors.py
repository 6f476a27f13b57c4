import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.experiments.standard_errors import mean_and_error

numbers = st.floats(-100, 100)


@given(st.lists(numbers, min_size=2, max_size=8), st.booleans())
def test_runs_of_one_initialisation_or_of_one_split_are_independent(values, of_one_split):
    seeds = [(1, place) if of_one_split else (place, 1) for place in range(len(values))]
    mean, error = mean_and_error(dict(zip(seeds, values, strict=True)))
    assert mean == pytest.approx(statistics.fmean(values), abs=1e-9)
    plain = statistics.stdev(values) / math.sqrt(len(values))
    assert error == pytest.approx(plain, abs=1e-6)


@given(st.lists(numbers, min_size=2, max_size=6), st.integers(1, 4), st.booleans())
def test_runs_that_repeat_themselves_tell_nothing_new(values, repeats, of_splits):
    grid = {
        (place, again) if of_splits else (again, place): value
        for place, value in enumerate(values)
        for again in range(repeats)
    }
    plain = statistics.stdev(values) / math.sqrt(len(values))
    assert mean_and_error(grid)[1] == pytest.approx(plain, abs=1e-6)


def scatter_and_error(shape, effects, missing):
    """Of means over many drawn grids: their standard deviation, and the error that is reported."""
    rng = np.random.default_rng(5)
    of_split, of_init, of_run = effects
    estimates = []
    for _ in range(3000):
        grid = of_split * rng.normal(size=(shape[0], 1)) + of_init * rng.normal(size=shape[1])
        grid = grid + of_run * rng.normal(size=shape)
        runs = {place: float(value) for place, value in np.ndenumerate(grid)}
        for place in missing:
            del runs[place]
        estimates.append(mean_and_error(runs))
    means, errors = np.array(estimates).T
    return means.std(ddof=1), np.sqrt(np.square(errors).mean())


@pytest.mark.parametrize("effects", [(1, 0, 0.1), (0, 1, 0.1), (1, 1, 1), (1, 2, 0.5)])
@pytest.mark.parametrize(("shape", "missing"), [((5, 2), []), ((6, 6), [(0, 0), (2, 3), (5, 1)])])
def test_errors_are_as_large_as_means_scatter(shape, effects, missing):
    scatter, error = scatter_and_error(shape, effects, missing)
    assert error == pytest.approx(scatter, rel=0.06)


def test_without_effects_of_seeds_errors_are_rather_too_large():
    scatter, error = scatter_and_error((5, 2), (0, 0, 1), [])
    assert scatter < error < 1.35 * scatter


@given(numbers, st.integers(2, 9))
def test_equal_values_have_no_error(value, count):
    mean, error = mean_and_error({(split, 1): value for split in range(count)})
    assert mean == pytest.approx(value)
    assert error == 0.0


def test_numbers_that_are_missing_are_left_out():
    mean, error = mean_and_error({(1, 1): 2.0, (2, 1): math.nan, (3, 1): 4.0})
    assert (mean, error) == (3.0, 1.0)
    mean, error = mean_and_error({(1, 1): 2.0})
    assert mean == 2.0
    assert math.isnan(error)
    assert all(math.isnan(number) for number in mean_and_error({(1, 1): math.nan}))
