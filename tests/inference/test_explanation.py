"""Contributors of nodes against dense matrices, and which rows they come from."""

from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.errors import ConfigError, GraphError, StoreError
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.inference import explanation as module
from gpn_scale.inference.contributors import Contributors
from gpn_scale.inference.evidence import EvidenceSummary, summarise_evidence
from gpn_scale.inference.explanation import explain_exactly, explain_nodes
from gpn_scale.inference.some_nodes import NodesPrediction
from tests.diffusion.test_exact_rows import DIFFUSIONS
from tests.inference.models import trained_model
from tests.ppr.stored import exact_rows


@pytest.mark.parametrize("diffusion", DIFFUSIONS, ids=lambda d: f"{d.normalisation}-{d.steps}")
def test_contributors_are_the_largest_terms_of_the_sum(small_graph, diffusion):
    trained = trained_model(small_graph, diffusion=diffusion)
    nodes = np.array([0, 17, *small_graph.marks["isolated"][:1]])
    summary = summarise_evidence(trained, small_graph)
    explanation = explain_exactly(trained, small_graph, nodes, summary, 5)
    evidence = trained.evidence(small_graph.features, np.arange(300)).numpy()
    given_by = exact_rows(small_graph, diffusion)[nodes] * evidence.sum(1)
    np.testing.assert_allclose(explanation.evidence, given_by.sum(1), rtol=1e-9)
    np.testing.assert_allclose(explanation.own_evidence, evidence.sum(1)[nodes], rtol=1e-9)
    assert explanation.node.tolist() == nodes.tolist()
    by = explanation.contributors
    for place, row in enumerate(given_by):
        largest = np.sort(row)[::-1][:5] / row.sum()
        np.testing.assert_allclose(by.share[place], largest, rtol=1e-6, atol=1e-12)
        assert by.share[place].sum() <= 1 + 1e-12
        named = by.node[place][by.node[place] >= 0]
        np.testing.assert_allclose(by.share[place][: len(named)], row[named] / row.sum())
        np.testing.assert_array_equal(
            by.leading_class[place][: len(named)], evidence[named].argmax(1)
        )


def test_one_node_or_several_and_evidence_given_or_computed(small_graph):
    trained = trained_model(small_graph)
    summary = summarise_evidence(trained, small_graph)
    one = explain_nodes(trained, small_graph, 17, count=3)
    several = explain_nodes(trained, small_graph, [0, 17], count=3, evidence=summary)
    assert one.node.tolist() == [17]
    assert one.source == several.source == "exact"
    np.testing.assert_array_equal(one.contributors.node[0], several.contributors.node[1])
    np.testing.assert_allclose(one.evidence, several.evidence[1:])


def test_given_evidence_is_used_and_not_computed_again(small_graph, monkeypatch):
    monkeypatch.setattr(module, "summarise_evidence", None)
    trained = trained_model(small_graph)
    summary = EvidenceSummary(np.ones(300), np.full(300, 2))
    explanation = explain_nodes(trained, small_graph, [5], count=2, evidence=summary)
    assert explanation.own_evidence.tolist() == [1.0]
    assert explanation.contributors.leading_class.tolist() == [[2, 2]]


def predicted(nodes):
    """What stored rows could have given: alpha_0 of 7 and 5, of which 3 is the prior."""
    count = len(nodes)
    values = {"share": np.ones((count, 1)), "weight": np.ones((count, 1))}
    contributors = Contributors(
        node=nodes[:, None],
        leading_class=np.zeros((count, 1), np.int64),
        tail_share=np.zeros(count),
        **values,
    )
    thirds = np.full((count, 3), 1 / 3, np.float32)
    prediction = Prediction(
        probabilities=thirds,
        probabilities_no_network=thirds,
        alpha_0=np.full(count, 7, np.float32),
        alpha_0_no_network=np.full(count, 5, np.float32),
    )
    return NodesPrediction(
        node=nodes,
        prediction=prediction,
        alpha_0_lower=np.zeros(count),
        alpha_0_upper=np.zeros(count),
        contributors=contributors,
    )


@pytest.mark.parametrize("limit", ["MAX_EXACT_NODES", "MAX_EXACT_EDGES"])
def test_large_graphs_are_explained_by_stored_rows_or_not_at_all(small_graph, monkeypatch, limit):
    trained = trained_model(small_graph)
    monkeypatch.setattr(module, limit, 299)
    explanation = explain_nodes(trained, small_graph, [5, 8], count=1, predict_stored=predicted)
    assert explanation.source == "stored"
    assert explanation.contributors.node.tolist() == [[5], [8]]
    assert explanation.evidence.tolist() == [4.0, 4.0]
    assert explanation.own_evidence.tolist() == [2.0, 2.0]
    with pytest.raises(StoreError, match=r"has 300 nodes .* needs stored rows, and none") as caught:
        explain_nodes(trained, small_graph, [5], count=1)
    assert caught.value.arguments == ("rows",)


def test_wrong_requests_are_refused(small_graph):
    trained = trained_model(small_graph)
    with pytest.raises(ConfigError, match="count is 0, expected at least 1"):
        explain_nodes(trained, small_graph, [0], count=0)
    for node in (-1, 300):
        with pytest.raises(GraphError, match=rf"nodes holds {node}, expected ids in \[0, 300\)"):
            explain_nodes(trained, small_graph, node, count=1)
    with pytest.raises(GraphError, match="nodes must be a vector of integer node ids"):
        explain_nodes(trained, small_graph, [0.5], count=1)


def named(graph):
    names = np.array([f"n{node}" for node in range(graph.num_nodes)])
    return replace(graph, node_names=names, class_names=np.array(["red", "green", "blue"]))


def test_names_and_positions_mean_the_same_nodes(small_graph):
    trained, graph = trained_model(small_graph), named(small_graph)
    by_name = explain_nodes(trained, graph, ["n17", "n3"], count=2)
    assert by_name.node.tolist() == [17, 3]
    by_position = explain_nodes(trained, graph, [17, 3], count=2)
    np.testing.assert_array_equal(by_name.contributors.node, by_position.contributors.node)
    with pytest.raises(GraphError, match="holds 'n300', expected names"):
        explain_nodes(trained, graph, "n300", count=2)


def test_a_frame_has_a_row_per_contributor(small_graph):
    trained = trained_model(small_graph)
    alone = int(small_graph.marks["isolated"][0])
    explanation = explain_nodes(trained, named(small_graph), [17, alone], count=3)
    frame = explanation.to_frame()
    assert frame["node"].tolist() == [17, 17, 17, alone]
    assert frame["node_name"].tolist() == ["n17", "n17", "n17", f"n{alone}"]
    assert frame["contributor"].tolist() == [*explanation.contributors.node[0], alone]
    assert frame["contributor_name"].iloc[-1] == f"n{alone}"
    assert frame["share"].tolist() == [*explanation.contributors.share[0], 1.0]
    colours = np.array(["red", "green", "blue"])[frame["leading_class"]]
    assert frame["leading_class_name"].tolist() == colours.tolist()
    plain = explain_nodes(trained, small_graph, 17, count=3).to_frame()
    assert list(plain) == ["node", "contributor", "share", "weight", "leading_class"]


def test_the_text_says_where_evidence_comes_from(small_graph):
    trained = trained_model(small_graph)
    alone = int(small_graph.marks["isolated"][0])
    text = repr(explain_nodes(trained, named(small_graph), [17, alone], count=2))
    first, last = text.splitlines()
    assert first.startswith("node 'n17' has ")
    assert " pseudo-counts, " in first
    assert first.count("% from ") == 2
    assert last.startswith(f"node 'n{alone}' has ")
    assert ": 100.0% from itself (" in last
    assert repr(explain_nodes(trained, small_graph, 17, count=1)).startswith("node 17 has ")
    many = repr(explain_nodes(trained, small_graph, np.arange(12), count=1))
    assert many.splitlines()[-1] == "and 2 more nodes"
    assert repr(explain_nodes(trained, small_graph, [], count=1)) == "no nodes"
    stored = explain_nodes(trained, small_graph, [5], count=1)
    cut = replace(stored.contributors, tail_share=np.array([0.25]))
    assert repr(replace(stored, contributors=cut)).endswith("25.0% from nodes that the row has cut")
