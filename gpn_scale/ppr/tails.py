"""Tails: estimates of the part of a diffusion row that the cut to k entries removed.

- `truncated`: nothing replaces it.
- `renormalised`: the kept entries are scaled up to the mass of the full row.
- `stationary`: its mass goes to the mean evidence of all nodes.
- `clustered`: the mass cut from each of the store's clusters goes to the cluster's mean evidence
  and to the kept entries of that cluster.

The last two give each row a weight for every cluster's mean evidence. The means are estimated from
drawn nodes, by a ratio of weighted sums.

Shapes: B rows, E entries, P clusters of the tail (0 for the first two), T drawn nodes.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpn_scale.config import DiffusionConfig, MinibatchConfig
from gpn_scale.csr import entries_of
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.errors import StoreError
from gpn_scale.ppr.rows import Rows
from gpn_scale.ppr.store import PPRStore

ClusterWeight = NDArray[np.float32]
"""Weight (B, P) that each row gives to the mean evidence of each cluster."""

_LEAST_WEIGHT = np.float32(1e-9)
"""Weight of nodes that no row has cut; it only matters in clusters without other nodes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drawn:
    """Random nodes from which the mean evidence of clusters is estimated.

    >>> from gpn_scale.ppr.example import EXAMPLE_DIFFUSION, example_graph
    >>> tail = ClusterTail(example_graph(), EXAMPLE_DIFFUSION, num_clusters=1)
    >>> drawn = tail.draw(3, np.random.default_rng(1))
    >>> drawn.node_global.tolist(), drawn.weight.tolist()
    ([0, 1, 2], [1.0, 2.0, 1.0])
    """

    node_global: NodeIds
    """Distinct node ids, sorted, (T,)."""
    cluster: NDArray[np.int64]
    """Cluster of each node, (T,)."""
    weight: NDArray[np.float32]
    """Weight of each node in its cluster's mean, (T,)."""


class AbstractTail(ABC):
    """A method that accounts for the mass that the cut removed.

    >>> from gpn_scale.ppr.example import EXAMPLE_DIFFUSION, example_graph
    >>> tail = TruncatedTail(example_graph(), EXAMPLE_DIFFUSION)
    >>> tail.cluster_of(np.array([0, 2])).tolist(), tail.weight_of(np.array([0, 1])).tolist()
    ([0, 0], [1.0, 2.0])

    Args:
        graph: The graph of the rows.
        diffusion: The diffusion of the rows.
        num_clusters: P.
        cluster_of_node: Cluster of every node; None puts all nodes into cluster 0.
    """

    def __init__(
        self,
        graph: Graph,
        diffusion: DiffusionConfig,
        num_clusters: int = 0,
        cluster_of_node: NDArray[np.int32] | None = None,
    ) -> None:
        self.num_clusters = num_clusters
        self._graph, self._diffusion = graph, diffusion
        self._cluster_of_node = cluster_of_node

    @abstractmethod
    def apply(self, root_global: NodeIds, rows: Rows) -> tuple[Rows, ClusterWeight]:
        """Return the stored `rows` of the roots with new weights, and the clusters' weights."""

    @property
    def uses_store_clusters(self) -> bool:
        """Whether the clusters are those of the store, rather than one of all nodes."""
        return self._cluster_of_node is not None

    def cluster_of(self, nodes: NodeIds) -> NDArray[np.int64]:
        """Return the cluster of each of `nodes`; 0 if the tail does not use the store's."""
        if self._cluster_of_node is None:
            return np.zeros(len(nodes), np.int64)
        return self._cluster_of_node[nodes].astype(np.int64)

    def weight_of(self, nodes: NodeIds) -> NDArray[np.float32]:
        """Return the weight of each of `nodes` in its cluster's mean, above 0."""
        return stationary_weight(self._graph, self._diffusion, nodes).astype(np.float32)

    def draw(self, count: int, rng: np.random.Generator) -> Drawn:
        """Return at most `count` nodes, drawn uniformly without replacement; none if P is 0.

        The cost is proportional to `count`; only for more than 5 % of the nodes does the generator
        list all of them.
        """
        num_nodes = self._graph.num_nodes if self.num_clusters else 0
        if count >= num_nodes:
            nodes = np.arange(num_nodes)
        else:
            nodes = np.sort(rng.choice(num_nodes, count, replace=False, shuffle=False))
        return Drawn(
            node_global=nodes, cluster=self.cluster_of(nodes), weight=self.weight_of(nodes)
        )


class TruncatedTail(AbstractTail):
    """Keeps the rows unchanged, so that the cut mass is lost.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import EXAMPLE_DIFFUSION, example_graph, example_store
    >>> tail = TruncatedTail(example_graph(), EXAMPLE_DIFFUSION)
    >>> with TemporaryDirectory() as folder:
    ...     rows, cluster_weight = tail.apply(np.array([1]), example_store(folder).rows([1]))
    >>> rows.weights.tolist(), cluster_weight.shape
    ([0.5, 0.25], (1, 0))
    """

    def apply(self, root_global: NodeIds, rows: Rows) -> tuple[Rows, ClusterWeight]:  # noqa: D102
        return rows, _no_clusters(rows)


class RenormalisedTail(AbstractTail):
    """Multiplies the kept weights by (kept + missing) / kept mass of their row.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import EXAMPLE_DIFFUSION, example_graph, example_store
    >>> tail = RenormalisedTail(example_graph(), EXAMPLE_DIFFUSION)
    >>> with TemporaryDirectory() as folder:
    ...     rows, _ = tail.apply(np.array([1]), example_store(folder).rows([1]))
    >>> (3 * rows.weights).round(3).tolist()  # two thirds and one third
    [2.0, 1.0]
    """

    def apply(self, root_global: NodeIds, rows: Rows) -> tuple[Rows, ClusterWeight]:  # noqa: D102
        row_E = rows.row_of_entry()
        kept_B = np.bincount(row_E, rows.weights, minlength=rows.num_rows)
        factor_B = 1.0 + rows.missing_mass / np.where(kept_B > 0, kept_B, 1.0)
        weights = (rows.weights * factor_B[row_E]).astype(np.float32)
        return replace(rows, weights=weights), _no_clusters(rows)


class ClusterTail(AbstractTail):
    """Gives the cut mass to clusters: the store's, or one of all nodes.

    A node's weight in its cluster's mean is the mass that all rows together cut from it, so that
    over all rows the means restore what was cut; without `cut_mass_of_node`, it is the node's
    weight in the diffusion's far field.

    The nodes cut from a cluster resemble the kept ones more than they resemble the cluster's mean,
    especially if much was kept. So the kept neighbours in a cluster share its cut mass with the
    mean, in proportion to their weights, where the mean counts as `prior_mass` of weight. This is
    the posterior mean of a cluster's evidence as the root sees it. The root itself is never cut,
    so it says nothing about the nodes that were.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import EXAMPLE_DIFFUSION, example_graph, example_store
    >>> with TemporaryDirectory() as folder:
    ...     store = example_store(folder)
    ...     tail = ClusterTail(example_graph(), EXAMPLE_DIFFUSION, 2, store.cluster_of_node)
    ...     rows, cluster_weight = tail.apply(np.array([1]), store.rows([1]))
    >>> rows.weights.tolist(), cluster_weight.tolist()
    ([0.5, 0.25], [[0.0, 0.25]])

    Args:
        graph: The graph of the rows.
        diffusion: The diffusion of the rows.
        num_clusters: P.
        cluster_of_node: Cluster of every node; None for one cluster of all nodes.
        cut_mass_of_node: Mass that all rows together cut from every node.
        prior_mass: Weight of the mean, above 0; infinity gives all of the cut mass to it.
    """

    def __init__(
        self,
        graph: Graph,
        diffusion: DiffusionConfig,
        num_clusters: int,
        cluster_of_node: NDArray[np.int32] | None = None,
        cut_mass_of_node: NDArray[np.float32] | None = None,
        *,
        prior_mass: float = np.inf,
    ) -> None:
        super().__init__(graph, diffusion, num_clusters, cluster_of_node)
        self._cut_mass_of_node = cut_mass_of_node
        self._prior_mass = prior_mass

    def weight_of(self, nodes: NodeIds) -> NDArray[np.float32]:  # noqa: D102
        if self._cut_mass_of_node is None:
            return super().weight_of(nodes)
        return np.maximum(self._cut_mass_of_node[nodes], _LEAST_WEIGHT)

    def apply(self, root_global: NodeIds, rows: Rows) -> tuple[Rows, ClusterWeight]:  # noqa: D102
        one_cluster = self._cluster_of_node is None
        cut_BP = rows.missing_mass[:, None] if one_cluster else rows.cut_mass
        row_E = rows.row_of_entry()
        place_E = row_E * self.num_clusters + self.cluster_of(rows.ids.astype(np.int64))
        kept_E = np.where(rows.ids == root_global[row_E], 0.0, rows.weights)
        kept_BP = np.bincount(place_E, kept_E, minlength=cut_BP.size).reshape(cut_BP.shape)
        factor_BP = cut_BP / (self._prior_mass + kept_BP)
        weights = (rows.weights + kept_E * factor_BP.ravel()[place_E]).astype(np.float32)
        cluster_weight = (cut_BP - kept_BP * factor_BP).astype(np.float32)
        return replace(rows, weights=weights), cluster_weight


def make_tail(
    config: MinibatchConfig, store: PPRStore, graph: Graph, diffusion: DiffusionConfig
) -> AbstractTail:
    """Return the tail that `config` names, for the rows of `store`.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import EXAMPLE_DIFFUSION, example_graph, example_store
    >>> with TemporaryDirectory() as folder:
    ...     store, config = example_store(folder), MinibatchConfig(tail="clustered")
    ...     make_tail(config, store, example_graph(), EXAMPLE_DIFFUSION).num_clusters
    2

    Raises:
        StoreError: the tail is `clustered` and the store has no clusters.
    """
    match config.tail:
        case "truncated":
            return TruncatedTail(graph, diffusion)
        case "renormalised":
            return RenormalisedTail(graph, diffusion)
        case "stationary":
            return ClusterTail(graph, diffusion, 1)
        case "clustered":
            if not store.num_clusters:
                raise StoreError(
                    f"{store.path} has no clusters, which minibatch.tail='clustered' needs: build "
                    "the store again with clusters=32, or set minibatch.tail to 'stationary'",
                    arguments=("clusters", "minibatch.tail"),
                )
            return ClusterTail(
                graph,
                diffusion,
                store.num_clusters,
                store.cluster_of_node,
                store.cut_mass_of_node,
                prior_mass=config.tail_prior_mass,
            )


def stationary_weight(
    graph: Graph, diffusion: DiffusionConfig, nodes: NodeIds
) -> NDArray[np.float64]:
    """Return the weight of `nodes` in the diffusion's far field, up to a common factor.

    It is d for `rw` and sqrt(d) for `sym`, where d is the out-weight with its loop: rows of `sym`
    are sqrt(d_v / d_u) times those of `rw`, whose limit is proportional to d_u.

    >>> from gpn_scale.ppr.example import EXAMPLE_DIFFUSION, example_graph
    >>> stationary_weight(example_graph(), EXAMPLE_DIFFUSION, np.array([0, 1, 2])).tolist()
    [1.0, 2.0, 1.0]
    """
    weight = _out_weight(graph, diffusion.self_loops, nodes)
    return weight if diffusion.normalisation == "rw" else np.sqrt(weight)


def _out_weight(graph: Graph, self_loops: bool, nodes: NodeIds) -> NDArray[np.float64]:
    """Return the row sums of A, with the loops of `transition_matrix`, for `nodes` only."""
    degree = graph.indptr[nodes + 1] - graph.indptr[nodes]
    loop = (degree == 0) | self_loops
    weight: NDArray[np.float64] = loop.astype(np.float64)
    if graph.edge_weight is None:
        return weight + degree
    edge_E = entries_of(graph.indptr, nodes)[1]
    row_E = np.repeat(np.arange(len(nodes)), degree)
    return weight + np.bincount(row_E, graph.edge_weight[edge_E], minlength=len(nodes))


def _no_clusters(rows: Rows) -> ClusterWeight:
    return np.empty((rows.num_rows, 0), np.float32)
