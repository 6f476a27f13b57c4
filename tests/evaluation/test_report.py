import json
import math
from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.config import RunConfig
from gpn_scale.data.graph import MISSING_LABEL, Split
from gpn_scale.data.summary import GraphSummary
from gpn_scale.evaluation.few_labels import label_warnings
from gpn_scale.evaluation.known_calibration import KnownCalibration
from gpn_scale.evaluation.p_values import PValues
from gpn_scale.evaluation.prediction_metrics import out_of_distribution_metrics
from gpn_scale.evaluation.report import make_report
from gpn_scale.evaluation.scores import DETECTION_SCORES, P_SCORES, SCORES
from gpn_scale.evaluation.temperature import NodeTemperature
from tests.evaluation.samples import prediction_for

SECONDS = {"precompute": 0.0, "train": 1.0, "inference": 0.5}


def report_of(graph, prediction):
    return make_report(
        prediction, graph, RunConfig(model="GPN"), seconds=SECONDS, epochs=7, best_epoch=3
    )


def cell(value, interval):
    """A value with its interval as in the tables; n.a. without one."""
    if interval is None:
        return "n.a."
    return f"{100 * value:.2f} ({100 * interval[0]:.1f} to {100 * interval[1]:.1f})"


def with_test_nodes(graph, count):
    split = graph.split
    return replace(
        graph, split=Split(train=split.train, val=split.val[:count], test=split.test[:count])
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
        intervals = [report.intervals["ood"], *report.intervals["ood"]["marks"].values()]
        columns = [title, f"all ({report.ood['ood_nodes']:,})", *marks]
        assert f"| {' | '.join(columns)} |" in text
        for name, score in DETECTION_SCORES.items():
            values = [
                cell(group[f"{kind}_{name}"], ends.get(f"{kind}_{name}"))
                for group, ends in zip(groups, intervals, strict=True)
            ]
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


def test_metrics_come_with_intervals(small_graph, tmp_path):
    report = report_of(small_graph, prediction_for(small_graph))
    report.write(tmp_path / "report.json", tmp_path / "report.md")
    values = json.loads((tmp_path / "report.json").read_text())
    assert values["intervals"] == report.intervals
    for subset in ("test", "val"):
        for name in ("accuracy", "accuracy_largest_class", "brier"):
            low, high = values["intervals"][subset][name]
            assert 0 <= low <= values["metrics"][subset][name] <= high <= 1
    accuracy = cell(report.metrics["test"]["accuracy"], report.intervals["test"]["accuracy"])
    assert f"| accuracy | {accuracy} |" in (tmp_path / "report.md").read_text()
    assert "| accuracy of the largest class alone |" in (tmp_path / "report.md").read_text()
    known = cell(report.ood["id_accuracy"], report.intervals["ood"]["id_accuracy"])
    assert f"of which {known} percent are classified" in (tmp_path / "report.md").read_text()


def test_figures_of_few_nodes_are_left_out_with_a_reason(small_graph):
    few = with_test_nodes(small_graph, 8)
    report = report_of(few, prediction_for(few))
    assert not math.isnan(report.metrics["test"]["ece"]), "the number itself is kept"
    assert "ece" not in report.intervals["test"]
    text = report.to_markdown()
    for label in ("ECE", "MCE", "Brier score", "NLL", "misclassification, AUC-ROC epistemic"):
        assert f"| {label} | n.a. | n.a. |" in text
    assert "## Too few nodes" in text
    assert all(f"- {sentence}" in text for sentence in report.left_out)
    assert "Too few" not in report_of(*enough(small_graph)).to_markdown()


def enough(graph):
    """The graph with many errors among its test nodes and one large mark, and its prediction."""
    large = replace(graph, marks={"all": graph.marked})
    prediction = prediction_for(large)
    return large, replace(prediction, probabilities=np.roll(prediction.probabilities, 1, axis=0))


def test_few_labels_are_warned_about(small_graph, tmp_path):
    labels = small_graph.labels.copy()
    labels[np.setdiff1d(np.arange(300), small_graph.split.train)] = MISSING_LABEL
    split = Split(train=small_graph.split.train, val=[], test=[])
    few = replace(small_graph, labels=labels, split=split)
    report = report_of(few, prediction_for(few))
    assert report.warnings == list(label_warnings(few)) != []
    assert f"**Warning:** {report.warnings[0]}" in report.to_markdown()
    assert report_of(small_graph, prediction_for(small_graph)).warnings == []


@pytest.mark.parametrize(("count", "noted"), [(49, True), (50, False)])
def test_a_temperature_from_few_nodes_is_warned_about(small_graph, count, noted):
    report = make_report(
        prediction_for(small_graph),
        small_graph,
        RunConfig(),
        seconds=SECONDS,
        epochs=7,
        best_epoch=3,
        calibration=KnownCalibration(NodeTemperature(1.5), {}, {}, count),
    )
    text = "their temperature, 1.5, was fitted to 49 validation nodes, fewer than 50"
    assert (text in " ".join(report.warnings)) == noted


def test_labels_and_summary_stand_under_graph(small_graph):
    summary = GraphSummary.of(small_graph)
    report = make_report(
        prediction_for(small_graph),
        small_graph,
        RunConfig(model="GPN"),
        seconds=SECONDS,
        epochs=7,
        best_epoch=3,
        summary=summary,
    )
    assert report.graph["summary"] == summary.to_dict()
    assert report.graph["edges"] == 2 * report.edges == 2 * summary.edges
    assert f"300 nodes, {summary.edges:,} edges" in report.to_markdown()
    counts = report.graph["labels"]
    assert [count["name"] for count in counts] == ["class 0", "class 1", "class 2"]
    assert sum(count["train"] for count in counts) == len(small_graph.split.train)
    assert "summary" not in report_of(small_graph, prediction_for(small_graph)).graph
