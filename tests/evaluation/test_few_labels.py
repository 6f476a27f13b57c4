"""Warnings about few labels, in words that follow the counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.data.splits import stratified_split
from gpn_scale.evaluation.few_labels import label_warnings
from gpn_scale.evaluation.intervals import exact_interval
from gpn_scale.evaluation.sample_sizes import LEAST_LABELS


def graph_of(counts, train=0.6, val=0.2):
    labels = np.repeat(np.arange(len(counts)), counts)
    graph = build_graph([], [], labels=labels, num_nodes=len(labels))
    return stratified_split(graph, train=train, val=val, rng_seed=1)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8))
def test_there_is_a_warning_if_and_only_if_a_class_has_few_labels(counts):
    warnings = label_warnings(graph_of(counts))
    few = [count for count in counts if count < LEAST_LABELS]
    assert bool(warnings) == bool(few)
    if len(few) == 1:
        assert f"Class 'class {counts.index(few[0])}' has " in warnings[0]
    elif few:
        assert f"{len(few)} of {len(counts)} classes have fewer than 20" in warnings[0]


@pytest.mark.parametrize(
    ("counts", "sentences"),
    [
        ([1, 500], ["'class 0' has one labelled node,", "from 100 test nodes"]),
        ([2, 3, 4, 5, 6, 7, 99], ["'class 0' (2), 'class 1' (3)", "'class 4' (6), ..."]),
        ([3], ["there are no test nodes", "Expect no p-values: they need 19", "there are 1"]),
        ([15, 85], ["with 20 validation nodes, none can be below 4.8 %"]),
    ],
)
def test_what_to_expect_is_said(counts, sentences):
    text = " ".join(label_warnings(graph_of(counts)))
    assert all(sentence in text for sentence in sentences)


def test_the_interval_is_that_of_as_many_test_nodes():
    graph = graph_of([10, 40])
    low, high = exact_interval(9, 10)
    assert len(graph.split.test) == 10
    expected = f"may truly be {100 * low:.0f} % to {100 * high:.0f} %"
    assert expected in label_warnings(graph)[1]


def test_many_test_nodes_have_no_wide_interval():
    assert "Figures over all classes are reliable" in label_warnings(graph_of([10, 1000]))[1]


def test_many_validation_nodes_need_no_word_on_p_values():
    assert len(label_warnings(graph_of([10, 1000]))) == 2
