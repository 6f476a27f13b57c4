from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale import config as config_module
from gpn_scale.cli.arguments import completed, run_config, training_parser
from gpn_scale.cli.run_choice import RunChoice
from gpn_scale.config import (
    DiffusionConfig,
    EncoderConfig,
    RunConfig,
    TrainConfig,
    field_types_by_key,
)
from gpn_scale.data.splits import stratified_split
from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph
from gpn_scale.errors import ConfigError
from gpn_scale.keywords import KEYWORDS, changed_fields, configuration_for, with_keywords

GRAPH = synthetic_graph(SyntheticConfig(nodes=200, classes=3, features=4))
VALUES = {
    "model": "GPN",
    "epochs": 7,
    "patience": 3,
    "learning_rate": 0.002,
    "weight_decay": 0.0,
    "hidden": 5,
    "layers": 3,
    "latent": 2,
    "dropout": 0.25,
    "teleport": 0.3,
    "steps": "inf",
    "random_state": 9,
}


def value_at(config, key):
    for name in key.split("."):
        config = getattr(config, name)
    return config


def test_every_keyword_sets_its_own_field():
    assert VALUES.keys() == KEYWORDS.keys() - {"mode"}
    assert set(KEYWORDS.values()) <= field_types_by_key().keys()
    assert len(set(KEYWORDS.values())) == len(KEYWORDS)
    for name, value in (VALUES | {"mode": "minibatch"}).items():
        config = with_keywords(RunConfig(), {name: value})
        assert value_at(config, KEYWORDS[name]) == value
        unset = with_keywords(config, dict.fromkeys(KEYWORDS))
        assert unset == config


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"epochs": 2.5}, "train.epochs is '2.5', expected a whole number"),
        ({"dropout": 1.5}, "encoder.dropout is 1.5, expected a fraction"),
        ({"model": "GCN"}, r"model is 'GCN', expected GPN\+ or GPN"),
        ({"random_state": -1}, "train.rng_seed is -1, expected at least 0"),
    ],
)
def test_wrong_values_are_refused(keywords, message):
    with pytest.raises(ConfigError, match=message):
        with_keywords(RunConfig(), keywords)


@pytest.mark.parametrize("mode", [None, "exact", "minibatch"])
@pytest.mark.parametrize("name", ["mine", "synthetic", "CoraML", "ogbn-arxiv", "AmazonPhotos"])
@pytest.mark.parametrize("with_split", [False, True])
def test_the_command_and_the_classifier_take_the_same_configuration(
    mode, name, with_split, tmp_path
):
    graph = replace(GRAPH, name=name)
    graph = stratified_split(graph, train=0.1, val=0.1, rng_seed=1) if with_split else graph
    flags = ["--dataset", name, "--mode", mode or "exact", "--seed", "4", "--epochs", "6"]
    flags += ["--set", "encoder.latent=3"]
    choice = RunChoice(out=tmp_path / "run", resume=False, overwrite=False)
    options = completed(training_parser().parse_args(flags), choice, None)
    expected = run_config(options, graph)
    keywords = {"mode": mode, "random_state": 4, "epochs": 6, "latent": 3}
    assert configuration_for(graph, None, keywords) == expected


def test_minibatches_of_a_graph_with_a_split_have_its_training_nodes():
    graph = synthetic_graph(SyntheticConfig(nodes=6000, classes=3, features=4, unseen_classes=0))
    graph = replace(graph, name="CoraML")
    keywords = {"mode": "minibatch"}
    assert configuration_for(graph, None, keywords).train.schedule == "constant"
    split = stratified_split(graph, train=0.25, val=0.1, rng_seed=1)
    assert configuration_for(split, None, keywords).train.epochs == 267


def test_keywords_change_a_given_configuration():
    given_config = RunConfig(model="GPN", train=TrainConfig(epochs=3))
    config = configuration_for(GRAPH, given_config, {"epochs": 5})
    assert config == RunConfig(model="GPN", train=TrainConfig(epochs=5))


@given(
    st.builds(
        RunConfig,
        model=st.sampled_from(["GPN", "GPN+"]),
        train=st.builds(TrainConfig, epochs=st.integers(0, 9), learning_rate=st.floats(0.1, 1)),
        encoder=st.builds(EncoderConfig, hidden=st.integers(1, 70)),
        diffusion=st.builds(DiffusionConfig, steps=st.integers(0, 11) | st.just("inf")),
    )
)
def test_the_changed_fields_make_the_configuration(config):
    assert eval(changed_fields(config), vars(config_module)) == config
