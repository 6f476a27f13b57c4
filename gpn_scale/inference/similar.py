"""Nodes that a trained encoder places near each other.

Shapes: N nodes, D latent dimensions.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.errors import ConfigError, GraphError
from gpn_scale.inference.encoder_inputs import required_features
from gpn_scale.inference.node_values import check_table
from gpn_scale.inference.trained_model import CHUNK_ROWS, TrainedModel
from gpn_scale.scratch import release_pages

_BLOCK_ROWS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimilarNodes:
    """The nearest nodes of one node, nearest first.

    >>> similar = similar_nodes(np.array([[0.0], [3.0], [1.0]], np.float32), node=0, count=2)
    >>> similar.nodes.tolist(), similar.distance.tolist()
    ([2, 1], [1.0, 3.0])
    """

    nodes: NodeIds
    """Positions of the nodes."""
    distance: NDArray[np.float64]
    """Their Euclidean distances in latent space."""


def latent_into(trained: TrainedModel, graph: Graph, latent: NDArray[np.float32]) -> None:
    """Write the latent positions of all nodes, (N, D), in chunks.

    >>> from gpn_scale import GPNClassifier
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> from gpn_scale.ppr.example import example_graph
    >>> graph, config = example_graph(), RunConfig(train=TrainConfig(epochs=1))
    >>> trained = GPNClassifier(config, device="cpu").fit(graph).trained
    >>> latent = np.empty((3, trained.network.flow.latent), np.float32)
    >>> latent_into(trained, graph, latent)
    >>> bool(np.isfinite(latent).all())
    True

    Args:
        trained: The model.
        graph: Graph with the model's features.
        latent: Array to fill, in memory or mapped, (N, D).

    Raises:
        ConfigError: the array has another shape or type.
    """
    check_table(latent, (graph.num_nodes, trained.network.flow.latent), "latent")
    features = required_features(graph)
    for start in range(0, graph.num_nodes, CHUNK_ROWS):
        nodes = np.arange(start, min(start + CHUNK_ROWS, graph.num_nodes))
        latent[start : start + len(nodes)] = trained.latent(features, nodes).float().cpu().numpy()
        release_pages(latent)


def similar_nodes(latent: NDArray[np.float32], node: int, count: int) -> SimilarNodes:
    """Return the nodes that are nearest to a node, without the node itself.

    The matrix is read in blocks and never copied; memory grows with a block. Of nodes at the same
    distance, those with smaller ids come first.

    >>> latent = np.array([[0.0], [1.0], [-1.0], [5.0]], np.float32)
    >>> similar_nodes(latent, node=0, count=2).nodes.tolist()
    [1, 2]

    Args:
        latent: Latent positions of all nodes from `latent_into`, (N, D); may be memory-mapped.
        node: Position of the node.
        count: Number of nodes to return; all others if there are fewer.

    Raises:
        GraphError: there is no such node.
        ConfigError: the count is negative.
    """
    if not 0 <= node < len(latent):
        raise GraphError(
            f"node is {node}, expected a position in [0, {len(latent)})", arguments=("node",)
        )
    if count < 0:
        raise ConfigError(f"count is {count}, expected at least 0", arguments=("count",))
    own_D = np.asarray(latent[node])
    nodes, squares = np.empty(0, np.int64), np.empty(0)
    for start in range(0, len(latent), _BLOCK_ROWS):
        offset = latent[start : start + _BLOCK_ROWS] - own_D
        square = np.einsum("nd,nd->n", offset, offset, dtype=np.float64)
        if start <= node < start + len(square):
            square[node - start] = np.inf  # last of all, and never returned
        near = _nearest(square, count)
        nodes = np.concatenate([nodes, start + near])
        squares = np.concatenate([squares, square[near]])
        best = _nearest(squares, count)
        nodes, squares = nodes[best], squares[best]
    others = nodes != node
    return SimilarNodes(nodes=nodes[others], distance=np.sqrt(squares[others]))


def _nearest(squares: NDArray[np.float64], count: int) -> NodeIds:
    """Return the places of the smallest numbers in order; of equal ones, the first come first."""
    candidates = np.arange(len(squares))
    if count < len(squares):
        limit = np.partition(squares, count)[count]
        candidates = np.flatnonzero(squares <= limit)
    order = np.argsort(squares[candidates], kind="stable")
    return candidates[order[:count]]
