"""From stored rows to batches: roots, their joint support in local ids, and its features.

Shapes: B roots, N support nodes, E entries, P clusters of the tail.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpn_scale.config import FeatureScaling, MinibatchConfig
from gpn_scale.data.features import scale_features, take_rows
from gpn_scale.data.graph import Features, NodeIds
from gpn_scale.ppr.inclusion import Coverage
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.tails import AbstractTail
from gpn_scale.rank_part import ALONE, RankPart


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PPRBatch:
    """Some roots, and all that their aggregated evidence is made from.

    Processes may divide a batch: each knows its whole support, encodes a run of it, and has the
    rows of a run of its roots.
    """

    root_global: NodeIds
    """Nodes whose posterior is wanted here, (B,)."""
    num_roots: int
    """Roots of the whole batch."""
    support_global: NodeIds
    """Nodes of all rows, all roots, drawn ones; rising, distinct, (N,)."""
    encoded: slice
    """Those that are encoded here."""
    root_local: NDArray[np.int64]
    """Position of each root in the support, (B,)."""
    row_ptr: NDArray[np.int64]
    """Offsets of the roots' rows, (B + 1,)."""
    neighbour_local: NDArray[np.int64]
    """Positions of the rows' nodes in the support; a row may hold one several times; (E,)."""
    weight: NDArray[np.float32]
    """Share of each entry's evidence, (E,)."""
    missing_mass: NDArray[np.float32]
    """What the stored rows lost by the cut, (B,)."""
    cluster_mass: NDArray[np.float32]
    """Share of each cluster's mean evidence, (B, P)."""
    cluster: NDArray[np.int64]
    """Cluster of each support node; (N,), or (0,) in a batch that estimates no clusters."""
    weight_in_cluster: NDArray[np.float32]
    """Weight of each support node in its cluster's mean, likewise."""
    features: Features | None
    """Scaled rows of the nodes encoded here, in the dtype of the graph unless scaled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochCost:
    """How often the nodes of an epoch are encoded; drawn nodes and walks do not count."""

    encodings: int
    """Sum of the support sizes of all batches."""
    distinct: int
    """Size of the union of all supports."""

    @property
    def repeated_share(self) -> float:
        """Share of the encodings that encode a node again."""
        return 1.0 - self.distinct / max(self.encodings, 1)


def assemble_batch(
    root_global: NodeIds,
    store: PPRStore,
    tail: AbstractTail,
    features: Features | None,
    scaling: FeatureScaling,
    rng: np.random.Generator,
    *,
    coverage: Coverage | None = None,
    of_all: float = 1.0,
    part: RankPart = ALONE,
    block: int = 1,
) -> PPRBatch:
    """The batch of some roots; reads their rows and the support's features, and nothing else.

    Args:
        root_global: Nodes with a row in the store, (B,).
        store: The rows.
        tail: What stands for their lost mass.
        features: Of all nodes, as they came; None for a batch without.
        scaling: Of the feature rows.
        rng: For the nodes drawn.
        coverage: How likely the nodes are in such a batch, for one that estimates the clusters'
            evidence; some nodes are then drawn from the whole graph.
        of_all: Which part of the roots that batches are made of these are.
        part: Which of the processes this is, and how many there are.
        block: Nodes to encode are divided at multiples of this.
    """
    rows = tail.apply(root_global, store.rows(root_global))
    drawn = tail.draw(0 if coverage is None else coverage.drawn, rng)
    support, local = np.unique(
        np.concatenate([rows.ids, root_global, drawn.node_global]), return_inverse=True
    )
    neighbour_local, root_local, _ = np.split(
        local, [len(rows.ids), len(rows.ids) + len(root_global)]
    )
    cluster, weight = np.empty(0, np.int64), np.empty(0, np.float32)
    if coverage is not None:
        cluster = tail.cluster_of(support)
        inverse = 1.0 / coverage.probability(support, of_all)
        weight = (tail.weight_of(support) * inverse).astype(np.float32)
    own, encoded = part.slice_of(len(root_global)), part.slice_of(len(support), block=block)
    row_ptr = rows.row_ptr[own.start : own.stop + 1]
    entries = slice(row_ptr[0], row_ptr[-1])
    chosen = None
    if features is not None:
        chosen = scale_features(take_rows(features, support[encoded]), scaling)
    return PPRBatch(
        root_global=root_global[own],
        num_roots=len(root_global),
        support_global=support,
        encoded=encoded,
        root_local=root_local[own],
        row_ptr=row_ptr - row_ptr[0],
        neighbour_local=neighbour_local[entries],
        weight=rows.weights[entries],
        missing_mass=rows.missing_mass[own],
        cluster_mass=rows.cluster_mass[own],
        cluster=cluster,
        weight_in_cluster=weight,
        features=chosen,
    )


class BatchLoader:
    """The batches of training epochs: every root once an epoch, in an order new each time.

    Batches depend on the seed, the epoch and their number alone, not on who assembles them. With
    `workers`, threads keep as many batches ready ahead; leaving the iteration ends them.

    Args:
        root_global: Nodes to train on, each with a row in the store.
        store: The rows.
        tail: What stands for their lost mass.
        features: Of all nodes, as they came; memory maps are read by the workers.
        scaling: Of the feature rows.
        config: Batch size, drawn nodes, workers.
        rng_seed: Of the order and the drawn nodes; at least 0.
        part: Which of the processes this is, and how many there are.
        block: Nodes to encode are divided among processes at multiples of this.

    Raises:
        ConfigError: a batch would be larger than the set of roots.
        StoreError: a root has no row.
    """

    def __init__(
        self,
        root_global: NodeIds,
        store: PPRStore,
        tail: AbstractTail,
        features: Features | None,
        scaling: FeatureScaling,
        config: MinibatchConfig,
        *,
        rng_seed: int,
        part: RankPart = ALONE,
        block: int = 1,
    ) -> None:
        self._part, self._block = part, block
        self.batch_size = config.roots_per_batch(len(root_global))
        check_roots(root_global, store)
        self.root_global = root_global
        self.store, self._tail = store, tail
        self._features, self._scaling = features, scaling
        self._config, self._rng_seed = config, rng_seed
        self._coverage = None
        if tail.num_clusters:
            self._coverage = Coverage(root_global, store, config.tail_nodes)

    @property
    def num_batches(self) -> int:
        """Batches of an epoch; the last may be smaller than the others."""
        return -(-len(self.root_global) // self.batch_size)

    def epoch_roots(self, number: int) -> list[NodeIds]:
        """The roots of each batch of epoch `number`."""
        order = _generator(self._rng_seed, number).permutation(len(self.root_global))
        roots = self.root_global[order]
        return [roots[i : i + self.batch_size] for i in range(0, len(roots), self.batch_size)]

    def epoch(self, number: int, *, first: int = 0) -> Iterator[PPRBatch]:
        """The batches of epoch `number`, from the one with index `first` on."""
        roots = self.epoch_roots(number)

        def batch(index: int) -> PPRBatch:
            return assemble_batch(
                roots[index],
                self.store,
                self._tail,
                self._features,
                self._scaling,
                _generator(self._rng_seed, number, index),
                coverage=self._coverage,
                of_all=len(roots[index]) / len(self.root_global),
                part=self._part,
                block=self._block,
            )

        return _in_order(batch, range(first, len(roots)), self._config.workers)


def check_roots(nodes: NodeIds, store: PPRStore) -> None:
    """Refuses nodes without a row, in the store's own words, without reading the others' rows."""
    wrong = (nodes < 0) | (nodes >= store.num_nodes)
    if store.num_roots < store.num_nodes:
        wrong |= ~np.isin(nodes, store.roots)
    store.rows(nodes[wrong][:1])


def epoch_cost(root_batches: Iterable[NodeIds], store: PPRStore) -> EpochCost:
    """Support sizes of batches with the given roots, such as `BatchLoader.epoch_roots` names."""
    supports = [np.union1d(store.rows(roots).ids, roots) for roots in root_batches]
    everyone = np.concatenate([np.empty(0, np.int64), *supports])
    return EpochCost(encodings=len(everyone), distinct=len(np.unique(everyone)))


def _generator(rng_seed: int, *place: int) -> np.random.Generator:
    # Not `[rng_seed, *place]` as the seed: there, a last 0 would be as good as nothing.
    return np.random.default_rng(np.random.SeedSequence(rng_seed, spawn_key=place))


def _in_order(
    make: Callable[[int], PPRBatch], indices: Sequence[int], workers: int
) -> Iterator[PPRBatch]:
    """`make` of each of the indices; threads are `workers` batches ahead of the consumer."""
    if workers == 0:
        yield from map(make, indices)
        return
    # Leaving the block, for whatever reason, waits for the batches that are ahead: one a thread.
    with ThreadPoolExecutor(workers, thread_name_prefix="batches") as pool:
        ahead: deque[Future[PPRBatch]] = deque()
        for index in indices:
            ahead.append(pool.submit(make, index))
            if len(ahead) > workers:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
