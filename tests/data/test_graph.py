"""`Graph`, `Split` and sparse features: shapes, fingerprints, refusals of the constructors."""

import pickle
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from gpn_scale.data import graph as graph_module
from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import CSRFeatures, Graph, Split
from gpn_scale.data.preparation import Preparation
from gpn_scale.data.raw_columns import RawColumns
from gpn_scale.errors import GraphError


def test_repr_says_the_sizes():
    graph = build_graph([0], [1], name="tiny", features=np.ones((2, 3)), labels=[0, 1])
    assert repr(graph) == "Graph('tiny', nodes=2, edges=2, features=3, classes=2)"


def sparse_features(**changed: object) -> CSRFeatures:
    arrays = {
        "indptr": np.array([0, 2, 2, 3, 3]),
        "indices": np.array([0, 2, 1], np.int32),
        "values": np.array([1, 2, 3], np.float32),
        "num_columns": 3,
    }
    return CSRFeatures(**(arrays | changed))


def test_sparse_rows_and_dense_agree():
    features = sparse_features()
    dense_rows = [[1, 0, 2], [0, 0, 0], [0, 3, 0], [0, 0, 0]]
    assert features.shape == (4, 3)
    np.testing.assert_array_equal(features.to_dense(), dense_rows)
    for start in range(5):
        for stop in range(start, 5):
            part = features.rows(start, stop)
            np.testing.assert_array_equal(
                part.to_dense(), np.reshape(dense_rows[start:stop], (-1, 3))
            )


def full_graph(**changed: object) -> Graph:
    arguments = {
        "source": [0, 1],
        "target": [1, 2],
        "edge_weight": [1.0, 2.0],
        "features": np.arange(8).reshape(4, 2),
        "labels": [0, 1, 0, 1],
        "split": Split(train=[0, 1], val=[2], test=[3]),
        "marks": {"odd": [3]},
    }
    return build_graph(**(arguments | changed))


CHANGES = {
    "edges": {"target": [1, 3]},
    "weights": {"edge_weight": [1.0, 3.0]},
    "no weights": {"edge_weight": None},
    "direction": {"directed": True},
    "features": {"features": np.arange(8).reshape(4, 2) + 1},
    "feature type": {"features": np.arange(8, dtype=np.float16).reshape(4, 2)},
    "feature shape": {"features": np.arange(8).reshape(4, 2)[:, :1]},
    "no features": {"features": None},
    "sparse features": {"features": sparse_features()},
    "sparse offsets": {"features": sparse_features(indptr=np.array([0, 1, 2, 3, 3]))},
    "sparse columns": {"features": sparse_features(indices=np.array([0, 1, 1], np.int32))},
    "sparse values": {"features": sparse_features(values=np.array([1, 2, 4], np.float32))},
    "sparse width": {"features": sparse_features(num_columns=4)},
    "labels": {"labels": [0, 1, 1, 1]},
    "classes": {"split": None, "num_classes": 3},
    "no split": {"split": None},
    "train": {"split": Split(train=[0, 1, 2], val=[], test=[3])},
    "val and test": {"split": Split(train=[0, 1], val=[3], test=[2])},
    "marks": {"marks": {"odd": [2]}},
    "mark names": {"marks": {"strange": [3]}},
    "no marks": {"marks": {}},
}


def test_every_array_changes_the_fingerprint():
    prints = [full_graph().fingerprint()]
    prints += [full_graph(**changed).fingerprint() for changed in CHANGES.values()]
    assert len(set(prints)) == len(prints)


@pytest.mark.parametrize("what", CHANGES)
def test_only_edges_weights_and_direction_change_the_structure_fingerprint(what):
    changed = full_graph(**CHANGES[what]).structure_fingerprint()
    structural = {"edges", "weights", "no weights", "direction"}
    assert (changed != full_graph().structure_fingerprint()) == (what in structural)


def test_fingerprints_are_computed_once_per_graph(monkeypatch):
    graph, hashed = full_graph(), []

    def counting(arrays):
        hashed.append(arrays)
        return str(len(hashed))

    monkeypatch.setattr(graph_module, "array_hash", counting)
    assert [graph.fingerprint(), graph.fingerprint()] == ["1", "1"]
    assert [graph.structure_fingerprint(), graph.structure_fingerprint()] == ["2", "2"]
    assert replace(graph, name="other").fingerprint() == "3", "a copy may hold other arrays"
    assert graph.fingerprint() == "1"


def test_a_graph_can_be_sent_to_another_process():
    graph = full_graph()
    fingerprint = graph.fingerprint()
    copy = pickle.loads(pickle.dumps(graph))
    assert copy.fingerprint() == replace(copy).fingerprint() == fingerprint
    assert repr(copy) == repr(graph)


def test_direction_alone_changes_both_fingerprints():
    graph = full_graph()
    directed = replace(graph, directed=True)
    assert directed.fingerprint() != graph.fingerprint()
    assert directed.structure_fingerprint() != graph.structure_fingerprint()


def test_names_do_not_change_the_fingerprint():
    named = full_graph(name="other", node_names=["a", "b", "c", "d"], class_names=["x", "y"])
    assert named.class_names.tolist() == ["x", "y"]
    assert named.fingerprint() == full_graph().fingerprint()


def test_large_arrays_are_hashed_to_the_end():
    labels = np.zeros((1 << 22) + 5, np.int32)  # more than one block of the hash
    first = build_graph([], [], labels=labels, num_classes=2)
    labels[-1] = 1
    last_differs = build_graph([], [], labels=labels, num_classes=2)
    assert first.fingerprint() != last_differs.fingerprint()


def test_marked_is_the_sorted_union():
    graph = full_graph(marks={"odd": [3, 1], "even": [0, 3]})
    np.testing.assert_array_equal(graph.marked, [0, 1, 3])


def test_split_sorts_its_subsets():
    split = Split(train=[3, 1], val=[], test=[0])
    np.testing.assert_array_equal(split.train, [1, 3])
    assert split.val.dtype == np.int64


def test_with_split_leaves_the_graph_it_came_from_alone():
    graph = full_graph(split=None)
    assert graph.with_split(Split(train=[0, 1], val=[], test=[])).split is not None
    assert graph.split is None


def test_overlapping_parts_are_refused():
    with pytest.raises(GraphError, match="node 2 is in more than one of train, val and test"):
        Split(train=[1, 2], val=[2], test=[3])


@pytest.mark.parametrize("ids", [[True, False, True], [0.7], [[0, 1]], [[0], [1, 2]]], ids=repr)
def test_a_part_that_is_no_vector_of_ids_is_refused(ids):
    with pytest.raises(GraphError, match=r"split: val (must be a vector of integer|cannot become)"):
        Split(train=[], val=ids, test=[])


def test_wrong_index_types_are_refused():
    graph = full_graph()
    with pytest.raises(GraphError, match="must be int64 and int32, got int64 and int64"):
        replace(graph, indices=graph.indices.astype(np.int64))


def test_features_without_columns_are_refused_by_the_constructor_too():
    with pytest.raises(GraphError, match=r"features has shape \(4,\), expected \(4, 4\)"):
        replace(full_graph(), features=np.ones(4, np.float32))


def test_edge_weights_of_another_length_are_refused():
    with pytest.raises(GraphError, match=r"edge_weight has shape \(1,\), expected \(4,\)"):
        replace(full_graph(), edge_weight=np.ones(1, np.float32))


def test_a_preparation_and_raw_columns_must_fit_the_graph():
    table = pa.table({"age": [31, 29]})
    preparation, columns = Preparation.fit(table), RawColumns(table)
    pair = build_graph([0], [1], features=[[1.0], [2.0]])
    plain = pair.fingerprint()
    kept = replace(pair, preparation=preparation, raw_columns=columns)
    assert kept.fingerprint() == plain
    assert replace(kept, name="other").raw_columns is columns
    with pytest.raises(GraphError, match="has 0 features, but its preparation makes 1; expected"):
        replace(kept, features=None)
    with pytest.raises(GraphError, match="the raw columns have 2 rows, expected one for each of"):
        replace(build_graph([0, 1], [1, 2]), raw_columns=columns)
