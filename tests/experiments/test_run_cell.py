from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.baselines.appnp import APPNP
from gpn_scale.baselines.gcn import VGCN
from gpn_scale.config import DiffusionConfig
from gpn_scale.data.splits import prepare_graph
from gpn_scale.errors import NumericalError, RunError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.experiments import run_cell as module
from gpn_scale.experiments.catalogue import EXPERIMENTS
from gpn_scale.experiments.cells import Cell
from gpn_scale.experiments.matrix_directory import MatrixDirectory
from gpn_scale.experiments.run_cell import fitted_model, run_cell
from gpn_scale.experiments.tables import entries, to_markdown
from gpn_scale.inference.perturbed import Perturbed
from gpn_scale.models.registry import setting_of
from gpn_scale.train.checkpoint import load_tensors
from tests.experiments.cells import ALL, CELL, CONFIG, graph, setting, stored_rows


def refuse_to_train(*_, **__):
    raise AssertionError("trained again")


def test_every_experiment_gives_finite_numbers(tmp_path):
    store = stored_rows(tmp_path / "rows", k=8)
    left_out = setting(data=replace(CONFIG.data, left_out_classes=1))
    directory = MatrixDirectory(tmp_path)
    for cell, own in ((CELL, setting()), (CELL._replace(left_out=True), left_out)):
        result = run_cell(directory, cell, ALL, own, graph, store=store, fractions=(0.1, 0.9))
        assert list(result.results) == cell.experiments_among(ALL)
        for metrics in result.results.values():
            assert metrics
            # GPN has no p-values.
            assert all(np.isfinite(v) for name, v in metrics.items() if "_p_" not in name)
    assert "auroc_epistemic_local" in result.results["left-out-classes"]
    assert "auroc_epistemic_local" in directory.result(CELL).results["misclassification"]
    shift = directory.result(CELL).results["edge-shift"]
    assert {name.partition("@")[2] for name in shift} == {
        "clean",
        *(f"{kind}_{fraction}" for kind in ("random", "dice") for fraction in ("0.10", "0.90")),
    }


def test_a_cell_killed_between_experiments_continues_without_training_again(tmp_path, monkeypatch):
    whole = MatrixDirectory(tmp_path / "whole")
    run_cell(whole, CELL, ALL, setting(), graph)
    directory = MatrixDirectory(tmp_path / "killed")

    def die(trained):
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(module, "EXPERIMENTS", {**EXPERIMENTS, "isolated": die}, raising=True)
        with pytest.raises(RuntimeError, match="killed"):
            run_cell(directory, CELL, ALL, setting(), graph)
    fingerprint = setting().fingerprint
    assert directory.unfinished(CELL, ALL, fingerprint) == ALL[ALL.index("isolated") :]
    assert list(directory.result(CELL).results) == ["clean", "misclassification"]
    monkeypatch.setattr(GPNClassifier, "fit", refuse_to_train)
    assert run_cell(directory, CELL, ALL, setting(), graph) == whole.result(CELL)
    assert directory.unfinished(CELL, ALL, fingerprint) == []


def test_a_finished_cell_loads_no_graph(tmp_path):
    directory = MatrixDirectory(tmp_path)
    result = run_cell(directory, CELL, ["clean"], setting(), graph)
    assert run_cell(directory, CELL, ["clean"], setting(), refuse_to_train) == result


def test_a_trained_rival_is_read_and_not_trained_again(tmp_path, monkeypatch):
    own, cell = setting_of("VGCN", CONFIG, [], graph()), Cell("G", "VGCN", False, 1, 1)
    directory = MatrixDirectory(tmp_path)
    first = run_cell(directory, cell, ["clean"], own, graph)
    monkeypatch.setattr(VGCN, "fit_view", refuse_to_train)
    both = run_cell(directory, cell, ["clean", "isolated"], own, graph)
    assert both.results["clean"] == pytest.approx(first.results["clean"], nan_ok=True)
    assert "accuracy@normal" in both.results["isolated"]


@pytest.mark.parametrize("name", ["GPN", "PostNet-Diff", "LP", "VGCN"])
def test_every_model_is_saved_alike(name, tmp_path, monkeypatch):
    own, path = setting_of(name, CONFIG, [], graph()), tmp_path / "cell" / "model.safetensors"
    prepared = prepare_graph(graph(), own.config)
    prediction = fitted_model(path, own, prepared, None).predict(prepared)
    tensors, facts = load_tensors(path)
    assert (facts["model"], facts["fingerprint"]) == (name, own.fingerprint)
    assert facts["config"] == own.config.to_dict()
    assert (tensors == {}) == (name == "LP")
    monkeypatch.setattr(GPNClassifier, "fit", refuse_to_train)
    monkeypatch.setattr(VGCN, "fit_view", refuse_to_train)
    again = fitted_model(path, own, prepared, None).predict(prepared)
    np.testing.assert_array_equal(again.probabilities, prediction.probabilities)


def test_a_model_file_of_another_setting_is_replaced(tmp_path):
    path = tmp_path / "model.safetensors"
    for epochs in (1, 2):
        own = setting(train=replace(CONFIG.train, epochs=epochs))
        fitted_model(path, own, prepare_graph(graph(), own.config), None)
        assert load_tensors(path)[1]["fingerprint"] == own.fingerprint


def test_results_of_another_configuration_are_refused(tmp_path):
    directory = MatrixDirectory(tmp_path)
    run_cell(directory, CELL, ["clean"], setting(), graph)
    other = setting(diffusion=DiffusionConfig(teleport=0.5))
    with pytest.raises(RunError, match="was made with another configuration"):
        run_cell(directory, CELL, ["clean"], other, graph)


def test_nan_is_kept(tmp_path, monkeypatch):
    none = {"clean": lambda trained: {"auroc": float("nan"), "accuracy": 1.0}}
    monkeypatch.setattr(module, "EXPERIMENTS", none)
    directory = MatrixDirectory(tmp_path)
    run_cell(directory, CELL, ["clean"], setting(), graph)
    metrics = directory.result(CELL).results["clean"]
    assert np.isnan(metrics["auroc"])
    assert metrics["accuracy"] == 1.0
    table = to_markdown(entries({CELL: directory.result(CELL)}))
    assert "| G | GPN | n.a. | 100.0 |" in table


def test_a_prediction_that_is_not_finite_is_reported_with_its_cell(tmp_path, monkeypatch):
    unchanged = Perturbed.unchanged

    def spoiled(perturbed):
        prediction = unchanged(perturbed)
        prediction.probabilities[3] = np.nan
        return prediction

    monkeypatch.setattr(Perturbed, "unchanged", spoiled)
    message = r"G/GPN/all_classes/split1_init1, clean: .* prediction of 1 of 150 nodes is not fin"
    with pytest.raises(NumericalError, match=message):
        run_cell(MatrixDirectory(tmp_path), CELL, ALL, setting(), graph)


def test_the_cost_of_a_training_is_recorded_once(tmp_path, monkeypatch):
    directory = MatrixDirectory(tmp_path)
    run_cell(directory, CELL, ["clean"], setting(), graph)
    cost = directory.cost(CELL)
    assert cost.seconds > 0
    assert cost.cpu_seconds > 0
    assert cost.added_bytes >= 0
    monkeypatch.setattr(module, "measured_cost", refuse_to_train)
    run_cell(directory, CELL, ["clean", "misclassification"], setting(), graph)
    assert directory.cost(CELL) == cost


def test_a_post_hoc_method_uses_the_network_of_another_cell(tmp_path, monkeypatch):
    methods = {name: setting_of(name, CONFIG, [], graph()) for name in ("APPNP", "APPNP+GEBM")}
    cells = {name: Cell("G", name, False, 1, 1) for name in methods}
    alone = MatrixDirectory(tmp_path / "alone")
    expected = run_cell(alone, cells["APPNP+GEBM"], ["clean"], methods["APPNP+GEBM"], graph)
    directory = MatrixDirectory(tmp_path / "together")
    run_cell(directory, cells["APPNP"], ["clean"], methods["APPNP"], graph)
    monkeypatch.setattr(APPNP, "fit_view", refuse_to_train)
    result = run_cell(directory, cells["APPNP+GEBM"], ["clean"], methods["APPNP+GEBM"], graph)
    assert result == expected
    base, whole = (directory.cost(cells[name]) for name in ("APPNP", "APPNP+GEBM"))
    assert whole.cpu_seconds > base.cpu_seconds
    assert whole.added_bytes >= base.added_bytes


@pytest.mark.parametrize("change", ["seed", "name"])
def test_the_network_of_another_setting_is_not_used(tmp_path, monkeypatch, change):
    directory, cell = MatrixDirectory(tmp_path), Cell("G", "APPNP", False, 1, 1)
    run_cell(directory, cell, ["clean"], setting_of("APPNP", CONFIG, [], graph()), graph)
    changes = [("train.rng_seed", "7")] if change == "seed" else []
    name = "APPNP+GEBM" if change == "seed" else "APPNP+GEBM[train.epochs=1]"
    own = setting_of(name, CONFIG, changes, graph())
    monkeypatch.setattr(APPNP, "fit_view", refuse_to_train)
    with pytest.raises(AssertionError, match="trained again"):
        run_cell(directory, cell._replace(model=name), ["clean"], own, graph)
