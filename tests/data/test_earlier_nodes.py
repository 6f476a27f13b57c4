"""Nodes of an earlier version of a graph: what counts as a later one, and which split it gets."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.data.earlier_nodes import EarlierNodes
from gpn_scale.data.graph import Split
from gpn_scale.errors import GraphError

SPLIT = Split(train=[0, 1], val=[2], test=[3])


def graph_of(labels, **more):
    return build_graph([], [], num_nodes=len(labels), labels=labels, num_classes=2, **more)


EARLIER = EarlierNodes(labels=np.array([0, 1, 0, 1, -1]), split=SPLIT)


@pytest.mark.parametrize(
    ("labels", "clause"),
    [
        ([0, 1, 0, 1, -1], None),
        ([0, 1, 1, 0, 1, 0], None),  # only training nodes count
        ([0, -1, 0, 1, -1], None),  # a label may be gone
        ([0, 1, 0, 1], "it has 4 nodes, fewer than the 5 before"),
        ([0, 0, 0, 1, -1], "the label of the training node 1 is another one"),
        ([-1, -1, 0, 1, -1], "most training nodes have no label in it"),
    ],
)
def test_without_ids_the_labels_of_training_nodes_tell(labels, clause):
    assert EARLIER.difference(graph_of(labels)) == clause


@pytest.mark.parametrize(
    ("names", "clause"),
    [
        (list("abcdef"), None),
        (list("abxdef"), "the id of node 2 is 'x', it was 'c'"),
        (None, "only one of the two has ids of its own"),
    ],
)
def test_ids_tell_before_labels(names, clause):
    earlier = replace(EARLIER, names=np.array(list("abcde")))
    other_labels = [1, 0, 1, 0, 1, 0]
    assert earlier.difference(graph_of(other_labels, node_names=names)) == clause


def test_all_labelled_nodes_but_those_of_training_are_tests():
    split = EARLIER.split_of(graph_of([0, -1, 0, 1, 1, 0]))
    assert split.train.tolist() == [0]  # the label of node 1 is gone
    assert split.val.tolist() == [2]
    assert split.test.tolist() == [3, 4, 5]


labels_of = st.lists(st.integers(-1, 1), min_size=6, max_size=24)


@given(before=labels_of, after=labels_of, seed=st.integers(0, 9), data=st.data())
def test_a_grown_split_keeps_roles_and_divides_new_labels(before, after, seed, data):
    count = min(len(before), len(after))
    labels, now = np.array(before[:count]), np.array(after)
    role = np.array(data.draw(st.lists(st.integers(0, 3), min_size=count, max_size=count)))
    role[labels < 0] = 3
    subsets = {name: np.flatnonzero(role == i) for i, name in enumerate(("train", "val", "test"))}
    earlier = EarlierNodes(labels=labels, split=Split(**subsets))
    graph = graph_of(now)
    split = earlier.grown_split_of(graph, train=0.4, val=0.3, rng_seed=seed)
    had = np.flatnonzero(labels >= 0)
    for name, nodes in subsets.items():
        kept = np.intersect1d(getattr(split, name), had)
        assert kept.tolist() == nodes[now[nodes] >= 0].tolist()
    new = np.setdiff1d(np.flatnonzero(now >= 0), had)
    everyone = np.concatenate([split.train, split.val, split.test])
    assert np.isin(new, everyone).all()
    assert (now[everyone] >= 0).all()
    for label in np.unique(now[new]):
        assert (now[np.intersect1d(split.train, new)] == label).any()  # every class is learned from


def test_nodes_of_a_graph_are_its_own_earlier_version():
    graph = graph_of([0, 1, 0, 1], split=SPLIT, marks={"odd": [3]}, node_names=list("abcd"))
    nodes = EarlierNodes.of(graph)
    assert nodes.difference(graph) is None
    assert nodes.marked.tolist() == [3]
    split = nodes.grown_split_of(graph, train=0.4, val=0.3, rng_seed=1)
    assert split.train.tolist() == SPLIT.train.tolist()
    with pytest.raises(GraphError, match="has no split"):
        EarlierNodes.of(replace(graph, split=None))


def test_marked_nodes_stay_tests():
    earlier = replace(EARLIER, marked=np.array([4]))
    graph = graph_of([0, 1, 0, 1, 1], marks={"odd": [4]})
    split = earlier.grown_split_of(graph, train=0.5, val=0.4, rng_seed=1)
    assert 4 in split.test
