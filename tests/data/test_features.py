"""`scale_features` against the same division done by hand on dense arrays."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gpn_scale.data.features import scale_features, take_rows
from gpn_scale.data.graph import CSRFeatures
from gpn_scale.errors import ConfigError, GraphError
from tests.strategies import graphs

WORDS = np.array([[1, 3, 0, 0], [0, 0, 0, 0], [2, 2, 2, 2]], np.float32)
EXPECTED = {
    "row_sum": np.array([[0.25, 0.75, 0, 0], [0, 0, 0, 0], [0.25] * 4], np.float32),
    "binary_row_sum": np.array([[0.5, 0.5, 0, 0], [0, 0, 0, 0], [0.25] * 4], np.float32),
    "none": WORDS,
}


def sparse(dense: np.ndarray) -> CSRFeatures:
    matrix = scipy.sparse.csr_array(dense)
    return CSRFeatures(
        indptr=matrix.indptr.astype(np.int64),
        indices=matrix.indices.astype(np.int32),
        values=matrix.data.astype(np.float32),
        num_columns=dense.shape[1],
    )


@pytest.mark.parametrize("scaling", EXPECTED)
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_dense_rows_are_divided_by_their_sum(scaling, dtype):
    words = WORDS.astype(dtype)
    scaled = scale_features(words, scaling)
    np.testing.assert_array_equal(scaled, EXPECTED[scaling])
    np.testing.assert_array_equal(words, WORDS)
    assert scaled.dtype == (dtype if scaling == "none" else np.float32)


@pytest.mark.parametrize("scaling", EXPECTED)
def test_sparse_rows_stay_sparse(scaling):
    words = sparse(WORDS)
    scaled = scale_features(words, scaling)
    assert isinstance(scaled, CSRFeatures)
    assert scaled.values.dtype == np.float32
    np.testing.assert_array_equal(scaled.to_dense(), EXPECTED[scaling])
    np.testing.assert_array_equal(words.to_dense(), WORDS)


def test_a_row_slice_of_sparse_features_scales_like_the_whole():
    whole = scale_features(sparse(WORDS), "row_sum")
    part = scale_features(sparse(WORDS).rows(1, 3), "row_sum")
    np.testing.assert_array_equal(part.to_dense(), whole.to_dense()[1:])


def test_a_stored_zero_is_not_a_word():
    stored = CSRFeatures(
        indptr=np.array([0, 2]),
        indices=np.array([0, 1], np.int32),
        values=np.array([0, 5], np.float32),
        num_columns=2,
    )
    np.testing.assert_array_equal(scale_features(stored, "binary_row_sum").to_dense(), [[0, 1]])


@given(arrays(np.float32, (5, 4), elements=st.integers(0, 1000).map(float)))
def test_rows_sum_to_one_or_stay_zero_and_layouts_agree(words):
    scaled = scale_features(words, "row_sum")
    np.testing.assert_allclose(scaled.sum(axis=1), words.any(axis=1), rtol=1e-6)
    np.testing.assert_array_equal(scale_features(sparse(words), "row_sum").to_dense(), scaled)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (3, 0)])
@pytest.mark.parametrize("scaling", EXPECTED)
def test_small_shapes(shape, scaling):
    empty = np.zeros(shape, np.float32)
    assert scale_features(empty, scaling).shape == shape
    assert scale_features(sparse(empty), scaling).shape == shape


def test_memory_maps_stay_lazy_without_scaling():
    assert scale_features(WORDS, "none") is WORDS


def test_a_read_only_array_can_be_scaled():
    words = WORDS.copy()
    words.flags.writeable = False
    np.testing.assert_array_equal(scale_features(words, "row_sum"), EXPECTED["row_sum"])


@pytest.mark.parametrize("scaling", ["row_sum", "binary_row_sum"])
@pytest.mark.parametrize("layout", [np.asarray, sparse])
def test_negative_entries_are_refused(scaling, layout):
    with pytest.raises(GraphError, match=r"an entry is -3\.0, expected word .*scaling 'none'"):
        scale_features(layout(np.array([[1, -3]], np.float32)), scaling)


def test_unknown_scaling_is_refused():
    with pytest.raises(ConfigError, match="scaling is 'l2', expected none or row_sum or bin"):
        scale_features(WORDS, "l2")


@given(graphs().filter(lambda graph: graph.features is not None), st.data())
def test_taken_rows_are_those_of_the_nodes(graph, data):
    node = st.integers(0, graph.num_nodes - 1)
    nodes = np.array(data.draw(st.lists(node)), np.int64)
    rows = take_rows(graph.features, nodes)
    assert rows.shape == (len(nodes), graph.num_features)
    np.testing.assert_array_equal(dense(rows), dense(graph.features)[nodes], strict=True)


def dense(features):
    return features.to_dense() if isinstance(features, CSRFeatures) else features
