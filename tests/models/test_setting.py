from dataclasses import replace

import pytest

from gpn_scale.baselines.gcn import VGCN
from gpn_scale.config import DiffusionConfig, RunConfig
from gpn_scale.errors import GpnScaleError, GraphError
from gpn_scale.models.registry import setting_of
from gpn_scale.models.setting import BaselineSetting, GPNSetting
from gpn_scale.recipes import citation
from tests.baselines.graphs import unsplit_graph

GRAPH = unsplit_graph()


def test_fingerprints_of_finished_matrices_stay_valid():
    recorded = {
        "GPN": "344ec7d16257c97358d43f8e0a4f69c0",
        "PostNet-Diff": "344ec7d16257c97358d43f8e0a4f69c0 34a4e91959a356cb68dda8b9520bdc3b",
        "VGCN": "7de3353b3a51c330a8bdd85309eb63e4",
        "VGCN-BNN": "7ee2a3acf4acb6ddc04ef4bb2eb6ec70",
        "VGCN-BNN[model.prior_share=0.5]": "439f881a8bc6cdf4393fe42c63953445",
        "VGCN-BNN[model.prior_fraction=0.5]": "439f881a8bc6cdf4393fe42c63953445",
        "VGCN+GNNSafe": "7b4cd0e1645c1820b5bc5dd6dd993723",
        "VGCN+GNNSafe[model.own_share=0.25;train.epochs=3]": "b957ad35ad3b71f4dc08d1cd4c8d6c36",
        "VGCN+GNNSafe[model.own_fraction=0.25;train.epochs=3]": "b957ad35ad3b71f4dc08d1cd4c8d6c36",
    }
    for name, fingerprint in recorded.items():
        assert setting_of(name, citation("CoraML"), [], GRAPH).fingerprint == fingerprint


def test_a_rivals_fingerprint_follows_every_field_and_the_revision(monkeypatch):
    first = BaselineSetting(kind="VGCN", config=RunConfig(model="GPN"), model=VGCN).fingerprint
    assert (
        BaselineSetting(kind="VGCN", config=RunConfig(model="GPN"), model=VGCN).fingerprint == first
    )
    changed = replace(RunConfig(model="GPN"), mode="minibatch")
    assert BaselineSetting(kind="VGCN", config=changed, model=VGCN).fingerprint != first
    assert (
        BaselineSetting(kind="Other", config=RunConfig(model="GPN"), model=VGCN).fingerprint
        != first
    )
    monkeypatch.setattr(VGCN, "revision", 1)
    assert (
        BaselineSetting(kind="VGCN", config=RunConfig(model="GPN"), model=VGCN).fingerprint != first
    )


def test_rows_are_those_of_predictions_that_add_up():
    config = RunConfig(model="GPN")

    def rows(**changes):
        diffusion = replace(config.diffusion, **changes)
        return GPNSetting(kind="GPN", config=config, predicts_with=diffusion).row_diffusion

    assert rows() == config.diffusion
    assert rows(steps=0) is None
    assert rows(of="log_evidence") is None


@pytest.mark.parametrize(
    ("name", "needs_rows", "uses_rows"),
    [
        ("GPN", False, True),
        ("GPN-minibatch", True, True),
        ("PostNet", False, False),
        ("PostNet-Diff", False, True),
        ("GPN-LOG-beta", False, False),
        ("VGCN", False, False),
        ("VGCN-minibatch", False, False),
        ("PPRGo", True, True),
    ],
)
def test_which_models_train_on_rows_or_use_them(name, needs_rows, uses_rows):
    setting = setting_of(name, RunConfig(model="GPN"), [], GRAPH)
    assert setting.needs_rows == needs_rows
    assert (setting.row_diffusion is not None) == uses_rows


def test_a_new_gpn_predicts_with_the_diffusion_of_its_setting():
    other = DiffusionConfig(teleport=0.5)
    setting = GPNSetting(kind="GPN", config=RunConfig(model="GPN"), predicts_with=other)
    model = setting.new()
    assert model.config == setting.config
    assert model.predicts_with == other


def test_datasets_that_do_not_fit_are_refused_before_training():
    for name in ("GPN", "VGCN"):
        with pytest.raises(GraphError, match="has no features"):
            setting_of(name, RunConfig(model="GPN"), [], GRAPH).check(replace(GRAPH, features=None))
        changes = [("data.left_out_classes", "3")]
        with pytest.raises(GpnScaleError, match="cannot leave out 3 of 4 classes"):
            setting_of(name, RunConfig(model="GPN"), changes, GRAPH).check(GRAPH)
