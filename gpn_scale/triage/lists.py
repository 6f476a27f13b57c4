"""`Triage`: lists of predictions to review and of nodes to label next, as tables.

Shapes: N nodes, B listed nodes, M contributors of each.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.errors import ConfigError
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.evaluation.prediction_table import class_names
from gpn_scale.evaluation.reasons import USUAL_P
from gpn_scale.evaluation.table_writers import table_writer
from gpn_scale.files import make_folder
from gpn_scale.inference.explanation import Explanation
from gpn_scale.inference.trained_model import TrainedModel
from gpn_scale.ppr.store import PPRStore
from gpn_scale.triage.coverage import Cover
from gpn_scale.triage.label_next import (
    check_count,
    label_candidates,
    label_next,
    unused_nodes,
)
from gpn_scale.triage.node_reasons import FOREIGN_FEATURES, UsualValues, node_reasons
from gpn_scale.triage.occlusion import foreign_columns
from gpn_scale.triage.promise import (
    PROMISE_CONDITION,
    Promise,
    checked_nodes,
    make_promise,
)
from gpn_scale.triage.raw_values import UsualColumns
from gpn_scale.triage.trust import trust_of

REVIEW, LABEL_NEXT = "review.csv", "label_next.csv"
"""Names of the files of both lists."""
MOST_REVIEWED, MOST_LABELLED = 200, 50
"""Lengths of the lists unless a request gives others."""
CONTRIBUTORS = 3
"""Number of contributors that a list names per node."""
NO_P_VALUES = (
    "The model has no p-values: predictions are ordered only by their probability, p_known is "
    "missing, and nodes that look unknown are not distinguished from others."
)
"""Note on the lists of a model without p-values."""

_ROW_BYTES = 1 << 28
"""Memory of the complete rows that are explained at a time."""

Explain = Callable[[NodeIds], Explanation]
"""Returns the contributors of nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriageRequest:
    """Request for lists, and for a promise.

    >>> TriageRequest(review=10).confidence
    0.9
    """

    review: int | None = None
    """Number of predictions to review; None for `MOST_REVIEWED`, or fewer on a small graph."""
    label_next: int | None = None
    """Number of nodes to label next; None for `MOST_LABELLED`, or fewer on a small graph."""
    include_labelled: bool = False
    """Whether training and validation nodes are reviewed as well."""
    error_among_answered: float | None = None
    """Largest probability of an error among answered nodes; None for no promise."""
    confidence: float = 0.9
    """Probability with which the promise is kept."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Triage:
    """Both lists as Arrow tables, one row per node, and the promise if there is one.

    >>> triage = Triage(
    ...     review=pa.table({"id": ["a"], "reason": ["isolated"]}), label_next=pa.table({"id": []})
    ... )
    >>> triage.review.to_pylist()
    [{'id': 'a', 'reason': 'isolated'}]
    """

    review: pa.Table
    """The least trusted predictions, the least trusted one first."""
    label_next: pa.Table
    """The nodes whose labels would teach the model most, in the order of choice."""
    promise: Promise | None = None
    notes: tuple[str, ...] = ()
    """Notes for readers of the lists, one sentence each."""

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Write both lists to a folder, which is created if needed, and return their paths."""
        make_folder(folder)
        paths = folder / REVIEW, folder / LABEL_NEXT
        for path, table in zip(paths, (self.review, self.label_next), strict=True):
            with table_writer(path) as writer:
                writer.write(table)
        return paths


class Lengths(NamedTuple):
    """Lengths of both lists.

    >>> Lengths(review=200, label_next=50).review
    200
    """

    review: int
    label_next: int


def checked_lengths(graph: Graph, request: TriageRequest) -> Lengths:
    """Return the lengths of both lists, after checking that the graph has enough nodes.

    >>> from gpn_scale import build_graph
    >>> checked_lengths(build_graph([0], [1], labels=[0, -1]), TriageRequest(review=2))
    Lengths(review=2, label_next=1)

    Raises:
        ConfigError: more nodes are requested than exist, or there are no labels for a promise.
    """
    unused = len(unused_nodes(graph))
    reviewable = graph.num_nodes if request.include_labelled else unused
    labellable = len(label_candidates(graph))
    lengths = Lengths(
        min(MOST_REVIEWED, reviewable) if request.review is None else request.review,
        min(MOST_LABELLED, labellable) if request.label_next is None else request.label_next,
    )
    if not 0 <= lengths.review <= reviewable:
        whose = "of the graph" if request.include_labelled else "outside training and validation"
        raise ConfigError(
            f"review is {lengths.review:,}, expected 0 to {reviewable:,}, the number of nodes "
            f"{whose}",
            arguments=("review",),
        )
    check_count(lengths.label_next, labellable)
    if request.error_among_answered is not None:
        checked_nodes(graph, error=request.error_among_answered, confidence=request.confidence)
    return lengths


def make_triage(
    trained: TrainedModel,
    graph: Graph,
    prediction: Prediction,
    request: TriageRequest,
    *,
    explain: Explain | None = None,
    store: PPRStore | None = None,
) -> Triage:
    """Return the lists of a graph.

    >>> from gpn_scale import GPNClassifier, load_graph
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> graph = load_graph("synthetic:nodes=300,classes=2")
    >>> classifier = GPNClassifier(RunConfig(train=TrainConfig(epochs=5))).fit(graph)
    >>> request = TriageRequest(review=5, label_next=2)
    >>> triage = make_triage(classifier.trained, graph, classifier.predict(graph), request)
    >>> triage.review.num_rows, triage.label_next.num_rows
    (5, 2)

    Args:
        trained: The model.
        graph: The graph, with the model's columns and classes.
        prediction: Prediction of all its nodes.
        request: What to list.
        explain: Returns the contributors of nodes; None to leave them out.
        store: Rows of the graph; None to compute what is needed.

    Raises:
        ConfigError: more nodes are requested than exist, or the promise cannot be made.
        StoreError: the graph is too large to choose nodes to label without a store.
    """
    lengths = checked_lengths(graph, request)
    trust_N = trust_of(prediction)
    reviewed = _least_trusted(graph, trust_N, lengths.review, request.include_labelled)
    promise = None
    if request.error_among_answered is not None:
        promise = make_promise(
            graph,
            prediction,
            error=request.error_among_answered,
            confidence=request.confidence,
        )
    cover = label_next(graph, trained.diffusion, 1.0 - trust_N, lengths.label_next, store=store)
    usual = UsualValues.of(graph, prediction)
    review = review_columns(
        trained,
        graph,
        reviewed,
        prediction.rows(reviewed),
        usual,
        promise,
        UsualColumns.of(graph),
    )
    if explain is not None:
        review["evidence_from"] = pa.array(_contributors(explain, graph, reviewed), pa.string())
    chosen = node_columns(graph, cover.node, prediction.rows(cover.node), usual, promise)
    return Triage(
        review=pa.table(review),
        label_next=pa.table(chosen | _gains(cover, graph, 1.0 - trust_N)),
        promise=promise,
        notes=_notes(prediction, promise),
    )


def _notes(prediction: Prediction, promise: Promise | None) -> tuple[str, ...]:
    notes = [] if prediction.p is not None else [NO_P_VALUES]
    return (*notes, PROMISE_CONDITION) if promise is not None else tuple(notes)


def _least_trusted(
    graph: Graph, trust_N: NDArray[np.float64], count: int, include_labelled: bool
) -> NodeIds:
    """Return the nodes to review, the least trusted first; of equal trust, the smaller id."""
    nodes = np.arange(graph.num_nodes) if include_labelled else unused_nodes(graph)
    order = np.argsort(trust_N[nodes], kind="stable")[:count]
    return np.asarray(nodes[order])


def node_columns(
    graph: Graph,
    nodes: NodeIds,
    prediction: Prediction,
    usual: UsualValues,
    promise: Promise | None = None,
) -> dict[str, Any]:
    """Return the columns that both lists have.

    >>> from gpn_scale import build_graph
    >>> half, ones = np.full((1, 2), 0.5, np.float32), np.ones(1, np.float32)
    >>> prediction = Prediction(
    ...     probabilities=half,
    ...     probabilities_no_network=half,
    ...     alpha_0=ones,
    ...     alpha_0_no_network=ones,
    ... )
    >>> graph, usual = build_graph([0], [1]), UsualValues(alpha_0=9.0, label_evidence=None)
    >>> node_columns(graph, np.array([1]), prediction, usual)["reason"].to_pylist()
    ['torn between 0 and 1']

    Args:
        graph: The graph.
        nodes: Listed nodes, (B,).
        prediction: Prediction of these nodes in their order.
        usual: Values of the validation nodes.
        promise: Adds the column `abstain`; None for no such column.
    """
    names = class_names(graph, prediction.probabilities.shape[1])
    texts = node_reasons(graph, nodes, prediction, usual, names)
    known = [None] * len(nodes) if prediction.p is None else prediction.p.known
    labels = [names[label] for label in prediction.predicted_class]
    columns: dict[str, Any] = {
        "id": _ids(graph, nodes),
        "predicted_class": pa.array(labels, pa.string()),
        "probability": pa.array(-prediction.aleatoric, pa.float32()),
        "p_known": pa.array(known, pa.float32()),
        "trust": pa.array(trust_of(prediction).astype(np.float32)),
        "reason": pa.array([each.text for each in texts], pa.string()),
        "detail": pa.array([each.detail for each in texts], pa.string()),
    }
    if promise is not None:
        columns["abstain"] = promise.abstains(prediction)
    return columns


def review_columns(
    trained: TrainedModel,
    graph: Graph,
    nodes: NodeIds,
    prediction: Prediction,
    usual: UsualValues,
    promise: Promise | None = None,
    raw: UsualColumns | None = None,
) -> dict[str, Any]:
    """Return the columns of nodes to review: those of both lists, and foreign columns.

    >>> from gpn_scale import GPNClassifier, load_graph
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> graph = load_graph("synthetic:nodes=300,classes=2")
    >>> classifier = GPNClassifier(RunConfig(train=TrainConfig(epochs=5))).fit(graph)
    >>> prediction, nodes = classifier.predict(graph), np.array([4, 7])
    >>> usual = UsualValues.of(graph, prediction)
    >>> columns = review_columns(classifier.trained, graph, nodes, prediction.rows(nodes), usual)
    >>> len(columns["foreign_columns"])
    2

    Args:
        trained: The model.
        graph: The graph, with the model's columns and classes.
        nodes: Listed nodes, (B,).
        prediction: Prediction of these nodes in their order.
        usual: Values of the validation nodes.
        promise: Adds the column `abstain`; None for no such column.
        raw: Values of raw columns, shown with foreign columns; None if there are none.
    """
    columns = node_columns(graph, nodes, prediction, usual, promise)
    foreign = _foreign_columns(trained, graph, nodes, prediction, raw)
    # The columns say more about foreign features than the figures.
    is_foreign = pc.and_(pc.equal(columns["reason"], FOREIGN_FEATURES), foreign.is_valid())
    columns["detail"] = pc.if_else(is_foreign, foreign, columns["detail"])
    columns["foreign_columns"] = foreign
    return columns


def _ids(graph: Graph, nodes: NodeIds) -> Any:
    """Return the user's ids of nodes; positions if the graph has no others."""
    if graph.node_names is None:
        return pa.array(nodes)
    return pa.array(graph.node_names[nodes].tolist(), pa.string())


def _foreign_columns(
    trained: TrainedModel,
    graph: Graph,
    nodes: NodeIds,
    prediction: Prediction,
    raw: UsualColumns | None,
) -> Any:
    """Return the columns that make features foreign; null for nodes with usual features.

    The prediction is that of the nodes, in their order.
    """
    texts: list[str | None] = [None] * len(nodes)
    if prediction.p is not None and prediction.p.features is not None and graph.split is not None:
        strange = np.flatnonzero(prediction.p.features <= USUAL_P)
        columns = foreign_columns(trained, graph, nodes[strange], raw_columns=_raw_columns(graph))
        for i, own in zip(strange, columns, strict=True):
            given = {} if raw is None else {each.name: each for each in raw.values(int(nodes[i]))}
            shown = [str(given.get(column.name, column)) for column in own]
            texts[i] = ", ".join(shown) or "no single column"
    return pa.array(texts, pa.string())


def _raw_columns(graph: Graph) -> list[str] | None:
    """Return the raw column behind each feature; None for features that were given as numbers."""
    if graph.preparation is None:
        return None
    return [graph.preparation.column_of(feature) for feature in range(graph.num_features)]


def _contributors(explain: Explain, graph: Graph, nodes: NodeIds) -> list[str]:
    """Return the nodes that supplied the evidence of each node, with their shares."""
    texts = []
    block = max(1, _ROW_BYTES // (24 * graph.num_nodes))
    for start in range(0, len(nodes), block):
        contributors = explain(nodes[start : start + block]).contributors
        for others, shares in zip(contributors.node, contributors.share, strict=True):
            present = others >= 0
            ids = _ids(graph, others[present]).to_pylist()
            pairs = zip(ids, shares[present], strict=True)
            texts.append(", ".join(f"{name} ({share:.0%})" for name, share in pairs))
    return texts


def _gains(cover: Cover, graph: Graph, uncertainty_N: NDArray[np.float64]) -> dict[str, Any]:
    """Return the gain of each choice, and the fraction of all uncertainty covered so far."""
    total = float(uncertainty_N[unused_nodes(graph)].sum())
    covered = np.cumsum(cover.gain) / total if total > 0 else np.zeros(len(cover.gain))
    return {"gain": cover.gain, "covered": covered}
