import math
from dataclasses import replace

import pytest

from gpn_scale.baselines.gcn import VGCN, EnergyOptions
from gpn_scale.baselines.model import changed_options
from gpn_scale.baselines.registry import BASELINES, BaselineSetting
from gpn_scale.cli.models import setting_of
from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph
from gpn_scale.errors import ConfigError, GraphError, MissingScoreError
from gpn_scale.experiments.matrix import Cell, Matrix
from gpn_scale.experiments.measures import EXPERIMENTS
from gpn_scale.experiments.tables import entries, to_markdown
from gpn_scale.recipes import arxiv, citation
from tests.baselines.graphs import CONFIG, small_graph
from tests.ppr.stored import write_store

ALL = list(EXPERIMENTS)
QUICK = {
    "VGCN-Ensemble": [("model.members", "2")],
    "VGCN-Ensemble-minibatch": [("model.members", "2")],
    "VGCN-Dropout": [("model.samples", "2")],
    "VGCN-Dropout-minibatch": [("model.samples", "2")],
    "DropEdge": [("model.samples", "2")],
    "VGCN-BNN": [("model.samples", "2")],
}
_NAMES = ("APPNP", "PPRGo", "VGCN", "VGCN-minibatch", "RGCN")
WITHOUT_EPISTEMIC = {*_NAMES, *(name for name in BASELINES if name.endswith("+temperature"))}


def unsplit():
    settings = {"unseen_classes": 0, "isolated": 0.0, "foreign": 0.0}
    return synthetic_graph(SyntheticConfig(nodes=120, classes=4, features=6, **settings))


@pytest.mark.parametrize("name", BASELINES)
def test_every_model_gives_every_experiment_its_numbers(name, tmp_path):
    recipe = replace(CONFIG, train=replace(CONFIG.train, epochs=3))
    store = None
    for left_out in (False, True):
        changes = [*QUICK.get(name, []), ("data.left_out_classes", str(int(left_out)))]
        setting = BaselineSetting.of(name, recipe, changes)
        if setting.needs_rows and store is None:
            own, folder = setting.config.diffusion, str(tmp_path / "rows")
            facts = own.store_parameters
            store = write_store(folder, unsplit(), own, k=8, parameters=facts)
        cell = Cell("G", name, left_out, 1, 1)
        path = None if store is None else store.path
        found = Matrix(tmp_path).run(cell, ALL, setting, unsplit, store=path, fractions=(0.2, 0.8))
        assert list(found.results) == cell.wanted(ALL)
        for metrics in found.results.values():
            for metric, value in metrics.items():
                missing = "epistemic_no_network" in metric or (
                    "epistemic" in metric and name in WITHOUT_EPISTEMIC
                )
                assert math.isnan(value) == missing, metric
    table = to_markdown(entries({cell: found}))
    assert "n.a." in table
    assert "nan" not in table


def test_a_trained_cell_is_read_and_not_trained_again(tmp_path, monkeypatch):
    setting = BaselineSetting.of("VGCN", CONFIG)
    cell = Cell("G", "VGCN", False, 1, 1)
    first = Matrix(tmp_path).run(cell, ["clean"], setting, unsplit)

    def die(*_):
        raise AssertionError("trained again")

    monkeypatch.setattr(VGCN, "fit_view", die)
    both = Matrix(tmp_path).run(cell, ["clean", "isolated"], setting, unsplit)
    assert both.results["clean"] == pytest.approx(first.results["clean"], nan_ok=True)
    assert "accuracy@normal" in both.results["isolated"]


def test_a_score_that_a_model_has_not_is_a_clear_error():
    graph = small_graph()
    found = VGCN(CONFIG).fit(graph).predict(graph)
    with pytest.raises(MissingScoreError, match=r"^VGCN has no epistemic score.*use `aleatoric`"):
        _ = found.epistemic
    with pytest.raises(MissingScoreError, match="VGCN has no score without network"):
        _ = found.epistemic_no_network
    assert found.scores(graph.split.test)["epistemic"] is None


def test_settings_are_those_of_the_appendix_then_the_users():
    recipe = citation("CoraML")
    vgcn = BaselineSetting.of("VGCN", recipe).config
    assert (vgcn.encoder.dropout, vgcn.train.weight_decay, vgcn.encoder.hidden) == (0.8, 1e-4, 64)
    assert vgcn.train.patience == 50
    large = BaselineSetting.of("VGCN", arxiv("ogbn-arxiv")).config
    assert (large.encoder.dropout, large.train.weight_decay) == (0.5, 0.0)
    assert (large.encoder.hidden, large.encoder.layers) == (256, 3)
    assert BaselineSetting.of("RGCN", recipe).config.encoder.hidden == 32
    kernel = BaselineSetting.of("GKDE-GCN", recipe).options
    assert (kernel.kernel_weight, kernel.teacher_weight) == (1e-3, 1.0)
    kernel = BaselineSetting.of("GKDE-GCN", arxiv("ogbn-arxiv")).options
    assert (kernel.kernel_weight, kernel.teacher_weight) == (1e-4, 0.0)
    assert BaselineSetting.of("LP", recipe).config.diffusion.teleport == 0.1
    changed = BaselineSetting.of("VGCN", recipe, [("encoder.dropout", "0.1")])
    assert changed.config.encoder.dropout == 0.1
    assert changed.fingerprint != BaselineSetting.of("VGCN", recipe).fingerprint
    other = BaselineSetting.of("VGCN-Energy", recipe, [("model.temperature", "2")])
    assert other.options == EnergyOptions(temperature=2.0)
    assert other.fingerprint != BaselineSetting.of("VGCN-Energy", recipe).fingerprint


def test_matrices_of_gpn_made_before_there_were_other_models_go_on():
    recipe = citation("CoraML")
    known = {
        "GPN": "344ec7d16257c97358d43f8e0a4f69c0",
        "PostNet-Diff": "344ec7d16257c97358d43f8e0a4f69c0 34a4e91959a356cb68dda8b9520bdc3b",
    }
    for name, fingerprint in known.items():
        assert setting_of(name, recipe, [], unsplit()).fingerprint == fingerprint


@pytest.mark.parametrize("kind", ["LP", "GKDE", "VGCN", "VGCN-Ensemble", "VGCN+GNNSafe"])
def test_prediction_needs_a_fit(kind):
    model = BaselineSetting.of(kind, CONFIG).new()
    with pytest.raises(GraphError, match="has learnt nothing yet: call fit first"):
        model.predict(small_graph())


def test_unknown_options_are_refused():
    with pytest.raises(ConfigError, match=r"'model\.heat'.*known are model\.temperature"):
        changed_options("VGCN-Energy", EnergyOptions(), [("model.heat", "1")])
    with pytest.raises(ConfigError, match=r"model\.temperature is 'warm', expected a number"):
        changed_options("VGCN-Energy", EnergyOptions(), [("model.temperature", "warm")])
    for text in ("nan", "inf"):
        with pytest.raises(ConfigError, match=rf"VGCN-Energy is {text}, expected a finite number"):
            changed_options("VGCN-Energy", EnergyOptions(), [("model.temperature", text)])
    with pytest.raises(ConfigError, match=r"known are none"):
        BaselineSetting.of("VGCN", CONFIG, [("model.x", "1")])
