"""Splits: fractions of each class, the place of marked nodes, classes left out, the prior."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.config import DataConfig, RunConfig, SplitConfig
from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import MISSING_LABEL, Graph, Split
from gpn_scale.data.splits import (
    CLASS_SETS,
    class_prior,
    leave_out_classes,
    left_out_class_set,
    num_training_nodes,
    prepare_graph,
    stratified_split,
)
from gpn_scale.errors import ConfigError, GraphError


def labelled_graph(labels, marks=None) -> Graph:
    return build_graph([], [], labels=np.asarray(labels), marks=marks)


def subsets(graph: Graph) -> list[np.ndarray]:
    return [graph.split.train, graph.split.val, graph.split.test]


LABELS = np.repeat([0, 1, 2, 3, MISSING_LABEL], [100, 60, 40, 7, 13])


def test_fractions_hold_in_every_class():
    graph = stratified_split(labelled_graph(LABELS), rng_seed=1)
    counts = [np.bincount(graph.labels[ids], minlength=4).tolist() for ids in subsets(graph)]
    assert counts == [[5, 3, 2, 1], [15, 9, 6, 1], [80, 48, 32, 5]]


@given(st.data())
def test_a_split_covers_labelled_nodes_and_keeps_marked_ones_for_test(data):
    extra = data.draw(st.lists(st.integers(MISSING_LABEL, 2), max_size=40))
    labels = np.array([0, 1, 2, *extra])
    marked = data.draw(st.sets(st.integers(3, 2 + len(extra)), max_size=8)) if extra else set()
    marks = {"odd": np.array(sorted(marked), dtype=np.int64)}
    train = data.draw(st.floats(0.01, 0.6))
    val = data.draw(st.floats(0.01, 0.39))
    rng_seed = data.draw(st.integers(0, 9))
    graph = stratified_split(labelled_graph(labels, marks), train=train, val=val, rng_seed=rng_seed)
    together = np.sort(np.concatenate(subsets(graph)))
    np.testing.assert_array_equal(together, np.flatnonzero(labels != MISSING_LABEL))
    assert not np.isin(np.concatenate(subsets(graph)[:2]), graph.marked).any()
    free = np.setdiff1d(together, graph.marked)
    for label in range(3):
        in_train, in_val = ((labels[ids] == label).sum() for ids in subsets(graph)[:2])
        size = (labels[free] == label).sum()
        assert in_train == max(1, round(train * size))
        assert in_val >= (size - in_train >= 2)


def test_the_seed_decides():
    graph = labelled_graph(LABELS)
    first, again, other = (stratified_split(graph, rng_seed=s).fingerprint() for s in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize(
    "sizes_and_counts",
    [([1, 1], [2, 0, 0]), ([2, 2], [2, 0, 2]), ([3, 3], [2, 2, 2])],
    ids=repr,
)
def test_tiny_classes_train_first_then_validate_if_two_are_left(sizes_and_counts):
    sizes, expected = sizes_and_counts
    graph = stratified_split(labelled_graph(np.repeat([0, 1], sizes)), rng_seed=0)
    assert [len(ids) for ids in subsets(graph)] == expected


@pytest.mark.parametrize(
    "fractions",
    [{"train": 0.0}, {"train": 1.0}, {"val": 0.0}, {"val": 0.95}, {"train": float("nan")}],
    ids=repr,
)
def test_fractions_out_of_range_are_refused(fractions):
    with pytest.raises(ConfigError, match=r"fractions in \(0, 1\) with a sum below 1, got train="):
        stratified_split(labelled_graph(LABELS), rng_seed=1, **fractions)


def test_a_negative_seed_is_refused():
    with pytest.raises(ConfigError, match="rng_seed must be at least 0, got -1"):
        stratified_split(labelled_graph(LABELS), rng_seed=-1)


def test_a_class_of_marked_nodes_only_is_refused():
    graph = labelled_graph([0, 0, 1], marks={"odd": [2]})
    with pytest.raises(GraphError, match="class 1 has no node in the training set"):
        stratified_split(graph, rng_seed=1)


def test_a_graph_without_classes_is_refused():
    with pytest.raises(GraphError, match="has no classes, expected labels to split by"):
        stratified_split(build_graph([0], [1]), rng_seed=1)


def test_left_out_classes_leave_labels_and_split_and_their_test_nodes_are_marked():
    graph = stratified_split(labelled_graph(LABELS, marks={"odd": [0, 165, 215]}), rng_seed=1)
    before = graph.fingerprint()
    known = leave_out_classes(graph, 2)
    assert known.num_classes == 2
    assert known.num_nodes == graph.num_nodes
    np.testing.assert_array_equal(known.labels, np.where(LABELS < 2, LABELS, MISSING_LABEL))
    for old, new in zip(subsets(graph), subsets(known), strict=True):
        np.testing.assert_array_equal(new, old[(LABELS[old] == 0) | (LABELS[old] == 1)])
    test = graph.split.test
    np.testing.assert_array_equal(known.marks["left_out_classes"], test[LABELS[test] >= 2])
    np.testing.assert_array_equal(known.marks["odd"], [0, 165, 215])
    assert graph.fingerprint() == before


def test_the_names_of_known_classes_stay():
    named = replace(labelled_graph(LABELS), class_names=np.array(["a", "b", "c", "d"]))
    known = leave_out_classes(stratified_split(named, rng_seed=1), 2)
    assert known.class_names.tolist() == ["a", "b"]


def test_leaving_out_one_class_twice_is_leaving_out_two():
    graph = stratified_split(labelled_graph(LABELS), rng_seed=1)
    twice = leave_out_classes(leave_out_classes(graph, 1), 1)
    assert twice.fingerprint() == leave_out_classes(graph, 2).fingerprint()


@pytest.mark.parametrize("count", [-1, 0, 3, 4, 9])
def test_a_wrong_count_of_left_out_classes_is_refused(count):
    graph = stratified_split(labelled_graph(LABELS), rng_seed=1)
    with pytest.raises(GraphError, match=f"cannot leave out {count} of 4 classes, expected at"):
        leave_out_classes(graph, count)


@given(st.integers(3, 60), st.data())
def test_class_sets_differ_and_reach_classes_all_over_the_graph(num_classes, data):
    count = data.draw(st.integers(1, num_classes - 2))
    num_sets = min(CLASS_SETS, num_classes)
    sets = [left_out_class_set(num_classes, count, number) for number in range(num_sets)]
    assert sets[0].tolist() == list(range(num_classes - count, num_classes))
    assert len({frozenset(each.tolist()) for each in sets}) == num_sets
    for each in sets:
        assert len(each) == count
        assert set(np.diff(each) % num_classes) <= {1}
    starts = np.sort([each[0] for each in sets])
    gaps = np.diff(np.append(starts, starts[0] + num_classes))
    assert gaps.max() - gaps.min() <= 1


def test_classes_between_others_are_hidden_and_the_rest_is_numbered_anew():
    named = replace(labelled_graph(LABELS), class_names=np.array(["a", "b", "c", "d"]))
    graph = stratified_split(named, rng_seed=1)
    known = leave_out_classes(graph, 2, 3)  # classes 1 and 2
    expected = np.select([LABELS == 0, LABELS == 3], [0, 1], MISSING_LABEL)
    np.testing.assert_array_equal(known.labels, expected)
    assert known.class_names.tolist() == ["a", "d"]
    for old, new in zip(subsets(graph), subsets(known), strict=True):
        np.testing.assert_array_equal(new, old[(LABELS[old] == 0) | (LABELS[old] == 3)])
    test = graph.split.test
    hidden = (LABELS[test] == 1) | (LABELS[test] == 2)
    np.testing.assert_array_equal(known.marks["left_out_classes"], test[hidden])


@pytest.mark.parametrize("class_set", [-1, 4, 5])
def test_a_class_set_that_the_graph_does_not_have_is_refused(class_set):
    graph = stratified_split(labelled_graph(LABELS), rng_seed=1)
    with pytest.raises(GraphError, match=f"got class set {class_set} .* expected 0 to 3") as caught:
        leave_out_classes(graph, 1, class_set)
    assert caught.value.arguments == ("data.left_out_set", "class_sets")


@pytest.mark.parametrize("needs_split", [class_prior, lambda graph: leave_out_classes(graph, 1)])
def test_a_missing_split_is_refused(needs_split):
    with pytest.raises(GraphError, match="has no split, expected one: call `stratified_split`"):
        needs_split(labelled_graph(LABELS))


@pytest.mark.parametrize("left_out", [0, 1, 2])
@pytest.mark.parametrize("kind", ["stratified", "public"])
@given(st.data())
def test_training_nodes_are_counted_without_preparing_the_graph(kind, left_out, data):
    sizes = data.draw(st.lists(st.integers(1, 30), min_size=4, max_size=7))
    marked = {"odd": [sum(sizes)]}
    graph = labelled_graph([*np.repeat(np.arange(len(sizes)), sizes), 0, MISSING_LABEL], marked)
    if kind == "public":
        graph = stratified_split(graph, train=0.4, rng_seed=3)
    config = RunConfig(
        data=DataConfig(left_out_classes=left_out, left_out_set=data.draw(st.integers(0, 3))),
        split=SplitConfig(kind=kind, train=data.draw(st.floats(0.01, 0.8))),
    )
    assert num_training_nodes(graph, config) == len(prepare_graph(graph, config).split.train)


def test_training_nodes_are_counted_where_none_are_left():
    nothing = RunConfig(data=DataConfig(left_out_classes=900, left_out_set=7))
    assert num_training_nodes(labelled_graph(LABELS), nothing) == 0
    assert num_training_nodes(labelled_graph([MISSING_LABEL]), nothing) == 0


def test_class_prior_is_the_frequency_in_training():
    graph = labelled_graph([0, 0, 0, 1, 1, 1])
    graph = graph.with_split(Split(train=[0, 1, 2, 3], val=[4], test=[5]))
    prior = class_prior(graph)
    assert prior.dtype == np.float64
    np.testing.assert_array_equal(prior, [0.75, 0.25])
