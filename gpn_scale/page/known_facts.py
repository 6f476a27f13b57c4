"""How the p-values of GPN+ are distributed over known and unknown nodes."""

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph
from gpn_scale.evaluation.detection import known_test_nodes
from gpn_scale.evaluation.known_calibration import KnownCalibration
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.evaluation.prediction_table import class_names
from gpn_scale.evaluation.reasons import NOTHING_UNUSUAL, reasons
from gpn_scale.evaluation.sample_sizes import LEAST_HISTOGRAM_NODES
from gpn_scale.page.extreme_nodes import node_name
from gpn_scale.page.facts import KnownFacts, StrangeNode
from gpn_scale.page.histograms import histogram_of_enough

STRANGEST = 10
"""Number of nodes that are listed."""
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
        parts=p.parts,
        strangest=_strangest(prediction, graph),
    )


def uniform_distance(p_N: NDArray[np.floating]) -> float:
    """Return the Kolmogorov-Smirnov distance of p-values from the uniform distribution."""
    ordered, count = np.sort(np.asarray(p_N, np.float64)), len(p_N)
    if count == 0:
        return 0.0
    above, below = np.arange(1, count + 1) / count - ordered, ordered - np.arange(count) / count
    return float(max(above.max(), below.max()))


def _strangest(prediction: Prediction, graph: Graph) -> tuple[StrangeNode, ...]:
    """Return the nodes with the smallest p-values; of equal ones, those of greater surprise."""
    assert prediction.p is not None
    assert prediction.surprise is not None
    assert graph.split is not None
    others = np.setdiff1d(np.arange(graph.num_nodes), graph.split.train)
    order = np.lexsort((-prediction.surprise[others], prediction.p.known[others]))
    nodes = others[order[:STRANGEST]]
    rows = prediction.rows(nodes)
    assert rows.p is not None
    texts = reasons(rows, class_names(graph, rows.probabilities.shape[1]))
    assert texts is not None
    parts = np.stack([getattr(rows.p, part) for part in rows.p.parts], axis=1)
    return tuple(
        StrangeNode(
            name=node_name(graph, int(node)),
            predicted=int(rows.predicted_class[i]),
            probability=float(rows.probabilities[i].max()),
            p_known=float(rows.p.known[i]),
            p_parts=tuple(float(value) for value in parts[i]),
            reason="" if texts[i] == NOTHING_UNUSUAL else str(texts[i]),
        )
        for i, node in enumerate(nodes)
    )
