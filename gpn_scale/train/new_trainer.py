"""Construction of a network, a task and a trainer from a configuration and a graph."""

import torch
from torch import Tensor

from gpn_scale.config import RunConfig
from gpn_scale.data.graph import Graph
from gpn_scale.data.splits import class_prior, prepare_graph
from gpn_scale.distributed import World
from gpn_scale.errors import ConfigError, GraphError, StoreError
from gpn_scale.inference.cluster_summary import num_tracked_clusters
from gpn_scale.inference.encoder_inputs import column_moments, required_features
from gpn_scale.inference.stored_rows import StoreLike, open_rows, require_evidence_diffusion
from gpn_scale.nn.encoder import Encoder
from gpn_scale.nn.model import GPN
from gpn_scale.nn.opinion import Opinion
from gpn_scale.ppr.store import PPRStore
from gpn_scale.train.minibatch_task import MinibatchTask
from gpn_scale.train.model_size import check_model_size
from gpn_scale.train.objective import EvidenceObjective, OpinionObjective
from gpn_scale.train.opinion_task import OpinionMinibatchTask
from gpn_scale.train.task import AbstractTask, ExactTask, checked_split
from gpn_scale.train.trainer import Trainer

_OPINION_SEED = 1_000_003
"""Offset added to the run's seed for the opinion, so that its initial weights are different."""


def new_trainer(
    config: RunConfig,
    graph: Graph,
    store: StoreLike | None,
    *,
    device: torch.device,
    dtype: torch.dtype,
    world: World,
) -> Trainer:
    """Return a trainer that has not started yet.

    Args:
        config: Configuration of the model and its training.
        graph: Graph with features and labels; without a split, it gets the configured one.
        store: Rows of the training and validation nodes, for `mode="minibatch"`.
        device: Device of all tensors.
        dtype: Type of all real numbers.
        world: The processes that train together.

    Raises:
        GraphError: the graph cannot be trained on.
        StoreError: the store is missing, or does not match the graph or the diffusion.
        ConfigError: the mode does not support the diffusion or the number of processes, or the
            model does not fit into memory.
    """
    graph = _prepared(config, graph)
    check_model_size(config, graph.num_features, graph.num_classes)
    task = _new_task(config, graph, store, device, dtype, world)
    # Initial values and dropout's seeds are drawn on the CPU, so that a seed means the same on
    # every device, and no draw waits for one.
    generator = torch.Generator().manual_seed(config.train.rng_seed)
    prior_C = torch.from_numpy(class_prior(graph)).to(dtype)
    num_clusters = num_tracked_clusters(task.tail) if isinstance(task, MinibatchTask) else 0
    network = new_network(config, graph.num_features, prior_C, num_clusters, generator)
    network = network.to(device, dtype)
    _standardise(network.encoder, config, graph)
    return Trainer(network, task, config.train, generator, world)


def new_opinion_trainer(
    config: RunConfig,
    graph: Graph,
    store: StoreLike | None,
    *,
    device: torch.device,
    dtype: torch.dtype,
    world: World,
    beside: Trainer | None = None,
) -> Trainer:
    """Return a trainer of the opinion of GPN+; arguments and errors are those of `new_trainer`.

    In exact mode it shares the features and the diffusion of the trainer `beside` it, which must
    be of the same graph and configuration.
    """
    graph = _prepared(config, graph)
    task: AbstractTask
    if config.mode == "exact":
        _check_one_rank(world)
        objective = OpinionObjective(len(checked_split(graph).train))
        if beside is not None and isinstance(beside.task, ExactTask):
            task = beside.task.with_objective(objective)
        else:
            task = ExactTask(graph, config, objective, device, dtype)
    else:
        task = OpinionMinibatchTask(
            graph, config, _rows(config, graph, store), device, dtype, world
        )
    rng_seed = config.train.rng_seed + _OPINION_SEED
    generator = torch.Generator().manual_seed(rng_seed)
    opinion = new_opinion(config, graph.num_features, graph.num_classes, generator)
    opinion = opinion.to(device, dtype)
    _standardise(opinion.encoder, config, graph)
    return Trainer(opinion, task, config.opinion_training, generator, world)


def _prepared(config: RunConfig, graph: Graph) -> Graph:
    """Return the graph with a split, after checking that it can be trained on."""
    check_trainable(graph)
    return prepare_graph(graph, config) if graph.split is None else graph


def _standardise(encoder: Encoder, config: RunConfig, graph: Graph) -> None:
    """Let the encoder standardise feature columns, if the configuration says so."""
    if config.encoder.standardise:
        moments = column_moments(required_features(graph), config.data.feature_scaling)
        encoder.first.standardise(*moments)


def check_trainable(graph: Graph) -> None:
    """Check that a GPN can be trained on the graph.

    Raises:
        GraphError: the graph has fewer than two classes or no features.
    """
    if graph.num_classes < 2:
        raise GraphError(
            f"graph {graph.name!r} has {graph.num_classes} class(es) to learn, expected at "
            "least 2: check the labels"
        )
    required_features(graph)


def new_network(
    config: RunConfig,
    num_features: int,
    prior_C: Tensor,
    num_clusters: int,
    generator: torch.Generator | None = None,
) -> GPN:
    """Return an untrained network on the CPU.

    Args:
        config: Configuration; uses the sections encoder, flow and evidence.
        num_features: Number of feature columns.
        prior_C: Class frequencies in the training set.
        num_clusters: Number of clusters whose evidence the network tracks; 0 in exact mode.
        generator: Source of the initial values; None where they are replaced anyway.
    """
    return GPN(
        config,
        num_features=num_features,
        class_prior_C=prior_C,
        generator=generator or torch.Generator(),
        num_clusters=num_clusters,
    )


def new_opinion(
    config: RunConfig,
    num_features: int,
    num_classes: int,
    generator: torch.Generator | None = None,
) -> Opinion:
    """Return an untrained opinion on the CPU.

    >>> new_opinion(RunConfig(), num_features=5, num_classes=3).num_classes
    3

    Args:
        config: Configuration; uses the sections encoder and opinion.
        num_features: Number of feature columns.
        num_classes: Number of classes.
        generator: Source of the initial values; None where they are replaced anyway.
    """
    return Opinion(
        config,
        num_features=num_features,
        num_classes=num_classes,
        generator=generator or torch.Generator(),
    )


def _new_task(
    config: RunConfig,
    graph: Graph,
    store: StoreLike | None,
    device: torch.device,
    dtype: torch.dtype,
    world: World,
) -> AbstractTask:
    if config.mode == "exact":
        _check_one_rank(world)
        objective = EvidenceObjective(config.train.entropy_weight)
        return ExactTask(graph, config, objective, device, dtype)
    return MinibatchTask(graph, config, _rows(config, graph, store), device, dtype, world)


def _check_one_rank(world: World) -> None:
    if world.size > 1:
        raise ConfigError(
            f"mode='exact' trains in one process, got {world.size} ranks: start a single "
            "process, or use mode='minibatch'",
            arguments=("mode",),
        )


def _rows(config: RunConfig, graph: Graph, store: StoreLike | None) -> PPRStore:
    """Return the rows of minibatch mode, checked against the graph and the diffusion."""
    if store is None:
        raise StoreError(
            "mode='minibatch' needs a PPR store, and none was given: build one with "
            "`gpn-precompute` and pass store=",
            arguments=("store",),
        )
    require_evidence_diffusion(config.diffusion, "mode='minibatch'")
    return open_rows(store, graph, config.diffusion)
