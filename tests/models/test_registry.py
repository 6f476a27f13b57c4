import pytest

from gpn_scale.config import RunConfig
from gpn_scale.errors import ConfigError
from gpn_scale.models.registry import ABLATION, MODELS, model_names, parse_model, setting_of
from gpn_scale.recipes import citation
from tests.baselines.graphs import unsplit_graph

GRAPH = unsplit_graph()


def test_names_of_models_and_their_changes():
    assert parse_model("GPN") == ("GPN", [])
    changes = [("train.epochs", "5"), ("diffusion.teleport", "0.3")]
    assert parse_model("VGCN[train.epochs=5;diffusion.teleport=0.3]") == ("VGCN", changes)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "GPT",
            r"models got 'GPT', expected names among GPN\+, GPN\+-minibatch, GPN, GPN-minibatch",
        ),
        ("APPN", r"models got 'APPN', .*; did you mean APPNP\?"),
        ("my_model", r"; models of a plug-in need its file"),
        ("GPN[train.epochs=1", r"expected NAME\[section.field=value;...\]"),
        ("GPN[train.epochs]", r"expected NAME\[section.field=value;...\]"),
    ],
)
def test_names_that_are_none_are_refused(name, message):
    with pytest.raises(ConfigError, match=message) as caught:
        parse_model(name)
    assert caught.value.arguments == ("models",)


def test_the_registry_begins_with_gpn_and_holds_the_ablation():
    assert model_names()[:4] == ["GPN+", "GPN+-minibatch", "GPN", "GPN-minibatch"]
    assert set(ABLATION) <= set(MODELS)


def test_a_models_own_changes_come_after_those_of_all_models():
    for name in ("GPN[train.epochs=5]", "VGCN[train.epochs=5]"):
        setting = setting_of(name, RunConfig(model="GPN"), [("train.epochs", "7")], GRAPH)
        assert setting.config.train.epochs == 5


def test_names_in_tables_are_those_of_the_registry():
    for name in MODELS:
        setting = setting_of(name, citation("CoraML"), [], GRAPH)
        assert setting.kind == name
        assert getattr(setting.new(), "name", name) == name


@pytest.mark.parametrize("name", ["GPN", "GPN+-minibatch", "APPNP"])
def test_a_name_stands_for_one_model(name):
    for changes, own in (([("model", "GPN+")], ""), ([], "[model=GPN+]")):
        with pytest.raises(ConfigError, match=r"model is set to 'GPN\+'.*choose models by name"):
            setting_of(f"{name}{own}", RunConfig(), changes, GRAPH)


def test_unknown_fields_are_refused():
    with pytest.raises(ConfigError, match=r"the configuration has no field 'train\.epoch'"):
        setting_of("GPN[train.epoch=1]", RunConfig(model="GPN"), [], GRAPH)
    with pytest.raises(ConfigError, match=r"VGCN has no option 'model\.x', its options are: none"):
        setting_of("VGCN", RunConfig(model="GPN"), [("model.x", "1")], GRAPH)
