"""What stands for the part of a diffusion row that the cut to k entries lost.

`truncated`: nothing. `renormalised`: the kept entries, scaled up. `stationary`: the mean evidence of all nodes. `clustered`: what each of the store's
clusters lost goes to its mean evidence and to the kept entries in it. The last two hand out masses
of clusters, and nodes drawn to estimate the clusters' means by a ratio of weighted sums.

Shapes: B rows, E entries, P clusters of the tail (0 for kinds without), T drawn nodes.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from gpn_scale.config import DiffusionConfig, MinibatchConfig, TailKind
from gpn_scale.csr import entries_of
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.errors import ConfigError, StoreError
from gpn_scale.ppr.store import PPRRows, PPRStore

_LEAST_WEIGHT = np.float32(1e-9)  # of nodes that no row has cut, for clusters that have no others


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TailedRows:
    """Rows whose lost mass is accounted for in their weights or in the masses of clusters."""

    row_ptr: NDArray[np.int64]
    """Offsets of the rows in `ids` and `weights`, (B + 1,)."""
    ids: NDArray[np.int32]
    """Kept nodes, (E,)."""
    weights: NDArray[np.float32]
    """Their weights, (E,)."""
    cluster_mass: NDArray[np.float32]
    """Mass by cluster of the tail, (B, P)."""
    missing_mass: NDArray[np.float32]
    """What the stored rows lost by the cut, wherever it went to since; (B,)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drawn:
    """Nodes whose evidence stands for that of their clusters."""

    node_global: NodeIds
    """Distinct nodes, rising, (T,)."""
    cluster: NDArray[np.int64]
    """The cluster of each, (T,)."""
    weight: NDArray[np.float32]
    """Its weight in the cluster's mean, (T,)."""


class AbstractTail(ABC):
    """One way to account for lost mass.

    Args:
        graph: The graph of the rows.
        diffusion: The diffusion of the rows.
        num_clusters: P.
        cluster_of_node: Cluster of every node; absent means that all are in cluster 0.
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
    def apply(self, root_global: NodeIds, rows: PPRRows) -> TailedRows:
        """The stored `rows` of the roots, with their lost mass."""

    def cluster_of(self, nodes: NodeIds) -> NDArray[np.int64]:
        """Cluster of each of `nodes`, in [0, num_clusters)."""
        if self._cluster_of_node is None:
            return np.zeros(len(nodes), np.int64)
        return self._cluster_of_node[nodes].astype(np.int64)

    def weight_of(self, nodes: NodeIds) -> NDArray[np.float32]:
        """Weight of each of `nodes` in its cluster's mean, above 0."""
        return stationary_weight(self._graph, self._diffusion, nodes).astype(np.float32)

    def draw(self, count: int, rng: np.random.Generator) -> Drawn:
        """At most `count` nodes, uniformly without replacement; none for kinds without clusters.

        Costs as much as is drawn: the generator lists all nodes only for more than 5 % of them.
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
    """Lost mass stays lost."""

    def apply(  # noqa: D102
        self, root_global: NodeIds, rows: PPRRows
    ) -> TailedRows:
        return _tailed(rows)


class RenormalisedTail(AbstractTail):
    """Kept entries stand for the lost ones: weights times (kept + missing) / kept mass."""

    def apply(  # noqa: D102
        self, root_global: NodeIds, rows: PPRRows
    ) -> TailedRows:
        row_E = row_of_entry(rows)
        kept_B = np.bincount(row_E, rows.weights, minlength=len(rows.missing_mass))
        factor_B = 1.0 + rows.missing_mass / np.where(kept_B > 0, kept_B, 1.0)
        return _tailed(rows, weights=(rows.weights * factor_B[row_E]).astype(np.float32))


class ClusterTail(AbstractTail):
    """Lost mass goes to clusters: the store's, or without `cluster_of_node` one of all nodes.

    A node weighs in its cluster's mean what the rows lost of it, so that over all rows the means
    give back what was lost; without `cut_mass_of_node`, what it gets of the far field.

    What was cut from a cluster resembles what was kept of it more than the cluster's mean does, the
    more so the more was kept. So the row's kept neighbours in the cluster share its lost mass with
    the mean, in proportion to their weights, with the mean counting as `prior_mass` of weight: the
    posterior mean of a cluster's evidence as the root sees it. The root itself, which is never cut,
    tells nothing of what is.

    Args:
        prior_mass: Above 0; infinite gives everything to the mean.
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

    def apply(  # noqa: D102
        self, root_global: NodeIds, rows: PPRRows
    ) -> TailedRows:
        one_cluster = self._cluster_of_node is None
        lost_BP = rows.missing_mass[:, None] if one_cluster else rows.cluster_mass
        row_E = row_of_entry(rows)
        place_E = row_E * self.num_clusters + self.cluster_of(rows.ids.astype(np.int64))
        kept_E = np.where(rows.ids == root_global[row_E], 0.0, rows.weights)
        kept_BP = np.bincount(place_E, kept_E, minlength=lost_BP.size).reshape(lost_BP.shape)
        share_BP = lost_BP / (self._prior_mass + kept_BP)
        weights = rows.weights + kept_E * share_BP.ravel()[place_E]
        return _tailed(
            rows,
            weights=weights.astype(np.float32),
            cluster_mass=(lost_BP - kept_BP * share_BP).astype(np.float32),
        )


def make_tail(
    config: MinibatchConfig, store: PPRStore, graph: Graph, diffusion: DiffusionConfig
) -> AbstractTail:
    """The tail that `config` names, for the rows of `store`.

    Raises:
        ConfigError: there is no such kind of tail.
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
                    f"{store.path} has no clusters, which the tail 'clustered' needs: build it "
                    "again with `--clusters 32 --overwrite`, or choose another tail with "
                    "`--set minibatch.tail=stationary`"
                )
            return ClusterTail(
                graph,
                diffusion,
                store.num_clusters,
                store.cluster_of_node,
                store.cut_mass_of_node,
                prior_mass=config.tail_prior_mass,
            )
        case _:
            known = ", ".join(get_args(TailKind))
            raise ConfigError(f"minibatch.tail is {config.tail!r}, expected one of {known}")


def stationary_weight(
    graph: Graph, diffusion: DiffusionConfig, nodes: NodeIds
) -> NDArray[np.float64]:
    """What the diffusion's far field puts on each of `nodes`, up to a factor: d, for `sym` sqrt(d).

    d is the out-weight with its loop. Rows of `sym` are sqrt(d_v / d_u) times those of `rw`, whose
    limit is proportional to d_u.
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


def _tailed(
    rows: PPRRows,
    *,
    weights: NDArray[np.float32] | None = None,
    cluster_mass: NDArray[np.float32] | None = None,
) -> TailedRows:
    """`rows` with what is given in place of their own; without clusters if no masses are given."""
    no_clusters = np.empty((len(rows.missing_mass), 0), np.float32)
    return TailedRows(
        row_ptr=rows.row_ptr,
        ids=rows.ids,
        weights=rows.weights if weights is None else weights,
        cluster_mass=no_clusters if cluster_mass is None else cluster_mass,
        missing_mass=rows.missing_mass,
    )


def row_of_entry(rows: PPRRows) -> NDArray[np.int64]:
    """Which row each stored entry belongs to, (E,)."""
    return np.repeat(np.arange(len(rows.missing_mass)), np.diff(rows.row_ptr))
