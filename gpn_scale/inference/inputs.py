"""A graph's features as the encoder takes them."""

import numpy as np
import torch

from gpn_scale.config import FeatureScaling
from gpn_scale.data.features import scale_features
from gpn_scale.data.graph import CSRFeatures, Features, Graph
from gpn_scale.errors import GraphError
from gpn_scale.nn.encoder import Inputs
from gpn_scale.nn.sparse import SparseMatrix


def model_inputs(
    graph: Graph, scaling: FeatureScaling, device: torch.device, dtype: torch.dtype
) -> Inputs:
    """The features of all nodes, scaled; sparse stay sparse."""
    return as_inputs(scale_features(required_features(graph), scaling), device, dtype)


def required_features(graph: Graph) -> Features:
    """The graph's features.

    Raises:
        GraphError: it has none.
    """
    if graph.features is None:
        raise GraphError(
            f"graph {graph.name!r} has no features, expected some to learn from: "
            "add feature columns (node degrees would do for a start)"
        )
    return graph.features


def as_inputs(features: Features, device: torch.device, dtype: torch.dtype) -> Inputs:
    """Feature rows as a tensor or a sparse matrix; always a copy."""
    if isinstance(features, CSRFeatures):
        return SparseMatrix(
            torch.from_numpy(np.array(features.indptr)).to(device),
            torch.from_numpy(np.array(features.indices)).to(device),
            torch.from_numpy(np.array(features.values)).to(device, dtype),
            features.num_columns,
        )
    return torch.from_numpy(np.array(features)).to(device, dtype)
