import numpy as np

from gpn_scale.page.evidence_facts import dissonance_histogram, log_histogram
from tests.page.test_run_facts import with_test_nodes


def test_groups_without_nodes_are_left_out():
    values = np.array([1.0, 10.0, 100.0, 1000.0])
    none = np.array([], np.int64)
    both = log_histogram(values, np.array([0, 1]), np.array([3]))
    assert both.counts == {"known test nodes": 2, "unknown nodes": 1}
    assert (both.edges[0], both.edges[-1]) == (0.0, 3.0)
    assert log_histogram(values, np.array([0, 1]), none).counts == {"known test nodes": 2}
    assert log_histogram(values, none, none).counts == {}


def test_dissonance_is_that_of_correct_and_wrong_test_nodes(prediction, small_graph):
    test = small_graph.split.test
    correct = prediction.predicted_class[test] == small_graph.labels[test]
    histogram = dissonance_histogram(prediction, small_graph)
    assert histogram.counts == {"correct": correct.sum(), "wrong": (~correct).sum()}
    dissonance = prediction.dissonance[test]
    assert (histogram.edges[0], histogram.edges[-1]) == (dissonance.min(), dissonance.max())
    nothing = with_test_nodes(small_graph, 0, marks=False)
    assert dissonance_histogram(prediction, nothing).counts == {}
