from dataclasses import replace

import pytest

from gpn_scale.baselines.gcn import EnergyGCN, EnergyOptions
from gpn_scale.config import RunConfig, SplitConfig, override
from gpn_scale.data.splits import num_training_nodes
from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph
from gpn_scale.errors import ConfigError
from gpn_scale.models.hyper_parameters import without_diffusion
from gpn_scale.models.registry import setting_of
from gpn_scale.models.spec import BaselineSpec, GPNSpec
from gpn_scale.recipes import in_minibatches
from tests.baselines.graphs import unsplit_graph

GRAPH = unsplit_graph()


def test_what_makes_a_variant_of_gpn_is_not_changed():
    changes = [("diffusion.teleport", "0.4"), ("diffusion.steps", "3")]
    fixed = ("diffusion.steps",)
    spec = GPNSpec(without_diffusion, predicts_with_recipe=True, fixed=fixed)
    setting = spec.setting("V", RunConfig(model="GPN"), changes, GRAPH)
    assert (setting.kind, setting.config.diffusion.steps) == ("V", 0)
    assert setting.predicts_with == replace(RunConfig(model="GPN").diffusion, teleport=0.4, steps=3)
    same = GPNSpec(without_diffusion, fixed=fixed).setting(
        "V", RunConfig(model="GPN"), changes, GRAPH
    )
    assert same.predicts_with == same.config.diffusion


CHANGES = {
    "minibatch.tail_nodes": "64",
    "train.schedule": "constant",
    "train.patience": "7",
    "train.epochs": "300",
    "opinion.patience": "9",
}


@pytest.mark.parametrize("kind", ["GPN-minibatch", "GPN+-minibatch"])
def test_changes_by_the_user_win_over_the_recipe_of_minibatches(kind):
    graph = synthetic_graph(SyntheticConfig(nodes=3000, classes=4))
    recipe = replace(RunConfig(), split=SplitConfig(train=0.4))
    plain = setting_of(kind, recipe, [], graph).config
    assert (plain.minibatch.batch_size, plain.train.schedule, plain.train.epochs) == (
        *(512, "cosine", 267),
    )
    assert plain == in_minibatches(replace(recipe, model=plain.model), graph)
    for key, value in CHANGES.items():
        changed = setting_of(kind, recipe, [(key, value)], graph).config
        section, _, name = key.partition(".")
        assert str(getattr(getattr(changed, section), name)) == value
        assert changed == override(plain, [(key, value)])
    everything = setting_of(kind, recipe, list(CHANGES.items()), graph).config
    assert everything == override(plain, CHANGES.items())
    assert setting_of(kind, recipe, [("mode", "exact")], graph).config == plain
    fewer = setting_of(kind, recipe, [("train.epochs", "2")], graph).config
    assert (fewer.train.epochs, fewer.train.patience, fewer.opinion.epochs) == (2, 2, 2)


@pytest.mark.parametrize("kind", ["GPN-minibatch", "GPN+-minibatch"])
def test_epochs_of_minibatches_follow_the_users_batch_size(kind):
    graph = synthetic_graph(SyntheticConfig(nodes=2000, classes=4))
    name = f"{kind}[minibatch.batch_size=32]"
    setting = setting_of(name, RunConfig(split=SplitConfig(train=0.05)), [], graph)
    setting.check(graph)
    config = setting.config
    num_train = num_training_nodes(graph, config)
    assert 64 < num_train <= 96
    assert (config.minibatch.batch_size, config.train.schedule) == (32, "cosine")
    assert (config.train.epochs, config.opinion.epochs) == (267, 134)
    whole = setting_of(f"{kind}[minibatch.batch_size={num_train}]", RunConfig(), [], graph).config
    assert whole.train == RunConfig().train
    with pytest.raises(ConfigError, match=r"minibatch.batch_size is 500, .* at most the \d+ nodes"):
        setting_of(f"{kind}[minibatch.batch_size=500]", RunConfig(), [], graph).check(graph)


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [("PostNet", "diffusion.steps", "5"), ("GPN-LOG-beta", "diffusion.of", "evidence")],
)
def test_ablations_stay_what_they_are(kind, key, value):
    recipe = RunConfig(model="GPN")
    plain = setting_of(kind, recipe, [], GRAPH)
    assert setting_of(kind, recipe, [(key, value)], GRAPH).config == plain.config


def test_rivals_are_configured_before_the_users_changes():
    def configure(config):
        return replace(config, train=replace(config.train, epochs=9, patience=4))

    spec = BaselineSpec(EnergyGCN, configure, lambda config: EnergyOptions(temperature=3.0))
    setting = spec.setting("E", RunConfig(model="GPN"), [("train.epochs", "5")], GRAPH)
    assert (setting.config.train.epochs, setting.config.train.patience) == (5, 4)
    assert setting.options == EnergyOptions(temperature=3.0)
    own = spec.setting("E", RunConfig(model="GPN"), [("model.temperature", "2")], GRAPH)
    assert own.options == EnergyOptions(temperature=2.0)
    assert own.fingerprint != setting.fingerprint
    assert (
        BaselineSpec(EnergyGCN).setting("E", RunConfig(model="GPN"), [], GRAPH).options
        == EnergyOptions()
    )
