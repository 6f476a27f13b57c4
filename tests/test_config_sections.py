"""The sections of a configuration: values that they refuse."""

import json
import typing
from dataclasses import fields, is_dataclass, replace
from typing import get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpn_scale.config
from gpn_scale.config import (
    DiffusionConfig,
    RunConfig,
    field_types_by_key,
    override,
)
from gpn_scale.errors import ConfigError
from gpn_scale.field_types import parse_assignments


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("diffusion.teleport=0", r"diffusion.teleport is 0.0, expected a number in \(0, 1\)"),
        ("diffusion.teleport=1", "diffusion.teleport"),
        (
            "diffusion.steps=-1",
            "diffusion.steps is -1, expected at least 0 and at most 100000, or inf",
        ),
        ("diffusion.tolerance=0", "diffusion.tolerance"),
        ("data.left_out_classes=-1", "data.left_out_classes"),
        ("data.left_out_set=-1", "data.left_out_set"),
        ("encoder.hidden=0", "encoder.hidden"),
        ("encoder.layers=0", "encoder.layers"),
        ("encoder.latent=0", "encoder.latent"),
        ("encoder.dropout=1", "encoder.dropout"),
        ("flow.radial_layers=-1", "flow.radial_layers"),
        ("flow.memory_mib=0", "flow.memory_mib"),
        ("evidence.log_limit=0", "evidence.log_limit"),
    ],
)
def test_values_out_of_range_are_refused(assignment, message):
    with pytest.raises(ConfigError, match=message):
        override(RunConfig(), parse_assignments([assignment]))


CONFIGS = [config for config in vars(gpn_scale.config).values() if is_dataclass(config)]
"""`RunConfig` and its sections."""
CHOICES = [
    (config, field.name)
    for config in CONFIGS
    for field in fields(config)
    if "Literal" in str(get_type_hints(config)[field.name])
]


def choices_of(kind):
    return kind.__args__ if "Literal" in str(kind)[:14] else kind.__args__[-1].__args__


@pytest.mark.parametrize(("config", "name"), CHOICES, ids=lambda value: str(value))
@given(text=st.text(max_size=8))
def test_every_choice_is_checked_when_a_configuration_is_made(config, name, text):
    choices = choices_of(get_type_hints(config)[name])
    for choice in choices:
        assert getattr(config(**{name: choice}), name) == choice
    if text not in choices:
        with pytest.raises(ConfigError, match=rf"{name} is .*, expected .*{choices[-1]}"):
            config(**{name: text})
        with pytest.raises(ConfigError):
            replace(config(), **{name: text})


def test_the_choices_are_those_documented():
    assert {(config.__name__, name) for config, name in CHOICES} >= {
        ("RunConfig", "model"),
        ("RunConfig", "mode"),
        ("DataConfig", "feature_scaling"),
        ("SplitConfig", "kind"),
        ("EvidenceConfig", "budget"),
        ("DiffusionConfig", "normalisation"),
        ("DiffusionConfig", "steps"),
        ("DiffusionConfig", "of"),
        ("PPRConfig", "method"),
        ("TrainConfig", "schedule"),
        ("MinibatchConfig", "batch_size"),
        ("MinibatchConfig", "tail"),
        ("MinibatchConfig", "validation"),
    }


def test_a_refused_choice_names_the_allowed_values_and_its_field():
    with pytest.raises(ConfigError) as refused:
        RunConfig(mode="fast")
    assert str(refused.value) == "mode is 'fast', expected exact or minibatch"
    assert refused.value.arguments == ("mode",)
    with pytest.raises(ConfigError) as refused:
        DiffusionConfig(steps="few")
    assert str(refused.value) == "diffusion.steps is 'few', expected a whole number or inf"


NUMBERS = [
    key
    for key, kind in field_types_by_key().items()
    if {int, float} & {kind, *typing.get_args(kind)}
]


@pytest.mark.parametrize("key", NUMBERS)
@pytest.mark.parametrize("text", ["1" + "0" * 30, "9" * 4000, "9" * 5000, "1e308", "nan"])
def test_every_number_has_an_upper_bound_that_is_named(key, text):
    if key == "minibatch.tail_prior_mass" and text != "nan":
        text = "nan"  # any positive number is allowed, and inf
    with pytest.raises(ConfigError, match=rf"{key} is .*, expected ") as refused:
        override(RunConfig(), [(key, text)])
    assert len(str(refused.value)) < 200


def test_infinity_survives_json():
    config = override(RunConfig(), [("minibatch.tail_prior_mass", "inf")])
    text = json.dumps(config.to_dict(), allow_nan=False)
    assert RunConfig.from_dict(json.loads(text) | {"model": "GPN+"}) == config
