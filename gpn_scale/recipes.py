"""Recipes: complete run configurations, among them the paper's three settings.

>>> from gpn_scale import build_graph, recipes
>>> graph = build_graph([0, 1], [1, 2], labels=[0, 1, 0])
>>> recipes.recipe_for("CoraML", graph).diffusion.teleport
0.1
"""

import math
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
    OpinionConfig,
    RunConfig,
    SplitConfig,
    TrainConfig,
)
from gpn_scale.data.graph import CSRFeatures, Graph
from gpn_scale.data.splits import num_training_nodes, trainable_nodes
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
}
"""Number of left-out classes per dataset in the paper's experiments (table of dataset details)."""
MOST_TRAINING, LEAST_TRAINING = 0.6, 0.2
"""Largest and smallest fraction of each class for training on your own graph."""
VALIDATION = 0.2
"""Fraction of each class for validation on your own graph."""
ENOUGH_TRAINING_NODES = 120
"""Number of training nodes in the smallest class above which the training fraction shrinks."""
MINIBATCH_EPOCHS, MINIBATCH_STEPS = 30, 800
"""Number of epochs if an epoch has several steps, and the steps that they have at least; see
docs/performance.md."""
OPINION_EPOCHS, OPINION_STEPS = 12, 400
"""The same of the opinion."""
OPINION_OF_ROW_SUMS = OpinionConfig(learning_rate_factor=5.0)
"""Opinion on features whose rows sum to 1; see benchmarks/ablation_rates.py."""
MINIBATCH: dict[str, Any] = {"batch_size": 512, "tail_nodes": 2048}
"""Fields of `MinibatchConfig` if an epoch has several steps; see docs/performance.md."""


def amazon(dataset: str) -> RunConfig:
    """Return setting (1) of the paper: co-purchase graphs with bag-of-words features.

    >>> amazon("AmazonPhotos").evidence.budget
    'latent_classes'
    """
    return RunConfig(
        data=DataConfig(dataset=dataset, feature_scaling="row_sum"),
        encoder=EncoderConfig(latent=10),
        evidence=EvidenceConfig(budget="latent_classes"),
        diffusion=DiffusionConfig(teleport=0.2),
        train=TrainConfig(weight_decay=5e-4, entropy_weight=1e-5),
        opinion=OPINION_OF_ROW_SUMS,
    )


def citation(dataset: str) -> RunConfig:
    """Return setting (2) of the paper: citation and co-author graphs with bag-of-words features.

    >>> citation("CoraML").data.feature_scaling, citation("PubMed").data.feature_scaling
    ('row_sum', 'binary_row_sum')
    """
    binary = paper_dataset(dataset) == "PubMed"
    scaling: FeatureScaling = "binary_row_sum" if binary else "row_sum"
    data = DataConfig(dataset=dataset, feature_scaling=scaling)
    return RunConfig(data=data, opinion=OPINION_OF_ROW_SUMS)


def arxiv(dataset: str) -> RunConfig:
    """Return setting (3) of the paper: ogbn-arxiv, dense features, public time split.

    >>> arxiv("ogbn-arxiv").split.kind
    'public'
    """
    return RunConfig(
        data=DataConfig(dataset=dataset),
        split=SplitConfig(kind="public"),
        encoder=EncoderConfig(hidden=256, layers=3, dropout=0.25, batch_norm=True),
        diffusion=DiffusionConfig(teleport=0.2),
        train=TrainConfig(epochs=1000, patience=200, weight_decay=0.0),
        opinion=OpinionConfig(weight_decay=0.0, patience=200),
    )


def synthetic(dataset: str) -> RunConfig:
    """Return the setting of the generated graph: dense features without scaling.

    Its walks are shorter and its budget is larger than in setting (2): on this graph, neighbours of
    neighbours often belong to another class, so long walks would make the model underconfident.

    >>> synthetic("synthetic:nodes=20000").diffusion.teleport
    0.2
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
"""Recipes by name; each takes the name of a dataset and returns a configuration."""

_MOST_DIGITS = 18
"""Number of digits of a number of classes that is read at all."""
_RECIPE_OF = {
    "AmazonPhotos": amazon,
    "AmazonComputers": amazon,
    "CoraML": citation,
    "CiteSeer": citation,
    "PubMed": citation,
    "CoauthorCS": citation,
    "CoauthorPhysics": citation,
    "ogbn-arxiv": arxiv,
}


def is_own_graph(dataset: str) -> bool:
    """Return whether `dataset` is a user's graph: not the paper's, nor a variant, nor `synthetic`.

    >>> is_own_graph("mine"), is_own_graph("CoraML"), is_own_graph("synthetic:nodes=100")
    (True, False, False)
    """
    return paper_dataset(dataset) is None and dataset.partition(":")[0] != "synthetic"


def paper_dataset(dataset: str) -> str | None:
    """Return the paper's dataset that `dataset` is or is a variant of, or None.

    The name of a variant of X is X, a hyphen and any text. If several X match, the longest counts.

    >>> paper_dataset("CoraML"), paper_dataset("ogbn-arxiv-small"), paper_dataset("mine")
    ('CoraML', 'ogbn-arxiv', None)
    """
    fitting = [name for name in _RECIPE_OF if dataset == name or dataset.startswith(f"{name}-")]
    return max(fitting, key=len, default=None)


def split_for(graph: Graph) -> SplitConfig:
    """Return the split of your own graph, which follows the number of labels in its smallest class.

    If the smallest class has up to 200 labelled nodes, 60 % of each class are for training, 20 %
    for validation and 20 % for testing. If it has more, the training fraction is chosen to give it
    120 training nodes, but is at least 20 %; the rest makes the test more precise. Marked nodes do
    not count, since they are never trained on. A graph that comes with a split keeps it.

    >>> from gpn_scale import build_graph
    >>> few, many = ([0, 1] * count for count in (30, 400))
    >>> tuple(split_for(build_graph([], [], labels=labels)).train for labels in (few, many))
    (0.6, 0.3)
    """
    counts = np.bincount(graph.labels[trainable_nodes(graph)], minlength=1)
    smallest = int(counts[counts > 0].min(initial=len(graph.labels)))
    fraction = ENOUGH_TRAINING_NODES / max(smallest, 1)
    return SplitConfig(
        kind="stratified" if graph.split is None else "public",
        train=round(min(max(fraction, LEAST_TRAINING), MOST_TRAINING), 2),
        val=VALIDATION,
    )


def recipe_for(dataset: str, graph: Graph) -> RunConfig:
    """Return the paper's setting for its datasets and their variants, else one that fits the graph.

    Your own graph keeps its split; without one, `split_for` chooses fractions that depend on the
    number of labels. Features that a preparation has made from raw columns are used unchanged.
    Other features count as bags of words if they are sparse and not negative, and are standardised
    otherwise.

    >>> from gpn_scale import build_graph
    >>> graph = build_graph([0, 1], [1, 2], features=[[0.5], [2.0], [-1.0]])
    >>> recipe_for("mine", graph).encoder.standardise
    True

    Args:
        dataset: Name of the dataset; see `paper_dataset` for variants.
        graph: The dataset itself.
    """
    name = paper_dataset(dataset)
    if name is not None:
        return _RECIPE_OF[name](dataset)
    if not is_own_graph(dataset):
        return synthetic(dataset)
    features = graph.features
    plain = graph.preparation is None
    bag = (
        plain and isinstance(features, CSRFeatures) and bool(features.values.min(initial=0.0) >= 0)
    )
    return RunConfig(
        data=DataConfig(dataset=dataset, feature_scaling="row_sum" if bag else "none"),
        split=split_for(graph),
        encoder=EncoderConfig(standardise=plain and not bag),
        opinion=OPINION_OF_ROW_SUMS if bag else OpinionConfig(),
    )


def in_minibatches(config: RunConfig, graph: Graph, *, num_train: int | None = None) -> RunConfig:
    """Return `config` for training in minibatches.

    If one batch holds all training nodes, only the mode changes. Otherwise batches have 512 roots,
    or as many as `minibatch.batch_size` says, because quality depends on the number of steps more
    than on their size. An epoch then has several steps, so fewer epochs suffice, but at least so
    many that training has 800 steps, and that of the opinion 400. The learning rate falls to 0 over
    them, which averages out the noise of single steps.

    >>> from gpn_scale import build_graph
    >>> graph = build_graph([0, 1], [1, 2], labels=[0, 1, 0])
    >>> in_minibatches(RunConfig(), graph).mode
    'minibatch'

    Args:
        config: Configuration of the run, with its split, its left-out classes and its batch size.
        graph: Graph of the run, before its split is drawn and classes are left out.
        num_train: Number of nodes to train on; None for the number that `config` implies.
    """
    config = replace(config, mode="minibatch")
    if num_train is None:
        num_train = num_training_nodes(graph, config)
    given = config.minibatch.batch_size
    if num_train <= (config.minibatch.roots_per_batch(num_train) if given == "auto" else given):
        return config
    size = MINIBATCH["batch_size"] if given == "auto" else given
    steps = math.ceil(num_train / size)
    epochs = min(config.train.epochs, max(MINIBATCH_EPOCHS, math.ceil(MINIBATCH_STEPS / steps)))
    opinion_epochs = min(epochs, max(OPINION_EPOCHS, math.ceil(OPINION_STEPS / steps)))
    return replace(
        config,
        train=replace(config.train, schedule="cosine", epochs=epochs, patience=epochs),
        minibatch=replace(config.minibatch, **MINIBATCH | {"batch_size": size}),
        opinion=replace(
            config.opinion, epochs=opinion_epochs, patience=opinion_epochs, schedule="cosine"
        ),
    )


def left_out_count(dataset: str, count: str) -> int:
    """Return `count` as a number; `paper` stands for the paper's number for this dataset.

    >>> left_out_count("CoraML", "paper"), left_out_count("mine", "2")
    (3, 2)

    Raises:
        ConfigError: `count` is neither a number nor `paper`, or the paper has no number for the
            dataset.
    """
    if count == "paper":
        name = paper_dataset(dataset)
        if name is None:
            raise ConfigError(
                "left_out_classes is 'paper', but the paper leaves out classes only in "
                f"{', '.join(LEFT_OUT_CLASSES)}, not in {dataset!r}: give a number",
                arguments=("left_out_classes",),
            )
        return LEFT_OUT_CLASSES[name]
    if not count.isdecimal() or len(count) > _MOST_DIGITS:
        shown = count if len(count) <= _MOST_DIGITS else f"{count[:_MOST_DIGITS]}..."
        raise ConfigError(
            f"left_out_classes is {shown!r}, expected a number or 'paper'",
            arguments=("left_out_classes",),
        )
    return int(count)
