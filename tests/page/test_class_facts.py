import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from gpn_scale.page.class_facts import ClassFacts, class_facts


def test_the_confusion_is_that_of_scikit_learn(prediction, small_graph):
    facts = class_facts(prediction, small_graph)
    test = small_graph.split.test
    label, predicted = small_graph.labels[test], prediction.predicted_class[test]
    labels = range(prediction.probabilities.shape[1])
    np.testing.assert_array_equal(
        facts.confusion, confusion_matrix(label, predicted, labels=list(labels))
    )
    assert facts.train.sum() == len(small_graph.split.train)
    assert facts.val.sum() == len(small_graph.split.val)
    assert facts.test.sum() == len(test)
    assert facts.predicted.sum() == small_graph.num_nodes


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_figures_per_class_are_those_of_scikit_learn(pairs):
    label, predicted = np.array(pairs, np.int64).reshape(-1, 2).T
    confusion = np.zeros((4, 4), np.int64)
    np.add.at(confusion, (label, predicted), 1)
    none = np.zeros(4, np.int64)
    facts = ClassFacts(confusion=confusion, train=none, val=none, predicted=none)
    expected = precision_recall_fscore_support(
        label, predicted, labels=range(4), zero_division=np.nan
    )
    for values, theirs in zip((facts.precision, facts.recall), expected, strict=False):
        np.testing.assert_allclose(values, theirs)
    is_there = (confusion.sum(0) > 0) & (confusion.sum(1) > 0)
    assert facts.f1[is_there] == pytest.approx(expected[2][is_there])
