import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from gpn_scale.data.building import build_graph
from gpn_scale.errors import GraphError
from gpn_scale.evaluation import prediction as prediction_module
from gpn_scale.evaluation.node_facts import NodeFacts
from gpn_scale.evaluation.prediction_table import prediction_frame, write_predictions
from tests.evaluation.samples import prediction_for


def test_predictions_have_one_row_per_node(small_graph, tmp_path):
    names = np.array([f"node {i}" for i in range(small_graph.num_nodes)])
    graph = replace(small_graph, node_names=names)
    prediction = prediction_for(graph)
    write_predictions(tmp_path / "p.parquet", prediction, graph)
    table = pq.read_table(tmp_path / "p.parquet")
    assert table.num_rows == graph.num_nodes
    assert table["node_name"][5].as_py() == "node 5"
    np.testing.assert_array_equal(table["alpha_0"].to_numpy(), prediction.alpha_0)
    np.testing.assert_array_equal(table["epistemic"].to_numpy(), -prediction.alpha_0)
    columns = np.stack([table[f"probability_{c}"].to_numpy() for c in range(3)], axis=1)
    np.testing.assert_array_equal(columns, prediction.probabilities)
    split = np.array(table["split"].to_pylist(), object)
    np.testing.assert_array_equal(np.flatnonzero(split == "train"), graph.split.train)
    unlabelled = np.flatnonzero([label is None for label in table["label"].to_pylist()])
    np.testing.assert_array_equal(unlabelled, np.flatnonzero(graph.labels < 0))
    assert table["mark_isolated"].to_numpy().sum() == len(graph.marks["isolated"])


def test_the_types_of_columns_are_a_contract(small_graph, tmp_path):
    graph = replace(
        small_graph,
        node_names=np.array([f"node {i}" for i in range(small_graph.num_nodes)]),
        class_names=np.array(["a", "b", "c"]),
    )
    write_predictions(tmp_path / "p.parquet", prediction_for(graph), graph)
    schema = pq.read_schema(tmp_path / "p.parquet")
    floats = ["alpha_0", "alpha_0_no_network", "aleatoric", "aleatoric_entropy"]
    floats += ["aleatoric_no_network", "epistemic", "epistemic_no_network", "entropy"]
    floats += ["entropy_no_network"]
    expected = {"node": "int64", "node_name": "string", "predicted_class": "int64"}
    expected |= {"predicted_class_name": "string"} | dict.fromkeys(floats, "float")
    expected |= {"label": "int32"}
    expected |= {"split": "dictionary<values=string, indices=int32, ordered=0>"}
    expected |= {f"mark_{name}": "bool" for name in graph.marks}
    expected |= {f"probability_{c}": "float" for c in range(3)}
    assert {field.name: str(field.type) for field in schema} == expected
    assert schema.names == list(expected)


def test_groups_of_rows_make_the_same_table(small_graph, tmp_path, monkeypatch):
    graph = replace(small_graph, class_names=np.array(["a", "b", "c"]))
    prediction = prediction_for(graph)
    write_predictions(tmp_path / "whole.parquet", prediction, graph)
    monkeypatch.setattr(prediction_module, "ROW_BLOCK", 64)
    write_predictions(tmp_path / "groups.parquet", prediction, graph)
    assert pq.read_metadata(tmp_path / "whole.parquet").num_row_groups == 1
    assert pq.read_metadata(tmp_path / "groups.parquet").num_row_groups == 5
    whole, groups = (pq.read_table(tmp_path / f"{name}.parquet") for name in ("whole", "groups"))
    assert groups.schema == whole.schema
    assert groups.to_pylist() == whole.to_pylist()


def test_a_graph_without_a_split_has_predictions_too(small_graph, tmp_path):
    graph = replace(small_graph, split=None)
    write_predictions(tmp_path / "p.parquet", prediction_for(graph), graph)
    assert set(pq.read_table(tmp_path / "p.parquet")["split"].to_pylist()) == {None}


def test_large_predictions_are_worked_through_in_blocks(small_graph, tmp_path, monkeypatch):
    num_nodes, num_classes = 20_000, 50
    graph = replace(
        small_graph,
        indptr=np.zeros(num_nodes + 1, np.int64),
        indices=np.empty(0, np.int32),
        features=None,
        labels=np.zeros(num_nodes, np.int32),
        num_classes=num_classes,
        marks={},
    )
    prediction = prediction_for(graph)
    monkeypatch.setattr(prediction_module, "ROW_BLOCK", 256)
    nodes = np.arange(num_nodes)
    tracemalloc.start()
    try:
        prediction.aleatoric_entropy, prediction.scores(nodes)
        write_predictions(tmp_path / "p.parquet", prediction, graph)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < prediction.probabilities.nbytes / 2


def test_some_nodes_have_their_own_rows_and_further_columns(small_graph, tmp_path):
    nodes = np.array([7, 2, 250])
    prediction = prediction_for(small_graph).rows(nodes)
    further = {"bound": np.arange(3.0), "contributor": np.arange(6).reshape(3, 2)}
    path = tmp_path / "p.parquet"
    write_predictions(path, prediction, small_graph, nodes=nodes, further=further)
    table = pq.read_table(path)
    assert table["node"].to_pylist() == nodes.tolist()
    np.testing.assert_array_equal(table["alpha_0"].to_numpy(), prediction.alpha_0)
    assert table["bound"].to_pylist() == [0.0, 1.0, 2.0]
    assert table["contributor"].to_pylist() == [[0, 1], [2, 3], [4, 5]]


def named(graph):
    names = np.array([f"node {i}" for i in range(graph.num_nodes)])
    return replace(graph, node_names=names, class_names=np.array(["a", "b", "c"]))


def test_frame_and_file_are_the_same_table(small_graph, tmp_path):
    graph = named(small_graph)
    prediction = prediction_for(graph)
    write_predictions(tmp_path / "p.parquet", prediction, graph)
    frame = prediction_frame(prediction, NodeFacts.of(graph))
    pd.testing.assert_frame_equal(frame, pd.read_parquet(tmp_path / "p.parquet"))
    pd.testing.assert_frame_equal(prediction.to_frame(graph), frame)
    assert frame["node_name"][7] == "node 7"
    assert frame["predicted_class_name"][7] == "abc"[prediction.predicted_class[7]]


def test_the_frame_of_some_nodes(small_graph, tmp_path):
    graph, nodes = named(small_graph), np.array([9, 2, 200])
    whole = replace(prediction_for(graph), facts=NodeFacts.of(graph))
    some = whole.rows(nodes)
    write_predictions(tmp_path / "p.parquet", some, graph, nodes=nodes)
    expected = pd.read_parquet(tmp_path / "p.parquet")
    pd.testing.assert_frame_equal(some.to_frame(), expected)
    pd.testing.assert_frame_equal(some.to_frame(graph), expected)
    assert some.to_frame()["node"].tolist() == nodes.tolist()
    assert whole.rows(slice(3, 5)).to_frame()["node_name"].tolist() == ["node 3", "node 4"]


def test_a_frame_without_a_graph_has_no_labels(small_graph):
    frame = prediction_for(small_graph).to_frame()
    assert frame["node"].tolist() == list(range(300))
    assert not {"node_name", "predicted_class_name", "label", "split"} & set(frame)


def test_the_frame_of_another_graph_is_refused(small_graph):
    other = build_graph([0], [1])
    with pytest.raises(GraphError, match="has 2 nodes, which are not the 300 predicted ones"):
        prediction_for(small_graph).to_frame(other)
    some = replace(prediction_for(small_graph), facts=NodeFacts.of(small_graph)).rows(np.array([7]))
    with pytest.raises(GraphError, match="has 2 nodes, which are not the 1 predicted ones"):
        some.to_frame(other)
