"""What is read of the predictions of an earlier run, and which files are refused."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import Split
from gpn_scale.errors import RunError
from gpn_scale.evaluation.earlier_predictions import EarlierPredictions
from gpn_scale.evaluation.p_values import PValues
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.evaluation.prediction_table import write_predictions


@pytest.fixture
def written(tmp_path):
    """A table as training writes it, with the graph and the prediction that it is made of."""
    graph = build_graph(
        [0],
        [1],
        labels=[0, 1, 0, -1],
        split=Split(train=[0, 1], val=[2], test=[]),
        marks={"odd": [3], "even": [1]},
        node_names=["a", "bb", "c", "d"],
    )
    rng = np.random.default_rng(1)
    probabilities = rng.dirichlet([1, 1], 4).astype(np.float32)
    prediction = Prediction(
        probabilities=probabilities,
        probabilities_no_network=probabilities,
        alpha_0=rng.random(4, np.float32) + 2,
        alpha_0_no_network=rng.random(4, np.float32) + 2,
        p=PValues(features=rng.random(4, np.float32), known=rng.random(4, np.float32)),
    )
    write_predictions(tmp_path / "p.parquet", prediction, graph)
    return tmp_path / "p.parquet", graph, prediction


def test_nodes_are_those_of_the_graph(written):
    path, graph, _ = written
    nodes = EarlierPredictions(path).nodes()
    assert nodes.labels.tolist() == graph.labels.tolist()
    assert nodes.names.tolist() == graph.node_names.tolist()
    assert nodes.marked.tolist() == [1, 3]
    for name in ("train", "val", "test"):
        assert getattr(nodes.split, name).tolist() == getattr(graph.split, name).tolist()


def test_scores_are_those_of_the_prediction(written):
    path, _, prediction = written
    read, some = EarlierPredictions(path).prediction(), np.array([3, 0])
    np.testing.assert_array_equal(read.probabilities, prediction.probabilities)
    names = ("aleatoric", "epistemic", "p_known")
    got, expected = read.scores(some, names), prediction.scores(some, names)
    for name in names:
        np.testing.assert_array_equal(got[name], expected[name])
    assert read.score("energy") is None


def test_damaged_tables_are_refused(tmp_path):
    path = tmp_path / "p.parquet"
    for content in (None, b"nonsense"):
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(RunError, match="expected the predictions that training writes"):
            EarlierPredictions(path).nodes()
    columns = {"node": [1, 0], "label": [0, 1], "split": ["train", "val"], "epistemic": [0.5, 0.5]}
    for wrong, message in (
        ({}, "not those of all nodes"),
        ({"label": ["x", "y"]}, "cannot be read"),
    ):
        pq.write_table(pa.table(columns | wrong), path)
        with pytest.raises(RunError, match=message):
            EarlierPredictions(path).nodes()
    pq.write_table(pa.table({"node": [0]}), path)
    for read in (EarlierPredictions(path).nodes, EarlierPredictions(path).prediction):
        with pytest.raises(RunError, match="cannot be read"):
            read()
