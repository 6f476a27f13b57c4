from dataclasses import replace

import pytest

from gpn_scale.errors import ConfigError
from gpn_scale.experiments.catalogue import EXPERIMENTS
from gpn_scale.experiments.matrix_directory import MatrixDirectory
from gpn_scale.experiments.metric_columns import (
    chosen_columns,
    measured_columns,
    metric_column,
    metric_names,
)
from gpn_scale.experiments.run_cell import run_cell
from gpn_scale.experiments.tables import entries
from tests.experiments.cells import ALL, CELL, CONFIG, graph, setting, stored_rows


def test_names_are_those_that_experiments_measure(tmp_path):
    store = stored_rows(tmp_path / "rows", k=8)
    left_out = setting(data=replace(CONFIG.data, left_out_classes=1))
    for cell, own in ((CELL, setting()), (CELL._replace(left_out=True), left_out)):
        directory = MatrixDirectory(tmp_path)
        result = run_cell(directory, cell, ALL, own, graph, store=store, fractions=(0.1,))
        for experiment in result.results:
            table = [e for e in entries({cell: result}) if e.experiment == experiment]
            measured = {entry.metric.replace("_0.10", "_FRACTION") for entry in table}
            names = metric_names(experiment)
            refused = {name for name in names if "refused" in name}  # 0.10 of the nodes as well
            assert {n.replace("_0.10", "_FRACTION") for n in refused} <= measured
            assert set(names) - refused <= measured
            assert len(measured) == len(set(names))
            every = [f"{experiment}/{entry.metric}" for entry in table]
            assert chosen_columns(every, ALL) == measured_columns(table)


def keys(names, experiments):
    return [(c.experiment, c.metric) for c in chosen_columns(names, experiments)]


def test_a_name_stands_for_all_experiments_and_a_longer_one_for_one():
    both = ["left-out-classes", "misclassification", "clean"]
    name = "auroc_p_known"
    assert keys([name], both) == [("misclassification", name), ("left-out-classes", name)]
    assert keys([f"left-out-classes/{name}", "accuracy"], both) == [
        ("left-out-classes", name),
        ("clean", "accuracy"),
    ]
    assert keys(["ece", "ece", "clean/ece"], both) == [("clean", "ece")]
    shift = "relative_epistemic_confidence@dice_0.40"
    assert keys([shift], ["edge-shift"]) == [("edge-shift", shift)]


@pytest.mark.parametrize(
    "name",
    ["acuracy", "isolated/accuracy", "clean/", "/ece", "accuracy@normal_half", "nowhere/ece"],
)
def test_other_names_are_refused_with_those_that_there_are(name):
    with pytest.raises(ConfigError) as refusal:
        chosen_columns([name], ["clean", "edge-shift"])
    assert f"metrics got {name!r}, which none of the experiments clean, edge-shift" in str(
        refusal.value
    )
    assert "among accuracy, ece, mce, brier, nll, " in str(refusal.value)
    assert "accuracy@dice_FRACTION" in str(refusal.value)
    assert refusal.value.arguments == ("metrics",)


@pytest.mark.parametrize(
    ("experiment", "metric", "heading", "better"),
    [
        ("clean", "accuracy", "accuracy", True),
        ("clean", "ece", "ECE", False),
        ("clean", "conformal_coverage", "conformal coverage", None),
        ("clean", "conformal_size", "conformal size", False),
        ("calibration", "temperature", "temperature", None),
        ("calibration", "nll_scaled", "NLL scaled", False),
        ("isolated", "auroc_p_features@normal", "AUC-ROC p features; normal", True),
        ("left-out-false-alarms", "fpr95_entropy", "FPR at 95 % TPR entropy", False),
        ("left-out-classes", "id_accuracy", "accuracy on known classes", True),
        ("edge-shift", "aleatoric_confidence@clean", "aleatoric confidence; clean", None),
        ("edge-shift", "ece@dice_0.10", "ECE; dice 0.10", False),
    ],
)
def test_headings_and_directions(experiment, metric, heading, better):
    column = metric_column(experiment, metric)
    assert (column.heading, column.higher_is_better) == (heading, better)


def test_every_experiment_has_names():
    assert all(metric_names(name) for name in EXPERIMENTS)
