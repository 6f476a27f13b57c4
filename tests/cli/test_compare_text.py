import numpy as np
import pytest

from gpn_scale.cli.compare_text import PRINTED_NODES, drift_text
from gpn_scale.drift.comparison import compare
from tests.drift.samples import columns_of, raw_graph, scored, strange
from tests.page.drift_samples import moved_drift, still_drift


@pytest.fixture(scope="module")
def text():
    return drift_text(moved_drift())


def test_the_verdict_is_first_and_the_condition_last(text):
    lines = text.splitlines()
    assert lines[0].startswith("The share of nodes that look unknown rose from 4.5 % to 24.5 %")
    assert lines[1].startswith("  Review the nodes")
    assert "independent draws" in lines[-1]


def test_every_table_is_there(text):
    for title in ("p-values, A -> B:", "predicted classes, A -> B:", "columns, A -> B:"):
        assert title in text.splitlines()
    assert "p_features" in text
    assert "private" in text
    assert "new values: 'XK' (100)" in text
    assert "Mean probability 0." in text
    assert "Not answered, by the promise: 0.0 %" in text


def test_the_first_nodes_are_listed_and_others_counted(text):
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("nodes that moved most"))
    end = lines.index("", start)
    assert end - start == 2 + PRINTED_NODES + 1
    assert "more" in lines[end - 1]


def test_few_nodes_without_p_values(capsys):
    text = drift_text(still_drift())
    assert text.startswith("Nothing has moved beyond what chance explains.")
    assert "p-values, A -> B" not in text
    assert "columns, A -> B" not in text
    assert "nodes that moved most" not in text


def test_missing_values_that_moved_are_told():
    age = np.where(np.arange(600) < 200, np.nan, raw_graph().raw_columns.table()["age"].to_numpy())
    drift = compare(scored(600), scored(600), graph_a=raw_graph(), graph_b=raw_graph(age=age))
    assert "missing values 0.0 % (0.0 to 0.6) -> 33.3 %" in drift_text(drift)


def test_many_classes_and_columns_are_counted():
    names = [f"c{place}" for place in range(30)]
    table = scored(600, predicted_class=list(range(30)) * 20, predicted_class_name=names * 20)
    graph = raw_graph(**{f"x{place}": np.arange(600) + place for place in range(12)})
    text = drift_text(compare(table, table, graph_a=graph, graph_b=graph))
    assert "... and 20 more" in text
    assert "... and 8 more" in text  # of 12 + 5 columns and the network


def test_joined_nodes_are_counted():
    own = columns_of(600)
    text = drift_text(compare(scored(400), scored(600, p_known=strange(own["p_known"], 0.5))))
    assert "200 nodes joined, 0 left. Of those that joined, " in text


def test_terminals_get_no_control_characters():
    text = drift_text(moved_drift(name="a\x1b[31m", column="x\x1b[2J", node="\u202eabc"))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "a\\x1b[31m" in text
