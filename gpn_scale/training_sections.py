"""Sections of a run's configuration about training: split, optimisation, opinion and batches.

The docstring under a field is what `--help` prints about it.
"""

import math
from dataclasses import dataclass
from typing import Literal

from gpn_scale.field_types import checks_fields, require

TailKind = Literal["clustered", "stationary", "renormalised", "truncated"]
"""How what a top-k row cuts off (evidence, logits) is estimated; see `gpn_scale.ppr.tails`."""

_BATCH_SIZE = 1024
LARGEST_SEED = (1 << 63) - 1
"""Largest seed of a random generator."""
MOST_LEARNING_RATE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
@checks_fields("split", train=1, val=1, rng_seed=LARGEST_SEED)
class SplitConfig:
    """Division of the labelled nodes into training, validation and test sets.

    >>> SplitConfig(train=0.2)
    SplitConfig(kind='stratified', train=0.2, val=0.15, rng_seed=1)
    """

    kind: Literal["stratified", "public"] = "stratified"
    """`stratified` draws nodes of each class; `public` uses the split that came with the graph."""
    train: float = 0.05
    """Fraction of each class for training (stratified). On your own graph, recipes use 0.2 to 0.6,
    more if there are few labels.
    """
    val: float = 0.15
    """Fraction of each class for validation (stratified); on your own graph, recipes use 0.2. The
    remaining nodes are for testing.
    """
    rng_seed: int = 1
    """Seed of the stratified split."""

    def __post_init__(self) -> None:
        require(0.0 < self.train < 1.0, "split.train", self.train, "a fraction in (0, 1)")
        require(0.0 < self.val < 1.0, "split.val", self.val, "a fraction in (0, 1)")
        total = self.train + self.val
        require(total < 1.0, "split.train + split.val", total, "below 1, to leave test nodes")
        require(self.rng_seed >= 0, "split.rng_seed", self.rng_seed, "at least 0")


@dataclass(frozen=True, slots=True, kw_only=True)
@checks_fields(
    "train",
    epochs=100_000_000,
    patience=100_000_000,
    warmup_steps=1_000_000,
    learning_rate=MOST_LEARNING_RATE,
    weight_decay=1_000_000,
    entropy_weight=1_000_000,
    rng_seed=LARGEST_SEED,
)
class TrainConfig:
    """Settings of the optimisation.

    >>> TrainConfig(epochs=30, schedule="cosine").learning_rate
    0.01
    """

    epochs: int = 100_000
    """Maximum number of epochs after the warm-up."""
    patience: int = 50
    """Stop training after this number of epochs without a better validation cross-entropy."""
    warmup_steps: int = 5
    """Number of initial steps that update only the flows; in exact mode, an epoch is one step."""
    learning_rate: float = 0.01
    """Learning rate of the Adam optimiser."""
    schedule: Literal["constant", "cosine"] = "constant"
    """Schedule of the learning rate: `cosine` lowers it in every step, to 0 at the last epoch."""
    weight_decay: float = 0.001
    """Weight decay of the encoder's parameters; the flows have none."""
    entropy_weight: float = 1e-4
    """Weight of the posterior's entropy in the loss (lambda in the paper)."""
    rng_seed: int = 1
    """Seed of the initial weights and of dropout."""

    def __post_init__(self) -> None:
        require(self.rng_seed >= 0, "train.rng_seed", self.rng_seed, "at least 0")
        require(self.epochs >= 0, "train.epochs", self.epochs, "at least 0")
        require(self.patience >= 1, "train.patience", self.patience, "at least 1")
        require(self.warmup_steps >= 0, "train.warmup_steps", self.warmup_steps, "at least 0")
        require(self.learning_rate > 0, "train.learning_rate", self.learning_rate, "positive")
        require(self.weight_decay >= 0, "train.weight_decay", self.weight_decay, "at least 0")
        require(self.entropy_weight >= 0, "train.entropy_weight", self.entropy_weight, ">= 0")


@dataclass(frozen=True, slots=True, kw_only=True)
@checks_fields(
    "opinion",
    dropout=1,
    weight_decay=1_000_000,
    learning_rate_factor=MOST_LEARNING_RATE,
    epochs=100_000_000,
    patience=100_000_000,
)
class OpinionConfig:
    """The opinion of GPN+: a second perceptron, next to GPN's encoder, whose logits are diffused.

    >>> OpinionConfig(patience=20).patience
    20
    """

    dropout: float = 0.5
    """Fraction of hidden units that are dropped in training."""
    weight_decay: float = 1e-4
    """Weight decay of all parameters; the loss is the mean over the training nodes."""
    learning_rate_factor: float = 1.0
    """Learning rate relative to `train.learning_rate`. Rows of features that sum to 1 consist of
    small numbers and take larger steps."""
    epochs: int = 100_000
    """Maximum number of epochs; `train.epochs` applies as well."""
    patience: int = 50
    """Stop training after this number of epochs without a better validation cross-entropy."""
    schedule: Literal["constant", "cosine"] = "constant"
    """Schedule of the learning rate: `cosine` lowers it to 0 over all epochs, which averages out
    the noise of single steps.
    """

    def __post_init__(self) -> None:
        require(0.0 <= self.dropout < 1.0, "opinion.dropout", self.dropout, "a fraction in [0, 1)")
        require(self.weight_decay >= 0, "opinion.weight_decay", self.weight_decay, "at least 0")
        factor = self.learning_rate_factor
        require(factor > 0, "opinion.learning_rate_factor", factor, "positive")
        require(self.epochs >= 0, "opinion.epochs", self.epochs, "at least 0")
        require(self.patience >= 1, "opinion.patience", self.patience, "at least 1")


@dataclass(frozen=True, slots=True, kw_only=True)
@checks_fields(
    "minibatch",
    batch_size=(1 << 31) - 1,
    neighbours=1_000_000,
    tail_nodes=100_000_000,
    tail_prior_mass=math.inf,
    workers=256,
)
class MinibatchConfig:
    """Settings of the batches in minibatch mode."""

    batch_size: int | Literal["auto"] = "auto"
    """Number of training nodes per step; `auto` is 1024, or all if there are fewer."""
    neighbours: int | Literal["all"] = "all"
    """Number of neighbours per node that comparison models with graph convolutions draw; GPN does
    not use it.
    """
    tail: TailKind = "clustered"
    """Estimate of the cut part of a row; `clustered` needs a store with clusters."""
    tail_nodes: int = 4096
    """Number of random nodes that each step adds to its estimate of the clusters' means."""
    tail_prior_mass: float = 1.0
    """Weight of a cluster's mean relative to its kept mass in the estimate of `clustered`."""
    validation: Literal["auto", "rows", "exact"] = "auto"
    """Validate from stored rows (`rows`) or by exact diffusion (`exact`); `auto` takes the cheaper.
    """
    workers: int = 1
    """Number of background threads that assemble batches; 0 uses the trainer's own thread."""

    def __post_init__(self) -> None:
        size = self.batch_size
        require(size == "auto" or size >= 1, "minibatch.batch_size", size, "at least 1, or auto")
        count = self.neighbours
        require(count == "all" or count >= 1, "minibatch.neighbours", count, "at least 1, or all")
        require(self.tail_nodes >= 1, "minibatch.tail_nodes", self.tail_nodes, "at least 1")
        prior = self.tail_prior_mass
        require(prior > 0, "minibatch.tail_prior_mass", prior, "a positive number, or inf")
        require(self.workers >= 0, "minibatch.workers", self.workers, "at least 0")

    def roots_per_batch(self, num_roots: int) -> int:
        """Return the batch size for `num_roots` roots.

        >>> MinibatchConfig().roots_per_batch(5000), MinibatchConfig().roots_per_batch(300)
        (1024, 300)

        Raises:
            ConfigError: `batch_size` is larger than the number of roots.
        """
        size, expected = self.batch_size, f"auto or at most the {num_roots} nodes to train on"
        if size == "auto":
            return max(1, min(_BATCH_SIZE, num_roots))
        require(size <= num_roots, "minibatch.batch_size", size, expected)
        return size
