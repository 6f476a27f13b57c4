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


def changed(*assignments: str) -> RunConfig:
    return override(RunConfig(), parse_assignments(assignments))


def test_every_field_can_be_set_to_what_it_is():
    config = RunConfig()
    for section, values in config.to_dict().items():
        pairs = values.items() if isinstance(values, dict) else [("", values)]
        for name, value in pairs:
            key = f"{section}.{name}" if name else section
            assert changed(f"{key}={value}") == config


def test_values_are_parsed_by_type():
    config = changed("diffusion.steps=inf", "encoder.batch_norm=on", "train.learning_rate=1e-3")
    assert config.diffusion.steps == "inf"
    assert config.encoder.batch_norm is True
    assert config.train.learning_rate == 1e-3
    assert changed("diffusion.steps=7").diffusion.steps == 7


def test_fields_of_one_section_are_checked_together():
    assert changed("split.train=0.9", "split.val=0.05").split.train == 0.9


def test_dictionary_round_trip():
    config = changed("diffusion.steps=inf", "encoder.dropout=0.1", "data.dataset=x=y")
    assert RunConfig.from_dict(config.to_dict()) == config


def test_fingerprint_follows_every_field():
    assert RunConfig().fingerprint() == RunConfig().fingerprint()
    assert changed("train.patience=51").fingerprint() != RunConfig().fingerprint()


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        (
            "train.lerning_rate=1",
            r"no field 'train.lerning_rate'; did you mean train.learning_rate",
        ),
        ("teleport=0.3", r"did you mean .*diffusion.teleport"),
        ("zzz=0.3", r"its fields are mode, data.dataset"),
        ("train.epochs", r"is 'train.epochs', expected section.field=value"),
        ("train.epochs=many", r"train.epochs is 'many', expected a whole number"),
        ("train.learning_rate=fast", r"expected a number"),
        ("encoder.batch_norm=perhaps", r"expected true or false"),
        ("diffusion.steps=few", r"expected a whole number or inf"),
        ("diffusion.normalisation=row", r"expected sym or rw"),
    ],
)
def test_wrong_assignments_are_refused(assignment, message):
    with pytest.raises(ConfigError, match=message):
        changed(assignment)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("diffusion.teleport=0", r"diffusion.teleport is 0.0, expected a number in \(0, 1\)"),
        ("diffusion.teleport=1", "diffusion.teleport"),
        ("diffusion.steps=-1", "diffusion.steps is -1, expected at least 0, or inf"),
        ("diffusion.tolerance=0", "diffusion.tolerance"),
        ("split.train=0", "split.train"),
        ("split.val=1", "split.val"),
        ("split.val=0.99", r"split.train \+ split.val"),
        ("split.rng_seed=-1", "split.rng_seed"),
        ("train.rng_seed=-1", "train.rng_seed"),
        ("data.left_out_classes=-1", "data.left_out_classes"),
        ("data.left_out_set=-1", "data.left_out_set"),
        ("encoder.hidden=0", "encoder.hidden"),
        ("encoder.layers=0", "encoder.layers"),
        ("encoder.latent=0", "encoder.latent"),
        ("encoder.dropout=1", "encoder.dropout"),
        ("flow.radial_layers=-1", "flow.radial_layers"),
        ("flow.memory_mib=0", "flow.memory_mib"),
        ("evidence.log_limit=0", "evidence.log_limit"),
        ("train.epochs=-1", "train.epochs"),
        ("train.patience=0", "train.patience"),
        ("train.warmup_steps=-1", "train.warmup_steps"),
        ("train.learning_rate=0", "train.learning_rate"),
        ("train.weight_decay=-1", "train.weight_decay"),
        ("train.entropy_weight=-1", "train.entropy_weight"),
    ],
)
def test_values_out_of_range_are_refused(assignment, message):
    with pytest.raises(ConfigError, match=message):
        changed(assignment)


CONFIGS = [
    config
    for config in vars(gpn_scale.config).values()
    if is_dataclass(config) and config.__module__ == "gpn_scale.config"
]
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


def test_every_section_has_its_keys():
    assert {"mode", "diffusion.teleport", "train.rng_seed"} <= set(field_types_by_key())
    assert DiffusionConfig().teleport == 0.1


def test_fields_of_earlier_versions_are_left_out():
    values = RunConfig().to_dict()
    values["minibatch"] |= {"order": "random", "tail_walks": 8}
    assert RunConfig.from_dict(values) == RunConfig()


def test_fingerprints_are_those_of_earlier_versions():
    """Stored results and checkpoints name them."""
    assert RunConfig().fingerprint() == "fc2fb32fa1d677a549584db2855014d0"


def test_a_later_field_counts_where_it_is_not_the_default():
    moved = changed("data.left_out_set=1")
    assert moved.fingerprint() != RunConfig().fingerprint()
    assert moved.fingerprinted()["data"] == moved.to_dict()["data"]
    assert "left_out_set" not in RunConfig().fingerprinted()["data"]
