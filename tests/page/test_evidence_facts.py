import numpy as np

from gpn_scale.page.evidence_facts import dissonance_histogram, log_histogram
from tests.page.test_run_facts import with_test_nodes


def test_groups_of_few_nodes_are_left_out():
    values = 10.0 ** np.arange(50)
    known, unknown = np.arange(25), np.arange(30, 50)
    both = log_histogram(values, known, unknown)
    assert both.counts == {"known test nodes": 25, "unknown nodes": 20}
    assert (both.edges[0], both.edges[-1]) == (0.0, 49.0)
    assert log_histogram(values, known, unknown[:19]).counts == {"known test nodes": 25}
    assert log_histogram(values, known[:0], unknown[:19]) is None


def test_dissonance_is_that_of_correct_and_wrong_test_nodes(prediction, small_graph):
    test = small_graph.split.test
    correct = prediction.predicted_class[test] == small_graph.labels[test]
    histogram = dissonance_histogram(prediction, small_graph)
    assert histogram.counts == {"correct": correct.sum(), "wrong": (~correct).sum()}
    dissonance = prediction.dissonance[test]
    assert (histogram.edges[0], histogram.edges[-1]) == (dissonance.min(), dissonance.max())
    nothing = with_test_nodes(small_graph, 0, marks=False)
    assert dissonance_histogram(prediction, nothing) is None
