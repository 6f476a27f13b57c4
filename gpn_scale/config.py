"""What a run is made of: frozen dataclasses, one per component, and overrides by name."""

import difflib
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from gpn_scale.errors import ConfigError

FeatureScaling = Literal["none", "row_sum", "binary_row_sum"]
"""`row_sum`: each row sums to 1; `binary_row_sum`: the same after making nonzeros 1."""
Normalisation = Literal["sym", "rw"]
Steps = int | Literal["inf"]
TailKind = Literal["clustered", "stationary", "renormalised", "truncated"]
"""How the evidence of what a top-k row cuts off is estimated; see `gpn_scale.ppr.tails`."""


_BATCH_SIZE = 1024
_FORMER_FIELDS = {"minibatch.order": "random", "minibatch.tail_walks": 8}
"""Fields that earlier versions had, with their defaults.

Files may contain them, and fingerprints count them, so that stored runs and results stay valid.
"""


def _require(condition: bool, name: str, value: object, expected: str) -> None:
    if not condition:
        raise ConfigError(f"{name} is {value!r}, expected {expected}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataConfig:
    """Which graph, and how its features and labels are used."""

    dataset: str = "synthetic"
    """A known name, `synthetic[:key=value,...]`, or the name of a file or folder of your own."""
    feature_scaling: FeatureScaling = "none"
    """`row_sum` divides each row by its sum (bag of words), `binary_row_sum` makes it 0/1 first."""
    left_out_classes: int = 0
    """The last so many classes stay in the graph but leave all label sets, to be detected."""

    def __post_init__(self) -> None:
        _require(self.left_out_classes >= 0, "data.left_out_classes", self.left_out_classes, ">= 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitConfig:
    """Which nodes are for training, validation and test."""

    kind: Literal["stratified", "public"] = "stratified"
    """`stratified` draws per class; `public` takes the split that came with the graph."""
    train: float = 0.05
    """Share of each class for training (stratified)."""
    val: float = 0.15
    """Share of each class for validation (stratified); the rest is for test."""
    rng_seed: int = 1
    """Seed of the stratified draw."""

    def __post_init__(self) -> None:
        _require(0.0 < self.train < 1.0, "split.train", self.train, "a share in (0, 1)")
        _require(0.0 < self.val < 1.0, "split.val", self.val, "a share in (0, 1)")
        total = self.train + self.val
        _require(total < 1.0, "split.train + split.val", total, "below 1, to leave test nodes")
        _require(self.rng_seed >= 0, "split.rng_seed", self.rng_seed, "at least 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderConfig:
    """Features -> latent position."""

    hidden: int = 64
    """Width of the hidden layers."""
    layers: int = 2
    """Number of linear layers, the last one into the latent space."""
    latent: int = 16
    """Dimension of the latent space in which the flows live."""
    dropout: float = 0.5
    """Share of hidden units dropped in training."""
    batch_norm: bool = False
    """Whether hidden layers are batch-normalised."""
    standardise: bool = False
    """Shift and scale every feature column to mean 0 and variance 1 (dense features only)."""

    def __post_init__(self) -> None:
        _require(self.hidden >= 1, "encoder.hidden", self.hidden, "at least 1")
        _require(self.layers >= 1, "encoder.layers", self.layers, "at least 1")
        _require(self.latent >= 1, "encoder.latent", self.latent, "at least 1")
        _require(0.0 <= self.dropout < 1.0, "encoder.dropout", self.dropout, "a share in [0, 1)")


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowConfig:
    """Latent position -> density per class."""

    radial_layers: int = 10
    """Radial maps per class."""
    memory_mib: int = 512
    """Scratch memory of one pass; above it, nodes go in chunks that are recomputed backward."""

    def __post_init__(self) -> None:
        _require(self.radial_layers >= 0, "flow.radial_layers", self.radial_layers, "at least 0")
        _require(self.memory_mib >= 1, "flow.memory_mib", self.memory_mib, "at least 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceConfig:
    """Density per class -> pseudo-counts."""

    budget: Literal["latent", "latent_classes", "one"] = "latent"
    """`latent`: sqrt(4 pi)^H; `latent_classes`: times the number of classes; `one`: no scaling."""
    log_limit: float = 30.0
    """Log-evidence is clamped to [-log_limit, log_limit]."""

    def __post_init__(self) -> None:
        _require(self.log_limit > 0, "evidence.log_limit", self.log_limit, "a positive number")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffusionConfig:
    """Evidence per node -> evidence aggregated over its soft neighbourhood."""

    teleport: float = 0.1
    """Probability of returning to the root, in (0, 1)."""
    normalisation: Normalisation = "sym"
    """`sym`: D^-1/2 A D^-1/2 (the authors' runs); `rw`: D^-1 A (the paper's text)."""
    steps: Steps = 10
    """Power-iteration steps, or `inf` for personalised PageRank to `tolerance`."""
    tolerance: float = 1e-6
    """With `steps=inf`: share of the diffusion's mass that may be left undistributed."""
    self_loops: bool = True
    """Whether every node also counts as its own neighbour."""
    of: Literal["evidence", "log_evidence"] = "evidence"
    """What is averaged; `log_evidence` is the paper's ablation GPN-LOG, for exact mode alone."""

    def __post_init__(self) -> None:
        _require(
            0.0 < self.teleport < 1.0, "diffusion.teleport", self.teleport, "a number in (0, 1)"
        )
        known = self.steps == "inf" or self.steps >= 0
        _require(known, "diffusion.steps", self.steps, "at least 0, or inf")
        _require(0.0 < self.tolerance < 1.0, "diffusion.tolerance", self.tolerance, "in (0, 1)")

    @property
    def store_parameters(self) -> dict[str, Any]:
        """What a store of rows of this diffusion says of it."""
        return {
            "teleport": self.teleport,
            "normalisation": self.normalisation,
            "steps": str(self.steps),
            "self_loops": self.self_loops,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PPRConfig:
    """How the top-k rows of a diffusion are approximated and stored."""

    diffusion: DiffusionConfig = field(default_factory=lambda: DiffusionConfig(teleport=0.2))
    """The diffusion whose rows are wanted."""
    k: int = 64
    """Most entries that a stored row has."""
    clusters: int = 32
    """Graph clusters whose cut mass is stored with every row; 0 for none."""
    method: Literal["auto", "sweep", "push"] = "auto"
    """`sweep`: all rows from their neighbours' rows; `push`: each root by itself."""
    keep: int = 0
    """Entries that a row has while sweeping, at least k; 0 for twice k."""
    sweeps: int = 0
    """Number of sweeps of an unlimited diffusion; 0 to go on until `sweep_tolerance`."""
    sweep_tolerance: float = 8e-3
    """Sweeps end when the mean mass still to come, (1-t)/t times the last gain, is below this."""
    push_tolerance: float = 1e-6
    """A push leaves residuals below this, times the node's number of edges."""

    def __post_init__(self) -> None:
        _require(self.k >= 1, "k", self.k, "at least 1")
        _require(self.clusters >= 0, "clusters", self.clusters, "at least 0")
        _require(self.sweeps >= 0, "sweeps", self.sweeps, "at least 0")
        tolerance = self.sweep_tolerance
        _require(0 < tolerance < 1, "sweep_tolerance", tolerance, "a number in (0, 1)")
        tolerance = self.push_tolerance
        _require(0 < tolerance < 1, "push_tolerance", tolerance, "a number in (0, 1)")
        _require(self.keep == 0 or self.keep >= self.k, "keep", self.keep, "0, or at least k")

    @property
    def working_entries(self) -> int:
        """Entries that a row has while sweeping."""
        return self.keep or 2 * self.k


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """How the parameters are found."""

    epochs: int = 100_000
    """At most so many epochs after the warm-up."""
    patience: int = 50
    """Stop after so many epochs without a better validation cross-entropy."""
    warmup_steps: int = 5
    """Optimiser steps at the start that move only the flows; exact mode has one step an epoch."""
    learning_rate: float = 0.01
    """Of Adam."""
    schedule: Literal["constant", "cosine"] = "constant"
    """`cosine`: the learning rate falls with every step, to 0 at the end of `epochs`."""
    weight_decay: float = 0.001
    """Of the encoder's parameters; the flows have none."""
    entropy_weight: float = 1e-4
    """Weight of the posterior's entropy in the loss."""
    rng_seed: int = 1
    """Seed of initial values and dropout."""

    def __post_init__(self) -> None:
        _require(self.rng_seed >= 0, "train.rng_seed", self.rng_seed, "at least 0")
        _require(self.epochs >= 0, "train.epochs", self.epochs, "at least 0")
        _require(self.patience >= 1, "train.patience", self.patience, "at least 1")
        _require(self.warmup_steps >= 0, "train.warmup_steps", self.warmup_steps, "at least 0")
        _require(self.learning_rate > 0, "train.learning_rate", self.learning_rate, "positive")
        _require(self.weight_decay >= 0, "train.weight_decay", self.weight_decay, "at least 0")
        _require(self.entropy_weight >= 0, "train.entropy_weight", self.entropy_weight, ">= 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class MinibatchConfig:
    """How minibatch mode makes its batches."""

    batch_size: int | Literal["auto"] = "auto"
    """Labelled nodes per optimiser step; `auto` is 1024, or all where there are fewer."""
    neighbours: int | Literal["all"] = "all"
    """Neighbours drawn per node by comparison models with graph convolutions; not for GPN."""
    tail: TailKind = "clustered"
    """How the cut part of a row is estimated; `clustered` needs a store with clusters."""
    tail_nodes: int = 4096
    """Nodes drawn per step, so that its estimate of the clusters' evidence misses none for good."""
    tail_prior_mass: float = 1.0
    """With `clustered`: kept mass in a cluster that counts as much as the mean for what was cut."""
    validation: Literal["auto", "rows", "exact"] = "auto"
    """`rows`: from the nodes' rows; `exact`: by diffusion of all; `auto`: the cheaper of these."""
    workers: int = 1
    """Background threads that assemble batches; 0 assembles in the trainer's own."""

    def __post_init__(self) -> None:
        size = self.batch_size
        _require(size == "auto" or size >= 1, "minibatch.batch_size", size, "at least 1, or auto")
        top = self.neighbours
        _require(top == "all" or top >= 1, "minibatch.neighbours", top, "at least 1, or all")
        _require(self.tail_nodes >= 1, "minibatch.tail_nodes", self.tail_nodes, "at least 1")
        prior = self.tail_prior_mass
        _require(prior > 0, "minibatch.tail_prior_mass", prior, "a positive number, or inf")
        _require(self.workers >= 0, "minibatch.workers", self.workers, "at least 0")

    def roots_per_batch(self, num_roots: int) -> int:
        """The batch size for so many roots.

        Raises:
            ConfigError: it is larger than their number.
        """
        if self.batch_size == "auto":
            return max(1, min(_BATCH_SIZE, num_roots))
        _require(
            self.batch_size <= num_roots,
            "minibatch.batch_size",
            self.batch_size,
            f"auto or at most the {num_roots} nodes to train on",
        )
        return self.batch_size


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """A whole run; `launch/recipes.py` has the paper's."""

    mode: Literal["exact", "minibatch"] = "exact"
    """`exact`: full-batch power iteration; `minibatch`: batches of roots."""
    data: DataConfig = field(default_factory=DataConfig)
    split: SplitConfig = field(default_factory=SplitConfig)
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    flow: FlowConfig = field(default_factory=FlowConfig)
    evidence: EvidenceConfig = field(default_factory=EvidenceConfig)
    diffusion: DiffusionConfig = field(default_factory=DiffusionConfig)
    minibatch: MinibatchConfig = field(default_factory=MinibatchConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    def to_dict(self) -> dict[str, Any]:
        """Nested plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "RunConfig":
        """The inverse of `to_dict`; fields that are absent take their defaults."""
        flat = [
            (f"{section}.{name}", str(value))
            for section, content in values.items()
            if isinstance(content, Mapping)
            for name, value in content.items()
            if f"{section}.{name}" not in _FORMER_FIELDS
        ]
        top = [(name, str(v)) for name, v in values.items() if not isinstance(v, Mapping)]
        return override(cls(), top + flat)

    def fingerprint(self) -> str:
        """Hash of every field's value."""
        values = self.to_dict()
        for key, value in _FORMER_FIELDS.items():
            section, _, name = key.partition(".")
            values[section][name] = value
        text = json.dumps(values, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def parse_assignments(assignments: Iterable[str]) -> list[tuple[str, str]]:
    """`section.field=value` texts as (key, value) pairs."""
    pairs = []
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals:
            raise ConfigError(f"--set got {assignment!r}, expected section.field=value")
        pairs.append((key.strip(), value.strip()))
    return pairs


def override(config: RunConfig, pairs: Iterable[tuple[str, str]]) -> RunConfig:
    """`config` with fields replaced by key (`section.field`) and text.

    All pairs of one section are applied together, so that checks across fields see the result.

    Raises:
        ConfigError: a key is unknown (the nearest known ones are named) or a value does not parse.
    """
    changes: dict[str, dict[str, Any]] = {}
    types = known_fields()
    for key, text in pairs:
        if key not in types:
            raise ConfigError(_unknown_key(key, list(types)))
        section, _, name = key.rpartition(".")
        changes.setdefault(section, {})[name] = parse_value(types[key], text, key)
    top = changes.pop("", {})
    for section, values in changes.items():
        top[section] = replace(getattr(config, section), **values)
    return replace(config, **top)


def known_fields() -> dict[str, Any]:
    """Every key that `--set` takes, with its type."""
    types: dict[str, Any] = {}
    for name, kind in get_type_hints(RunConfig).items():
        if hasattr(kind, "__dataclass_fields__"):
            hints = get_type_hints(kind)
            types |= {f"{name}.{f.name}": hints[f.name] for f in fields(kind)}
        else:
            types[name] = kind
    return types


def _unknown_key(key: str, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, n=3, cutoff=0.5)
    tail = key.rpartition(".")[2]
    near += [name for name in known if name.rpartition(".")[2] == tail and name not in near]
    hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(known)}"
    return f"--set: there is no field {key!r}; {hint}"


def parse_value(kind: Any, text: str, key: str) -> Any:
    """`text` as a value of a field's type; `key` names the field if it is none."""
    parsers: dict[Any, Callable[[str], Any]] = {int: int, float: float, str: str, bool: _as_bool}
    if get_origin(kind) in (Union, UnionType):
        for option in get_args(kind):
            try:
                return parse_value(option, text, key)
            except ConfigError:
                continue
    elif get_origin(kind) is Literal:
        if text in get_args(kind):
            return text
    else:
        try:
            return parsers[kind](text)
        except ValueError:
            pass
    raise ConfigError(f"{key} got {text!r}, expected {_describe(kind)}")


def _as_bool(text: str) -> bool:
    words = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}
    if text.lower() not in words:
        raise ValueError(text)
    return words[text.lower()]


def _describe(kind: Any) -> str:
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(_describe(option) for option in get_args(kind))
    if get_origin(kind) is Literal:
        return " or ".join(map(str, get_args(kind)))
    return {int: "a whole number", float: "a number", bool: "true or false"}.get(kind, "a text")
