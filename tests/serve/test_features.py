"""Columns of a node beside the usual ones: raw columns, or features."""

import numpy as np
import pytest

from gpn_scale.data.datasets import load_graph
from gpn_scale.data.splits import stratified_split
from gpn_scale.estimator import GPNClassifier
from gpn_scale.serve.features import column_kinds, feature_name, node_features
from gpn_scale.serve.served_model import ModelSource


def test_raw_columns_are_shown_as_they_were_given(model):
    table = model.graph.raw_columns.table().to_pylist()
    train = model.graph.split.train
    sizes = [float(table[node]["size"]) for node in train if table[node]["size"] is not None]
    for node in (0, 3, 60, 239):
        answer = node_features(model, node)
        by_name = {each["name"]: each for each in answer["columns"]}
        given = table[node]["size"]
        assert by_name["size"]["value"] == (None if given is None else float(given))
        assert by_name["size"]["usual"] == pytest.approx(np.median(sizes))
        assert by_name["country"]["value"] == table[node]["country"]
        assert by_name["country"]["usual"] in ("DE", "FR")
        assert answer["num_columns"] == 2


def test_what_differs_most_comes_first(model):
    table = model.graph.raw_columns.table().to_pylist()
    sizes = [-1e9 if row["size"] is None else float(row["size"]) for row in table]
    usual = node_features(model, 0)["columns"]
    typical = {each["name"]: each["usual"] for each in usual}
    node = int(np.argmax(sizes))
    first = node_features(model, node)["columns"][0]["name"]
    assert first == "size" or table[node]["country"] != typical["country"]


@pytest.fixture(scope="module")
def numbered(tmp_path_factory):
    folder = tmp_path_factory.mktemp("numbered")
    graph = load_graph("synthetic:nodes=120,classes=2,features=5")
    graph = stratified_split(graph, train=0.2, val=0.3, rng_seed=1)
    GPNClassifier(epochs=2, random_state=1).fit(graph).save(folder / "model.safetensors")
    source = ModelSource(run=folder, load_graph=lambda: graph, folder=folder / "served")
    return source.opened(graph)


def test_features_are_shown_by_number(numbered):
    graph = numbered.graph
    answer = node_features(numbered, 4)
    assert answer["num_columns"] == 5
    train = graph.features[graph.split.train]
    gaps = []
    for each in answer["columns"]:
        column = int(each["name"])
        assert each["value"] == graph.features[4, column]
        assert each["usual"] == pytest.approx(float(np.median(train[:, column])))
        gaps.append(abs(each["value"] - each["usual"]) / train[:, column].std())
    assert gaps == sorted(gaps, reverse=True)
    assert column_kinds(graph) == [(str(column), "feature") for column in range(5)]
    assert feature_name(graph, 3) == "3"
