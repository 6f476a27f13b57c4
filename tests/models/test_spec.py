from dataclasses import replace

from gpn_scale.baselines.gcn import EnergyGCN, EnergyOptions
from gpn_scale.config import RunConfig
from gpn_scale.models.hyper_parameters import without_diffusion
from gpn_scale.models.spec import BaselineSpec, GPNSpec
from tests.baselines.graphs import unsplit_graph

GRAPH = unsplit_graph()


def test_variants_of_gpn_are_configured_after_the_users_changes():
    changes = [("diffusion.teleport", "0.4"), ("diffusion.steps", "3")]
    spec = GPNSpec(without_diffusion, predicts_with_recipe=True)
    setting = spec.setting("V", RunConfig(model="GPN"), changes, GRAPH)
    assert (setting.kind, setting.config.diffusion.steps) == ("V", 0)
    assert setting.predicts_with == replace(RunConfig(model="GPN").diffusion, teleport=0.4, steps=3)
    same = GPNSpec(without_diffusion).setting("V", RunConfig(model="GPN"), changes, GRAPH)
    assert same.predicts_with == same.config.diffusion


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
