"""Calibration of a GPN+ on the validation nodes of a graph."""

from dataclasses import replace

import numpy as np

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.distributed import World
from gpn_scale.evaluation.known_calibration import KnownCalibration
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.inference.all_nodes import DEFAULT_MEMORY_BYTES, averaged
from gpn_scale.inference.trained_model import TrainedModel


def calibrated(
    trained: TrainedModel,
    graph: Graph,
    nodes: NodeIds,
    prediction: Prediction,
    *,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
    world: World | None = None,
) -> tuple[KnownCalibration, Prediction]:
    """Return the calibration, and the prediction of all nodes with calibrated values.

    >>> from gpn_scale import GPNClassifier, load_graph
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> from gpn_scale.inference.all_nodes import predict_all
    >>> graph = load_graph("synthetic:nodes=300,classes=2")
    >>> trained = GPNClassifier(RunConfig(train=TrainConfig(epochs=5))).fit(graph).trained
    >>> nodes = np.flatnonzero(graph.labels >= 0)[:40]
    >>> calibration, prediction = calibrated(trained, graph, nodes, predict_all(trained, graph))
    >>> calibration.num_nodes, prediction.p.known.shape
    (40, (300,))

    Args:
        trained: The model, which has an opinion.
        graph: Graph with labels.
        nodes: The validation nodes to calibrate on.
        prediction: Uncalibrated prediction of all nodes; its array of probabilities is changed in
            place.
        memory_bytes: Memory budget in addition to graph and model.
        world: The processes that share the work.
    """
    calibration = KnownCalibration.fitted(
        prediction.rows(nodes), graph.labels[nodes], has_edges=graph.num_edges > 0
    )
    calibration.temper(prediction)
    surprise = calibration.surprise(prediction)
    if not surprise:
        return calibration, prediction
    by_part_NM = np.stack(list(surprise.values()), axis=1)
    around_NM = averaged(trained, graph, by_part_NM, memory_bytes=memory_bytes, world=world)
    columns = zip(surprise, around_NM[nodes].T, strict=True)
    around = {part: np.ascontiguousarray(column) for part, column in columns}
    calibration = replace(calibration, surroundings=around)
    p = calibration.p_values(surprise, around_NM.sum(1))
    return calibration, replace(prediction, surprise=by_part_NM.sum(1), p=p)
