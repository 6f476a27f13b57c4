import json
from dataclasses import replace

import numpy as np
import pytest
from gpn_scale.experiments.matrix import Cell, Matrix, Setting, cells_of

from gpn_scale.config import DiffusionConfig, RunConfig, SplitConfig, TrainConfig
from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph
from gpn_scale.errors import ConfigError, NumericalError, RunError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.experiments import matrix as matrix_module
from gpn_scale.experiments.measures import EXPERIMENTS
from gpn_scale.experiments.tables import entries, to_markdown
from gpn_scale.inference.perturbed import Perturbed
from tests.ppr.stored import write_store

CONFIG = RunConfig(train=TrainConfig(epochs=2), split=SplitConfig(train=0.2, val=0.2))
CELL = Cell("G", "GPN", False, 1, 1)
ALL = list(EXPERIMENTS)


def graph():
    settings = {"unseen_classes": 0, "isolated": 0.0, "foreign": 0.0}
    return synthetic_graph(SyntheticConfig(nodes=150, classes=4, features=6, **settings))


def setting(**changes):
    config = replace(CONFIG, **changes)
    return Setting(config, config.diffusion)


def test_cells_are_those_that_the_experiments_need():
    cells = cells_of(["A", "B"], ["GPN"], ["clean", "isolated"], 2, 2)
    assert len(cells) == 8
    assert not any(cell.left_out for cell in cells)
    assert {cell.left_out for cell in cells_of(["A"], ["GPN"], ALL, 1, 1)} == {False, True}
    assert len({cell.name for cell in cells}) == 8
    with pytest.raises(ConfigError, match="got 0 splits and 1 inits"):
        cells_of(["A"], ["GPN"], ALL, 0, 1)


def test_every_experiment_gives_finite_numbers(tmp_path):
    diffusion = CONFIG.diffusion
    store = write_store(
        str(tmp_path / "rows"), graph(), diffusion, k=8, parameters=diffusion.store_parameters
    )
    left_out = setting(data=replace(CONFIG.data, left_out_classes=1))
    matrix = Matrix(tmp_path)
    for cell, own in ((CELL, setting()), (CELL._replace(left_out=True), left_out)):
        found = matrix.run(cell, ALL, own, graph, store=store.path, fractions=(0.1, 0.9))
        assert list(found.results) == cell.wanted(ALL)
        for metrics in found.results.values():
            assert metrics
            assert all(np.isfinite(value) for value in metrics.values())
    assert "auroc_epistemic_local" in found.results["left-out-classes"]
    assert "auroc_epistemic_local" in matrix.result(CELL).results["misclassification"]
    shift = matrix.result(CELL).results["edge-shift"]
    assert {name.partition("@")[2] for name in shift} == {
        "clean",
        *(f"{kind}_{share}" for kind in ("random", "dice") for share in ("0.10", "0.90")),
    }


def test_local_evidence_of_uncut_rows_is_all_evidence_also_of_perturbed_nodes(tmp_path):
    diffusion = CONFIG.diffusion
    store = write_store(
        str(tmp_path / "rows"), graph(), diffusion, k=150, parameters=diffusion.store_parameters
    )
    found = Matrix(tmp_path).run(CELL, ["isolated"], setting(), graph, store=store.path)
    metrics = found.results["isolated"]
    for noise in ("bernoulli", "normal"):
        with_network = metrics[f"auroc_epistemic@{noise}"]
        assert metrics[f"auroc_epistemic_local@{noise}"] == pytest.approx(with_network, abs=1e-3)
        assert abs(with_network - 0.5) > 0.01


def test_a_matrix_killed_between_experiments_goes_on_without_training_again(tmp_path, monkeypatch):
    whole = Matrix(tmp_path / "whole")
    whole.run(CELL, ALL, setting(), graph)
    matrix, died = Matrix(tmp_path / "killed"), RuntimeError("killed")

    def die(trained):
        raise died

    with monkeypatch.context() as patch:
        patch.setattr(matrix_module, "EXPERIMENTS", {**EXPERIMENTS, "isolated": die}, raising=True)
        with pytest.raises(RuntimeError, match="killed"):
            matrix.run(CELL, ALL, setting(), graph)
    assert matrix.missing(CELL, ALL, setting()) == ALL[ALL.index("isolated") :]
    assert list(matrix.result(CELL).results) == ["clean", "misclassification"]
    monkeypatch.setattr(GPNClassifier, "fit", die)
    assert matrix.run(CELL, ALL, setting(), graph) == whole.result(CELL)
    assert matrix.missing(CELL, ALL, setting()) == []


def test_what_another_version_or_configuration_made_is_refused(tmp_path):
    matrix = Matrix(tmp_path)
    matrix.run(CELL, ["clean"], setting(), graph)
    other = setting(diffusion=DiffusionConfig(teleport=0.5))
    with pytest.raises(RunError, match="was made with another configuration"):
        matrix.run(CELL, ["clean"], other, graph)
    path = tmp_path / "cells" / f"{CELL.name}.json"
    stored = json.loads(path.read_text())
    path.write_text(json.dumps(stored | {"version": "0.0.0"}))
    with pytest.raises(RunError, match=r"was written by version 0.0.0"):
        matrix.result(CELL)
    path.write_text('{"version": ')
    with pytest.raises(RunError, match="is damaged"):
        matrix.result(CELL)


def test_what_is_not_a_number_is_kept(tmp_path, monkeypatch):
    none = {"clean": lambda trained: {"auroc": float("nan"), "accuracy": 1.0}}
    monkeypatch.setattr(matrix_module, "EXPERIMENTS", none)
    Matrix(tmp_path).run(CELL, ["clean"], setting(), graph)
    found = Matrix(tmp_path).result(CELL).results["clean"]
    assert np.isnan(found["auroc"])
    assert found["accuracy"] == 1.0
    table = to_markdown(entries({CELL: Matrix(tmp_path).result(CELL)}))
    assert "| G | GPN | n.a. | 100.0 |" in table


def test_a_prediction_that_is_not_finite_is_told_with_its_cell(tmp_path, monkeypatch):
    as_it_is = Perturbed.as_it_is

    def lost(perturbed):
        found = as_it_is(perturbed)
        found.probabilities[3] = np.nan
        return found

    monkeypatch.setattr(Perturbed, "as_it_is", lost)
    wanted = r"G/GPN/all_classes/split1_init1, clean: .* prediction of 1 of 150 nodes is not finite"
    with pytest.raises(NumericalError, match=wanted):
        Matrix(tmp_path).run(CELL, ALL, setting(), graph)
