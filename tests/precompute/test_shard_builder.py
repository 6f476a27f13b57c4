"""Exact sums of rows, against dense rows."""

import numpy as np
import pytest

from precompute.shard_builder import row_totals, sum_steps, total_mass
from tests.precompute.engines import config_of, engine_of, random_graph, truth_of


@pytest.mark.parametrize("normalisation", ["sym", "rw"])
@pytest.mark.parametrize("steps", [4, "inf"])
def test_sums_are_those_of_dense_rows(normalisation, steps):
    graph, config = random_graph(40), config_of(normalisation, steps, k=4)
    engine, truth = engine_of(graph, config), truth_of(graph, config)
    assert np.allclose(row_totals(engine), truth.sum(1), atol=1e-6)
    roots = np.array([3, 17])
    assert np.allclose(total_mass(engine, roots), truth[roots].sum(0), atol=1e-6)
    assert np.allclose(total_mass(engine, None), truth.sum(0), atol=1e-5)


def test_unlimited_sums_stop_when_little_is_left():
    engine = engine_of(random_graph(10), config_of("rw", "inf", teleport=0.5, k=2))
    assert 0.5 ** sum_steps(engine) <= 1e-8 < 0.5 ** (sum_steps(engine) - 1)
