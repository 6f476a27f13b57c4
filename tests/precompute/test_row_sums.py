import numpy as np
import pytest

from gpn_scale.config import DiffusionConfig, PPRConfig
from precompute.row_sums import MASS_TOLERANCE, row_totals, sum_steps, total_mass
from tests.precompute.engines import config_of, engine_of, hub_graph, truth_of

SETTINGS = [("rw", "inf"), ("sym", "inf"), ("sym", 3), ("rw", 0)]


@pytest.mark.parametrize(("normalisation", "steps"), SETTINGS)
def test_sums_are_those_of_the_dense_rows(normalisation, steps):
    graph, config = hub_graph(120), config_of(normalisation, steps, k=4)
    engine, truth = engine_of(graph, config), truth_of(graph, config)
    np.testing.assert_allclose(row_totals(engine), truth.sum(1), atol=1e-6)
    np.testing.assert_allclose(total_mass(engine, None), truth.sum(0), atol=1e-4)
    roots = np.array([0, 7, 119])
    np.testing.assert_allclose(total_mass(engine, roots), truth[roots].sum(0), atol=1e-5)


def test_an_unlimited_diffusion_is_summed_until_hardly_any_mass_is_left():
    graph = hub_graph(120)
    steps = sum_steps(engine_of(graph, config_of(teleport=0.2, k=4)))
    assert 0.8**steps <= MASS_TOLERANCE < 0.8 ** (steps - 1)
    few = PPRConfig(diffusion=DiffusionConfig(steps=7), k=4)
    assert sum_steps(engine_of(graph, few)) == 7
