"""Full run configurations: the paper's three settings, chosen by dataset name."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from gpn_scale.config import (
    DataConfig,
    DiffusionConfig,
    EncoderConfig,
    EvidenceConfig,
    FeatureScaling,
    RunConfig,
    SplitConfig,
    TrainConfig,
)
from gpn_scale.data.graph import MISSING_LABEL, CSRFeatures, Graph
from gpn_scale.errors import ConfigError

LEFT_OUT_CLASSES = {
    "CoraML": 3,
    "CiteSeer": 2,
    "PubMed": 1,
    "AmazonComputers": 5,
    "AmazonPhotos": 3,
    "CoauthorCS": 4,
    "CoauthorPhysics": 2,
    "ogbn-arxiv": 15,
    "ogbn-arxiv-sim": 15,
}
"""Left-out classes per graph in the paper's experiments (table of dataset details)."""
MINIBATCH_EPOCHS = 30
MINIBATCH: dict[str, Any] = {"batch_size": 512, "tail_nodes": 2048}
"""Where an epoch has several steps; by trials on ogbn-arxiv-sim, see docs/performance.md."""


def amazon(dataset: str) -> RunConfig:
    """Setting (1) of the paper: co-purchase graphs with bag-of-words features."""
    return RunConfig(
        data=DataConfig(dataset=dataset, feature_scaling="row_sum"),
        encoder=EncoderConfig(latent=10),
        evidence=EvidenceConfig(budget="latent_classes"),
        diffusion=DiffusionConfig(teleport=0.2),
        train=TrainConfig(weight_decay=5e-4, entropy_weight=1e-5),
    )


def citation(dataset: str) -> RunConfig:
    """Setting (2) of the paper: citation and co-author graphs with bag-of-words features."""
    scaling: FeatureScaling = "binary_row_sum" if dataset == "PubMed" else "row_sum"
    return RunConfig(data=DataConfig(dataset=dataset, feature_scaling=scaling))


def arxiv(dataset: str) -> RunConfig:
    """Setting (3) of the paper: ogbn-arxiv, dense features, public time split."""
    return RunConfig(
        data=DataConfig(dataset=dataset),
        split=SplitConfig(kind="public"),
        encoder=EncoderConfig(hidden=256, layers=3, dropout=0.25, batch_norm=True),
        diffusion=DiffusionConfig(teleport=0.2),
        train=TrainConfig(epochs=1000, patience=200, weight_decay=0.0),
    )


def synthetic(dataset: str) -> RunConfig:
    """The embedded graph: dense features as they are; shorter walks and a larger budget than (2).

    On it, neighbours of neighbours are often of another class, which makes long walks timid.
    """
    return RunConfig(
        data=DataConfig(dataset=dataset),
        evidence=EvidenceConfig(budget="latent_classes"),
        diffusion=DiffusionConfig(teleport=0.2),
        train=TrainConfig(epochs=500),
    )


RECIPES: dict[str, Callable[[str], RunConfig]] = {
    "amazon": amazon,
    "citation": citation,
    "arxiv": arxiv,
    "synthetic": synthetic,
}

_RECIPE_OF = {
    "AmazonPhotos": amazon,
    "AmazonComputers": amazon,
    "CoraML": citation,
    "CiteSeer": citation,
    "PubMed": citation,
    "CoauthorCS": citation,
    "CoauthorPhysics": citation,
    "ogbn-arxiv": arxiv,
    "ogbn-arxiv-sim": arxiv,
}


def recipe_for(dataset: str, graph: Graph) -> RunConfig:
    """The paper's setting for its datasets; for others one that fits the graph's features.

    A graph of the user's own keeps the split it came with. Its sparse, non-negative features are
    taken for bag-of-words; all others are standardised.
    """
    if dataset in _RECIPE_OF:
        return _RECIPE_OF[dataset](dataset)
    if dataset.partition(":")[0] == "synthetic":
        return synthetic(dataset)
    features = graph.features
    bag = isinstance(features, CSRFeatures) and bool(features.values.min(initial=0.0) >= 0)
    return RunConfig(
        data=DataConfig(dataset=dataset, feature_scaling="row_sum" if bag else "none"),
        split=SplitConfig(kind="stratified" if graph.split is None else "public"),
        encoder=EncoderConfig(standardise=not bag),
    )


def in_minibatches(config: RunConfig, graph: Graph) -> RunConfig:
    """The same setting for an optimiser that sees a part of the training nodes in each step.

    Where one batch holds all of them nothing changes but the mode. Else batches are of 512 roots,
    since quality follows the number of steps more than their size. An epoch has many steps, so
    fewer epochs are enough, and the learning rate falls to 0 over them, to average out the noise
    of the steps.
    """
    config = replace(config, mode="minibatch")
    if graph.split is not None and config.split.kind == "public":
        num_train = len(graph.split.train)
    else:
        num_train = round(config.split.train * np.count_nonzero(graph.labels != MISSING_LABEL))
    if num_train <= config.minibatch.roots_per_batch(num_train):
        return config
    epochs = min(config.train.epochs, MINIBATCH_EPOCHS)
    train = replace(config.train, schedule="cosine", epochs=epochs, patience=epochs)
    minibatch = replace(config.minibatch, **MINIBATCH)
    return replace(config, train=train, minibatch=minibatch)


def left_out_count(dataset: str, asked: str) -> int:
    """`--left-out-classes`: a number, or `paper` for the paper's number on this dataset."""
    if asked == "paper":
        if dataset not in LEFT_OUT_CLASSES:
            raise ConfigError(
                f"--left-out-classes paper: the paper has no figure for {dataset!r}, only for "
                f"{', '.join(LEFT_OUT_CLASSES)}; give a number instead"
            )
        return LEFT_OUT_CLASSES[dataset]
    if not asked.isdecimal():
        raise ConfigError(f"--left-out-classes got {asked!r}, expected a number or paper")
    return int(asked)
