"""The summary of any graph: complete, short, aligned, and free of assumptions about facts."""

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import MISSING_LABEL
from gpn_scale.data.splits import stratified_split
from gpn_scale.data.summary import GraphSummary
from tests.data.test_edge_blocks import listed_edges, walked_sizes
from tests.strategies import graphs

FACTS = {
    "edges_listed": 12_345,
    "duplicates": 300,
    "self_loops": 1,
    "unknown_ids": 20,
    "nodes_added": 7,
    "weight": "amount",
    "missing": {"age": 3, "city": 0, **{f"c{i}": 1 for i in range(9)}},
    "something_else": [1, 2],
}
COUNT = st.none() | st.integers(0, 10**9)


@given(graphs())
def test_a_summary_counts_what_is_there(graph):
    summary = GraphSummary.of(graph)
    edges, sizes = listed_edges(graph), walked_sizes(graph)
    assert (summary.nodes, summary.edges) == (graph.num_nodes, len(edges))
    assert summary.stored_edges == graph.num_edges
    assert (summary.components, summary.largest_component) == (len(sizes), sizes[0])
    touched = {node for edge in edges for node in edge}
    assert summary.isolated_nodes == graph.num_nodes - len(touched)
    assert summary.unlabelled == sum(int(label == MISSING_LABEL) for label in graph.labels)
    assert sum(each.labelled for each in summary.classes) == graph.num_nodes - summary.unlabelled


@given(
    graphs(),
    st.none()
    | st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys(("edges_listed", "duplicates", "self_loops", "unknown_ids"), COUNT),
            "weight": st.none() | st.text(max_size=3),
            "missing": st.none() | st.dictionaries(st.text(min_size=1), st.integers(0, 9)),
        },
    ),
)
def test_any_graph_and_any_facts_have_a_text_and_a_dictionary(graph, facts):
    summary = GraphSummary.of(graph, facts)
    assert json.loads(json.dumps(summary.to_dict(), allow_nan=False))["facts"] == (facts or {})
    assert len(summary.text().split("\n")) <= 30
    assert len(summary.short_text().split("\n")) >= 4


def test_degrees_are_those_of_sorted_nodes():
    star = build_graph([0] * 9, range(1, 10), num_nodes=11)
    degrees = GraphSummary.of(star).degrees
    assert (degrees.median, degrees.ninety_percent, degrees.largest) == (1, 1, 9)


def test_facts_of_an_import_are_told():
    rng = np.random.default_rng(0)
    labels = np.concatenate([np.arange(12), rng.integers(-1, 12, 88)])
    graph = build_graph(*rng.integers(0, 100, (2, 300)), edge_weight=np.ones(300), labels=labels)
    text = GraphSummary.of(graph, FACTS).text()
    assert "without direction, with weight (column 'amount')" in text
    listed = "12,345; 300 duplicates merged, 1 self-loop dropped, 20 edges to an unknown id dropped"
    assert listed in text
    assert "7 unknown ids added to the nodes" in text
    assert "age           3 missing (3 %)" in text
    assert "city" not in text
    assert "5 more columns with missing values" in text
    assert "4 more classes" in text
    assert len(text.split("\n")) <= 25


def test_a_split_stands_beside_the_labels():
    graph = build_graph([], [], labels=[0] * 10 + [1] * 5, class_names=["yes", "no"])
    assert "for training" not in GraphSummary.of(graph).text()
    split = stratified_split(graph, train=0.6, val=0.2, rng_seed=1)
    text = GraphSummary.of(split).text()
    assert "yes           10: 6 for training, 2 for validation, 2 for testing" in text
    assert "(yes: 10, no: 5)" in GraphSummary.of(split).short_text()
