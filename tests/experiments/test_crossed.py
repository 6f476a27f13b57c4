import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.experiments.crossed import mean_and_error

numbers = st.floats(-100, 100)


@given(st.lists(numbers, min_size=2, max_size=8), st.booleans())
def test_runs_of_one_initialisation_or_of_one_split_are_independent(values, of_one_split):
    seeds = [(1, place) if of_one_split else (place, 1) for place in range(len(values))]
    mean, error = mean_and_error(dict(zip(seeds, values, strict=True)))
    assert mean == pytest.approx(statistics.fmean(values), abs=1e-9)
    plain = statistics.stdev(values) / math.sqrt(len(values))
    assert error == pytest.approx(plain, abs=1e-6)


@given(st.integers(2, 5), st.integers(2, 5), st.data())
def test_a_whole_grid_has_the_variances_of_its_margins(splits, inits, data):
    flat = data.draw(st.lists(numbers, min_size=splits * inits, max_size=splits * inits))
    grid = np.array(flat).reshape(splits, inits)
    mean, error = mean_and_error({place: float(value) for place, value in np.ndenumerate(grid)})
    margins = grid.mean(1).var(ddof=1) / splits + grid.mean(0).var(ddof=1) / inits
    alone = grid.var(ddof=1) / grid.size
    assert mean == pytest.approx(grid.mean(), abs=1e-9)
    assert error == pytest.approx(math.sqrt(max(margins - alone, alone)), abs=1e-5)


def test_errors_are_as_large_as_means_scatter():
    rng = np.random.default_rng(5)
    found = []
    for _ in range(2000):
        grid = rng.normal(size=(6, 1)) + 2.0 * rng.normal(size=6) + rng.normal(size=(6, 6))
        runs = {place: float(value) for place, value in np.ndenumerate(grid) if sum(place) % 5}
        found.append(mean_and_error(runs))
    means, errors = np.array(found).T
    scatter = means.std(ddof=1)
    assert np.sqrt((errors**2).mean()) == pytest.approx(scatter, rel=0.1)


def test_numbers_that_are_missing_are_left_out():
    mean, error = mean_and_error({(1, 1): 2.0, (2, 1): math.nan, (3, 1): 4.0})
    assert (mean, error) == (3.0, 1.0)
    mean, error = mean_and_error({(1, 1): 2.0})
    assert mean == 2.0
    assert math.isnan(error)
    assert all(math.isnan(number) for number in mean_and_error({(1, 1): math.nan}))
