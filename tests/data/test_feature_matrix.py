import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data import feature_matrix
from gpn_scale.data.feature_matrix import is_sparse, joined_features
from gpn_scale.data.graph import CSRFeatures


@st.composite
def blocks(draw):
    rows = draw(st.integers(0, 7))
    widths = draw(st.lists(st.integers(1, 3), max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    return rows, [rng.integers(-1, 2, (rows, width)).astype(np.float32) for width in widths]


@given(blocks())
def test_dense_and_sparse_features_are_the_joined_blocks(drawn):
    rows, dense = drawn
    expected = np.concatenate([np.zeros((rows, 0), np.float32), *dense], axis=1)
    sparse_blocks = [scipy.sparse.csr_array(block) for block in dense]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feature_matrix, "_CHUNK_ROWS", 2)
        joined = joined_features(sparse_blocks, rows, sparse=False)
        np.testing.assert_array_equal(joined, expected, strict=True)
        rows_of_csr = joined_features(sparse_blocks, rows, sparse=bool(dense))
    if dense:
        assert isinstance(rows_of_csr, CSRFeatures)
        assert rows_of_csr.indptr.dtype == np.int64
        assert rows_of_csr.indices.dtype == np.int32
        np.testing.assert_array_equal(rows_of_csr.to_dense(), expected)


def test_when_features_are_sparse():
    assert not is_sparse(128, 1)
    assert is_sparse(129, 32)
    assert not is_sparse(129, 33)
