"""Configuration of a run: the dataclass `RunConfig`, and overrides of its fields by name.

Its sections are defined in `gpn_scale.config_sections` and `gpn_scale.training_sections`, and can
be imported from here.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, get_type_hints

from gpn_scale.config_sections import (
    DataConfig,
    DiffusionConfig,
    EncoderConfig,
    EvidenceConfig,
    FeatureScaling,
    FlowConfig,
    Normalisation,
    PPRConfig,
    Steps,
)
from gpn_scale.errors import ConfigError
from gpn_scale.field_types import checks_fields, parse_value, unknown_field
from gpn_scale.training_sections import (
    MOST_LEARNING_RATE,
    MinibatchConfig,
    OpinionConfig,
    SplitConfig,
    TailKind,
    TrainConfig,
)

__all__ = [
    "DataConfig",
    "DiffusionConfig",
    "EncoderConfig",
    "EvidenceConfig",
    "FeatureScaling",
    "FlowConfig",
    "MinibatchConfig",
    "Normalisation",
    "OpinionConfig",
    "PPRConfig",
    "RunConfig",
    "SplitConfig",
    "Steps",
    "TailKind",
    "TrainConfig",
    "assignments_of",
    "field_types_by_key",
    "override",
]

_FORMER_FIELDS = {"minibatch.order": "random", "minibatch.tail_walks": 8}
"""Fields that earlier versions had, with their defaults.

Stored files may contain them. Fingerprints include their defaults, so that earlier runs and
results stay valid.
"""
_LATER_FIELDS: dict[str, Any] = {
    "data.left_out_set": 0,
    "opinion.schedule": "constant",
    "opinion.learning_rate_factor": 1.0,
    "flow.compiled": False,
}
"""Fields that earlier versions did not have; fingerprints leave them out at these defaults."""


@dataclass(frozen=True, slots=True, kw_only=True)
@checks_fields()
class RunConfig:
    """Configuration of a whole run; `gpn_scale.recipes` has the paper's settings."""

    model: Literal["GPN+", "GPN"] = "GPN+"
    """`GPN+` combines feature evidence, opinion and label evidence; `GPN` is the paper's model."""
    mode: Literal["exact", "minibatch"] = "exact"
    """`exact` trains on the full graph by power iteration; `minibatch` trains on batches of roots.
    """
    data: DataConfig = field(default_factory=DataConfig)
    split: SplitConfig = field(default_factory=SplitConfig)
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    flow: FlowConfig = field(default_factory=FlowConfig)
    evidence: EvidenceConfig = field(default_factory=EvidenceConfig)
    diffusion: DiffusionConfig = field(default_factory=DiffusionConfig)
    minibatch: MinibatchConfig = field(default_factory=MinibatchConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    opinion: OpinionConfig = field(default_factory=OpinionConfig)

    def __post_init__(self) -> None:
        if self.model == "GPN+" and self.diffusion.of != "evidence":
            raise ConfigError(
                f"diffusion.of is {self.diffusion.of!r}, expected 'evidence' for model='GPN+': use "
                "model='GPN' for other diffusions",
                arguments=("diffusion.of", "model"),
            )
        rate = self._opinion_rate
        if self.model == "GPN+" and not 0.0 < rate <= MOST_LEARNING_RATE:
            raise ConfigError(
                f"train.learning_rate times opinion.learning_rate_factor is {rate:g}, expected a "
                f"number above 0 and at most {MOST_LEARNING_RATE:,}",
                arguments=("train.learning_rate", "opinion.learning_rate_factor"),
            )

    @property
    def _opinion_rate(self) -> float:
        return self.train.learning_rate * self.opinion.learning_rate_factor

    @property
    def opinion_training(self) -> TrainConfig:
        """Training settings of GPN+'s opinion: those of `train`, changed by fields of `opinion`.

        Raises:
            ConfigError: the model has no opinion, and the learning rate would be out of range.
        """
        return replace(
            self.train,
            epochs=min(self.train.epochs, self.opinion.epochs),
            patience=self.opinion.patience,
            weight_decay=self.opinion.weight_decay,
            learning_rate=self._opinion_rate,
            warmup_steps=0,
            schedule=self.opinion.schedule,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as nested dictionaries of plain values for JSON; inf becomes "inf"."""
        return {
            name: {key: "inf" if each == math.inf else each for key, each in value.items()}
            if isinstance(value, dict)
            else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "RunConfig":
        """Return the configuration that `values` describe, as in `to_dict`, filled with defaults.

        Files without `model` were written by versions that had only GPN, so they describe a GPN.

        >>> RunConfig.from_dict({"mode": "minibatch", "train": {"epochs": 3}}).train.epochs
        3

        Raises:
            ConfigError: a field is unknown, or a value is not allowed.
        """
        return override(cls(), [("model", "GPN"), *assignments_of(values)])

    def fingerprinted(self) -> dict[str, Any]:
        """Return the fields that results depend on; fields that only GPN+ uses are omitted for GPN.

        >>> "opinion" in RunConfig(model="GPN").fingerprinted()
        False
        """
        values = asdict(self)
        for key, default in _LATER_FIELDS.items():
            section, _, name = key.partition(".")
            if values[section][name] == default:
                del values[section][name]
        if self.model == "GPN":  # as in versions that had no other model
            del values["model"], values["opinion"]
        return values

    def fingerprint(self) -> str:
        """Return a hash of the values of all fields."""
        values = self.fingerprinted()
        for key, value in _FORMER_FIELDS.items():
            section, _, name = key.partition(".")
            values[section][name] = value
        text = json.dumps(values, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def assignments_of(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return nested fields, as in `RunConfig.to_dict`, as pairs of a key and a text.

    Fields that no longer exist are left out.

    >>> assignments_of({"mode": "exact", "train": {"epochs": 3}})
    [('mode', 'exact'), ('train.epochs', '3')]
    """
    flat = [
        (f"{section}.{name}", str(value))
        for section, content in values.items()
        if isinstance(content, Mapping)
        for name, value in content.items()
        if f"{section}.{name}" not in _FORMER_FIELDS
    ]
    top = [(name, str(v)) for name, v in values.items() if not isinstance(v, Mapping)]
    return [*top, *flat]


def override(config: RunConfig, pairs: Iterable[tuple[str, str]]) -> RunConfig:
    """Return `config` with fields changed by pairs of a key (`section.field`) and a text.

    All pairs of one section are applied together, so that checks across fields see the result.

    >>> override(RunConfig(), [("train.learning_rate", "1e-3")]).train.learning_rate
    0.001

    Raises:
        ConfigError: a key is unknown (similar keys are suggested), or a value is not allowed.
    """
    changes: dict[str, dict[str, Any]] = {}
    types = field_types_by_key()
    for key, text in pairs:
        if key not in types:
            raise ConfigError(unknown_field(key, list(types)))
        section, _, name = key.rpartition(".")
        changes.setdefault(section, {})[name] = parse_value(types[key], text, key)
    top = changes.pop("", {})
    for section, values in changes.items():
        top[section] = replace(getattr(config, section), **values)
    return replace(config, **top)


def field_types_by_key() -> dict[str, Any]:
    """Return the type of every configuration field by its key, `section.field` or `mode`.

    >>> field_types_by_key()["train.epochs"]
    <class 'int'>
    """
    types: dict[str, Any] = {}
    for name, kind in get_type_hints(RunConfig).items():
        if hasattr(kind, "__dataclass_fields__"):
            hints = get_type_hints(kind)
            types |= {f"{name}.{f.name}": hints[f.name] for f in fields(kind)}
        else:
            types[name] = kind
    return types
