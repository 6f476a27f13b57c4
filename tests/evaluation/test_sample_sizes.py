"""What is given for how many nodes, and the sentences about what is not."""

import re
from dataclasses import replace

import pytest

from gpn_scale.evaluation.sample_sizes import (
    LEAST_BINNED_NODES,
    LEAST_CURVE_NODES,
    LEAST_FITTED_NODES,
    LEAST_OF_A_KIND,
    SampleSizes,
    enough_of_both,
)
from tests.evaluation.samples import prediction_for

ENOUGH = SampleSizes(val=50, test=100, wrong=20, known=90, unknown=(10, 20))


def test_enough_nodes_leave_nothing_out():
    assert ENOUGH.left_out == ()
    assert ENOUGH.has_calibration
    assert ENOUGH.has_temperature
    assert ENOUGH.has_conformal
    assert ENOUGH.has_curves


@pytest.mark.parametrize(
    ("change", "lost", "sentence"),
    [
        ({"test": LEAST_BINNED_NODES - 1}, "has_calibration", "need 100 test nodes, .* are 99"),
        ({"test": LEAST_BINNED_NODES - 1}, "has_conformal", "conformal sets are not shown"),
        ({"val": LEAST_FITTED_NODES - 1}, "has_temperature", "50 validation nodes, .* are 49"),
        ({"test": LEAST_CURVE_NODES - 1}, "has_curves", "50 test nodes, and there are 49"),
        ({"wrong": LEAST_OF_A_KIND - 1}, None, "10 wrong and 10 correct .* are 9 and 91"),
        ({"test": 19}, None, "Brier score and NLL .* need 20 test nodes, and there are 19"),
        ({"wrong": 95}, None, "there are 95 and 5"),
        ({"unknown": (30, 4)}, None, "1 of 2 kinds: .* as few as 4 and 90"),
        ({"known": 19}, None, r"leave out groups of fewer than 20 nodes: known test nodes \(19\)"),
        ({"known": 3}, None, "2 of 2 kinds: .* as few as 10 and 3"),
    ],
)
def test_too_few_nodes_are_told(change, lost, sentence):
    sizes = replace(ENOUGH, **change)
    assert any(re.search(sentence, each) for each in sizes.left_out)
    if lost is not None:
        assert not getattr(sizes, lost)


def test_counts_are_those_of_a_loop(small_graph):
    prediction = prediction_for(small_graph)
    sizes = SampleSizes.of(prediction, small_graph)
    split = small_graph.split
    predicted = prediction.probabilities.argmax(1)
    assert sizes.val == len(split.val)
    assert sizes.wrong == sum(predicted[v] != small_graph.labels[v] for v in split.test)
    assert sizes.known == len(set(split.test.tolist()) - set(small_graph.marked.tolist()))
    assert sizes.unknown == tuple(len(nodes) for nodes in small_graph.marks.values())


def test_both_kinds_are_needed():
    assert enough_of_both(10, 10)
    assert not enough_of_both(9, 1000)
    assert not enough_of_both(1000, 9)
