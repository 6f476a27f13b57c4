from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.errors import StoreError
from gpn_scale.inference.evidence import summarise_evidence
from gpn_scale.inference.evidence_push import EvidencePush
from gpn_scale.page import node_lists
from gpn_scale.page.node_lists import (
    CONTRIBUTORS,
    FEWEST_EXPLAINED,
    MOST_NEIGHBOURS,
    PUSHED_CONTRIBUTORS,
    NameIndex,
    are_joined,
    both_ends,
    contributor_lists,
    neighbour_lists,
)


def entries(lists, row):
    return lists.index[lists.start[row] : lists.start[row + 1]].tolist()


def test_names_of_listed_nodes_come_first(small_graph):
    named = replace(small_graph, node_names=np.array([f"n{i}" for i in range(300)]))
    index = NameIndex(named, np.array([5, 2]))
    assert index.of(np.array([2, 9, 5, 9, 1])).tolist() == [1, 2, 0, 2, 3]
    assert index.of(np.array([1, 0])).tolist() == [3, 4]
    assert index.of(np.empty(0, np.int64)).tolist() == []
    assert index.names() == ("n5", "n2", "n9", "n1", "n0")
    assert index.nodes.tolist() == [5, 2, 9, 1, 0]
    assert NameIndex(small_graph, np.array([7])).names() == ("7",)


def test_neighbours_are_those_of_the_graph(small_graph):
    listed = np.arange(300)[::-1]
    lists = neighbour_lists(small_graph, listed, NameIndex(small_graph, listed))
    for row, node in enumerate(listed.tolist()):
        own = small_graph.indices[small_graph.indptr[node] : small_graph.indptr[node + 1]]
        assert [listed[i] for i in entries(lists, row)] == own[:MOST_NEIGHBOURS].tolist()


def test_edges_join_nodes(small_graph):
    pairs = np.random.default_rng(0).integers(0, 300, (2, 2000))
    pairs = np.concatenate([pairs, [np.repeat(np.arange(300), 1), np.arange(300)]], axis=1)
    edges = {
        (node, int(other))
        for node in range(300)
        for other in small_graph.indices[small_graph.indptr[node] : small_graph.indptr[node + 1]]
    }
    expected = [(int(a), int(b)) in edges for a, b in pairs.T]
    assert are_joined(small_graph, *pairs).tolist() == expected


def contributors_of(trained, graph, listed):
    index = NameIndex(graph, listed)
    evidence = summarise_evidence(trained.trained, graph)
    return contributor_lists(trained, graph, listed, index, None, evidence), index.names()


def check_rows(lists, names, rows, listed, contributors):
    """The lists of some rows are those of an explanation of the nodes there."""
    for place, row in enumerate(rows):
        nodes = contributors.node[place]
        there = nodes >= 0
        begin, end = lists.lists.start[row : row + 2]
        assert [names[i] for i in entries(lists.lists, row)] == [str(n) for n in nodes[there]]
        np.testing.assert_array_equal(lists.share[begin:end], contributors.share[place][there])
        np.testing.assert_array_equal(lists.weight[begin:end], contributors.weight[place][there])


def test_contributors_are_those_of_the_explanation(trained, small_graph, monkeypatch):
    monkeypatch.setattr(node_lists, "_BLOCK", 7 * 300)  # several blocks
    listed = np.random.default_rng(0).permutation(300)[:40]
    lists, names = contributors_of(trained, small_graph, listed)
    explanation = trained.explain(small_graph, listed, count=CONTRIBUTORS)
    check_rows(lists, names, range(40), listed, explanation.contributors)
    assert not lists.is_bound.any()
    assert lists.source == "Weights are those of the exact diffusion."


def test_of_many_nodes_most_have_lower_bounds(trained, small_graph, monkeypatch):
    monkeypatch.setattr(node_lists, "_ROW_WORK", 0)
    listed = np.random.default_rng(0).permutation(300)
    lists, names = contributors_of(trained, small_graph, listed)
    exact = [0, 1, 2, 3, 4, 5, 298, 299]
    assert np.flatnonzero(~lists.is_bound).tolist() == exact == both_ends(300, 8).tolist()
    explanation = trained.explain(small_graph, listed[exact], count=CONTRIBUTORS)
    check_rows(lists, names, exact, listed, explanation.contributors)
    evidence = summarise_evidence(trained.trained, small_graph)
    push = EvidencePush(small_graph, trained.predicts_with, evidence)
    others = push.contributors(listed[6:298], count=PUSHED_CONTRIBUTORS, tolerance=0.001)
    check_rows(lists, names, range(6, 298), listed, others.contributors)
    assert (np.diff(lists.lists.start) > 0).all()
    assert "of the 6 strangest and of the 2 surest nodes are exact" in lists.source
    assert "at least 0.1% of a node's evidence" in lists.source


def test_work_is_bounded(trained, small_graph, monkeypatch):
    monkeypatch.setattr(node_lists, "_ROW_WORK", 0)
    listed = np.arange(300)
    monkeypatch.setattr(node_lists, "_PUSH_WORK", 200_000)
    rough, _ = contributors_of(trained, small_graph, listed)
    assert "at least 0.1%" not in rough.source
    assert (np.diff(rough.lists.start) > 0).all()
    monkeypatch.setattr(node_lists, "_PUSH_WORK", 0)
    few, _ = contributors_of(trained, small_graph, listed)
    explained = np.flatnonzero(np.diff(few.lists.start))
    assert len(explained) == 2 * FEWEST_EXPLAINED
    assert explained.tolist() == [*range(12), *range(296, 300)]
    assert "at least 2.0%" in few.source
    assert "16 of the listed nodes have contributors, since more would take" in few.source


def test_large_graphs_are_explained_by_stored_rows(trained, small_graph, monkeypatch):
    asked = []

    def explain(self, graph, nodes, *, rows, count, evidence):
        asked.append(len(nodes))
        return own(trained, graph, nodes, count=count, evidence=evidence)

    own = type(trained).explain
    monkeypatch.setattr(node_lists, "is_small_enough", lambda graph: False)
    monkeypatch.setattr(node_lists, "_STORED_BLOCK", 120)
    monkeypatch.setattr(type(trained), "explain", explain)
    lists, _ = contributors_of(trained, small_graph, np.arange(300))
    assert asked == [120, 120, 60]
    assert np.diff(lists.lists.start).max() == PUSHED_CONTRIBUTORS
    assert lists.source.startswith("Weights are those of the stored rows")


def test_a_graph_that_is_too_large_says_why(trained, small_graph, monkeypatch):
    def refuse(*arguments, **options):
        raise StoreError("rows are needed")

    monkeypatch.setattr(type(trained), "explain", refuse)
    lists, _ = contributors_of(trained, small_graph, np.arange(4))
    assert lists.source == "The sources of evidence are not shown: rows are needed."
    assert len(lists.share) == 0
    assert len(lists.lists.start) == 5


@pytest.mark.parametrize("count", [0, 1])
def test_few_nodes_have_lists_too(trained, small_graph, count):
    lists, names = contributors_of(trained, small_graph, np.arange(count))
    assert len(lists.lists.start) == count + 1
    assert len(names) >= count
