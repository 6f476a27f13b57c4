"""`RunConfig`: fields by name, overrides, stored files and fingerprints."""

from dataclasses import is_dataclass

import pytest

import gpn_scale.config
from gpn_scale import config_sections, training_sections
from gpn_scale.config import DiffusionConfig, RunConfig, field_types_by_key, override
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
        ("zzz=0.3", r"its fields are model, mode, data.dataset"),
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


def test_every_section_has_its_keys():
    assert {"mode", "diffusion.teleport", "train.rng_seed"} <= set(field_types_by_key())
    assert DiffusionConfig().teleport == 0.1


def test_fields_of_earlier_versions_are_left_out():
    values = RunConfig().to_dict()
    values["minibatch"] |= {"order": "random", "tail_walks": 8}
    assert RunConfig.from_dict(values) == RunConfig()


def test_fingerprints_are_those_of_earlier_versions():
    """Stored results and checkpoints name them."""
    assert RunConfig(model="GPN").fingerprint() == "fc2fb32fa1d677a549584db2855014d0"


def test_a_file_without_a_model_is_of_a_gpn():
    values = RunConfig(model="GPN").to_dict()
    del values["model"], values["opinion"]
    assert RunConfig.from_dict(values) == RunConfig(model="GPN")
    assert RunConfig.from_dict({}).model == "GPN"
    assert RunConfig.from_dict({"model": "GPN+"}) == RunConfig()


def test_fields_of_the_opinion_count_for_gpn_plus_alone():
    pairs = [("opinion.patience", "7")]
    gpn = RunConfig(model="GPN")
    assert override(gpn, pairs).fingerprint() == gpn.fingerprint()
    assert override(RunConfig(), pairs).fingerprint() != RunConfig().fingerprint()
    assert RunConfig().fingerprint() != gpn.fingerprint()


def test_the_opinion_is_trained_by_its_own_fields_and_no_longer_than_the_rest():
    config = changed("opinion.patience=7", "opinion.weight_decay=0.5", "train.schedule=cosine")
    training = config.opinion_training
    assert (training.patience, training.weight_decay, training.warmup_steps) == (7, 0.5, 0)
    assert training.schedule == "constant"
    assert changed("opinion.schedule=cosine").opinion_training.schedule == "cosine"
    assert training.learning_rate == config.train.learning_rate
    faster = changed("train.learning_rate=0.002", "opinion.learning_rate_factor=5")
    assert faster.opinion_training.learning_rate == pytest.approx(0.01)
    assert changed("train.epochs=3", "opinion.epochs=5").opinion_training.epochs == 3
    assert changed("train.epochs=5", "opinion.epochs=3").opinion_training.epochs == 3


def test_the_learning_rate_of_the_opinion_has_a_bound():
    message = r"learning_rate_factor is 50000, expected a number above 0 and at most 1,000"
    with pytest.raises(ConfigError, match=message):
        changed("train.learning_rate=100", "opinion.learning_rate_factor=500")
    with pytest.raises(ConfigError, match=r"learning_rate_factor is 0, expected a number above 0"):
        changed("train.learning_rate=1e-200", "opinion.learning_rate_factor=1e-200")


def test_the_learning_rate_of_a_model_without_opinion_is_its_own():
    config = changed("model=GPN", "train.learning_rate=300", "opinion.learning_rate_factor=5")
    assert config.train.learning_rate == 300
    with pytest.raises(ConfigError, match="learning_rate_factor is 1500, expected"):
        override(config, [("model", "GPN+")])


def test_gpn_plus_diffuses_evidence_alone():
    with pytest.raises(ConfigError, match=r"diffusion.of is 'log_evidence', expected 'evidence'"):
        changed("diffusion.of=log_evidence")
    assert changed("model=GPN", "diffusion.of=log_evidence").diffusion.of == "log_evidence"


def test_every_section_can_be_imported_from_the_configuration():
    sections = {
        name: value
        for module in (config_sections, training_sections)
        for name, value in vars(module).items()
        if is_dataclass(value)
    }
    assert len(sections) == 10
    for name, section in sections.items():
        assert getattr(gpn_scale.config, name) is section
        assert name in gpn_scale.config.__all__


def test_a_later_field_counts_where_it_is_not_the_default():
    moved = changed("data.left_out_set=1")
    assert moved.fingerprint() != RunConfig().fingerprint()
    assert moved.fingerprinted()["data"] == moved.to_dict()["data"]
    assert "left_out_set" not in RunConfig().fingerprinted()["data"]
