"""Foreign columns against a loop over columns, for dense and sparse features."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gpn_scale.config import EncoderConfig, RunConfig, TrainConfig
from gpn_scale.data.graph import CSRFeatures
from gpn_scale.estimator import GPNClassifier
from gpn_scale.triage import occlusion
from gpn_scale.triage.occlusion import ForeignColumn, foreign_columns, training_median


def sparse(dense):
    matrix = scipy.sparse.csr_array(np.asarray(dense, np.float32))
    return CSRFeatures(
        indptr=matrix.indptr.astype(np.int64),
        indices=matrix.indices.astype(np.int32),
        values=matrix.data,
        num_columns=matrix.shape[1],
    )


@pytest.fixture(scope="module")
def trained(small_graph):
    config = RunConfig(
        model="GPN",
        encoder=EncoderConfig(hidden=8, latent=4),
        train=TrainConfig(epochs=10, warmup_steps=2),
    )
    return GPNClassifier(config, device="cpu", dtype=torch.float64).fit(small_graph).trained


def log_evidence(trained, row):
    return float(trained.evidence(row[None], np.array([0])).sum().log())


def gains_of(trained, graph, node, tried):
    """The oracle: one column, or group of columns, after the other."""
    row = graph.features[node].astype(np.float32)
    median = np.median(graph.features[graph.split.train], axis=0)
    gains = {}
    for name, columns in tried.items():
        changed = row.copy()
        changed[columns] = median[columns]
        gains[name] = log_evidence(trained, changed) - log_evidence(trained, row)
    return gains


@pytest.mark.parametrize("entries", [1, 1 << 24])
def test_columns_are_those_whose_median_brings_back_most_evidence(
    trained, small_graph, monkeypatch, entries
):
    monkeypatch.setattr(occlusion, "_ENTRIES_AT_ONCE", entries)
    nodes = small_graph.marks["foreign_features"][:4]
    tried = {f"column {column}": [column] for column in range(small_graph.num_features)}
    results = foreign_columns(trained, small_graph, nodes, count=2)
    for node, columns in zip(nodes, results, strict=True):
        gains = gains_of(trained, small_graph, node, tried)
        expected = sorted(gains, key=lambda name: -gains[name])[:2]
        expected = [name for name in expected if gains[name] >= 0.1]
        assert [column.name for column in columns] == expected
        for column in columns:
            assert column.gain == pytest.approx(gains[column.name], rel=1e-4)
            position = int(column.name.removeprefix("column "))
            assert column.value == pytest.approx(small_graph.features[node, position])


def test_one_changed_value_is_named(trained, small_graph):
    features = small_graph.features.copy()
    node = int(small_graph.split.test[0])
    features[node, 5] = 40.0
    names = np.array([f"f{column}" for column in range(8)])
    changed = replace(small_graph, features=features, feature_names=names)
    (columns,) = foreign_columns(trained, changed, np.array([node]))
    assert columns[0].name == "f5"
    assert str(columns[0]).startswith("f5 40 (usually ")


def test_features_of_one_raw_column_are_replaced_together(trained, small_graph):
    raw = ["size"] * 3 + ["kind"] * 5
    node = small_graph.marks["foreign_features"][:1]
    (columns,) = foreign_columns(trained, small_graph, node, raw_columns=raw)
    tried = {"size": [0, 1, 2], "kind": [3, 4, 5, 6, 7]}
    gains = gains_of(trained, small_graph, node[0], tried)
    assert {column.name: column.gain for column in columns} == pytest.approx(
        {name: gain for name, gain in gains.items() if gain >= 0.1}, rel=1e-4
    )
    assert {str(column) for column in columns} <= {"size", "kind"}


def test_sparse_features_are_tried_where_they_are_nonzero(trained, small_graph):
    dense = np.where(np.abs(small_graph.features) > 1.0, small_graph.features, 0.0)
    graphs = [replace(small_graph, features=f) for f in (dense.astype(np.float32), sparse(dense))]
    nodes = small_graph.marks["foreign_features"][:4]
    results = [foreign_columns(trained, graph, nodes, count=8) for graph in graphs]
    for node, of_dense, of_sparse in zip(nodes, *results, strict=True):
        nonzero = {f"column {column}" for column in np.flatnonzero(dense[node])}
        assert [c.name for c in of_sparse] == [c.name for c in of_dense if c.name in nonzero]


def test_a_node_like_all_others_has_no_foreign_column(trained, small_graph):
    median = np.median(small_graph.features[small_graph.split.train], axis=0)
    features = small_graph.features.copy()
    features[7] = median
    usual = replace(small_graph, features=features.astype(np.float32))
    assert foreign_columns(trained, usual, np.array([7])) == [()]


def test_no_nodes(trained, small_graph):
    assert foreign_columns(trained, small_graph, np.array([], np.int64)) == []


@given(
    dense=arrays(np.float32, (7, 3), elements=st.sampled_from([0.0, 0.0, 1.0, 2.0, -1.0])),
    train=st.sets(st.integers(0, 6), min_size=1).map(sorted),
)
def test_medians_of_sparse_and_dense_features_are_those_of_numpy(dense, train):
    nodes = np.array(train)
    expected = np.median(dense[nodes], axis=0)
    assert training_median(dense, nodes).tolist() == expected.tolist()
    assert training_median(sparse(dense), nodes).tolist() == expected.tolist()


def test_texts():
    assert str(ForeignColumn(name="kind", value=None, usual=None, gain=1.0)) == "kind"
    assert str(ForeignColumn(name="x", value=1 / 3, usual=0.0, gain=1.0)) == "x 0.3333 (usually 0)"
