from pathlib import Path

import pytest

from gpn_scale.errors import ConfigError
from gpn_scale.experiments.catalogue import EXPERIMENTS
from gpn_scale.experiments.request import MatrixRequest, expand_groups
from gpn_scale.models.registry import ABLATION

SMALL = "synthetic:nodes=100,classes=4,unseen_classes=0,features=6"


def request(**changes):
    facts = {"datasets": (SMALL,), "models": ("GPN",), "splits": 1, "inits": 2} | changes
    return MatrixRequest(out=Path("out"), **facts)


def test_a_setting_has_the_seeds_of_its_cell_and_the_changes():
    own = request(changes=("train.epochs=3",), left_out_classes="1")
    first = next(cell for cell in own.cells if cell.left_out and cell.init == 2)
    config = own.setting(first).config
    assert (config.split.rng_seed, config.train.rng_seed) == (1, 2)
    assert (config.data.left_out_classes, config.train.epochs) == (1, 3)
    clean = own.setting(first._replace(left_out=False)).config
    assert clean.data.left_out_classes == 0


def test_class_sets_and_own_seeds_enter_the_settings_of_their_cells():
    own = request(class_sets=(0, 2), own_seeds=True, left_out_classes="1", models=("GPN", "LP"))
    settings = {cell: own.setting(cell).config for cell in own.cells}
    for cell, config in settings.items():
        assert config.train.rng_seed == cell.own_seed
        assert config.data.left_out_set == cell.class_set
        assert config.data.left_out_classes == int(cell.left_out)
    assert {cell.class_set for cell in settings} == {0, 2}
    shared = request(left_out_classes="1")
    for cell in shared.cells:
        assert shared.setting(cell).config.train.rng_seed == cell.init


def test_models_with_the_same_diffusion_share_a_store():
    own = request(models=("GPN", "GPN-minibatch", "PostNet", "PPRGo"))
    paths = {
        cell.model: own.store_path(cell.dataset, own.setting(cell))
        for cell in own.cells
        if not cell.left_out
    }
    assert paths["PostNet"] is None
    assert paths["GPN"] == paths["GPN-minibatch"] != paths["PPRGo"]
    assert paths["GPN"].parent == Path("out") / "stores"
    assert ":" not in paths["GPN"].name


def test_graphs_are_loaded_once():
    assert request().graph(SMALL) is request(models=("LP",)).graph(SMALL)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"datasets": ()}, "datasets is empty, expected at least one"),
        ({"models": ()}, "models is empty"),
        ({"models": ("GPT",)}, "models got 'GPT'"),
        ({"experiments": ("cleen",)}, "experiments got 'cleen'"),
        ({"fractions": (0.0,)}, "fraction"),
        ({"class_sets": ()}, "class_sets is empty"),
        ({"class_sets": (0, 5)}, "expected different numbers from 0 to 4"),
        ({"class_sets": (1, 1)}, "expected different numbers from 0 to 4"),
    ],
)
def test_requests_that_make_no_sense_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        request(**changes)


def test_groups_are_expanded_without_repetition():
    experiments, models = expand_groups(["all", "ablation"], ["GPN", "VGCN"])
    assert experiments == tuple(EXPERIMENTS)
    assert models == ("GPN", "VGCN", *(name for name in ABLATION if name != "GPN"))
    experiments, models = expand_groups(["hyper-parameters", "edge-shift"], ["GPN"], "budget")
    assert experiments == ("clean", "left-out-classes", "isolated", "edge-shift")
    assert models[0] == "GPN"
    assert set(models[1:]) == {f"GPN[evidence.budget={v}]" for v in ("latent", "latent_classes")}
