import os
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings

from gpn_scale.data.graph import CSRFeatures, Graph
from gpn_scale.data.npz import read_npz, write_npz
from gpn_scale.errors import GraphError
from tests.strategies import assert_same_graph, graphs

DATA_DIR = os.environ.get("GPN_SCALE_DATA_DIR")
PATH = {"edge_index": np.array([[0, 1], [1, 2]])}
CSR = {
    "x_data": np.array([1.0, 2.0]),
    "x_indices": np.array([0, 3]),
    "x_indptr": np.array([0, 1, 1, 2]),
    "x_shape": np.array([3, 4]),
}
SPLIT = {"train_idx": np.array([0, 1]), "val_idx": np.array([2]), "test_idx": np.array([], int)}


def read(tmp_path: Path, **arrays: np.ndarray) -> Graph:
    path = tmp_path / "g.npz"
    np.savez(path, **(PATH | arrays))
    return read_npz(path, "g")


@settings(deadline=None)  # it waits for the disk
@given(graph=graphs())
def test_a_written_graph_is_read_back(graph: Graph):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "graph_without_suffix"
        write_npz(graph, path)
        assert_same_graph(read_npz(path, graph.name), graph)
        assert os.listdir(folder) == [path.name]


def test_edges_alone_are_made_undirected(tmp_path):
    graph = read(tmp_path)
    assert graph.indices.tolist() == [1, 0, 2, 1]
    assert not graph.directed
    assert graph.features is None
    assert graph.num_classes == 0


@pytest.mark.parametrize("flag", [np.array(True), np.array([1])])
def test_only_the_array_directed_keeps_the_direction(tmp_path, flag):
    graph = read(tmp_path, directed=flag)
    assert graph.directed
    assert graph.indices.tolist() == [1, 2]
    assert not read(tmp_path, directed=np.array(False)).directed


def test_all_optional_arrays_arrive(tmp_path):
    graph = read(
        tmp_path,
        y=np.array([0, 1, 1]),
        num_nodes=np.array(3),
        edge_weight=np.array([0.5, 2.0]),
        mark_odd=np.array([2, 1], np.int32),
        node_names=np.array([10, 20, 30]),
        class_names=np.array(["cat", "dog"]),
        **CSR,
        **SPLIT,
    )
    assert isinstance(graph.features, CSRFeatures)
    assert graph.features.to_dense().tolist() == [[1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 2]]
    assert graph.edge_weight.tolist() == [0.5, 0.5, 2.0, 2.0]
    assert graph.split.val.tolist() == [2]
    assert graph.marks["odd"].tolist() == [1, 2]
    assert graph.marks["odd"].dtype == np.int64
    assert graph.node_names.tolist() == ["10", "20", "30"]
    assert graph.class_names.tolist() == ["cat", "dog"]


def test_unknown_arrays_are_not_even_read(tmp_path):
    assert read(tmp_path, extra=np.array([{}], object)).num_nodes == 3


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"edge_index": np.zeros((3, 2), int)},
            r"edge_index has shape \(3, 2\), expected \(2, E\)",
        ),
        ({"y": np.array([{}, {}, {}], object)}, "without pickle .*Object arrays"),
        ({"node_names": np.array([0.5, 1, 2])}, "node_names are float64, expected text"),
        ({"num_nodes": np.array([3, 3])}, r"num_nodes is int64 of shape \(2,\), expected one"),
        ({"directed": np.array("yes")}, "directed is <U3 .*expected one integer"),
        ({"num_classes": np.array(-1)}, "got -1 classes, expected 0 to"),
        ({"edge_weight": np.array(["a", "b"])}, "weights are <U1, expected real numbers"),
        ({"x": np.array([["a"], ["b"], ["c"]])}, "features are <U1, expected real numbers"),
        ({"x": np.zeros(3)}, r"features have shape \(3,\), expected \(N, F\)"),
        ({"y": np.zeros((3, 1), int)}, "labels must be a vector of integers"),
        ({"train_idx": np.array([0])}, "part of a split but no val_idx, test_idx; expected all"),
        (SPLIT | {"test_idx": np.array([True])}, "test must be a vector of integer .*got bool"),
        ({"mark_odd": np.array([0.5])}, "mark 'odd' must be a vector of integer"),
        ({"mark_odd": np.array([0, 3])}, r"mark 'odd' holds node 3, expected ids in \[0, 3\)"),
        ({"mark_odd": np.array([-1, 2])}, r"mark 'odd' holds node -1, expected ids in \[0, 3\)"),
        ({"x_data": np.ones(2)}, "has x_data but no x_indices, x_indptr, x_shape; expected all"),
        (CSR | {"x_data": np.array(["a", "b"])}, "feature values are <U1, expected real numbers"),
        (CSR | {"x_indices": np.array([0.0, 3.0])}, "feature columns are float64 .*integers"),
        (CSR | {"x_shape": np.array([3])}, r"x_shape is \[3\], expected two integers \[N, F\]"),
        (
            CSR | {"x_shape": np.array([5, 4])},
            r"x_indptr has shape \(4,\), expected \(6,\) for the 5",
        ),
        (CSR | {"x_indptr": np.array([0, 2, 1, 2])}, "feature row offsets must begin with 0"),
        (CSR | {"x_indices": np.array([0, 2**32])}, r"a feature column lies outside \[0, 4\)"),
        ({"y": np.array([0, 1, 1]), "class_names": np.array(["a"])}, r"class_names has shape \(1,"),
    ],
)
def test_wrong_arrays_are_refused(tmp_path, arrays, message):
    with pytest.raises(GraphError, match=message):
        read(tmp_path, **arrays)


def test_a_file_without_edges_is_refused(tmp_path):
    np.savez(tmp_path / "g.npz", y=np.arange(3))
    with pytest.raises(GraphError, match=r"g\.npz has no array 'edge_index', expected one"):
        read_npz(tmp_path / "g.npz", "g")


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(GraphError, match=r"none\.npz is not a file, expected a graph"):
        read_npz(tmp_path / "none.npz", "g")


def test_a_file_that_may_not_be_read_is_refused(tmp_path, monkeypatch):
    def deny(*_):
        raise PermissionError(13, "Permission denied")

    (tmp_path / "g.npz").touch()
    monkeypatch.setattr(os, "open", deny)  # root may read everything
    with pytest.raises(GraphError, match=r"g\.npz cannot be opened .*denied.*: make it readable"):
        read_npz(tmp_path / "g.npz", "g")


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04 and no more"])
def test_a_file_that_is_no_archive_is_refused(tmp_path, content):
    (tmp_path / "g.npz").write_bytes(content)
    with pytest.raises(GraphError, match=r"g\.npz cannot be read as \.npz without pickle"):
        read_npz(tmp_path / "g.npz", "g")


def test_a_damaged_archive_is_refused(tmp_path):
    path = tmp_path / "g.npz"
    np.savez_compressed(path, **PATH)
    content = bytearray(path.read_bytes())
    content[60:80] = bytes(20)
    path.write_bytes(content)
    with pytest.raises(GraphError, match="cannot be read"):
        read_npz(path, "g")


def test_a_bare_array_is_refused(tmp_path):
    with (tmp_path / "g.npz").open("wb") as file:
        np.save(file, np.arange(3))
    with pytest.raises(GraphError, match="holds one bare array"):
        read_npz(tmp_path / "g.npz", "g")


@pytest.mark.skipif(not DATA_DIR, reason="needs CiteSeer.npz in GPN_SCALE_DATA_DIR")
def test_a_real_file_has_the_published_size():
    graph = read_npz(Path(DATA_DIR) / "CiteSeer.npz", "CiteSeer")
    assert (graph.num_nodes, graph.num_edges, graph.num_features) == (3327, 9104, 3703)
    assert len(graph.split.train) == 120
