"""Nearest nodes against a sort of all distances, in blocks of any size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from gpn_scale.errors import ConfigError, GraphError
from gpn_scale.inference import similar
from gpn_scale.inference.similar import latent_into, similar_nodes
from tests.inference.models import trained_model

SHAPES = st.tuples(st.integers(1, 12), st.integers(1, 3))
MATRICES = arrays.arrays(np.float32, SHAPES, elements=st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.5]))


@given(MATRICES, st.data())
def test_they_are_the_first_of_all_sorted_nodes(latent, data):
    node = data.draw(st.integers(0, len(latent) - 1))
    count = data.draw(st.integers(0, len(latent) + 2))
    distance = np.sqrt(((latent.astype(np.float64) - latent[node]) ** 2).sum(1))
    expected = sorted((d, v) for v, d in enumerate(distance.tolist()) if v != node)[:count]
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(similar, "_BLOCK_ROWS", data.draw(st.integers(1, 5)))
        got = similar_nodes(latent, node, count)
    assert got.nodes.tolist() == [v for _, v in expected]
    np.testing.assert_allclose(got.distance, [d for d, _ in expected], rtol=1e-6)


def test_a_mapped_matrix_is_filled_and_read(tmp_path, small_graph, monkeypatch):
    monkeypatch.setattr(similar, "CHUNK_ROWS", 77)
    trained = trained_model(small_graph)
    options = {"dtype": np.float32, "shape": (300, 2)}
    latent = np.lib.format.open_memmap(tmp_path / "latent.npy", mode="w+", **options)
    latent_into(trained, small_graph, latent)
    expected = trained.latent(small_graph.features, np.arange(300)).numpy()
    mapped = np.load(tmp_path / "latent.npy", mmap_mode="r")
    np.testing.assert_allclose(mapped, expected, rtol=1e-5, atol=1e-6)
    got = similar_nodes(mapped, 7, 5)
    order = np.argsort(np.linalg.norm(expected - expected[7], axis=1), kind="stable")
    assert got.nodes.tolist() == order[order != 7][:5].tolist()


def test_wrong_requests_are_refused(small_graph):
    latent = np.zeros((3, 2), np.float32)
    with pytest.raises(GraphError, match=r"node is 3, expected a position in \[0, 3\)"):
        similar_nodes(latent, 3, 1)
    with pytest.raises(ConfigError, match="count is -1, expected at least 0"):
        similar_nodes(latent, 0, -1)
    with pytest.raises(ConfigError, match=r"latent is float32 of shape \(3, 2\), expected"):
        latent_into(trained_model(small_graph), small_graph, latent)
