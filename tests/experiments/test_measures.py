"""Every model has the numbers of every experiment, and some numbers by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from gpn_scale.data.splits import prepare_graph
from gpn_scale.evaluation.metrics import false_positive_rate
from gpn_scale.experiments.catalogue import EXPERIMENTS
from gpn_scale.experiments.cells import Cell
from gpn_scale.experiments.matrix_directory import MatrixDirectory
from gpn_scale.experiments.measures import (
    clean,
    isolated,
    left_out_classes,
    left_out_false_alarms,
    misclassification,
)
from gpn_scale.experiments.run_cell import run_cell
from gpn_scale.experiments.tables import entries, to_markdown
from gpn_scale.experiments.trained import Trained
from gpn_scale.models.registry import MODELS, setting_of
from tests.baselines.graphs import CONFIG, unsplit_graph
from tests.experiments.cells import graph, setting, stored_rows
from tests.ppr.stored import write_store

ALL = list(EXPERIMENTS)
QUICK = {
    "GPN-minibatch": [("minibatch.tail", "stationary")],
    "GPN+-minibatch": [("minibatch.tail", "stationary")],
    "VGCN-Ensemble": [("model.members", "2")],
    "VGCN-Ensemble-minibatch": [("model.members", "2")],
    "VGCN-Dropout": [("model.samples", "2")],
    "VGCN-Dropout-minibatch": [("model.samples", "2")],
    "DropEdge": [("model.samples", "2")],
    "VGCN-BNN": [("model.samples", "2")],
}
GPNS = ("GPN+", "GPN+-minibatch", "GPN", "GPN-minibatch", "PostNet", "PostNet-Diff", "GPN-LOG-beta")
WITHOUT_EPISTEMIC = {
    *("APPNP", "PPRGo", "VGCN", "VGCN-minibatch", "RGCN"),
    *(name for name in MODELS if name.endswith("+temperature")),
}


def is_missing(metric, model):
    """Whether a metric is that of a score which the model does not have."""
    if "_p_" in metric:
        return not model.startswith("GPN+")
    if "no_network" in metric or "entropy" in metric:
        return model not in GPNS
    return "epistemic" in metric and model in WITHOUT_EPISTEMIC


@pytest.mark.parametrize("name", MODELS)
def test_every_model_gives_every_experiment_its_numbers(name, tmp_path):
    recipe = replace(CONFIG, train=replace(CONFIG.train, epochs=3))
    directory, store = MatrixDirectory(tmp_path), None
    for left_out in (False, True):
        changes = [*QUICK.get(name, []), ("data.left_out_classes", str(int(left_out)))]
        own = setting_of(name, recipe, changes, unsplit_graph())
        if own.needs_rows and store is None:
            diffusion, folder = own.row_diffusion, str(tmp_path / "rows")
            facts = diffusion.store_parameters
            store = write_store(folder, unsplit_graph(), diffusion, k=8, parameters=facts).path
        cell = Cell("G", name, left_out, 1, 1)
        result = run_cell(
            directory, cell, ALL, own, unsplit_graph, store=store, fractions=(0.2, 0.8)
        )
        assert list(result.results) == cell.experiments_among(ALL)
        for metrics in result.results.values():
            for metric, value in metrics.items():
                assert math.isnan(value) == is_missing(metric, name), metric
    table = to_markdown(entries({cell: result}))
    assert ("n.a." in table) == (not name.startswith("GPN+"))
    assert "nan" not in table


@pytest.fixture
def trained(tmp_path):
    """A GPN that was trained for a moment, with uncut rows."""
    own = setting()
    prepared = prepare_graph(graph(), own.config)
    rows = stored_rows(tmp_path / "rows", k=150)
    return Trained(own.new().fit(prepared), prepared, 5, rows)


def test_misclassified_nodes_are_detected_by_every_score(trained):
    test = trained.test_nodes
    wrong = trained.prediction.predicted_class[test] != trained.graph.labels[test]
    metrics = misclassification(trained)
    for name, score in trained.prediction.scores(test).items():
        assert metrics[f"auroc_{name}"] == pytest.approx(roc_auc_score(wrong, score))
    # Of uncut rows, local evidence is all evidence.
    assert metrics["auroc_epistemic_local"] == pytest.approx(metrics["auroc_epistemic"], abs=1e-3)


def test_clean_numbers_have_no_detection(trained):
    metrics = clean(trained)
    assert not any("auroc" in name for name in metrics)
    assert 0.0 <= metrics["conformal_coverage"] <= 1.0
    assert 0.0 <= metrics["conformal_size"] <= trained.graph.num_classes
    assert {"accuracy", "ece", "nll", "aurc_aleatoric", "aurc_epistemic"} <= metrics.keys()


def test_nodes_of_left_out_classes_are_the_positives():
    own = setting(data=replace(CONFIG.data, left_out_classes=1))
    prepared = prepare_graph(graph(), own.config)
    trained = Trained(own.new().fit(prepared), prepared, 5)
    metrics = left_out_classes(trained)
    known = np.setdiff1d(trained.test_nodes, prepared.marked)
    nodes = np.append(known, prepared.marked)
    score = trained.prediction.scores(nodes)["epistemic"]
    expected = roc_auc_score(np.arange(len(nodes)) >= len(known), score)
    assert metrics["auroc_epistemic"] == pytest.approx(expected)
    rates = left_out_false_alarms(trained)
    unknown = np.arange(len(nodes)) >= len(known)
    assert rates["fpr95_epistemic"] == pytest.approx(false_positive_rate(unknown, score))
    right = trained.prediction.predicted_class[known] == prepared.labels[known]
    assert metrics["id_accuracy"] == pytest.approx(right.mean())


def test_local_evidence_of_uncut_rows_is_all_evidence_also_of_perturbed_nodes(trained):
    metrics = isolated(trained)
    for noise in ("bernoulli", "normal"):
        with_network = metrics[f"auroc_epistemic@{noise}"]
        assert metrics[f"auroc_epistemic_local@{noise}"] == pytest.approx(with_network, abs=1e-3)
        assert abs(with_network - 0.5) > 0.01
