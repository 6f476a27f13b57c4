from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.data.splits import leave_out_classes
from gpn_scale.evaluation.prediction_metrics import (
    classification_metrics,
    out_of_distribution_metrics,
)
from tests.evaluation.samples import prediction_for, scored_prediction


def test_a_perfect_score_finds_all_marked_nodes(small_graph):
    prediction = prediction_for(small_graph)
    alpha_0 = np.ones(small_graph.num_nodes, np.float32)
    alpha_0[small_graph.marked] = 0.0
    metrics = out_of_distribution_metrics(replace(prediction, alpha_0=alpha_0), small_graph)
    assert metrics["auroc_epistemic"] == 1.0
    assert metrics["aupr_epistemic"] == 1.0
    assert 0.3 < metrics["auroc_epistemic_no_network"] < 0.7
    assert set(metrics["marks"]) == set(small_graph.marks)
    assert metrics["ood_nodes"] == len(small_graph.marked)


def test_marked_nodes_do_not_count_as_known(small_graph):
    prediction = prediction_for(small_graph)
    ordinary = np.setdiff1d(small_graph.split.test, small_graph.marked)
    correct = prediction.predicted_class[ordinary] == small_graph.labels[ordinary]
    metrics = out_of_distribution_metrics(prediction, small_graph)
    assert metrics["id_accuracy"] == pytest.approx(correct.mean())
    assert metrics["id_nodes"] == len(ordinary)


def test_left_out_classes_are_positives_and_no_test_nodes(small_graph):
    reduced = leave_out_classes(small_graph, 1)
    prediction = prediction_for(reduced)
    metrics = out_of_distribution_metrics(prediction, reduced)
    in_test = np.isin(np.flatnonzero(small_graph.labels == 2), small_graph.split.test)
    assert metrics["marks"]["left_out_classes"]["ood_nodes"] == in_test.sum()


def test_misclassified_nodes_are_the_positives(small_graph):
    prediction = prediction_for(small_graph)
    wrong = prediction.predicted_class != small_graph.labels
    sharp = replace(prediction, alpha_0=(~wrong).astype(np.float32))
    metrics = classification_metrics(sharp, small_graph, small_graph.split.test)
    assert metrics["misclassification_auroc_epistemic"] == 1.0


def test_names_and_order_of_metrics_are_stable(small_graph):
    metrics = out_of_distribution_metrics(prediction_for(small_graph), small_graph)
    paper = ("aleatoric", "epistemic", "epistemic_no_network")
    p_values = [f"p_{part}" for part in ("features", "neighbourhood", "opinion", "labels", "known")]
    scores = [*paper, "entropy", "entropy_no_network", *p_values]
    detection = [f"{kind}_{score}" for score in scores for kind in ("auroc", "aupr")]
    assert list(metrics) == ["id_accuracy", "id_nodes", "ood_nodes", *detection, "marks"]
    for values in metrics["marks"].values():
        assert list(values) == ["ood_nodes", *detection]
    metrics = classification_metrics(
        prediction_for(small_graph), small_graph, small_graph.split.test
    )
    quality = ["accuracy", "ece", "mce", "brier", "nll"]
    errors = [f"{kind}_{score}" for score in paper for kind in ("auroc", "aupr")]
    assert list(metrics) == quality + [f"misclassification_{name}" for name in errors]


def test_a_score_that_the_model_does_not_have_is_nan(small_graph):
    prediction = scored_prediction(small_graph.num_nodes, epistemic=False)
    metrics = out_of_distribution_metrics(prediction, small_graph)
    assert np.isnan(metrics["auroc_epistemic"])
    assert np.isnan(metrics["aupr_epistemic_no_network"])
    assert 0 <= metrics["auroc_aleatoric"] <= 1
