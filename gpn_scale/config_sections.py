"""Sections of a run's configuration about data, model and rows: one frozen dataclass per component.

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

SMALLEST_TELEPORT, SMALLEST_TOLERANCE = 1e-6, 1e-12
"""Smallest values for which float64 sums of a diffusion are still meaningful."""
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
    """Compile the flows of training steps with `torch.compile`, which needs a C++ compiler and
    takes a minute or two. Validation and prediction are never compiled.
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
