import json
from dataclasses import replace

import numpy as np

from gpn_scale.config import RunConfig
from gpn_scale.evaluation.p_values import PValues
from gpn_scale.evaluation.prediction_metrics import out_of_distribution_metrics
from gpn_scale.evaluation.report import make_report
from gpn_scale.evaluation.scores import DETECTION_SCORES, P_SCORES, SCORES
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


def test_markdown_has_a_row_for_every_score_that_the_model_has(small_graph):
    report = report_of(small_graph, prediction_for(small_graph))
    text = report.to_markdown()
    for kind, title in (("auroc", "AUC-ROC"), ("aupr", "AUC-PR")):
        marks = [
            f"{mark.replace('_', ' ')} ({len(nodes):,})"
            for mark, nodes in small_graph.marks.items()
        ]
        groups = [report.ood, *report.ood["marks"].values()]
        columns = [title, f"all ({report.ood['ood_nodes']:,})", *marks]
        assert f"| {' | '.join(columns)} |" in text
        for name, score in DETECTION_SCORES.items():
            values = [f"{100 * group[f'{kind}_{name}']:.2f}" for group in groups]
            is_row = f"| {' | '.join([score.title, *values])} |" in text
            assert is_row == (name not in P_SCORES)
        assert f"| misclassification, {title} epistemic, no network |" in text
    assert not any(score.title in text for score in P_SCORES.values())


def test_markdown_has_rows_for_p_values(small_graph):
    prediction = prediction_for(small_graph)
    p = np.linspace(0.0, 1.0, small_graph.num_nodes, dtype=np.float32)
    text = report_of(small_graph, replace(prediction, p=PValues(opinion=p, known=p))).to_markdown()
    for name, score in P_SCORES.items():
        assert (f"| {score.title} |" in text) == (name in ("p_opinion", "p_known"))


def test_markdown_describes_the_batches_of_minibatch_mode(small_graph):
    batches = {"k": 8, "mean_missing_mass": 0.25, "tail": "clustered", "steps_per_epoch": 2}
    batches |= {"batch_size": 30, "encodings_per_epoch": 500, "repeated_encodings": 0.5}
    report = replace(report_of(small_graph, prediction_for(small_graph)), minibatch=batches)
    text = report.to_markdown()
    assert "Rows keep up to 8 entries and cut a mass of 0.25 on average" in text
    assert "An epoch has 2 steps of 30 roots and encodes 500 nodes, 50% of which" in text
    assert "## Batches" not in report_of(small_graph, prediction_for(small_graph)).to_markdown()
