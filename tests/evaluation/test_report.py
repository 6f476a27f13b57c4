import json
from dataclasses import replace

import numpy as np

from gpn_scale.config import RunConfig
from gpn_scale.evaluation.prediction_metrics import out_of_distribution_metrics
from gpn_scale.evaluation.report import make_report
from gpn_scale.evaluation.scores import SCORES
from tests.evaluation.samples import prediction_for

SECONDS = {"precompute": 0.0, "train": 1.0, "inference": 0.5}


def report_of(graph, prediction):
    return make_report(
        prediction, graph, RunConfig(model="GPN"), seconds=SECONDS, epochs=7, best_epoch=3
    )


def test_a_graph_without_marks_has_no_detection(small_graph):
    plain = replace(small_graph, marks={})
    assert out_of_distribution_metrics(prediction_for(plain), plain) == {}
    assert "Detection" not in report_of(plain, prediction_for(plain)).to_markdown()


def test_report_holds_the_contract(small_graph, tmp_path):
    report = report_of(small_graph, prediction_for(small_graph))
    report.write(tmp_path / "report.json", tmp_path / "report.md")
    values = json.loads((tmp_path / "report.json").read_text())
    for key in ("dataset", "mode", "config", "fingerprint", "seconds", "peak_rss_bytes", "epochs"):
        assert key in values
    for subset in ("test", "val"):
        for kind in ("auroc", "aupr"):
            for score in SCORES:
                assert 0 <= values["metrics"][subset][f"misclassification_{kind}_{score}"] <= 1
        assert {"accuracy", "ece", "brier"} <= set(values["metrics"][subset])
    assert "unseen class" in (tmp_path / "report.md").read_text()


def test_undefined_numbers_become_null(small_graph, tmp_path):
    prediction = prediction_for(small_graph)
    perfect = np.eye(3, dtype=np.float32)[np.maximum(small_graph.labels, 0)]
    report = report_of(small_graph, replace(prediction, probabilities=perfect))
    report.write(tmp_path / "report.json", tmp_path / "report.md")
    values = json.loads((tmp_path / "report.json").read_text())
    assert values["metrics"]["test"]["accuracy"] == 1.0
    assert values["metrics"]["test"]["misclassification_auroc_epistemic"] is None
    assert "n.a." in (tmp_path / "report.md").read_text()


def test_markdown_has_a_column_for_every_score(small_graph):
    text = report_of(small_graph, prediction_for(small_graph)).to_markdown()
    assert "| nodes | count | AUC-ROC aleatoric | AUC-ROC epistemic |" in text
    for label in ("AUC-ROC epistemic, no network", "AUC-PR epistemic, no network"):
        assert f"| {label} |" in text
        assert f"| misclassification, {label} |" in text
    for mark, nodes in small_graph.marks.items():
        assert f"| {mark.replace('_', ' ')} | {len(nodes):,} |" in text


def test_markdown_describes_the_batches_of_minibatch_mode(small_graph):
    batches = {"k": 8, "mean_missing_mass": 0.25, "tail": "clustered", "steps_per_epoch": 2}
    batches |= {"batch_size": 30, "encodings_per_epoch": 500, "repeated_encodings": 0.5}
    report = replace(report_of(small_graph, prediction_for(small_graph)), minibatch=batches)
    text = report.to_markdown()
    assert "Rows keep up to 8 entries and cut 25% of the mass on average" in text
    assert "An epoch has 2 steps of 30 roots and encodes 500 nodes, 50% of which" in text
    assert "## Batches" not in report_of(small_graph, prediction_for(small_graph)).to_markdown()
