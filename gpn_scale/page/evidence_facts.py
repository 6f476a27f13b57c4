"""Histograms of the amount of evidence that nodes have, and of its conflict.

Shapes: N nodes.
"""

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.page.histograms import Histogram, histogram_of_enough


def log_histogram(
    values_N: NDArray[np.floating], known: NodeIds, unknown: NodeIds
) -> Histogram | None:
    """Return the densities of log10 of `values_N`, for known test nodes and for unknown nodes.

    A group of too few nodes is left out; None without groups.
    """
    groups = {"known test nodes": known, "unknown nodes": unknown}
    return histogram_of_enough({name: np.log10(values_N[ids]) for name, ids in groups.items()})


def dissonance_histogram(prediction: Prediction, graph: Graph) -> Histogram | None:
    """Return the densities of the dissonance of correct and wrong predictions of test nodes.

    A group of too few nodes is left out; None without groups.
    """
    assert graph.split is not None
    test = graph.split.test
    rows = prediction.rows(test)
    dissonance, correct = rows.dissonance, rows.predicted_class == graph.labels[test]
    groups = {"correct": correct, "wrong": ~correct}
    return histogram_of_enough({name: dissonance[members] for name, members in groups.items()})
