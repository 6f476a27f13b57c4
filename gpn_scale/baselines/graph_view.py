"""A graph in the form of comparison models: scaled features, and edges as sparse matrices.

Shapes: N nodes, F features, H outputs of a linear map.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpn_scale.config import FeatureScaling, Normalisation
from gpn_scale.csr import entries_of
from gpn_scale.data.features import scale_features, take_rows
from gpn_scale.data.graph import CSRFeatures, Features, Graph, NodeIds
from gpn_scale.diffusion.transition import transition_matrix
from gpn_scale.inference.encoder_inputs import as_inputs, repeated_inputs, required_features
from gpn_scale.inference.perturbed import FeaturesOf
from gpn_scale.inference.trained_model import CHUNK_ROWS
from gpn_scale.nn.encoder import Inputs
from gpn_scale.nn.sparse import SparseMatrix
from gpn_scale.train.task import checked_split, labelled


class EdgeMatrices:
    """Normalised adjacency matrices of a graph, each computed once.

    Args:
        graph: The graph.
        device: Device of the matrices.
        dtype: Type of their values.
    """

    def __init__(self, graph: Graph, device: torch.device, dtype: torch.dtype) -> None:
        self.graph, self._device, self.dtype = graph, device, dtype
        self._transitions: dict[tuple[str, bool], SparseMatrix] = {}

    def transition(self, normalisation: Normalisation, *, self_loops: bool = True) -> SparseMatrix:
        """Return the adjacency matrix, normalised as `sym` or `rw`; (N, N)."""
        key = (normalisation, self_loops)
        if key not in self._transitions:
            matrix = transition_matrix(self.graph, normalisation, self_loops)
            self._transitions[key] = SparseMatrix(
                torch.from_numpy(matrix.indptr).to(self._device),
                torch.from_numpy(matrix.indices).to(self._device),
                torch.from_numpy(matrix.weight).to(self._device, self.dtype),
                matrix.num_nodes,
                symmetric=matrix.symmetric,
            )
        return self._transitions[key]

    @cached_property
    def squared(self) -> SparseMatrix:
        """The `sym` matrix with squared weights, which sums the variances of neighbours; (N, N)."""
        matrix = self.transition("sym")
        return SparseMatrix(
            matrix.indptr,
            matrix.indices,
            matrix.values.square(),
            matrix.shape[1],
            symmetric=matrix.symmetric,
        )

    @cached_property
    def pairs(self) -> tuple[Tensor, Tensor, Tensor]:
        """Row, column and number of the undirected edge of every `sym` entry; -1 for self-loops."""
        matrix = self.transition("sym")
        column_E = matrix.indices.long().cpu().numpy()
        row_E = np.repeat(np.arange(matrix.shape[0]), matrix.indptr.diff().cpu().numpy())
        key_E = np.minimum(row_E, column_E) * matrix.shape[0] + np.maximum(row_E, column_E)
        pair_E = np.full(len(key_E), -1)
        proper = row_E != column_E
        pair_E[proper] = np.unique(key_E[proper], return_inverse=True)[1]
        row, column, pair = (torch.from_numpy(part) for part in (row_E, column_E, pair_E))
        return row.to(self._device), column.to(self._device), pair.to(self._device)


class FeatureRows:
    """Feature rows that are converted to model inputs on first use.

    Args:
        features: Scaled features.
        device: Device of the inputs.
        dtype: Type of their values.
        repeated: Whether every step takes all rows, so that products are worth remembering.
    """

    def __init__(
        self,
        features: Features,
        device: torch.device,
        dtype: torch.dtype,
        *,
        repeated: bool = False,
    ) -> None:
        self.features, self._device, self._dtype = features, device, dtype
        self._is_repeated = repeated

    @cached_property
    def inputs(self) -> Inputs:
        """Inputs of all rows, (N, F)."""
        inputs = self.as_inputs(self.features)
        return repeated_inputs(inputs) if self._is_repeated else inputs

    def as_inputs(self, rows: Features) -> Inputs:
        """Convert any feature rows to model inputs."""
        return as_inputs(rows, self._device, self._dtype)

    def take(self, nodes: NodeIds) -> "FeatureRows":
        """Return the feature rows of some nodes, for one step."""
        return FeatureRows(take_rows(self.features, nodes), self._device, self._dtype)


@dataclass(frozen=True, eq=False)
class GraphView:
    """A graph on a device, with other features at some nodes if an experiment replaced them."""

    graph: Graph
    edges: EdgeMatrices
    rows: FeatureRows | None
    """Features of the graph; None if it has none."""
    device: torch.device
    replaced: NodeIds | None = None
    """Nodes whose features are replaced; None for none."""
    rows_of: FeaturesOf | None = None
    """Function that returns the new features of the replaced nodes."""

    @classmethod
    def of(
        cls, graph: Graph, scaling: FeatureScaling, device: torch.device, dtype: torch.dtype
    ) -> "GraphView":
        """Return the unchanged graph with scaled features."""
        rows = None
        if graph.features is not None:
            scaled = scale_features(graph.features, scaling)
            rows = FeatureRows(scaled, device, dtype, repeated=True)
        return cls(graph, EdgeMatrices(graph, device, dtype), rows, device)

    @property
    def feature_rows(self) -> FeatureRows:
        """Features of the graph, without replacements.

        Raises:
            GraphError: the graph has no features.
        """
        if self.rows is None:
            required_features(self.graph)
        assert self.rows is not None
        return self.rows

    def project(self, linear: Callable[[Inputs], Tensor]) -> Tensor:
        """Apply a linear map to every node's features, (N, H); sparse rows stay sparse."""
        projected_NH = linear(self.feature_rows.inputs)
        if self.replaced is None or self.rows_of is None or len(self.replaced) == 0:
            return projected_NH
        parts = []
        for start in range(0, len(self.replaced), CHUNK_ROWS):
            rows = self.rows_of(slice(start, min(start + CHUNK_ROWS, len(self.replaced))))
            parts.append(linear(self.feature_rows.as_inputs(rows)))
        position = torch.from_numpy(np.array(self.replaced)).to(self.device)
        return projected_NH.index_copy(0, position, torch.cat(parts))

    def dense_rows(self, nodes: NodeIds) -> NDArray[np.float32]:
        """Return the features of `nodes` as a dense array, one row per node."""
        rows = take_rows(self.feature_rows.features, nodes)
        dense = rows.to_dense() if isinstance(rows, CSRFeatures) else np.array(rows, np.float32)
        if self.replaced is not None and self.rows_of is not None:
            _, position, source = np.intersect1d(nodes, self.replaced, return_indices=True)
            dense[position] = self.rows_of(slice(0, len(self.replaced)))[source]
        return dense

    def with_features(self, nodes: NodeIds, rows_of: FeaturesOf) -> "GraphView":
        """Return this view with other features at `nodes`."""
        return replace(self, replaced=nodes, rows_of=rows_of)

    def with_edges(self, graph: Graph) -> "GraphView":
        """Return this view with the edges of `graph`."""
        return replace(self, graph=graph, edges=EdgeMatrices(graph, self.device, self.edges.dtype))

    def around(self, node: int, hops: int) -> tuple["GraphView", int]:
        """Return the subgraph that a node's prediction depends on, and its position there.

        The subgraph reaches one hop further than features act, so that the degrees of all nodes
        within `hops` are those of the whole graph. The whole graph is returned if it is directed
        (edges into a node count for its degree and cannot be followed backwards), or if the
        subgraph would have more than half of its nodes.
        """
        graph = self.graph
        if graph.directed:
            return self, node
        inside = np.array([node])
        for _ in range(hops + 1):
            inside = np.union1d(inside, _neighbours(graph, inside))
            if 2 * len(inside) > graph.num_nodes:
                return self, node
        subgraph = _induced(graph, inside)
        edges = EdgeMatrices(subgraph, self.device, self.edges.dtype)
        rows = self.feature_rows.take(inside)
        position = int(np.searchsorted(inside, node))
        return replace(self, graph=subgraph, edges=edges, rows=rows), position

    @cached_property
    def training(self) -> tuple[Tensor, Tensor]:
        """Ids of the training nodes, and their labels."""
        return labelled(self.graph, checked_split(self.graph).train, self.device)

    @cached_property
    def validation(self) -> tuple[Tensor, Tensor]:
        """Ids of the validation nodes, and their labels."""
        return labelled(self.graph, checked_split(self.graph).val, self.device)


def _neighbours(graph: Graph, nodes: NodeIds) -> NodeIds:
    return np.unique(graph.indices[entries_of(graph.indptr, nodes)[1]]).astype(np.int64)


def _induced(graph: Graph, nodes: NodeIds) -> Graph:
    """Return the subgraph of `nodes`, without features and split."""
    weight = (
        np.ones(graph.num_edges, np.float32) if graph.edge_weight is None else graph.edge_weight
    )
    whole = scipy.sparse.csr_array(
        (weight, graph.indices, graph.indptr), shape=(graph.num_nodes, graph.num_nodes)
    )
    induced = whole[nodes][:, nodes]
    induced.sort_indices()
    return Graph(
        name=graph.name,
        indptr=induced.indptr.astype(np.int64),
        indices=induced.indices.astype(np.int32),
        edge_weight=None if graph.edge_weight is None else induced.data,
        labels=graph.labels[nodes],
        num_classes=graph.num_classes,
        directed=graph.directed,
    )
