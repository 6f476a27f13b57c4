"""Graphs, predictions and top-k PPR rows for PyTorch Geometric.

Shapes: N nodes, E edges, F feature columns, C classes.
"""

import warnings
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpn_scale.data.graph import MISSING_LABEL, CSRFeatures, Graph
from gpn_scale.data.pyg import numpy_of
from gpn_scale.errors import GraphError
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.interop.prediction_columns import prediction_columns

with warnings.catch_warnings():
    # Importing PyG uses parts of torch.jit that torch has deprecated.
    warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)
    from torch_geometric.data import Data
    from torch_geometric.transforms import BaseTransform


def to_pyg(
    graph: Graph, prediction: Prediction | None = None, *, sparse_features: bool = False
) -> Any:
    """Return a graph as `torch_geometric.data.Data`; `gpn_scale.graph_from_pyg` is the inverse.

    It has `edge_index` (2, E) and `num_nodes`, and if the graph has them, `x` (N, F), `y` (N,) with
    -1 for a missing label, `edge_weight` (E,) and `train_mask`, `val_mask` and `test_mask` (N,). A
    prediction adds `predicted_class` (N,), `probabilities` (N, C), `alpha` (N, C), `alpha_0` (N,)
    and, of a GPN+, `p_known` (N,). Names and marks stay with the graph.

    >>> from gpn_scale import build_graph, graph_from_pyg
    >>> graph = build_graph([0, 1], [1, 2], features=[[0.5], [1.5], [2.5]], labels=[0, 1, -1])
    >>> data = to_pyg(graph)
    >>> data
    Data(edge_index=[2, 4], num_nodes=3, x=[3, 1], y=[3])
    >>> graph_from_pyg(data).fingerprint() == graph.fingerprint()
    True

    Args:
        graph: The graph; edges without direction become two.
        prediction: A prediction of all its nodes.
        sparse_features: Whether sparse features become a sparse CSR tensor, which few layers take,
            instead of a dense one.

    Raises:
        GraphError: the prediction is not one of the graph's nodes.
    """
    row = np.repeat(np.arange(graph.num_nodes), graph.out_degree)
    data = Data(edge_index=_tensor(np.stack([row, graph.indices])), num_nodes=graph.num_nodes)
    if graph.features is not None:
        data.x = _features(graph.features, sparse=sparse_features)
    if graph.num_classes or (graph.labels != MISSING_LABEL).any():
        data.y = _tensor(graph.labels.astype(np.int64))
    if graph.edge_weight is not None:
        data.edge_weight = _tensor(graph.edge_weight)
    if graph.split is not None:
        for subset in ("train", "val", "test"):
            mask = torch.zeros(graph.num_nodes, dtype=torch.bool)
            mask[_tensor(getattr(graph.split, subset))] = True
            data[f"{subset}_mask"] = mask
    if prediction is not None:
        for name, values in prediction_columns(graph, prediction).items():
            data[name] = _tensor(values)
        data.alpha = _tensor(prediction.alpha)
    return data


class AddTopKPPR(BaseTransform):  # type: ignore[misc] # PyG ships no types
    """A transform of PyG that adds certified top-k personalised-PageRank rows as weighted edges.

    `data.ppr_edge_index` (2, R) has an edge from every kept node u to the root v of its row, and
    `data.ppr_edge_weight` (R,) the weight of u in the row of v, so that a sum over incoming
    messages is Pi x. Weights never exceed the exact ones, and `data.ppr_missing_mass` (N,) bounds
    what each row lacks (`precompute.TopKRows`). Batches of PyG shift the ids as they should be.

    >>> from torch_geometric.data import Data
    >>> edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> data = AddTopKPPR(k=2)(Data(edge_index=edges, num_nodes=3))
    >>> data.ppr_edge_index.shape, data.ppr_edge_weight.shape, data.ppr_missing_mass.shape
    (torch.Size([2, 6]), torch.Size([6]), torch.Size([3]))

    Args:
        k: Number of entries of a row.
        teleport: Probability of stopping before each step of a walk, `alpha` of PyG's `get_ppr`.
        normalisation: `row` for walks, or `sym`.
        steps: Number of steps after which a walk stops; None for no limit.
        tolerance: As in `precompute.topk_ppr`.
        self_loops: Whether every node gets a loop; loops of `edge_index` are dropped.
        name: What the names of the new attributes begin with; None to replace `edge_index` and
            `edge_weight`, as PyG's `GDC` does.
        threads: Number of threads; None for all cores.
    """

    def __init__(
        self,
        k: int = 32,
        teleport: float = 0.15,
        *,
        normalisation: Literal["row", "sym"] = "row",
        steps: int | None = None,
        tolerance: float | None = None,
        self_loops: bool = False,
        name: str | None = "ppr",
        threads: int | None = None,
    ) -> None:
        self.k, self.teleport, self.normalisation = k, teleport, normalisation
        self.steps, self.tolerance, self.self_loops = steps, tolerance, self_loops
        self.name, self.threads = name, threads

    def forward(self, data: Any) -> Any:
        """Add the rows to `data`, whose `edge_weight` counts if there is one, and return it.

        Raises:
            GraphError: `edge_index` is missing or not valid.
            ConfigError: an argument of the transform has a value that is not allowed.
        """
        from precompute.topk import NO_NODE, topk_ppr  # numba is loaded only for this

        edge_index, weight = getattr(data, "edge_index", None), getattr(data, "edge_weight", None)
        if edge_index is None:
            raise GraphError(
                f"data is a {type(data).__name__} without edge_index, expected a homogeneous Data",
                arguments=("data",),
            )
        rows = topk_ppr(
            numpy_of(edge_index, "data.edge_index"),
            k=self.k,
            teleport=self.teleport,
            normalisation=self.normalisation,
            steps=self.steps,
            tolerance=self.tolerance,
            num_nodes=data.num_nodes,
            edge_weight=None if weight is None else numpy_of(weight, "data.edge_weight"),
            self_loops=self.self_loops,
            threads=self.threads,
        )
        used = rows.ids != NO_NODE
        root = np.broadcast_to(rows.roots[:, None], used.shape)
        prefix = "" if self.name is None else f"{self.name}_"
        data[f"{prefix}edge_index"] = _tensor(np.stack([rows.ids[used], root[used]]))
        data[f"{prefix}edge_weight"] = _tensor(rows.weights[used])
        data[f"{self.name or 'ppr'}_missing_mass"] = _tensor(rows.missing_mass)
        return data

    def __repr__(self) -> str:
        return f"{type(self).__name__}(k={self.k}, teleport={self.teleport})"


def _features(features: NDArray[Any] | CSRFeatures, *, sparse: bool) -> Tensor:
    if not isinstance(features, CSRFeatures):
        return _tensor(features)
    if not sparse:
        return _tensor(features.to_dense())
    indptr, indices = _tensor(features.indptr), _tensor(features.indices.astype(np.int64))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
        return torch.sparse_csr_tensor(
            indptr, indices, _tensor(features.values), size=features.shape, check_invariants=False
        )


def _tensor(array: NDArray[Any]) -> Tensor:
    """Return a copy of an array, which may be a read-only map, as a tensor."""
    return torch.from_numpy(np.array(array, order="C"))
