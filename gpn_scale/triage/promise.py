"""Abstention with a promise: a threshold of trust above which errors are rare, with confidence.

Nodes whose trust is at least the threshold are answered. Let R(t) be the probability that an
answered node is wrong at the threshold t. The promise is

    P(R(threshold) > error) <= 1 - confidence,

where the probability is over the draw of the held-out nodes. It is kept by learn-then-test
(Angelopoulos et al., 2021) with fixed-sequence testing:

1. The thresholds t_1 > t_2 > ... are fixed without looking at the held-out nodes.
2. Of the held-out nodes, n(t) are answered and k(t) of these are wrong. Given n(t), the answered
   nodes are independent draws of answered nodes, so k(t) is binomial with the probability R(t). If
   R(t) > error, then P(Binomial(n(t), error) <= k(t)), the tail, is at most x with a probability of
   at most x.
3. Thresholds are tested from the first one on, and a threshold passes if its tail is at most
   1 - confidence. Testing ends with the first that fails, and the last that passed is the result.
   The result can only be bad if the first bad threshold of the sequence has passed, and that has
   a probability of at most 1 - confidence: no correction for many tests is needed.

The thresholds are values of trust of the validation nodes, and the sequence begins where these
nodes support the promise best. Validation nodes have been used for early stopping, for the
temperature and for the p-values, so their errors are too few and may not test the promise. They may
choose the sequence, because nothing is assumed of it but that it does not depend on the held-out
nodes. These are the labelled test nodes without a mark, which neither training nor calibration has
used.

**The promise holds for nodes that are exchangeable with the held-out nodes**: of known classes,
drawn in the same way from the same graph. It says nothing of nodes of unknown classes, of nodes
that join later, of another graph, or after a drift of features, edges or classes. It is about the
probability of an error: among n answered nodes, the fraction of errors scatters around R by about
sqrt(R / n).

Shapes: N nodes, V validation nodes, T held-out nodes, G thresholds.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from gpn_scale.data.graph import MISSING_LABEL, Graph, NodeIds
from gpn_scale.errors import ConfigError
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.triage.trust import trust_of

MOST_THRESHOLDS = 100
"""Largest number of thresholds that are tested."""
_LEAST = 1e-9
PROMISE_CONDITION = (
    "The promise holds for nodes that are exchangeable with the labelled test nodes: nodes of "
    "known classes, drawn in the same way from the same graph. It does not hold for nodes of other "
    "classes, for nodes that join later, for another graph, or after a drift."
)
"""The condition under which a promise holds, for commands and pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A threshold of trust, and what is promised of the nodes at or above it.

    >>> promise = Promise(
    ...     error=0.05,
    ...     confidence=0.9,
    ...     threshold=0.4,
    ...     held_out_nodes=200,
    ...     answered_nodes=150,
    ...     answered_errors=3,
    ... )
    >>> promise.answered
    0.75
    """

    error: float
    """Largest promised probability of an error among answered nodes."""
    confidence: float
    """Probability, over the draw of the held-out nodes, with which the promise is kept."""
    threshold: float
    """Smallest trust of an answered node."""
    held_out_nodes: int
    """Number of labelled test nodes that the threshold was tested on."""
    answered_nodes: int
    """Number of these that are answered."""
    answered_errors: int
    """Number of answered ones that are wrong."""

    @property
    def answered(self) -> float:
        """Expected fraction of nodes that are answered."""
        return self.answered_nodes / self.held_out_nodes

    def abstains(self, prediction: Prediction) -> NDArray[np.bool_]:
        """Return whether each node is not answered, (N,)."""
        return np.asarray(trust_of(prediction) < self.threshold)


def least_nodes(error: float, confidence: float) -> int:
    """Return the number of answered nodes of which none may be wrong for a promise to be made.

    >>> least_nodes(0.05, 0.9)
    45
    """
    return math.ceil(math.log1p(-confidence) / math.log1p(-error))


def held_out_nodes(graph: Graph) -> NodeIds:
    """Return the nodes that may test a promise: labelled test nodes without a mark.

    >>> from gpn_scale.ppr.example import example_graph
    >>> held_out_nodes(example_graph())
    array([], dtype=int64)
    """
    if graph.split is None:
        return np.empty(0, np.int64)
    test = graph.split.test
    labelled = test[graph.labels[test] != MISSING_LABEL]
    return np.setdiff1d(labelled, graph.marked)


def checked_nodes(graph: Graph, *, error: float, confidence: float) -> tuple[NodeIds, int]:
    """Return the held-out nodes and how many are needed, after a check that there are enough.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.data.graph import Split
    >>> split = Split(train=[0, 1], val=[], test=[2, 3])
    >>> graph = build_graph([], [], labels=[0, 1, 0, 1], split=split)
    >>> checked_nodes(graph, error=0.5, confidence=0.5)
    (array([2, 3]), 1)

    Raises:
        ConfigError: a number is out of range, or there are too few held-out nodes.
    """
    for name, value in {"error_among_answered": error, "confidence": confidence}.items():
        if not _LEAST <= value <= 1.0 - _LEAST:
            raise ConfigError(
                f"{name} is {value}, expected a number between 0 and 1, at least {_LEAST:g} from "
                f"both{_as_fraction(value)}",
                arguments=(name,),
            )
    if graph.split is None:
        raise ConfigError(
            f"graph {graph.name!r} has no split, so that it is unknown which labels training has "
            "not used, and a promise needs such labels: make it on the graph of training",
            arguments=("error_among_answered",),
        )
    nodes, needed = held_out_nodes(graph), least_nodes(error, confidence)
    if len(nodes) < needed:
        raise ConfigError(
            f"the graph has {len(nodes):,} labelled test nodes, and a promise of at most "
            f"{error:.3g} errors among answered nodes with a confidence of {confidence:.3g} needs "
            f"at least {needed:,}, even if none of them is wrong: label more nodes that training "
            "and validation do not use, train with a larger part of the labels for the test (a "
            "smaller split.train), or accept more errors or less confidence",
            arguments=("error_among_answered", "confidence"),
        )
    return nodes, needed


def _as_fraction(value: float) -> str:
    """Return a question whether a number above 1 was meant in percent."""
    return f"; did you mean {value / 100:g}, which is {value:g} %?" if 1.0 < value < 100.0 else ""


def make_promise(
    graph: Graph, prediction: Prediction, *, error: float, confidence: float
) -> Promise:
    """Return the promise for the smallest threshold that passes.

    >>> from gpn_scale import GPNClassifier, load_graph
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> from gpn_scale.data.splits import stratified_split
    >>> graph = load_graph("synthetic:nodes=1000,classes=3")
    >>> graph = stratified_split(graph, train=0.1, val=0.1, rng_seed=1)
    >>> classifier = GPNClassifier(RunConfig(train=TrainConfig(epochs=50))).fit(graph)
    >>> promise = make_promise(graph, classifier.predict(graph), error=0.1, confidence=0.9)
    >>> promise.answered > 0.5
    True

    Args:
        graph: The graph of training, with its split.
        prediction: Prediction of all its nodes.
        error: Largest probability of an error among answered nodes, in (0, 1).
        confidence: Probability with which the promise is kept, in (0, 1).

    Raises:
        ConfigError: a number is out of range, there are too few labelled test nodes (the message
            says how many are needed), or no threshold passes.
    """
    nodes, needed = checked_nodes(graph, error=error, confidence=confidence)
    assert graph.split is not None
    trust_N, wrong_N = trust_of(prediction), prediction.predicted_class != graph.labels
    val = graph.split.val
    thresholds_G = fixed_sequence(
        trust_N[val], wrong_N[val], num_nodes=len(nodes), error=error, least=needed
    )
    passed = passing_thresholds(trust_N[nodes], wrong_N[nodes], thresholds_G, error, confidence)
    if passed == 0:
        first = thresholds_G[0]
        answered = trust_N[nodes] >= first
        raise ConfigError(
            f"no threshold keeps errors among answered nodes at or below {error:.3g} with a "
            f"confidence of {confidence:.3g}: of {len(nodes):,} labelled test nodes, the strictest "
            f"threshold answers {int(answered.sum()):,}, and "
            f"{int(wrong_N[nodes][answered].sum()):,} of these are wrong; accept more errors or "
            "less confidence, or label more nodes",
            arguments=("error_among_answered", "confidence"),
        )
    threshold = float(thresholds_G[passed - 1])
    answered = trust_N[nodes] >= threshold
    return Promise(
        error=error,
        confidence=confidence,
        threshold=threshold,
        held_out_nodes=len(nodes),
        answered_nodes=int(answered.sum()),
        answered_errors=int(wrong_N[nodes][answered].sum()),
    )


def fixed_sequence(
    trust_V: NDArray[np.float64],
    wrong_V: NDArray[np.bool_],
    *,
    num_nodes: int,
    error: float,
    least: int,
) -> NDArray[np.float64]:
    """Return the thresholds to test, from the strictest to 0, which answers every node, (G,).

    They are values of trust of the validation nodes. The first one is where these nodes, were they
    as many as the held-out nodes, support the promise best, among the thresholds at which twice
    the least number of held-out nodes is expected to be answered; and, if validation nodes are
    too few for that, the loosest.

    >>> trust, wrong = np.array([0.9, 0.6, 0.3]), np.array([False, False, True])
    >>> fixed_sequence(trust, wrong, num_nodes=300, error=0.1, least=22).tolist()
    [0.6, 0.3, 0.0]

    Args:
        trust_V: Trust of the validation nodes.
        wrong_V: Whether their predictions are wrong.
        num_nodes: Number of held-out nodes.
        error: Largest probability of an error that is to be promised.
        least: Number of answered nodes of which none may be wrong.
    """
    order = np.argsort(-trust_V, kind="stable")
    sorted_V = trust_V[order]
    last = np.append(sorted_V[1:] != sorted_V[:-1], True)[: len(order)]
    answered_V = np.arange(1, len(order) + 1)
    errors_V = np.cumsum(wrong_V[order])
    chosen = np.flatnonzero(last)
    if len(chosen) > MOST_THRESHOLDS:
        chosen = chosen[np.linspace(0, len(chosen) - 1, MOST_THRESHOLDS).round().astype(np.int64)]
    expected_G = answered_V[chosen] * (num_nodes / max(len(order), 1))
    enough = np.flatnonzero(expected_G >= min(2 * least, num_nodes))
    if not len(enough):
        return np.zeros(1)
    scale = num_nodes / len(order)
    tail_G = binom.logcdf(
        np.floor(errors_V[chosen][enough] * scale), np.floor(expected_G[enough]), error
    )
    start = enough[int(np.argmin(tail_G))]
    return np.append(sorted_V[chosen[start:]], 0.0)


def passing_thresholds(
    trust_T: NDArray[np.float64],
    wrong_T: NDArray[np.bool_],
    thresholds_G: NDArray[np.float64],
    error: float,
    confidence: float,
) -> int:
    """Return how many thresholds pass before the first one fails.

    >>> trust, wrong = np.linspace(0, 1, 100), np.zeros(100, bool)
    >>> passing_thresholds(trust, wrong, np.array([0.5, 0.1]), error=0.05, confidence=0.9)
    2

    Args:
        trust_T: Trust of the held-out nodes.
        wrong_T: Whether their predictions are wrong.
        thresholds_G: Thresholds that do not depend on the held-out nodes, decreasing.
        error: Largest probability of an error among answered nodes.
        confidence: Probability with which the promise is kept.
    """
    order = np.argsort(-trust_T, kind="stable")
    errors_T = np.concatenate([[0], np.cumsum(wrong_T[order])])
    answered_G = np.searchsorted(-trust_T[order], -thresholds_G, side="right")
    tail_G = binom.cdf(errors_T[answered_G], answered_G, error)
    failed = np.flatnonzero(tail_G > 1.0 - confidence)
    return int(failed[0]) if len(failed) else len(thresholds_G)
