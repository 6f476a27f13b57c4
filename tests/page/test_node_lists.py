from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.errors import StoreError
from gpn_scale.page import node_lists
from gpn_scale.page.node_lists import (
    CONTRIBUTORS,
    FEWEST_EXPLAINED,
    MOST_NEIGHBOURS,
    NameIndex,
    contributor_lists,
    explained_count,
    neighbour_lists,
    node_name,
)


def entries(lists, row):
    return lists.index[lists.start[row] : lists.start[row + 1]].tolist()


def test_names_of_listed_nodes_come_first(small_graph):
    named = replace(small_graph, node_names=np.array([f"n{i}" for i in range(300)]))
    index = NameIndex(named, np.array([5, 2]))
    assert index.of([2, 9, 5, 9, 1]) == [1, 2, 0, 2, 3]
    assert index.names() == ("n5", "n2", "n9", "n1")
    assert node_name(small_graph, 7) == "7"


def test_neighbours_are_those_of_the_graph(small_graph):
    listed = np.arange(300)[::-1]
    lists = neighbour_lists(small_graph, listed, NameIndex(small_graph, listed))
    for row, node in enumerate(listed.tolist()):
        own = small_graph.indices[small_graph.indptr[node] : small_graph.indptr[node + 1]]
        assert [listed[i] for i in entries(lists, row)] == own[:MOST_NEIGHBOURS].tolist()


def contributors_of(trained, graph, listed):
    index = NameIndex(graph, listed)
    return contributor_lists(trained, graph, listed, index, None, None), index.names()


def test_contributors_are_those_of_the_explanation(trained, small_graph, monkeypatch):
    monkeypatch.setattr(node_lists, "_BLOCK", 7 * 300)  # several blocks
    listed = np.random.default_rng(0).permutation(300)[:40]
    lists, names = contributors_of(trained, small_graph, listed)
    explanation = trained.explain(small_graph, listed, count=CONTRIBUTORS)
    for row, node in enumerate(listed.tolist()):
        nodes = explanation.contributors.node[row]
        there = nodes >= 0
        begin, end = lists.lists.start[row : row + 2]
        assert [names[i] for i in entries(lists.lists, row)] == [str(n) for n in nodes[there]]
        own = explanation.contributors
        np.testing.assert_array_equal(lists.share[begin:end], own.share[row][there])
        np.testing.assert_array_equal(lists.leading_class[begin:end], own.leading_class[row][there])
        neighbours = small_graph.indices[small_graph.indptr[node] : small_graph.indptr[node + 1]]
        assert lists.adjacent[begin:end].tolist() == [n in neighbours for n in nodes[there]]
    assert lists.source == "Weights are those of the exact diffusion."


def test_of_many_nodes_the_strangest_and_the_surest_are_explained(
    trained, small_graph, monkeypatch
):
    monkeypatch.setattr(node_lists, "_WORK", 0)
    assert explained_count(small_graph, 300) == FEWEST_EXPLAINED
    lists, _ = contributors_of(trained, small_graph, np.arange(300))
    explained = np.flatnonzero(np.diff(lists.lists.start))
    assert explained.tolist() == [0, 1, 2, 3, 4, 5, 298, 299]
    assert "8 of the listed nodes: the 6 strangest and the 2 surest" in lists.source


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
