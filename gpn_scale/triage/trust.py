"""How far a prediction can be trusted: one order for "probably wrong" and "probably unknown".

    trust = probability of the predicted class * sqrt(p_known * exp(-beyond))

The calibrated probability says how often such a prediction is right if the node is known, and
p_known whether it looks like a known node. The root keeps p-values of one half, which half of the
known nodes have, from outweighing the probability. No p-value is smaller than 1 / (1 + number of
validation nodes), so with few of them many nodes share the smallest one; `PValues.beyond`, which is
0 for all others, tells these apart. The order was chosen on the validation nodes of two graphs
(benchmarks/results/review_order_2cores_202611.md). A model without p-values has the probability
alone.

Shapes: N nodes.
"""

import numpy as np
from numpy.typing import NDArray

from gpn_scale.evaluation.prediction import Prediction, row_blocks


def trust_of(prediction: Prediction) -> NDArray[np.float64]:
    """Return how far each prediction can be trusted, in [0, 1], (N,).

    >>> from gpn_scale.evaluation.p_values import PValues
    >>> prediction = Prediction(
    ...     probabilities=np.array([[0.75, 0.25], [0.5, 0.5]]),
    ...     probabilities_no_network=np.full((2, 2), 0.5),
    ...     alpha_0=np.array([8.0, 2.0]),
    ...     alpha_0_no_network=np.array([2.0, 2.0]),
    ...     p=PValues(known=np.array([0.25, 1.0])),
    ... )
    >>> trust_of(prediction).tolist()
    [0.375, 0.5]
    """
    trust_N = np.empty(len(prediction.alpha_0))
    for rows in row_blocks(len(trust_N)):
        trust_N[rows] = prediction.probabilities[rows].max(1, initial=0.0)
    return trust(trust_N, None if prediction.p is None else prediction.p.continued)


def trust(
    probability_N: NDArray[np.floating], p_known_N: NDArray[np.floating] | None
) -> NDArray[np.float64]:
    """Return the trust in predictions of which only these two numbers are known, in [0, 1], (N,).

    >>> trust(np.array([0.75, 0.5]), np.array([0.25, 1.0])).tolist()
    [0.375, 0.5]

    Args:
        probability_N: Probability of each node's predicted class.
        p_known_N: P-value that each node is known, continued where `PValues.beyond` is known; None
            for a model without p-values.
    """
    trust_N = np.array(probability_N, np.float64)
    if p_known_N is not None:
        trust_N *= np.sqrt(p_known_N.astype(np.float64))
    return np.clip(trust_N, 0.0, 1.0)
