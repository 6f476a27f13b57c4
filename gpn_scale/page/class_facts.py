"""Facts about the prediction of each class: confusions, figures per class, class balance.

Shapes: C classes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.page.histograms import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassFacts:
    """The test nodes by true and predicted class, and the number of nodes of each class."""

    confusion: NDArray[np.int64]
    """Number of test nodes by true class (rows) and predicted class (columns), (C, C)."""
    train: NDArray[np.int64]
    """Number of training nodes of each class, (C,)."""
    val: NDArray[np.int64]
    """Number of validation nodes of each class, (C,)."""
    predicted: NDArray[np.int64]
    """Number of nodes of the whole graph that are predicted to be of each class, (C,)."""

    @property
    def test(self) -> NDArray[np.int64]:
        """Number of test nodes of each class, (C,)."""
        return np.asarray(self.confusion.sum(1))

    @property
    def recall(self) -> FloatArray:
        """Fraction of each class's test nodes that are predicted to be of it, (C,)."""
        return _fraction(self.confusion.diagonal(), self.confusion.sum(1))

    @property
    def precision(self) -> FloatArray:
        """Fraction of the test nodes predicted to be of each class that are of it, (C,)."""
        return _fraction(self.confusion.diagonal(), self.confusion.sum(0))

    @property
    def f1(self) -> FloatArray:
        """Harmonic mean of precision and recall, (C,)."""
        return _fraction(
            2 * self.confusion.diagonal(), self.confusion.sum(0) + self.confusion.sum(1)
        )


def class_facts(prediction: Prediction, graph: Graph) -> ClassFacts:
    """Return the facts of the classes of a graph with a split."""
    assert graph.split is not None
    count = prediction.probabilities.shape[1]
    predicted = prediction.predicted_class.astype(np.int64)
    test = graph.split.test[graph.labels[graph.split.test] >= 0]
    pairs = graph.labels[test].astype(np.int64) * count + predicted[test]

    def per_class(nodes: NDArray[np.integer]) -> NDArray[np.int64]:
        labels = graph.labels[nodes]
        return np.bincount(labels[labels >= 0], minlength=count)

    return ClassFacts(
        confusion=np.bincount(pairs, minlength=count * count).reshape(count, count),
        train=per_class(graph.split.train),
        val=per_class(graph.split.val),
        predicted=np.bincount(predicted, minlength=count),
    )


def _fraction(part: NDArray[np.int64], whole: NDArray[np.int64]) -> FloatArray:
    return np.where(whole > 0, part / np.maximum(whole, 1), np.nan)
