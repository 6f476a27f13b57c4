"""Training on batches of labelled roots with their stored rows."""

import time
from abc import abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpn_scale.config import RunConfig
from gpn_scale.data.graph import Graph
from gpn_scale.device import device_rule
from gpn_scale.distributed import World
from gpn_scale.errors import ConfigError
from gpn_scale.inference.all_nodes import predict_all
from gpn_scale.inference.encoder_inputs import as_inputs, required_features
from gpn_scale.inference.memory_plan import modest_bytes
from gpn_scale.inference.some_nodes import batch_aggregation, row_values
from gpn_scale.inference.trained_model import AbstractTrainedPart, TrainedModel
from gpn_scale.nn.aggregation import weighted_means
from gpn_scale.nn.model import GPN, Aggregation
from gpn_scale.nn.noise import NOISE_ROWS, Noise
from gpn_scale.nn.posterior import DirichletPosterior
from gpn_scale.ppr.batches import BatchLoader, BatchSource, PPRBatch, check_roots, epoch_cost
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.tails import make_tail
from gpn_scale.train.device_batch import DeviceBatch, copied_ahead, copies_to
from gpn_scale.train.objective import EvidenceObjective, Objective
from gpn_scale.train.task import (
    AbstractTask,
    TrainedPart,
    Validation,
    checked_split,
    labelled,
)

Timed = TypeVar("Timed")

_VALIDATION_DRAWS = 8
"""Factor by which validation draws more nodes than a training step to estimate clusters."""


class AbstractMinibatchTask(AbstractTask):
    """Training on some labelled roots and their soft neighbourhoods in every step.

    Only memory maps grow with the graph: a step reads the rows of its roots and the features of
    their joint support, which background workers fetch ahead.

    Args:
        graph: Graph with features, labels and a split; arrays may be memory maps.
        config: Configuration; uses the sections data, diffusion, minibatch and train.
        store: Rows of the training and validation nodes, of the configured diffusion.
        device: Device of all tensors.
        dtype: Type of all real numbers.
        world: The processes that divide the batches among themselves.

    Raises:
        ConfigError: the batch size is too large, or `minibatch.neighbours` is set.
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
        self.diffusion = config.diffusion
        self.rng_seed, self.config = config.train.rng_seed, config.minibatch
        self.labels = graph.labels
        self.num_train = len(split.train)
        self.objective = self._new_objective(config, self.num_train)
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
        self._exact_memory_bytes = modest_bytes(
            graph.num_nodes,
            graph.num_edges,
            graph.num_classes,
            max_degree=int(graph.out_degree.max(initial=0)),
            itemsize=dtype.itemsize,
        )
        self._graph = graph if self._validates_exactly(graph) else None
        # Use the same nodes every time, so that validation is a function of the weights.
        rng = np.random.default_rng(self.rng_seed)
        count = 0 if self._graph is not None else _VALIDATION_DRAWS * self.config.tail_nodes
        self._drawn = self.tail.draw(count, rng)

    @staticmethod
    @abstractmethod
    def _new_objective(config: RunConfig, num_train: int) -> Objective:
        """Return the loss of the network."""

    @abstractmethod
    def _context(self, model: Any) -> AbstractTrainedPart:
        """Return the current network with everything that inference needs."""

    @abstractmethod
    def _tracked(self, model: Any, mean_PC: Tensor, present_P: Tensor | None) -> Tensor:
        """Return the means of a step's clusters, given those over its batch (`ClusterMeans`)."""

    @abstractmethod
    def _exact_probabilities(self, model: Any, graph: Graph) -> NDArray[np.float32]:
        """Return the class probabilities of the validation nodes by exact diffusion, (B, C)."""

    @staticmethod
    @abstractmethod
    def _probabilities(values_BC: Tensor) -> Tensor:
        """Return the class probabilities that follow from diffused values, (B, C)."""

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
        model: TrainedPart,
        generator: torch.Generator | None,
        epoch: int,
        *,
        first: int = 0,
    ) -> Iterator[Tensor]:
        if not self._sums_are_joined:
            for batch in self._timed(self.loader.epoch(epoch, first=first)):
                noise = self._noise(generator, batch.encoded.start)
                yield self._scaled(self.loss(model, batch, noise), batch.num_roots)
            return
        copies = copies_to(self.device)

        def on_host(batch: PPRBatch) -> DeviceBatch:
            prepared = DeviceBatch.on_host(batch, self.labels, self.dtype)
            return prepared if copies is None else prepared.map(copies.pinned)

        batches = self.loader.prepared_epoch(epoch, on_host, first=first)
        for copied in self._timed(copied_ahead(batches, copies)):
            noise = self._noise(generator, copied.first_row)
            yield self._scaled(self.joined_loss(model, copied, noise), copied.num_roots)

    @property
    def _sums_are_joined(self) -> bool:
        """Whether a batch is prepared by `DeviceBatch`: on GPUs, and if ranks divide it."""
        return self.world.size > 1 or device_rule(self.device).whole_rows

    def _noise(self, generator: torch.Generator | None, first_row: int) -> Noise | None:
        """Return the noise of the next step; None without dropout."""
        if generator is None:
            return None
        hashed = device_rule(self.device).hashed_noise
        return Noise.drawn(generator, first_row, hashed=hashed)

    def _scaled(self, loss: Tensor, num_roots: int) -> Tensor:
        """Return a batch's loss as this process's part of an estimate of the whole loss."""
        self.roots_seen += num_roots
        return loss * (self.num_train / num_roots / self.world.size)

    def _timed(self, batches: Iterator[Timed]) -> Iterator[Timed]:
        while True:
            began = time.monotonic()
            batch = next(batches, None)
            self.data_seconds += time.monotonic() - began
            if batch is None:
                return
            yield batch

    def loss(self, model: TrainedPart, batch: PPRBatch, noise: Noise | None) -> Tensor:
        """Return the sum of the losses of the roots of one batch, which one process has alone."""
        assert batch.features is not None
        inputs = as_inputs(batch.features, self.device, self.dtype)
        output = model(inputs, self._aggregation(model, batch), noise)
        labels = torch.from_numpy(self.labels[batch.root_global].astype(np.int64))
        return self.objective.loss(output, labels.to(self.device))

    def joined_loss(self, model: TrainedPart, batch: DeviceBatch, noise: Noise | None) -> Tensor:
        """Return the sum of the losses of the roots of one batch, the same in all processes."""
        aggregate = batch.aggregation(partial(self._tracked, model), self.world)
        output = model(batch.inputs(self.dtype), aggregate, noise)
        return self.objective.loss(output, batch.label_B)

    def _aggregation(self, model: TrainedPart, batch: PPRBatch) -> Aggregation:
        """Return the aggregation of a batch, a function of the values of its whole support."""
        context = self._context(model)
        cluster_N = torch.from_numpy(batch.cluster).to(self.device)
        weight_N = torch.from_numpy(batch.weight_in_cluster).to(self.device, self.dtype)

        def means(values_NC: Tensor) -> Tensor:
            in_batch = weighted_means(values_NC, cluster_N, weight_N, self.tail.num_clusters)
            return self._tracked(model, *in_batch)

        return batch_aggregation(batch, means, context)

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
    def validate(self, model: TrainedPart) -> Validation:
        """Return the scores on the validation nodes."""
        own = self.world.part.slice_of(len(self.val_nodes))
        if self._graph is not None:
            exact = self._exact_probabilities(model, self._graph)[own]
            probabilities = torch.from_numpy(exact).to(self.device)
        else:
            values_BC = row_values(
                self._context(model),
                self.features,
                self.val_nodes[own],
                store=self.store,
                tail=self.tail,
                cluster_PC=self._drawn_means(model),
            )
            probabilities = self._probabilities(values_BC)
        return Validation.of(probabilities, self.val_labels[own], self.world)

    def _drawn_means(self, model: TrainedPart) -> Tensor:
        """Return estimates of the clusters' mean values, (P, C), from the drawn nodes."""
        drawn = self._drawn
        means_PC, _ = weighted_means(
            self._context(model).values_of(self.features, drawn.node_global),
            torch.from_numpy(drawn.cluster).to(self.device),
            torch.from_numpy(drawn.weight).to(self.device, self.dtype),
            self.tail.num_clusters,
        )
        return means_PC

    def _validates_exactly(self, graph: Graph) -> bool:
        """Return whether validation uses exact diffusion, by configuration or as the cheaper way.

        A node in several rows is encoded for each block of them, so rows cost more than exact
        diffusion if they have more entries than the graph has nodes.
        """
        if self.config.validation == "auto":
            return len(self.val_nodes) * self.store.k >= graph.num_nodes
        return self.config.validation == "exact"


class MinibatchTask(AbstractMinibatchTask):
    """Training of a GPN on batches; arguments and errors are those of the base class."""

    @staticmethod
    def _new_objective(config: RunConfig, num_train: int) -> Objective:
        del num_train  # the loss is a sum over nodes
        return EvidenceObjective(config.train.entropy_weight)

    def _context(self, model: GPN) -> TrainedModel:
        return TrainedModel(model, self.scaling, self.diffusion, self.device, self.dtype)

    def _tracked(self, model: GPN, mean_PC: Tensor, present_P: Tensor | None) -> Tensor:
        assert model.clusters is not None
        return model.clusters.track(mean_PC, present_P)

    def _exact_probabilities(self, model: GPN, graph: Graph) -> NDArray[np.float32]:
        prediction = predict_all(
            self._context(model), graph, memory_bytes=self._exact_memory_bytes, world=self.world
        )
        return prediction.probabilities[self.val_nodes]

    @staticmethod
    def _probabilities(values_BC: Tensor) -> Tensor:
        return DirichletPosterior.from_evidence(values_BC).mean_NC


def _check_neighbours(config: RunConfig) -> None:
    """Refuse a number of drawn neighbours, which only graph-convolution models use."""
    if config.minibatch.neighbours != "all":
        raise ConfigError(
            f"minibatch.neighbours is {config.minibatch.neighbours!r}, expected 'all': GPN uses "
            "every stored entry of a row; build a store with a smaller k for shorter rows",
            arguments=("minibatch.neighbours",),
        )
