"""Training on batches of labelled roots with their stored rows."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gpn_scale.config import RunConfig
from gpn_scale.data.graph import Graph
from gpn_scale.distributed import World
from gpn_scale.errors import ConfigError
from gpn_scale.inference.all_nodes import predict_all
from gpn_scale.inference.encoder_inputs import as_inputs, required_features
from gpn_scale.inference.memory_plan import modest_bytes
from gpn_scale.inference.some_nodes import batch_aggregation, row_posteriors
from gpn_scale.inference.trained_model import TrainedModel
from gpn_scale.nn.aggregation import weighted_means
from gpn_scale.nn.losses import bayesian_loss
from gpn_scale.nn.model import GPN, Aggregation
from gpn_scale.nn.noise import NOISE_ROWS, Noise
from gpn_scale.ppr.batches import BatchLoader, BatchSource, PPRBatch, check_roots, epoch_cost
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.tails import Drawn, make_tail
from gpn_scale.train.task import AbstractTask, Forward, Validation, checked_split, labelled

_VALIDATION_DRAWS = 8
"""Validation draws this many times as many nodes as a training step to estimate clusters."""


class MinibatchTask(AbstractTask):
    """Training on some labelled roots and their soft neighbourhoods in every step.

    Only memory maps grow with the graph: a step reads the rows of its roots and the features of
    their joint support, which background workers fetch ahead.

    Args:
        graph: Graph with features, labels and a split; arrays may be memory maps.
        config: Sections data, diffusion, minibatch and train are used.
        store: Rows of the training and validation nodes, of the configured diffusion.
        device: Device of all tensors.
        dtype: Type of all real numbers.
        world: The processes that divide the batches among themselves.

    Raises:
        ConfigError: the batch size does not fit, or `minibatch.neighbours` is set.
        StoreError: a training or validation node has no row, or the tail needs clusters that the
            store does not have.
    """

    def __init__(
        self,
        graph: Graph,
        config: RunConfig,
        store: PPRStore,
        device: torch.device,
        dtype: torch.dtype = torch.float32,
        world: World | None = None,
    ) -> None:
        split = checked_split(graph)
        _check_neighbours(config)
        self.world = world or World()
        check_roots(split.val, store)
        self.store, self.device, self.dtype = store, device, dtype
        self.features, self.scaling = required_features(graph), config.data.feature_scaling
        self.diffusion, self.entropy_weight = config.diffusion, config.train.entropy_weight
        self.rng_seed, self.config = config.train.rng_seed, config.minibatch
        self.labels = graph.labels
        self.num_train = len(split.train)
        self.tail = make_tail(config.minibatch, store, graph, config.diffusion)
        source = BatchSource(
            store=store,
            tail=self.tail,
            features=self.features,
            scaling=self.scaling,
            part=self.world.part,
            block=NOISE_ROWS,
        )
        self.loader = BatchLoader(split.train, source, config.minibatch, rng_seed=self.rng_seed)
        self.val_nodes, (_, self.val_labels) = split.val, labelled(graph, split.val, device)
        self._validation_probabilities = self._new_validation(graph)

    @property
    def num_steps(self) -> int:
        """Number of batches that together hold every training node once."""
        return self.loader.num_batches

    @property
    def rows_fingerprint(self) -> str:
        """Fingerprint of the store's manifest, which holds every shard's checksum."""
        return self.store.fingerprint

    @property
    def precompute_seconds(self) -> float:
        """Time that the build of the store took, as the store recorded it."""
        return self.store.build_seconds

    def losses(  # noqa: D102
        self,
        model: GPN,
        generator: torch.Generator | None,
        epoch: int,
        *,
        first: int = 0,
        forward: Forward | None = None,
    ) -> Iterator[Tensor]:
        for batch in self._timed(self.loader.epoch(epoch, first=first)):
            self.roots_seen += batch.num_roots
            noise = None
            if generator is not None:
                noise = Noise.drawn(generator, batch.encoded.start)
            loss = self.loss(model, batch, noise, forward or model)
            yield loss * (self.num_train / batch.num_roots)

    def _timed(self, batches: Iterator[PPRBatch]) -> Iterator[PPRBatch]:
        while True:
            began = time.monotonic()
            batch = next(batches, None)
            self.data_seconds += time.monotonic() - began
            if batch is None:
                return
            yield batch

    def loss(self, model: GPN, batch: PPRBatch, noise: Noise | None, forward: Forward) -> Tensor:
        """Return the sum of the losses of this process's roots of one batch."""
        assert batch.features is not None
        inputs = as_inputs(batch.features, self.device, self.dtype)
        clusters = self._tracked_clusters(model, batch)
        aggregate = self._joined(batch, batch_aggregation(batch, clusters, self._context(model)))
        posterior = forward(inputs, aggregate, noise).with_network
        labels = torch.from_numpy(self.labels[batch.root_global].astype(np.int64))
        return bayesian_loss(posterior, labels.to(self.device), entropy_weight=self.entropy_weight)

    def facts(self) -> dict[str, Any]:
        """Return sizes of rows and batches, the tail, and how many nodes an epoch encodes."""
        batches = self.loader.epoch_roots(1)
        cost = epoch_cost(batches, self.store)
        return {
            "k": self.store.k,
            "clusters": self.store.num_clusters,
            "tail": self.config.tail,
            "steps_per_epoch": self.num_steps,
            "batch_size": len(batches[0]),
            "mean_missing_mass": float(self.store.missing_mass.mean()),
            "encodings_per_epoch": cost.encodings,
            "repeated_encodings": cost.repeated_fraction,
        }

    @torch.no_grad()
    def validate(self, model: GPN) -> Validation:
        """Return the scores on the validation nodes."""
        own = self.world.part.slice_of(len(self.val_nodes))
        probabilities = self._validation_probabilities(self._context(model), own)
        return Validation.of(probabilities, self.val_labels[own], self.world)

    def _context(self, model: GPN) -> TrainedModel:
        """Return the network as it is now, with all that inference needs."""
        return TrainedModel(model, self.scaling, self.diffusion, self.device, self.dtype)

    def _new_validation(self, graph: Graph) -> Callable[[TrainedModel, slice], Tensor]:
        """Return the configured function from (model, some validation nodes) to probabilities.

        A node in several rows is encoded for each block of them, so that rows cost more than exact
        diffusion where they have more entries than the graph has nodes.
        """
        kind = self.config.validation
        if kind == "auto":
            entries = len(self.val_nodes) * self.store.k
            kind = "exact" if entries >= graph.num_nodes else "rows"
        if kind == "exact":
            return partial(self._exact_probabilities, graph)
        # The same nodes every time, so that validation is a function of the weights.
        rng = np.random.default_rng(self.rng_seed)
        drawn = self.tail.draw(_VALIDATION_DRAWS * self.config.tail_nodes, rng)
        return partial(self._row_probabilities, drawn)

    def _exact_probabilities(self, graph: Graph, trained: TrainedModel, own: slice) -> Tensor:
        memory_bytes = modest_bytes(
            graph.num_nodes,
            graph.num_edges,
            trained.num_classes,
            max_degree=int(graph.out_degree.max(initial=0)),
            itemsize=self.dtype.itemsize,
        )
        prediction = predict_all(trained, graph, memory_bytes=memory_bytes, world=self.world)
        return torch.from_numpy(prediction.probabilities[self.val_nodes[own]]).to(self.device)

    def _row_probabilities(self, drawn: Drawn, trained: TrainedModel, own: slice) -> Tensor:
        cluster_PC, _ = weighted_means(
            trained.evidence(self.features, drawn.node_global),
            torch.from_numpy(drawn.cluster).to(self.device),
            torch.from_numpy(drawn.weight).to(self.device, self.dtype),
            self.tail.num_clusters,
        )
        posterior = row_posteriors(
            trained,
            self.features,
            self.val_nodes[own],
            store=self.store,
            tail=self.tail,
            cluster_PC=cluster_PC,
        )
        return posterior.mean_NC

    def _joined(self, batch: PPRBatch, aggregate: Aggregation) -> Aggregation:
        """Return `aggregate` as a function of the evidence that this process has computed."""
        count = len(batch.support_global)
        return lambda own_NC: aggregate(self.world.joined(own_NC, batch.encoded, count))

    def _tracked_clusters(self, model: GPN, batch: PPRBatch) -> Callable[[Tensor], Tensor]:
        """Return a function from evidence of the support to that of the clusters.

        The model tracks the result.
        """

        def cluster_evidence(evidence_NC: Tensor) -> Tensor:
            assert model.clusters is not None
            return model.clusters.track(
                evidence_NC,
                torch.from_numpy(batch.cluster).to(self.device),
                torch.from_numpy(batch.weight_in_cluster).to(self.device, self.dtype),
            )

        return cluster_evidence


def _check_neighbours(config: RunConfig) -> None:
    """Refuse a number of drawn neighbours, which only graph-convolution models use."""
    if config.minibatch.neighbours != "all":
        raise ConfigError(
            f"minibatch.neighbours is {config.minibatch.neighbours!r}, expected 'all': GPN uses "
            "every stored entry of a row; build a store with a smaller k for shorter rows",
            arguments=("minibatch.neighbours",),
        )
