"""The user's class names on their way from a table to the file of predictions."""

import numpy as np
import pytest
from pyarrow import parquet

from gpn_scale.data.splits import leave_out_classes
from gpn_scale.data.tables import read_tables
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.evaluation.prediction_table import write_predictions


@pytest.fixture
def graph(tmp_path):
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n1,2\n")
    rows = ["0,dog,train", "1,cat,train", "2,eel,train"]
    (tmp_path / "nodes.csv").write_text("\n".join(["id,label,split", *rows]) + "\n")
    return read_tables(tmp_path, "animals")


def predicted_names(path, graph, classes) -> list[str]:
    probabilities = np.eye(graph.num_classes, dtype=np.float32)[classes]
    ones = np.ones(graph.num_nodes, np.float32)
    prediction = Prediction(
        probabilities=probabilities,
        probabilities_no_network=probabilities,
        alpha_0=ones,
        alpha_0_no_network=ones,
    )
    write_predictions(path, prediction, graph)
    table = parquet.read_table(path)
    place = table.column_names.index("predicted_class")
    assert table.column_names[place + 1] == "predicted_class_name"
    return table["predicted_class_name"].to_pylist()


def test_predictions_name_the_class(tmp_path, graph):
    assert predicted_names(tmp_path / "p.parquet", graph, [2, 0, 1]) == ["eel", "cat", "dog"]


def test_left_out_classes_lose_their_name_only(tmp_path, graph):
    known = leave_out_classes(graph, 1)
    assert known.class_names.tolist() == ["cat", "dog"]
    assert predicted_names(tmp_path / "p.parquet", known, [1, 1, 0]) == ["dog", "dog", "cat"]
