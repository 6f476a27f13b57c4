"""Batches of roots from stored rows: the nodes to encode, their features, and the rows over them.

Shapes: B roots, N support nodes, E entries, P clusters of the tail.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gpn_scale.config import FeatureScaling, MinibatchConfig
from gpn_scale.data.features import scale_features, take_rows
from gpn_scale.data.graph import Features, NodeIds
from gpn_scale.ppr.inclusion import Coverage
from gpn_scale.ppr.rows import Rows
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.tails import AbstractTail
from gpn_scale.rank_part import ALONE, RankPart

Prepared = TypeVar("Prepared")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchSource:
    """The data from which batches are assembled, and this rank's part of each batch.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import EXAMPLE_DIFFUSION, example_graph, example_store
    >>> from gpn_scale.ppr.tails import RenormalisedTail
    >>> graph = example_graph()
    >>> with TemporaryDirectory() as folder:
    ...     tail = RenormalisedTail(graph, EXAMPLE_DIFFUSION)
    ...     source = BatchSource(store=example_store(folder), tail=tail, features=graph.features)
    ...     assemble_batch(np.array([0]), source).features.tolist()
    [[1.0], [0.0]]
    """

    store: PPRStore
    """The stored rows."""
    tail: AbstractTail
    """Estimate of the mass that was cut from the rows."""
    features: Features | None = None
    """Unscaled features of all nodes, perhaps memory-mapped; None for batches without features."""
    scaling: FeatureScaling = "none"
    """Scaling of the feature rows."""
    part: RankPart = ALONE
    """This rank's part of every batch."""
    block: int = 1
    """The nodes to encode are divided among ranks at multiples of this number."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterSampling:
    """Settings with which a batch estimates the mean evidence of the tail's clusters.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import EXAMPLE_DIFFUSION, example_graph, example_store
    >>> from gpn_scale.ppr.tails import ClusterTail
    >>> with TemporaryDirectory() as folder:
    ...     store = example_store(folder)
    ...     tail = ClusterTail(example_graph(), EXAMPLE_DIFFUSION, 2, store.cluster_of_node)
    ...     sampling = ClusterSampling(
    ...         coverage=Coverage(np.array([0]), store, drawn=3),
    ...         root_fraction=1.0,
    ...         rng=np.random.default_rng(1),
    ...     )
    ...     batch = assemble_batch(np.array([0]), BatchSource(store=store, tail=tail), sampling)
    >>> batch.support_global.tolist(), batch.cluster.tolist()
    ([0, 1, 2], [0, 0, 1])
    """

    coverage: Coverage
    """Probabilities with which batches encode the nodes."""
    root_fraction: float
    """Fraction of all roots that the batch takes."""
    rng: np.random.Generator
    """Source of the nodes that are drawn from the whole graph."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PPRBatch:
    """A batch of roots with the rows and features from which their evidence is aggregated.

    Several ranks may divide a batch: each knows the whole support, encodes a range of it, and holds
    the entries of all rows that lie in this range. Their sums over ranks are those of whole rows.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import EXAMPLE_DIFFUSION, example_graph, example_store
    >>> from gpn_scale.ppr.tails import TruncatedTail
    >>> with TemporaryDirectory() as folder:
    ...     tail = TruncatedTail(example_graph(), EXAMPLE_DIFFUSION)
    ...     source = BatchSource(store=example_store(folder), tail=tail)
    ...     batch = assemble_batch(np.array([2]), source)
    >>> batch.support_global.tolist(), batch.root_local.tolist(), batch.rows.ids.tolist()
    ([1, 2], [1], [1, 0])
    """

    root_global: NodeIds
    """Roots, whose posteriors are computed, (B,)."""
    support_global: NodeIds
    """All nodes that the batch encodes (in rows, roots and drawn), distinct and sorted, (N,)."""
    encoded: slice
    """Range of the support that this rank encodes."""
    root_local: NDArray[np.int64]
    """Position of each root in the support, (B,)."""
    rows: Rows
    """Rows of the roots with the tail applied; `ids` are positions in the range `encoded`."""
    cluster_weight: NDArray[np.float32]
    """Weight of each cluster's mean evidence, (B, P)."""
    cluster: NDArray[np.int64]
    """Cluster of each support node; (N,), or (0,) in a batch that does not estimate clusters."""
    weight_in_cluster: NDArray[np.float32]
    """Weight of each support node in its cluster's mean; (N,) or (0,)."""
    features: Features | None
    """Scaled features of the nodes encoded here, in the graph's dtype unless scaling changed it."""

    @property
    def num_roots(self) -> int:
        """Number of roots, B."""
        return len(self.root_global)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochCost:
    """Number of encodings in an epoch, not counting nodes drawn from the whole graph.

    >>> EpochCost(encodings=100, distinct=75).repeated_fraction
    0.25
    """

    encodings: int
    """Sum of the support sizes of all batches."""
    distinct: int
    """Size of the union of all supports."""

    @property
    def repeated_fraction(self) -> float:
        """Fraction of the encodings that encode a node again."""
        return 1.0 - self.distinct / max(self.encodings, 1)


def assemble_batch(
    root_global: NodeIds, source: BatchSource, sampling: ClusterSampling | None = None
) -> PPRBatch:
    """Return the batch of some roots, reading only their rows and the support's features.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import EXAMPLE_DIFFUSION, example_graph, example_store
    >>> from gpn_scale.ppr.tails import TruncatedTail
    >>> with TemporaryDirectory() as folder:
    ...     tail = TruncatedTail(example_graph(), EXAMPLE_DIFFUSION)
    ...     source = BatchSource(store=example_store(folder), tail=tail)
    ...     assemble_batch(np.array([0, 1]), source).support_global.tolist()
    [0, 1]

    Args:
        root_global: Nodes with a row in the store, (B,).
        source: Rows, tail and features.
        sampling: For a batch that estimates the clusters' mean evidence; some nodes are then drawn
            from the whole graph.
    """
    rows, cluster_weight = source.tail.apply(root_global, source.store.rows(root_global))
    drawn = np.empty(0, np.int64)
    if sampling is not None:
        drawn = source.tail.draw(sampling.coverage.drawn, sampling.rng).node_global
    support, local = np.unique(np.concatenate([rows.ids, root_global, drawn]), return_inverse=True)
    entry_local, root_local, _ = np.split(
        local, [rows.num_entries, rows.num_entries + len(root_global)]
    )
    cluster, weight_in_cluster = _weights_in_clusters(support, source.tail, sampling)
    encoded = source.part.slice_of(len(support), block=source.block)
    features = None
    if source.features is not None:
        features = scale_features(take_rows(source.features, support[encoded]), source.scaling)
    return PPRBatch(
        root_global=root_global,
        support_global=support,
        encoded=encoded,
        root_local=root_local,
        rows=_of_part(replace(rows, ids=entry_local), encoded, len(support)),
        cluster_weight=cluster_weight,
        cluster=cluster,
        weight_in_cluster=weight_in_cluster,
        features=features,
    )


def _of_part(rows: Rows, encoded: slice, num_nodes: int) -> Rows:
    """Return the entries of the rows that lie in this rank's range of the support."""
    return rows if encoded == slice(0, num_nodes) else rows.within(encoded)


def _weights_in_clusters(
    support: NodeIds, tail: AbstractTail, sampling: ClusterSampling | None
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return each support node's cluster, and its weight for an unbiased estimate of the mean."""
    if sampling is None:
        return np.empty(0, np.int64), np.empty(0, np.float32)
    inverse = 1.0 / sampling.coverage.probability(support, sampling.root_fraction)
    return tail.cluster_of(support), (tail.weight_of(support) * inverse).astype(np.float32)


class BatchLoader:
    """Iterator over the batches of training epochs: every root once per epoch, in random order.

    A batch depends only on the seed, the epoch and its number, not on the thread that assembles it.
    With `workers`, threads assemble batches ahead of the consumer; leaving the iteration ends them.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import EXAMPLE_DIFFUSION, example_graph, example_store
    >>> from gpn_scale.ppr.tails import TruncatedTail
    >>> with TemporaryDirectory() as folder:
    ...     tail = TruncatedTail(example_graph(), EXAMPLE_DIFFUSION)
    ...     source = BatchSource(store=example_store(folder), tail=tail)
    ...     config = MinibatchConfig(batch_size=2)
    ...     loader = BatchLoader(np.arange(3), source, config, rng_seed=1)
    ...     [batch.num_roots for batch in loader.epoch(0)]
    [2, 1]

    Args:
        root_global: Nodes to train on, each with a row in the store.
        source: Rows, tail and features.
        config: Batch size, drawn nodes and workers.
        rng_seed: Seed of the order and the drawn nodes, at least 0.

    Raises:
        ConfigError: a batch would be larger than the set of roots.
        StoreError: a root has no row.
    """

    def __init__(
        self, root_global: NodeIds, source: BatchSource, config: MinibatchConfig, *, rng_seed: int
    ) -> None:
        self.batch_size = config.roots_per_batch(len(root_global))
        check_roots(root_global, source.store)
        self.root_global = root_global
        self._source, self._workers, self._rng_seed = source, config.workers, rng_seed
        self._coverage = None
        if source.tail.num_clusters:
            self._coverage = Coverage(root_global, source.store, config.tail_nodes)

    @property
    def num_batches(self) -> int:
        """Number of batches per epoch; the last one may be smaller than the others."""
        return -(-len(self.root_global) // self.batch_size)

    def epoch_roots(self, number: int) -> list[NodeIds]:
        """Return the roots of each batch of epoch `number`."""
        order = _generator(self._rng_seed, number).permutation(len(self.root_global))
        roots = self.root_global[order]
        return [roots[i : i + self.batch_size] for i in range(0, len(roots), self.batch_size)]

    def epoch(self, number: int, *, first: int = 0) -> Iterator[PPRBatch]:
        """Yield the batches of epoch `number`, starting with the one of index `first`."""
        return self.prepared_epoch(number, lambda batch: batch, first=first)

    def prepared_epoch(
        self, number: int, prepare: Callable[[PPRBatch], Prepared], *, first: int = 0
    ) -> Iterator[Prepared]:
        """Yield `prepare(batch)` for the batches of `epoch`, in the threads that assemble them."""
        roots = self.epoch_roots(number)

        def prepared(index: int) -> Prepared:
            sampling = None
            if self._coverage is not None:
                sampling = ClusterSampling(
                    coverage=self._coverage,
                    root_fraction=len(roots[index]) / len(self.root_global),
                    rng=_generator(self._rng_seed, number, index),
                )
            return prepare(assemble_batch(roots[index], self._source, sampling))

        return _in_order(prepared, range(first, len(roots)), self._workers)


def check_roots(nodes: NodeIds, store: PPRStore) -> None:
    """Check that every node has a row in the store, without reading the rows.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import example_store
    >>> with TemporaryDirectory() as folder:
    ...     check_roots(np.array([0, 7]), example_store(folder))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    gpn_scale.errors.StoreError: node 7 is out of range: ...

    Raises:
        StoreError: a node is out of range or has no row.
    """
    wrong = (nodes < 0) | (nodes >= store.num_nodes)
    if store.num_roots < store.num_nodes:
        wrong |= ~np.isin(nodes, store.roots)
    store.rows(nodes[wrong][:1])


def epoch_cost(root_batches: Iterable[NodeIds], store: PPRStore) -> EpochCost:
    """Return the encodings of batches with these roots, e.g. of `BatchLoader.epoch_roots`.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import example_store
    >>> with TemporaryDirectory() as folder:
    ...     epoch_cost([np.array([0]), np.array([1, 2])], example_store(folder))
    EpochCost(encodings=5, distinct=3)
    """
    supports = [np.union1d(store.rows(roots).ids, roots) for roots in root_batches]
    encoded = np.concatenate([np.empty(0, np.int64), *supports])
    return EpochCost(encodings=len(encoded), distinct=len(np.unique(encoded)))


def _generator(rng_seed: int, *place: int) -> np.random.Generator:
    # The seed `[rng_seed, *place]` would not work, because a trailing 0 is ignored.
    return np.random.default_rng(np.random.SeedSequence(rng_seed, spawn_key=place))


def _in_order(
    make: Callable[[int], Prepared], indices: Sequence[int], workers: int
) -> Iterator[Prepared]:
    """Yield `make(index)` for each index; threads are `workers` batches ahead of the consumer."""
    if workers == 0:
        yield from map(make, indices)
        return
    # On leaving the block for any reason, wait for the batches in progress, one per thread.
    with ThreadPoolExecutor(workers, thread_name_prefix="batches") as pool:
        ahead: deque[Future[Prepared]] = deque()
        for index in indices:
            ahead.append(pool.submit(make, index))
            if len(ahead) > workers:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
