"""The columns of a prediction that other libraries keep with their nodes.

Shapes: N nodes, C classes.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph
from gpn_scale.errors import GraphError
from gpn_scale.evaluation.prediction import Prediction


def prediction_columns(graph: Graph, prediction: Prediction) -> dict[str, NDArray[Any]]:
    """Return what a prediction says about all nodes of `graph`, by name.

    `predicted_class` (N,), `probabilities` (N, C), `alpha_0` (N,), and `p_known` (N,) of a GPN+.

    >>> from gpn_scale import build_graph
    >>> prediction = Prediction(
    ...     probabilities=np.array([[0.75, 0.25], [0.5, 0.5]]),
    ...     probabilities_no_network=np.array([[0.5, 0.5], [0.5, 0.5]]),
    ...     alpha_0=np.array([8.0, 2.0]),
    ...     alpha_0_no_network=np.array([2.0, 2.0]),
    ... )
    >>> columns = prediction_columns(build_graph([0], [1]), prediction)
    >>> sorted(columns), columns["alpha_0"].tolist()
    (['alpha_0', 'predicted_class', 'probabilities'], [8.0, 2.0])

    Raises:
        GraphError: the prediction is not one of all nodes of the graph.
    """
    count = len(prediction.probabilities)
    if count != graph.num_nodes:
        raise GraphError(
            f"prediction has {count} nodes, expected the {graph.num_nodes} nodes of graph "
            f"{graph.name!r}: pass the prediction of all of them",
            arguments=("prediction",),
        )
    columns: dict[str, NDArray[Any]] = {
        "predicted_class": prediction.predicted_class,
        "probabilities": np.asarray(prediction.probabilities),
        "alpha_0": np.asarray(prediction.alpha_0),
    }
    if prediction.p is not None:
        columns["p_known"] = np.asarray(prediction.p.known)
    return columns
