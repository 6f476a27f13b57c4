from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import CSRFeatures
from gpn_scale.drift import feature_drift
from gpn_scale.drift.feature_drift import KEPT, feature_drifts, present_counts


def dense_graph(values, names=None):
    graph = build_graph([0], [1], num_nodes=len(values), features=values.astype(np.float32))
    return graph if names is None else replace(graph, feature_names=np.array(names))


def sparse_graph(values, names=None):
    matrix = scipy.sparse.csr_array(values.astype(np.float32))
    features = CSRFeatures(
        indptr=matrix.indptr.astype(np.int64),
        indices=matrix.indices.astype(np.int32),
        values=matrix.data,
        num_columns=values.shape[1],
    )
    graph = build_graph([0], [1], num_nodes=len(values))
    return replace(
        graph, features=features, feature_names=None if names is None else np.array(names)
    )


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_counts_are_those_of_the_rows(seed, sparse):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 2, (9, 4))
    graph = (sparse_graph if sparse else dense_graph)(values)
    nodes = np.flatnonzero(rng.random(9) < 0.5)
    assert present_counts(graph, nodes).tolist() == (values[nodes] != 0).sum(0).tolist()


def test_blocks_make_the_same_counts_and_drifts(monkeypatch):
    rng = np.random.default_rng(1)
    values = rng.random((300, 7)) < 0.4
    graph, every = sparse_graph(values), np.arange(300)
    other = dense_graph(rng.normal(size=(300, 7)))
    whole = present_counts(graph, every), feature_drifts(other, every, dense_graph(values), every)
    monkeypatch.setattr(feature_drift, "_BLOCK_ROWS", 11)
    monkeypatch.setattr(feature_drift, "_BLOCK_BYTES", 1)
    assert present_counts(graph, every).tolist() == whole[0].tolist()
    parts = feature_drifts(other, every, dense_graph(values), every)
    assert [each.to_dict() for each in parts] == [each.to_dict() for each in whole[1]]


@pytest.mark.parametrize("graph_of", [dense_graph, sparse_graph])
def test_a_planted_feature_is_first(graph_of):
    rng = np.random.default_rng(2)
    a, b = (rng.random((500, 200)) < 0.1 for _ in range(2))
    b[:, 123] = rng.random(500) < 0.3
    names = [f"word {place}" for place in range(200)]
    every = np.arange(500)
    drifts = feature_drifts(graph_of(a, names), every, graph_of(b, names), every)
    assert drifts[0].name == "word 123"
    assert [each.moved for each in drifts] == [True] + [False] * (KEPT - 1)


def test_features_are_matched_by_name():
    rng = np.random.default_rng(3)
    values = rng.normal(size=(100, 3))
    a, b = dense_graph(values, ["x", "y", "z"]), dense_graph(values[:, [2, 0]], ["z", "x"])
    every = np.arange(100)
    drifts = feature_drifts(a, every, b, every)
    assert {each.name: each.movement.distance for each in drifts} == {"x": 0.0, "z": 0.0}
    assert feature_drifts(a, every, dense_graph(values, ["p", "q", "r"]), every) is None


def test_features_without_names_have_numbers():
    rng = np.random.default_rng(3)
    values, every = rng.normal(size=(100, 2)), np.arange(100)
    assert {each.name for each in feature_drifts(*[dense_graph(values), every] * 2)} == {
        "feature 0",
        "feature 1",
    }
    named = dense_graph(values, ["x", "y"])
    drifts = feature_drifts(dense_graph(values), every, named, every)
    assert {each.name for each in drifts} == {"x", "y"}
    assert feature_drifts(dense_graph(values), every, dense_graph(values[:, :1]), every) is None
    assert feature_drifts(build_graph([0], [1]), every[:2], dense_graph(values), every) is None


def test_of_many_nodes_a_sample_is_compared(monkeypatch):
    monkeypatch.setattr(feature_drift, "SAMPLE", 50)
    values = np.random.default_rng(3).normal(size=(400, 1))
    a, b, every = dense_graph(values), dense_graph(values + 3), np.arange(400)
    assert feature_drifts(a, every, b, every)[0].moved
