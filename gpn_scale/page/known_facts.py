"""Distributions of the p-values of GPN+ over known and unknown nodes."""

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph
from gpn_scale.evaluation.detection import known_test_nodes
from gpn_scale.evaluation.known_calibration import KnownCalibration
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.evaluation.sample_sizes import LEAST_HISTOGRAM_NODES
from gpn_scale.page.facts import KnownFacts
from gpn_scale.page.histograms import histogram_of_enough

_BINS = 20


def known_facts(
    prediction: Prediction, graph: Graph, calibration: KnownCalibration | None
) -> KnownFacts | None:
    """Return the facts about p-values; None for a model without them."""
    p = prediction.p
    if p is None or calibration is None:
        return None
    known, unknown = known_test_nodes(graph), graph.marked
    groups = {"known test nodes": p.known[known], "unknown nodes": p.known[unknown]}
    return KnownFacts(
        validation_nodes=calibration.num_nodes,
        notes=calibration.notes,
        p_known=histogram_of_enough(groups, bins=_BINS),
        distance=uniform_distance(p.known[known]) if len(known) >= LEAST_HISTOGRAM_NODES else None,
    )


def uniform_distance(p_N: NDArray[np.floating]) -> float:
    """Return the Kolmogorov-Smirnov distance of p-values from the uniform distribution."""
    ordered, count = np.sort(np.asarray(p_N, np.float64)), len(p_N)
    if count == 0:
        return 0.0
    above, below = np.arange(1, count + 1) / count - ordered, ordered - np.arange(count) / count
    return float(max(above.max(), below.max()))
