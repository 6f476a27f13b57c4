"""The facts of the nodes that a page lists, from a model, a graph and a prediction.

Shapes: N nodes, R listed nodes, D latent dimensions.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.detection import known_test_nodes
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.evaluation.prediction_table import class_names
from gpn_scale.evaluation.reasons import reasons
from gpn_scale.inference.encoder_inputs import required_features
from gpn_scale.inference.evidence import EvidenceSummary, summarise_evidence
from gpn_scale.page.histograms import FloatArray
from gpn_scale.page.node_choice import listed_nodes, strangest_first
from gpn_scale.page.node_lists import NameIndex, contributor_lists, neighbour_lists
from gpn_scale.page.node_rows import SPLITS, NodeRows
from gpn_scale.page.projection import components_map, neighbour_map
from gpn_scale.ppr.store import PPRStore

_LEAST_EVIDENCE = 1e-30
"""Pseudo-counts below which nodes are alike."""


def node_rows(
    classifier: GPNClassifier,
    graph: Graph,
    prediction: Prediction,
    store: PPRStore | None,
    evidence: EvidenceSummary | None = None,
) -> NodeRows:
    """Return the facts of all nodes of a graph, or of some if there are many.

    Args:
        classifier: The trained model.
        graph: The graph, with a split.
        prediction: Prediction of all nodes.
        store: Stored rows, for graphs that are too large to compute them.
        evidence: Feature evidence of all nodes; computed if it is not given.
    """
    summary = evidence or summarise_evidence(classifier.trained, graph)
    nodes, choice = listed_nodes(strangest_first(prediction))
    index = NameIndex(graph, nodes)
    neighbours = neighbour_lists(graph, nodes, index)
    contributors = contributor_lists(classifier, graph, nodes, index, store, summary)
    rows = prediction.rows(nodes)
    latent_RD = classifier.trained.latent(required_features(graph), nodes).double().cpu().numpy()
    mark, marks = _marks(graph, nodes)
    reason, texts = _reasons(rows, class_names(graph, rows.probabilities.shape[1]))
    parts = () if rows.p is None else rows.p.parts
    return NodeRows(
        total=graph.num_nodes,
        choice=choice,
        node=nodes,
        names=index.names(),
        leading_class=summary.leading_class[index.nodes],
        predicted=rows.predicted_class.astype(np.int64),
        probability=rows.probabilities.max(1).astype(np.float64),
        label=graph.labels[nodes].astype(np.int64),
        split=_splits(graph)[nodes],
        mark=mark,
        marks=marks,
        evidence=_log(_pseudo_counts(rows)),
        own_evidence=_log(summary.total[nodes]),
        median_evidence=_median(_pseudo_counts(prediction.rows(known_test_nodes(graph)))),
        p_known=None if rows.p is None else rows.p.known.astype(np.float64),
        p_parts={part: getattr(rows.p, part).astype(np.float64) for part in parts},
        reason=reason,
        reasons=texts,
        degree=graph.indptr[nodes + 1] - graph.indptr[nodes],
        neighbours=neighbours,
        contributors=contributors,
        components=components_map(latent_RD),
        near=neighbour_map(latent_RD),
    )


def _pseudo_counts(prediction: Prediction) -> FloatArray:
    return np.asarray(
        prediction.alpha_0.astype(np.float64) - prediction.probabilities.shape[1], np.float64
    )


def _log(values_R: FloatArray) -> FloatArray:
    return np.log10(np.maximum(values_R, _LEAST_EVIDENCE))


def _median(values: FloatArray) -> float:
    return float(np.median(values)) if len(values) else 0.0


def _splits(graph: Graph) -> NDArray[np.int64]:
    code_N = np.full(graph.num_nodes, -1, np.int64)
    for place, subset in enumerate(SPLITS):
        code_N[getattr(graph.split, subset)] = place
    return code_N


def _marks(graph: Graph, nodes: NodeIds) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return the index of each node's marks, (R,), and the texts that they are indices of."""
    texts = np.full(graph.num_nodes, "", dtype=object)
    for name, ids in graph.marks.items():
        shown = name.replace("_", " ")
        texts[ids] = [f"{text}, {shown}" if text else shown for text in texts[ids]]
    return _indexed(texts[nodes])


def _reasons(rows: Prediction, names: Sequence[str]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    texts = reasons(rows, names)
    if texts is None:
        return np.zeros(len(rows.alpha_0), np.int64), ("",)
    return _indexed(texts)


def _indexed(texts_R: NDArray[np.object_]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return indices of texts into the distinct ones, of which the first is empty."""
    distinct = ["", *sorted(set(texts_R.tolist()) - {""})]
    place = {text: index for index, text in enumerate(distinct)}
    return np.array([place[text] for text in texts_R.tolist()], np.int64), tuple(distinct)
