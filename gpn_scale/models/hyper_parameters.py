"""Hyper-parameters of GPN's ablations and of the comparison models, as in GPN's appendix."""

from dataclasses import replace
from typing import Literal

from gpn_scale.baselines.kernel_gcn import KernelGCNOptions
from gpn_scale.config import RunConfig
from gpn_scale.data.graph import Graph
from gpn_scale.models.spec import Configure


def without_diffusion(config: RunConfig, graph: Graph) -> RunConfig:
    """Return the configuration of a Posterior Network (Charpentier et al., 2020).

    >>> from gpn_scale.data.building import build_graph
    >>> without_diffusion(RunConfig(), build_graph([0], [1])).diffusion.steps
    0
    """
    return replace(config, diffusion=replace(config.diffusion, steps=0))


def averaging_logs(config: RunConfig, graph: Graph) -> RunConfig:
    """Return the configuration of a GPN that averages logarithms of evidence over neighbours.

    >>> from gpn_scale.data.building import build_graph
    >>> averaging_logs(RunConfig(model="GPN"), build_graph([0], [1])).diffusion.of
    'log_evidence'
    """
    return replace(config, diffusion=replace(config.diffusion, of="log_evidence"))


def whole_graph(config: RunConfig) -> RunConfig:
    """Return the configuration of a model with GPN's hyper-parameters, on the whole graph.

    >>> whole_graph(RunConfig(mode="minibatch")).mode
    'exact'
    """
    diffusion = replace(config.diffusion, of="evidence")
    return replace(config, mode="exact", diffusion=diffusion)


def pooling(config: RunConfig) -> RunConfig:
    """Return the configuration of LOP-GPN: that of GPN, with rows that sum to 1.

    >>> pooling(RunConfig()).diffusion.normalisation
    'rw'
    """
    config = whole_graph(config)
    return replace(config, diffusion=replace(config.diffusion, normalisation="rw"))


def tuned(
    *,
    dropout: float,
    large_dropout: float | None = None,
    weight_decay: float = 1e-4,
    hidden_fraction: float = 1.0,
    teleport: float = 0.1,
) -> Configure:
    """Return a function that sets a model's hyper-parameters as in GPN's appendix.

    With the recipe of ogbn-arxiv no model has weight decay. Diffusions take K = 10 steps.

    >>> config = tuned(dropout=0.8, hidden_fraction=0.5)(RunConfig())
    >>> config.encoder.dropout, config.encoder.hidden
    (0.8, 32)

    Args:
        dropout: Fraction of hidden units that are dropped.
        large_dropout: The fraction with the recipe of ogbn-arxiv; None for `dropout`.
        weight_decay: Weight decay of all parameters.
        hidden_fraction: Width relative to that of the recipe.
        teleport: Teleport probability of the diffusion.
    """

    def configure(config: RunConfig) -> RunConfig:
        large = _is_large(config)
        encoder = replace(
            config.encoder,
            dropout=large_dropout if large and large_dropout is not None else dropout,
            hidden=max(1, round(hidden_fraction * config.encoder.hidden)),
        )
        diffusion = replace(
            config.diffusion, teleport=teleport, steps=10, normalisation="sym", of="evidence"
        )
        train = replace(config.train, weight_decay=0.0 if large else weight_decay)
        return replace(config, mode="exact", encoder=encoder, diffusion=diffusion, train=train)

    return configure


def in_batches(configure: Configure, neighbours: int | Literal["all"] = "all") -> Configure:
    """Return a function that configures a model for training on batches.

    With the recipe of ogbn-arxiv, an epoch has many steps, and fewer epochs are enough.

    >>> config = in_batches(tuned(dropout=0.8), neighbours=5)(RunConfig())
    >>> config.mode, config.minibatch.neighbours
    ('minibatch', 5)

    Args:
        configure: Function that configures the model for training on the whole graph.
        neighbours: Neighbours drawn per node by a graph convolution.
    """

    def configure_batches(config: RunConfig) -> RunConfig:
        config = configure(config)
        train = config.train
        if _is_large(config):
            train = replace(train, epochs=min(train.epochs, 30), patience=5)
        minibatch = replace(config.minibatch, neighbours=neighbours)
        return replace(config, mode="minibatch", train=train, minibatch=minibatch)

    return configure_batches


def kernel_gcn_options(config: RunConfig) -> KernelGCNOptions:
    """Return the options of GKDE-GCN, which has no teacher on ogbn-arxiv (GPN's appendix).

    >>> from gpn_scale import recipes
    >>> kernel_gcn_options(recipes.arxiv("ogbn-arxiv")).teacher_weight
    0.0
    """
    if _is_large(config):
        return KernelGCNOptions(kernel_weight=1e-4, teacher_weight=0.0)
    return KernelGCNOptions()


def _is_large(config: RunConfig) -> bool:
    """Return whether this is the recipe of ogbn-arxiv, the only one with batch normalisation."""
    return config.encoder.batch_norm
