"""New nodes get the numbers of the command line; changes are those of the changed graph."""

import csv

import numpy as np
import pytest

from gpn_scale.cli.predict import main as predict
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.splits import stratified_split
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.known_calibration import ELSEWHERE_CONDITION
from gpn_scale.serve.failures import RequestFailure
from gpn_scale.serve.new_nodes import Change, Edge, changed_node, predict_new_nodes
from gpn_scale.serve.served_model import ModelSource

COLUMNS = [{"size": 4.5, "country": "FR"}, {"size": None, "country": "IT"}]
EDGES = [Edge("x", "..", None), Edge("acc-020", "x", None), Edge("y", "x", None)]


def change(**more):
    return Change(**{"columns": {}, "add_edges": [], "remove_edges": []} | more)


def test_new_nodes_have_the_numbers_of_the_command(model, served_run, tmp_path):
    nodes, edges, out = (tmp_path / name for name in ("n.csv", "e.csv", "out.csv"))
    nodes.write_text("ref,size,country\nx,4.5,FR\ny,,IT\n")
    edges.write_text("source,target\nx,..\nacc-020,x\ny,x\n")
    tables = ["--new-nodes", str(nodes), "--new-edges", str(edges), "--id", "ref"]
    assert predict(["--run", str(served_run), *tables, "--out", str(out), "--threads", "1"]) == 0
    with out.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    answer = predict_new_nodes(model, ["x", "y"], COLUMNS, EDGES)
    assert [each["degree"] for each in answer["predictions"]] == [3, 1]
    assert answer["condition"] == ELSEWHERE_CONDITION
    assert any("'IT'" in note for note in answer["notes"])
    for row, own in zip(rows, answer["predictions"], strict=True):
        assert own["id"] == row["node_name"]
        assert own["predicted_class"] == row["predicted_class_name"]
        assert own["reason"] == row["reason"]
        for name in ("alpha_0", "p_known", "p_features", "energy", "alpha_0_lower"):
            assert own[name] == pytest.approx(float(row[name]), rel=1e-4), name
        assert own["abstain"] is None
        assert "label" not in own


def test_a_change_of_nothing_changes_nothing(model):
    answer = changed_node(model, "acc-050", change())
    for name in ("alpha_0", "p_known", "probability", "p_features"):
        assert answer["after"][name] == pytest.approx(answer["before"][name], rel=1e-3), name
    assert answer["after"]["degree"] == answer["before"]["degree"]
    assert answer["after"]["label"] == answer["before"]["label"]


def test_a_change_of_edges_counts(model):
    node = model.ids.position("acc-050")
    row = model.graph.indices[model.graph.indptr[node] : model.graph.indptr[node + 1]]
    other = next(v for v in range(10, 200) if v not in row and v != node)
    wanted = change(
        add_edges=[(model.ids.text(other), None)], remove_edges=[model.ids.text(row[0])]
    )
    answer = changed_node(model, "acc-050", wanted)
    assert answer["after"]["degree"] == answer["before"]["degree"]
    assert answer["after"]["alpha_0"] != answer["before"]["alpha_0"]


@pytest.mark.parametrize(
    ("nodes", "columns", "edges", "sentence"),
    [
        (["x"], [{"sise": 1.0}], [], "'sise'.* similar names are 'size'"),
        (["x"], [{"size": 1.0}], [], r"nodes 'country': add the column"),
        (["x"], [{"size": "tall", "country": "DE"}], [], r"nodes\[0\] 'size' is 'tall'"),
        (["acc-011"], COLUMNS[:1], [], "the graph has a node of this id"),
        (["x", "x"], COLUMNS, [], "x"),
        (["x"], COLUMNS[:1], [Edge("x", "nobody", None)], "there is no node 'nobody'"),
    ],
)
def test_new_nodes_that_do_not_fit_are_refused(model, nodes, columns, edges, sentence):
    with pytest.raises(RequestFailure, match=sentence):
        predict_new_nodes(model, nodes, columns, edges)


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ({"columns": {"nothing": 1}}, "columns holds 'nothing'"),
        ({"add_edges": [("acc-050", None)]}, "itself or a neighbour"),
        ({"remove_edges": ["acc-050"]}, "'acc-050', which is not a neighbour"),
        ({"add_edges": [("acc-011", 2.0)]}, "edges of the graph have none"),
    ],
)
def test_changes_that_do_not_fit_are_refused(model, wanted, sentence):
    with pytest.raises(RequestFailure, match=sentence):
        changed_node(model, "acc-050", change(**wanted))


def test_values_of_several_kinds_may_stand_in_one_column(model):
    columns = [{"size": 1, "country": "DE"}, {"size": "2.5", "country": None}]
    answer = predict_new_nodes(model, ["x", "y"], columns, [])
    assert len(answer["predictions"]) == 2


@pytest.fixture(scope="module", params=["dense", "sparse"])
def numbered(request, tmp_path_factory):
    """A model whose nodes and features have no names."""
    folder = tmp_path_factory.mktemp("numbered")
    graph = load_graph("synthetic:nodes=120,classes=2,features=5")
    if request.param == "sparse":
        from dataclasses import replace

        from gpn_scale.data.graph import CSRFeatures

        dense = np.maximum(graph.features, 0)
        rows, columns = np.nonzero(dense)
        indptr = np.searchsorted(rows, np.arange(121)).astype(np.int64)
        values = {"values": dense[rows, columns].astype(np.float32), "num_columns": 5}
        sparse = CSRFeatures(indptr=indptr, indices=columns.astype(np.int32), **values)
        graph = replace(graph, features=sparse)
    graph = stratified_split(graph, train=0.2, val=0.3, rng_seed=1)
    GPNClassifier(epochs=3, random_state=1).fit(graph).save(folder / "model.safetensors")
    source = ModelSource(run=folder, load_graph=lambda: graph, folder=folder / "served")
    return source.opened(graph)


def test_features_without_names_have_numbers(numbered):
    columns, edges = [{"0": 1.5, "4": 2}, {}], [Edge("x", "7", None), Edge("y", "x", None)]
    answer = predict_new_nodes(numbered, ["x", "y"], columns, edges)
    rows = np.array([[1.5, 0, 0, 0, 2], [0, 0, 0, 0, 0]], np.float32)
    expected = numbered.classifier.predict_new(numbered.graph, rows, [[7], [120]])
    for own, alpha_0 in zip(answer["predictions"], expected.prediction.alpha_0, strict=True):
        assert own["alpha_0"] == pytest.approx(alpha_0, rel=1e-4)
    changed = changed_node(numbered, "7", change(columns={"0": 9.0}))
    assert changed["after"]["alpha_0_no_network"] != changed["before"]["alpha_0_no_network"]


@pytest.mark.parametrize("columns", [{"5": 1.0}, {"-1": 1.0}, {"0": "x"}, {"0": 1e300}])
def test_features_of_wrong_width_or_value_are_refused(numbered, columns):
    with pytest.raises(RequestFailure, match=r"columns holds|expected a finite number"):
        predict_new_nodes(numbered, ["x"], [columns], [])
    with pytest.raises(RequestFailure, match=r"columns holds|expected a finite number"):
        changed_node(numbered, "7", change(columns=columns))
