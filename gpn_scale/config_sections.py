"""Sections of a run's configuration: one frozen dataclass per component.

The docstring under a field is what `--help` prints about it.
"""

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from gpn_scale.errors import ConfigError
from gpn_scale.field_types import checks_fields, require

FeatureScaling = Literal["none", "row_sum", "binary_row_sum"]
"""`row_sum` scales each row to sum 1; `binary_row_sum` sets nonzeros to 1 first."""
Normalisation = Literal["sym", "rw"]
Steps = int | Literal["inf"]
TailKind = Literal["clustered", "stationary", "renormalised", "truncated"]
"""How the evidence that a top-k row cuts off is estimated; see `gpn_scale.ppr.tails`."""

_BATCH_SIZE = 1024
LARGEST_SEED = (1 << 63) - 1
"""Largest seed of a random generator."""
SMALLEST_TELEPORT, SMALLEST_TOLERANCE = 1e-6, 1e-12
"""Smallest values for which float64 sums of a diffusion are still meaningful."""
MOST_LEARNING_RATE = 1_000
MOST_STEPS, MOST_SWEEPS, MOST_CLUSTERS = 100_000, 10_000, 4096
"""Limits within which small graphs take less than a day; pairs of clusters take 8 (2 P)^2 bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
@checks_fields("data", left_out_classes=1_000_000, left_out_set=1_000_000)
class DataConfig:
    """The graph, and how its features and labels are used.

    >>> DataConfig(dataset="CoraML", left_out_classes=3)
    DataConfig(dataset='CoraML', feature_scaling='none', left_out_classes=3, left_out_set=0)
    """

    dataset: str = "synthetic"
    """A dataset of the paper, `synthetic[:key=value,...]`, or the name of your file or folder."""
    feature_scaling: FeatureScaling = "none"
    """`row_sum` divides rows by their sum (bag of words); `binary_row_sum` makes them 0/1 first."""
    left_out_classes: int = 0
    """Number of classes, counted from the last, whose labels are hidden.

    Their nodes stay in the graph and serve as unknown nodes in the evaluation.
    """
    left_out_set: int = 0
    """Which classes are left out: 0 for the last ones, 1 to 4 for sets spread over all classes."""

    def __post_init__(self) -> None:
        require(self.left_out_classes >= 0, "data.left_out_classes", self.left_out_classes, ">= 0")
        require(self.left_out_set >= 0, "data.left_out_set", self.left_out_set, "at least 0")


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
@checks_fields("encoder", hidden=1_000_000, layers=1_000, latent=100_000, dropout=1)
class EncoderConfig:
    """The encoder, which maps features to latent positions.

    >>> EncoderConfig(hidden=256, batch_norm=True).latent
    16
    """

    hidden: int = 64
    """Width of the hidden layers."""
    layers: int = 2
    """Number of linear layers; the last one maps to the latent space."""
    latent: int = 16
    """Dimension of the latent space, where the flows estimate densities."""
    dropout: float = 0.5
    """Fraction of hidden units that are dropped in training."""
    batch_norm: bool = False
    """Use batch normalisation in hidden layers."""
    standardise: bool = False
    """Scale feature columns to mean 0 and variance 1 (dense features only)."""

    def __post_init__(self) -> None:
        require(self.hidden >= 1, "encoder.hidden", self.hidden, "at least 1")
        require(self.layers >= 1, "encoder.layers", self.layers, "at least 1")
        require(self.latent >= 1, "encoder.latent", self.latent, "at least 1")
        require(0.0 <= self.dropout < 1.0, "encoder.dropout", self.dropout, "a fraction in [0, 1)")


@dataclass(frozen=True, slots=True, kw_only=True)
@checks_fields("flow", radial_layers=10_000, memory_mib=1 << 24)
class FlowConfig:
    """The normalising flows, which map latent positions to a density per class.

    >>> FlowConfig(memory_mib=64)
    FlowConfig(radial_layers=10, memory_mib=64, compiled=False)
    """

    radial_layers: int = 10
    """Number of radial layers in the flow of each class."""
    memory_mib: int = 512
    """Scratch memory in MiB on a CPU; a GPU uses a quarter of its own memory. Larger passes run in
    chunks, which the backward pass recomputes.
    """
    compiled: bool = False
    """Compile the flows with `torch.compile`, which needs a C++ compiler and takes a minute or two.
    """

    def __post_init__(self) -> None:
        require(self.radial_layers >= 0, "flow.radial_layers", self.radial_layers, "at least 0")
        require(self.memory_mib >= 1, "flow.memory_mib", self.memory_mib, "at least 1")


@dataclass(frozen=True, slots=True, kw_only=True)
@checks_fields("evidence", log_limit=80)
class EvidenceConfig:
    """The step from a density per class to evidence (pseudo-counts).

    >>> EvidenceConfig(budget="one")
    EvidenceConfig(budget='one', log_limit=30.0)
    """

    budget: Literal["latent", "latent_classes", "one"] = "latent"
    """Factor on densities: `latent` is sqrt(4 pi)^D, `latent_classes` is C times that, `one` is 1.
    """
    log_limit: float = 30.0
    """Limit of the log-evidence, which is clamped to [-log_limit, log_limit]."""

    def __post_init__(self) -> None:
        require(self.log_limit > 0, "evidence.log_limit", self.log_limit, "a positive number")


@dataclass(frozen=True, slots=True, kw_only=True)
@checks_fields("diffusion", teleport=1, steps=1_000_000, tolerance=1)
class DiffusionConfig:
    """The diffusion, which aggregates evidence over the neighbourhood of each node.

    >>> DiffusionConfig(steps="inf").store_parameters
    {'teleport': 0.1, 'normalisation': 'sym', 'steps': 'inf', 'self_loops': True}
    """

    teleport: float = 0.1
    """Probability of returning to the root, in (0, 1) and at least 1e-6."""
    normalisation: Normalisation = "sym"
    """Matrix S: `sym` is D^-1/2 A D^-1/2 (the authors' runs), `rw` is D^-1 A (the paper's text)."""
    steps: Steps = 10
    """Number of power-iteration steps, at most 100,000, or `inf` for personalised PageRank to
    `tolerance`.
    """
    tolerance: float = 1e-6
    """With `steps=inf`, the fraction of the diffusion's mass that may remain undistributed."""
    self_loops: bool = True
    """Count every node as its own neighbour."""
    of: Literal["evidence", "log_evidence"] = "evidence"
    """What is diffused; `log_evidence` is the paper's ablation GPN-LOG, only for exact mode."""

    def __post_init__(self) -> None:
        teleport, tolerance, least = self.teleport, self.tolerance, SMALLEST_TELEPORT
        expected = f"a number in (0, 1), at least {least:g}"
        require(least <= teleport < 1.0, "diffusion.teleport", teleport, expected)
        allowed = self.steps == "inf" or 0 <= self.steps <= MOST_STEPS
        require(
            allowed, "diffusion.steps", self.steps, f"at least 0 and at most {MOST_STEPS}, or inf"
        )
        least = SMALLEST_TOLERANCE
        expected = f"in (0, 1), at least {least:g}"
        require(least <= tolerance < 1.0, "diffusion.tolerance", tolerance, expected)
        if self.steps == "inf" and tolerance < (1.0 - teleport) ** MOST_STEPS:
            steps = math.ceil(math.log(tolerance) / math.log1p(-teleport))
            raise ConfigError(
                f"diffusion.steps is 'inf', which takes {steps:,} steps with a teleport of "
                f"{teleport:g} and a tolerance of {tolerance:g}, expected at most {MOST_STEPS:,}: "
                "choose a larger teleport, or a number of steps",
                arguments=("diffusion.teleport", "diffusion.steps"),
            )

    @property
    def store_parameters(self) -> dict[str, Any]:
        """Parameters of this diffusion as the manifest of a store holds them."""
        return {
            "teleport": self.teleport,
            "normalisation": self.normalisation,
            "steps": str(self.steps),
            "self_loops": self.self_loops,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
@checks_fields(
    k=10_000_000,
    clusters=10_000_000,
    keep=20_000_000,
    sweeps=1_000_000,
    sweep_tolerance=1,
    push_tolerance=1,
)
class PPRConfig:
    """The approximation and storage of the top-k rows of a diffusion.

    >>> PPRConfig(k=32).working_entries
    64
    """

    diffusion: DiffusionConfig = field(default_factory=lambda: DiffusionConfig(teleport=0.2))
    """The diffusion whose rows are computed."""
    k: int = 64
    """Maximum number of entries in a stored row."""
    clusters: int = 32
    """Number of graph clusters, at most 4096; cut mass is stored per row and cluster. 0 for none.
    """
    method: Literal["auto", "sweep", "push"] = "auto"
    """`sweep` builds all rows from their neighbours' rows; `push` computes each root by itself."""
    keep: int = 0
    """Number of entries per row during sweeps, at least k; 0 for twice k."""
    sweeps: int = 0
    """Number of sweeps of an unlimited diffusion, at most 10,000; 0 to continue until
    `sweep_tolerance`.
    """
    sweep_tolerance: float = 8e-3
    """Sweeps end when the estimated missing mass, (1-t)/t times the last gain, is below this."""
    push_tolerance: float = 1e-6
    """A push ends when every node's residual is below this times its number of edges."""

    def __post_init__(self) -> None:
        require(self.k >= 1, "k", self.k, "at least 1")
        require(self.k < 2**30, "k", self.k, f"below {2**30}")
        for name, most in (("clusters", MOST_CLUSTERS), ("sweeps", MOST_SWEEPS)):
            value = getattr(self, name)
            require(value >= 0, name, value, "at least 0")
            require(value <= most, name, value, f"at most {most}")
        least = SMALLEST_TOLERANCE
        for name in ("sweep_tolerance", "push_tolerance"):
            value = getattr(self, name)
            require(least <= value < 1, name, value, f"a number in (0, 1), at least {least:g}")
        require(self.keep == 0 or self.keep >= self.k, "keep", self.keep, "0, or at least k")
        require(self.keep < 2**31, "keep", self.keep, f"below {2**31}")

    @property
    def working_entries(self) -> int:
        """Number of entries per row during sweeps, with the default filled in."""
        return self.keep or 2 * self.k


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
    """Number of random nodes that each step adds to its estimate of the clusters' evidence."""
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
