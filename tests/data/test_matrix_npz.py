import warnings

import numpy as np
import pytest
import scipy.sparse

from gpn_scale.data.matrix_npz import read_matrices
from gpn_scale.data.pyg import graph_from_pyg
from gpn_scale.errors import GraphError
from tests.data.raw_files import Marker, put_shchur
from tests.strategies import assert_same_graph

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)  # PyG's import
    from torch_geometric.io import read_npz as read_with_pyg


def arrays_of(adjacency, features, labels):
    arrays = {"labels": labels}
    for key, matrix in (("adj", adjacency), ("attr", features)):
        arrays |= {f"{key}_data": matrix.data, f"{key}_indices": matrix.indices}
        arrays |= {f"{key}_indptr": matrix.indptr, f"{key}_shape": np.array(matrix.shape)}
    return arrays


@pytest.mark.parametrize("density", [0.05, 0.6])
@pytest.mark.parametrize("seed", range(4))
def test_the_graph_is_that_of_pygs_reader(tmp_path, density, seed):
    rng = np.random.default_rng(seed)
    adjacency = scipy.sparse.random(40, 40, 0.05, "csr", np.float32, rng)
    features = scipy.sparse.random(40, 12, density, "csr", np.float32, rng)
    features.data = rng.integers(-1, 4, features.nnz).astype(np.float32)
    path = tmp_path / "g.npz"
    np.savez_compressed(path, **arrays_of(adjacency, features, rng.integers(0, 3, 40)))
    expected = graph_from_pyg(read_with_pyg(str(path)), "g")
    graph = read_matrices(path, "g")
    assert_same_graph(graph, expected)
    assert graph.fingerprint() == expected.fingerprint()


def test_pickled_names_are_not_read_and_pickled_matrices_refused(tmp_path):
    path, marker = tmp_path / "raw" / "g.npz", tmp_path / "marker"
    put_shchur(path)
    with np.load(path) as opened:
        arrays = dict(opened)
    pickled = np.array([Marker(marker)], dtype=object)
    np.savez(path, idx_to_node=pickled, **arrays)
    assert read_matrices(path, "g").num_nodes == 3
    for key in arrays:
        np.savez(path, **arrays | {key: pickled})
        with pytest.raises(GraphError, match=r"cannot be read as \.npz without pickle"):
            read_matrices(path, "g")
    assert not marker.exists()
    np.load(path, allow_pickle=True)[key]
    assert marker.exists()  # the pickle does what it should


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"adj_indices": np.array([0, 1, 9])}, "damaged matrix 'adj'"),
        ({"adj_indptr": np.array([0, 9, 9, 9])}, "damaged matrix 'adj'"),
        ({"attr_shape": np.array([1 << 62, 6])}, "damaged matrix 'attr'"),
        ({"attr_shape": np.array([3, 6, 1])}, "damaged matrix 'attr'"),
        ({"attr_data": np.array(["a", "b"])}, "damaged matrix 'attr'"),
        ({"adj_shape": np.array([3, 4])}, r"adjacency matrix of shape \(3, 4\), expected \(3, 3\)"),
        ({"labels": np.array([0.0, 1.0, 2.5])}, "labels .*float64"),
    ],
)
def test_matrices_that_do_not_fit_are_refused(tmp_path, change, message):
    path = tmp_path / "raw" / "g.npz"
    put_shchur(path)
    with np.load(path) as opened:
        np.savez(path.with_name("h.npz"), **dict(opened) | change)
    with pytest.raises(GraphError, match=message):
        read_matrices(path.with_name("h.npz"), "g")


def test_a_missing_array_is_named(tmp_path):
    np.savez(tmp_path / "g.npz", labels=[0])
    with pytest.raises(GraphError, match="has no array adj_data, adj_indices, adj_indptr, adj_sha"):
        read_matrices(tmp_path / "g.npz", "g")
