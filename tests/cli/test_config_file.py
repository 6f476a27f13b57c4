"""Configurations in files: whole ones, parts, damaged ones."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.cli.config_file import ConfigFile
from gpn_scale.config import RunConfig, TrainConfig
from gpn_scale.errors import ConfigError
from gpn_scale.recipes import RECIPES


def written(path, values):
    path.write_text(json.dumps(values))
    return path


@pytest.mark.parametrize("name", RECIPES)
def test_a_whole_file_is_the_whole_configuration(tmp_path, name):
    config = replace(RECIPES[name]("mine"), mode="minibatch", model="GPN")
    file = ConfigFile(written(tmp_path / "config.json", config.to_dict()))
    assert (file.dataset, file.mode) == ("mine", "minibatch")
    for other in RECIPES.values():
        assert file.applied_to(other("other")) == config


@given(epochs=st.integers(1, 10_000), rate=st.floats(1e-6, 1.0))
def test_a_part_leaves_the_other_fields_alone(tmp_path_factory, epochs, rate):
    path = tmp_path_factory.mktemp("config") / "part.json"
    values = {"train": {"epochs": epochs, "learning_rate": rate}}
    base = RECIPES["amazon"]("mine")
    config = ConfigFile(written(path, values)).applied_to(base)
    train = replace(base.train, epochs=epochs, learning_rate=rate)
    assert config == replace(base, train=train)


def test_a_part_may_be_empty_and_then_says_nothing(tmp_path):
    file = ConfigFile(written(tmp_path / "part.json", {}))
    assert file.dataset is None
    assert file.mode is None
    assert file.applied_to(RunConfig()) == RunConfig()


def test_a_whole_file_without_a_model_is_of_a_gpn(tmp_path):
    values = RunConfig(model="GPN").to_dict()
    del values["model"], values["opinion"]
    assert ConfigFile(written(tmp_path / "old.json", values)).applied_to(RunConfig()).model == "GPN"
    part = {"train": {"epochs": 3}}
    assert ConfigFile(written(tmp_path / "part.json", part)).applied_to(RunConfig()).model == "GPN+"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot be read"),
        ("{", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ("[1]", "holds list, expected an object of fields"),
        ("3", "holds int, expected an object of fields"),
    ],
)
def test_a_file_that_is_no_configuration_is_refused(tmp_path, text, message):
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=f"bad.json {message}") as caught:
        ConfigFile(path)
    assert caught.value.arguments == ("config",)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_missing_or_no_text_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        ConfigFile(tmp_path / "none.json")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot be read"):
        ConfigFile(tmp_path / "bytes")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"train": {"epoch": 3}}, "no field 'train.epoch'; did you mean train.epochs"),
        ({"train": 3}, "no field 'train'"),
        ({"training": {"epochs": 3}}, "no field 'training.epochs'"),
        ({"train": {"epochs": "many"}}, "train.epochs is 'many', expected a whole number"),
        ({"train": {"epochs": None}}, "train.epochs is 'None', expected a whole number"),
        ({"train": {"epochs": [3]}}, r"train.epochs is '\[3\]', expected a whole number"),
        ({"train": {"epochs": {"a": 1}}}, "train.epochs is"),
        ({"train": {"epochs": -1}}, "train.epochs is -1, expected"),
        ({"mode": "quick"}, "mode is 'quick', expected exact or minibatch"),
    ],
)
def test_bad_fields_are_refused_with_the_name_of_the_file(tmp_path, values, message):
    file = ConfigFile(written(tmp_path / "bad.json", values))
    with pytest.raises(ConfigError, match=f"bad.json cannot be used: .*{message}") as caught:
        file.applied_to(RunConfig())
    assert "\n" not in str(caught.value)


def test_former_fields_are_ignored(tmp_path):
    values = RunConfig(train=TrainConfig(epochs=3)).to_dict()
    values["minibatch"] |= {"order": "random", "tail_walks": 8}
    config = ConfigFile(written(tmp_path / "old.json", values)).applied_to(RunConfig())
    assert config.train.epochs == 3
