"""Choice and order of the nodes that a page lists.

Shapes: N nodes, R listed nodes.
"""

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import NodeIds
from gpn_scale.evaluation.prediction import Prediction

MOST_ROWS = 20_000
"""Number of nodes that a page lists at most."""
_RNG_SEED = 0


def strangest_first(prediction: Prediction) -> NodeIds:
    """Return all nodes, those that the model knows least first, (N,).

    Nodes are ordered by the p-value that they are known, and equal ones by surprise; a model
    without p-values orders them by evidence.
    """
    if prediction.p is None:
        return np.argsort(prediction.alpha_0, kind="stable")
    assert prediction.surprise is not None
    return np.lexsort((-prediction.surprise, prediction.p.known))


def listed_nodes(order: NodeIds, most: int = MOST_ROWS) -> tuple[NodeIds, str]:
    """Return the nodes to list, in their order, and a sentence that says which they are.

    All nodes are listed if they are not more than `most`. Otherwise these are the strangest
    quarter, the surest quarter, and a random sample of those in between.
    """
    if len(order) <= most:
        return order, f"All {len(order):,} nodes are listed."
    quarter = most // 4
    between = order[quarter : len(order) - quarter]
    rng = np.random.default_rng(_RNG_SEED)
    places: NDArray[np.int64] = rng.choice(len(between), most - 2 * quarter, replace=False)
    listed = np.concatenate(
        [order[:quarter], between[np.sort(places)], order[len(order) - quarter :]]
    )
    return listed, (
        f"{most:,} of {len(order):,} nodes are listed: the {quarter:,} strangest, the "
        f"{quarter:,} surest, and a random sample of {most - 2 * quarter:,} of the others. "
        "predictions.parquet has all of them."
    )
