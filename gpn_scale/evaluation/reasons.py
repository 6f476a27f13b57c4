"""Reasons why a node looks unknown: the part of GPN+ with the smallest p-value, as text."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpn_scale.evaluation.prediction import Prediction

NOTHING_UNUSUAL = "nothing unusual"
"""Reason of a node that no part finds strange."""
USUAL_P = 0.1
"""P-value above which a part counts as usual: one known node in ten is stranger."""
LITTLE_SUPPORT = "little support for any class"
"""Reason of a node that the opinion finds strange although it is sure of one class."""
SURE = 0.9
"""Probability from which a prediction does not count as torn between two classes."""
_WORDS = {
    "features": "foreign features",
    "neighbourhood": "foreign neighbourhood",
    "labels": "no label near",
}


def reasons(prediction: Prediction, class_names: Sequence[str]) -> NDArray[np.object_] | None:
    """Return why each node looks unknown, (N,) texts; None for a model without p-values.

    The part with the smallest p-value is named, if that is at most `USUAL_P`. By its energy a node
    can be strange to the opinion that is still sure of one class.

    >>> from gpn_scale.evaluation.p_values import PValues
    >>> half = np.full((3, 2), 0.5, np.float32)
    >>> total, p = np.ones(3, np.float32), np.array([0.01, 0.5, 0.9], np.float32)
    >>> prediction = Prediction(
    ...     probabilities=half,
    ...     probabilities_no_network=half,
    ...     alpha_0=total,
    ...     alpha_0_no_network=total,
    ...     p=PValues(features=p, opinion=p[::-1], known=p),
    ... )
    >>> reasons(prediction, ["sea", "land"]).tolist()
    ['foreign features', 'nothing unusual', 'torn between sea and land']

    Args:
        prediction: Prediction of nodes.
        class_names: Names of the classes.
    """
    p = prediction.p
    if p is None:
        return None
    loudest = np.array(p.parts, dtype=object)[p.loudest]
    texts = np.array([_WORDS.get(part, "") for part in loudest], dtype=object)
    texts[loudest == "opinion"] = LITTLE_SUPPORT
    torn = np.flatnonzero((loudest == "opinion") & (prediction.probabilities.max(1) < SURE))
    for node, (first, second) in zip(torn, _two_classes(prediction, torn), strict=True):
        texts[node] = f"torn between {class_names[first]} and {class_names[second]}"
    smallest = np.min([getattr(p, part) for part in p.parts], axis=0)
    texts[smallest > USUAL_P] = NOTHING_UNUSUAL
    return texts


def reason_kind(reason: str) -> str:
    """Return the kind of a reason, without names of classes, for a filter.

    >>> reason_kind("torn between sea and land")
    'torn between classes'
    """
    if reason.startswith("torn between "):
        return "torn between classes"
    return reason or NOTHING_UNUSUAL


def _two_classes(prediction: Prediction, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the two most probable classes of nodes, the more probable one first, (B, 2)."""
    return np.argsort(-prediction.probabilities[nodes], axis=1, kind="stable")[:, :2]
