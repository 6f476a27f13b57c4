import sys
from types import ModuleType

import numpy as np
import pytest

from gpn_scale.page.projection import (
    MOST_NODES,
    components_map,
    neighbour_map,
    principal_components,
)


def clouds(count):
    """Three clouds far apart, in the order of the sample's labels."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(count, 5)) + 100 * np.eye(5)[np.arange(count) % 3]


def test_near_nodes_stay_near():
    label = np.arange(90) % 3
    placed = neighbour_map(clouds(90))
    assert (placed.method, placed.explained_variance) == ("t-SNE", None)
    distance = np.linalg.norm(placed.position[:, None] - placed.position[None], axis=-1)
    np.fill_diagonal(distance, np.inf)
    assert (label[distance.argmin(1)] == label).all()
    again = neighbour_map(clouds(90))
    np.testing.assert_array_equal(again.position, placed.position)


def test_many_nodes_are_thinned_and_few_are_left(monkeypatch):
    monkeypatch.setattr("gpn_scale.page.projection.MOST_NODES", 60)
    placed = neighbour_map(clouds(90))
    assert placed.position.shape == (90, 2)
    assert np.isfinite(placed.position).all(1).sum() == 60
    assert MOST_NODES == 1000
    assert neighbour_map(clouds(49)) is None
    assert neighbour_map(clouds(0)) is None
    assert neighbour_map(np.ones((90, 5))) is None


def test_umap_is_taken_where_it_is_installed(monkeypatch):
    class UMAP:
        def __init__(self, **options):
            self.options = options

        def fit_transform(self, latent):
            return latent[:, :2]

    module = ModuleType("umap")
    module.UMAP = UMAP
    monkeypatch.setitem(sys.modules, "umap", module)
    monkeypatch.setattr("gpn_scale.page.projection.find_spec", lambda name: name)
    latent = clouds(90)
    placed = neighbour_map(latent)
    assert placed.method == "UMAP"
    np.testing.assert_array_equal(placed.position, latent[:, :2])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_positions_that_are_no_numbers_are_left_out(bad):
    latent = clouds(90)
    latent[3] = bad
    placed = np.isfinite(neighbour_map(latent).position).all(1)
    assert placed.tolist() == [row != 3 for row in range(90)]


def test_a_map_says_how_much_variance_it_shows():
    placed = components_map(clouds(90))
    position, explained = principal_components(clouds(90))
    np.testing.assert_array_equal(placed.position, position)
    assert placed.explained_variance == explained


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (1, 4), (5, 1), (40, 6)])
def test_principal_components_are_the_widest_directions(shape):
    latent = np.random.default_rng(0).normal(size=shape) * np.arange(1, shape[1] + 1)
    position, explained = principal_components(latent)
    assert position.shape == (shape[0], 2)
    assert 0 <= explained[1] <= explained[0] <= 1 + 1e-12
    if shape[0] > 1:
        variance = np.linalg.eigvalsh(np.cov(latent.T).reshape(shape[1], shape[1]))[::-1]
        np.testing.assert_allclose(position.var(0, ddof=1)[: shape[1]], variance[:2])
