"""Features of a graph in the form that the encoder takes."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpn_scale.config import FeatureScaling
from gpn_scale.data.features import scale_features, take_rows
from gpn_scale.data.graph import CSRFeatures, Features, Graph
from gpn_scale.errors import GraphError
from gpn_scale.nn.encoder import Inputs
from gpn_scale.nn.repeated import RepeatedInputs
from gpn_scale.nn.sparse import SparseMatrix

_MOMENT_ROWS = 1 << 16


def model_inputs(
    graph: Graph, scaling: FeatureScaling, device: torch.device, dtype: torch.dtype
) -> Inputs:
    """Return the scaled features of all nodes; sparse features stay sparse.

    >>> from gpn_scale import build_graph
    >>> graph = build_graph([0], [1], features=[[1.0, 3.0], [2.0, 2.0]])
    >>> model_inputs(graph, "row_sum", torch.device("cpu"), torch.float32)
    tensor([[0.2500, 0.7500],
            [0.5000, 0.5000]])
    """
    return as_inputs(scale_features(required_features(graph), scaling), device, dtype)


def required_features(graph: Graph) -> Features:
    """Return the graph's features.

    >>> from gpn_scale import build_graph
    >>> required_features(build_graph([0], [1], features=[[1.0, 3.0], [2.0, 2.0]])).shape
    (2, 2)

    Raises:
        GraphError: the graph has no features.
    """
    if graph.features is None:
        raise GraphError(
            f"graph {graph.name!r} has no features, expected at least one column to learn from: "
            "add feature columns, such as node degrees"
        )
    return graph.features


def column_moments(features: Features, scaling: FeatureScaling) -> tuple[Tensor, Tensor]:
    """Return mean and mean square of every scaled column, (F,) and (F,), in float64.

    Rows are read in chunks.

    >>> mean_F, square_F = column_moments(np.array([[1.0], [3.0]], np.float32), "none")
    >>> mean_F.tolist(), square_F.tolist()
    ([2.0], [5.0])
    """
    num_rows, num_columns = features.shape
    sum_F, square_F = np.zeros(num_columns), np.zeros(num_columns)
    for start in range(0, num_rows, _MOMENT_ROWS):
        nodes = np.arange(start, min(start + _MOMENT_ROWS, num_rows))
        rows = scale_features(take_rows(features, nodes), scaling)
        if isinstance(rows, CSRFeatures):
            values = rows.values.astype(np.float64)
            sum_F += np.bincount(rows.indices, values, minlength=num_columns)
            square_F += np.bincount(rows.indices, np.square(values), minlength=num_columns)
        else:
            sum_F += rows.sum(0, dtype=np.float64)
            square_F += np.square(rows, dtype=np.float64).sum(0)
    return torch.from_numpy(sum_F / num_rows), torch.from_numpy(square_F / num_rows)


def as_inputs(features: Features, device: torch.device, dtype: torch.dtype) -> Inputs:
    """Return feature rows as a tensor or a sparse matrix; writable arrays are not copied.

    >>> as_inputs(np.array([[1.0, 2.0]], np.float32), torch.device("cpu"), torch.float64)
    tensor([[1., 2.]], dtype=torch.float64)
    """
    if isinstance(features, CSRFeatures):
        return SparseMatrix(
            as_tensor(features.indptr).to(device),
            as_tensor(features.indices).to(device),
            as_tensor(features.values).to(device, dtype),
            features.num_columns,
        )
    return as_tensor(features).to(device, dtype)


def repeated_inputs(inputs: Inputs) -> Inputs:
    """Return inputs of all nodes for training in which every step takes all of them.

    Sparse features on a CPU then remember their last product; comparing weights by value would make
    a GPU wait.

    >>> type(repeated_inputs(torch.eye(2))).__name__
    'Tensor'
    """
    if isinstance(inputs, SparseMatrix) and inputs.device.type == "cpu":
        return RepeatedInputs(inputs)
    return inputs


def as_tensor(array: NDArray[Any]) -> Tensor:
    """Wrap an array as a tensor; a read-only array is copied, as torch has no read-only tensors.

    >>> as_tensor(np.array([1.0, 2.0], np.float32))
    tensor([1., 2.])
    """
    return torch.from_numpy(np.require(array, requirements="W"))
