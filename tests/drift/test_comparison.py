import csv
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpn_scale.drift.comparison import NO_GRAPHS, compare
from gpn_scale.errors import ConfigError, GraphError
from gpn_scale.evaluation.prediction_table import Origin
from tests.drift.samples import columns_of, raw_graph, scored, strange


@given(st.integers(1, 60), st.integers(0, 5))
@settings(max_examples=25)
def test_a_table_has_not_moved_against_itself(count, seed):
    table = scored(count, seed)
    drift = compare(table, table)
    assert drift.verdict.startswith("Nothing has moved beyond what chance explains")
    assert not any(part.moved or part.share_moved for part in drift.parts)
    assert (drift.nodes.moved, drift.nodes.joined, drift.nodes.left) == (0, 0, 0)
    json.dumps(drift.to_dict(), allow_nan=False)


def test_files(tmp_path):
    own = columns_of(600)
    b = scored(600, name="<november>", p_known=strange(own["p_known"], 0.2))
    graph = raw_graph(age=np.arange(600))
    drift = compare(scored(600, name="october"), b, graph_a=raw_graph(), graph_b=graph)
    paths = drift.write(tmp_path)
    assert [path.name for path in paths] == ["drift.json", "drift.csv"]
    record = json.loads(paths[0].read_text())
    assert record["verdict"] == drift.verdict
    assert (record["a"], record["b"]) == ("october", "<november>")
    assert record["parts"][0]["column"] == "p_known"
    assert record["columns"]["columns"][0]["column"] == "age"
    assert "at least 1 % of the nodes" in record["thresholds"]
    assert record["nodes"]["moved"] == drift.nodes.moved
    rows = list(csv.DictReader(paths[1].read_text().splitlines()))
    assert len(rows) == drift.nodes.moved > 0
    assert list(rows[0])[:3] == ["id", "status", "movement"]


def test_different_models_are_told():
    a, b = scored(60), scored(60)
    changed = [
        table.__class__(
            **{name: getattr(table, name) for name in table.__slots__ if name != "origin"},
            origin=Origin(model=model),
        )
        for table, model in ((a, "x"), (b, "y"))
    ]
    assert "different models" in compare(*changed).reference[-1]
    assert not any("different models" in each for each in compare(changed[0], b).reference)


def test_what_is_left_out_is_said():
    assert compare(scored(60), scored(60)).left_out == (NO_GRAPHS,)
    drift = compare(scored(60), scored(60), left_out=["The graph is gone."])
    assert drift.left_out == ("The graph is gone.",)
    few = compare(scored(5), scored(60)).left_out
    assert any("needs 20 nodes" in each for each in few)


def test_refusals():
    used = scored(60, split=["train"] * 60)
    with pytest.raises(ConfigError, match="has no nodes to compare"):
        compare(used, scored(60))
    with pytest.raises(GraphError, match="is not the graph of") as caught:
        compare(scored(60), scored(60), graph_a=raw_graph(60), graph_b=raw_graph(50))
    assert caught.value.arguments == ("graph_b",)


def test_a_part_that_b_lacks_moves_nothing():
    """As on a graph without training labels: p_known of A holds a part that says much there."""
    labels = np.full(600, 0.005, np.float32)
    drift = compare(scored(600, p_labels=labels, p_known=labels), scored(600))
    assert drift.verdict.startswith("Nothing has moved")
    assert drift.parts[0].column == "p_common"
    assert drift.nodes.moved == 0
    assert "only A has p_labels" in drift.left_out[0]
