"""Which nodes are shown as examples, and what is said about them."""

from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.errors import StoreError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.detection import known_test_nodes
from gpn_scale.page.extreme_nodes import explain_extremes, explained_nodes, extremes, node_name


def expected_nodes(ranked, graph):
    """The first four, of which one may be without neighbours."""
    chosen = []
    for node in ranked:
        isolated = [each for each in (*chosen, node) if graph.out_degree[each] == 0]
        if len(isolated) <= 1 or graph.out_degree[node]:
            chosen.append(node)
    return chosen[:4]


def test_extremes_are_the_ends_of_alpha_0(prediction, small_graph):
    candidates = np.union1d(small_graph.split.test, small_graph.marked)
    certain, uncertain = extremes(small_graph, prediction, candidates)
    ranked = candidates[np.argsort(prediction.alpha_0[candidates])].tolist()
    assert uncertain.tolist() == expected_nodes(ranked, small_graph)
    assert certain.tolist() == expected_nodes(ranked[::-1], small_graph)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_few_candidates_are_never_at_both_ends(prediction, small_graph, count):
    some = known_test_nodes(small_graph)[:count]
    certain, uncertain = extremes(small_graph, prediction, some)
    assert sorted([*certain, *uncertain]) == some.tolist()


def test_facts_of_a_node_are_those_of_the_graph_and_the_explanation(
    trained, prediction, small_graph
):
    nodes = np.array([17, 4, *small_graph.marks["unseen_class"][:1]])
    explanation = trained.explain(small_graph, nodes)
    for position, node in enumerate(explained_nodes(small_graph, prediction, explanation)):
        own = int(nodes[position])
        assert node.name == str(own)
        assert node.label == small_graph.labels[own]
        assert node.predicted == prediction.predicted_class[own]
        assert node.probability == prediction.probabilities[own].max()
        assert node.evidence == pytest.approx(prediction.alpha_0[own] - 3, rel=1e-3, abs=1e-5)
        assert ("unseen_class" in node.marks) == (position == 2)
        assert sum(each.share for each in node.contributors) + node.rest_share == pytest.approx(1)
        neighbours = small_graph.indices[small_graph.indptr[own] : small_graph.indptr[own + 1]]
        for each in node.contributors:
            assert each.itself == (each.name == node.name)
            assert each.adjacent == (int(each.name) in neighbours)


def test_both_ends_are_explained(trained, prediction, small_graph):
    some = small_graph.split.test
    shown = explain_extremes(trained, small_graph, prediction, some, None)
    certain, uncertain = extremes(small_graph, prediction, some)
    assert [int(node.name) for node in shown.certain] == certain.tolist()
    assert [int(node.name) for node in shown.uncertain] == uncertain.tolist()
    known = known_test_nodes(small_graph)
    assert shown.median_evidence == np.median(prediction.alpha_0[known] - np.float32(3))
    assert shown.source == "Weights are those of the exact diffusion."
    assert not shown.absent


def test_averages_of_logarithms_have_no_shares(trained, prediction, small_graph):
    logs = replace(trained.config.diffusion, of="log_evidence")
    classifier = GPNClassifier(replace(trained.config, diffusion=logs))
    shown = explain_extremes(classifier, small_graph, prediction, small_graph.split.test, None)
    assert "averages logarithms" in shown.absent
    assert not shown.certain


def test_nodes_that_cannot_be_explained_are_said_to_be_missing(
    trained, prediction, small_graph, monkeypatch
):
    def refused(*arguments, **options):
        raise StoreError("the graph is too large")

    monkeypatch.setattr(GPNClassifier, "explain", refused)
    shown = explain_extremes(trained, small_graph, prediction, small_graph.split.test, None)
    assert shown.absent == "The sources of evidence are not shown: the graph is too large."


def test_nodes_have_the_names_of_the_data(small_graph):
    assert node_name(small_graph, 3) == "3"
    named = replace(small_graph, node_names=np.array([f"paper {i}" for i in range(300)]))
    assert node_name(named, 3) == "paper 3"
