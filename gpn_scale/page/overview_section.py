"""The section that a reader sees first: quality of the model, and what its four scores mean."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from gpn_scale.evaluation.detection import UnknownDetection
from gpn_scale.evaluation.metric_labels import metric_label
from gpn_scale.evaluation.quality_change import QualityChange
from gpn_scale.evaluation.report import Report
from gpn_scale.evaluation.scores import P_KNOWN, PAGE_SCORES
from gpn_scale.page.detection_charts import detection_figures
from gpn_scale.page.facts import RunFacts
from gpn_scale.page.section import Section, section
from gpn_scale.page.templates import rendered
from gpn_scale.page.texts import figures, percent


def overview(facts: RunFacts) -> Section:
    """Return what the model was trained on, how good it is, and what the four scores ask."""
    prediction, report = facts.prediction, facts.report
    detection = None if prediction is None else prediction.detection
    metrics = {} if detection is None else detection.together
    intervals = {} if prediction is None else prediction.detection_intervals
    return section(
        "overview",
        "Overview",
        "overview.html",
        figures=() if prediction is None else detection_figures("unknown", prediction.unknown),
        notices=_notices(facts),
        lead="" if report is None else _lead(report, facts.config.mode),
        quality=[] if report is None else _quality(report),
        scores=[(score, *_auroc(metrics, intervals, score.name)) for score in PAGE_SCORES.values()],
        detection=detection,
        **({} if detection is None else _detection(detection, intervals)),
    )


def _notices(facts: RunFacts) -> list[tuple[str, Sequence[str]]]:
    """Return what a reader should know first: headings, and sentences below each."""
    warnings = () if facts.report is None else facts.report.warnings
    left_out = () if facts.prediction is None else facts.prediction.left_out
    changes = () if facts.report is None else _changes(facts.report)
    notices = [
        ("Compared with the run that training started from", changes),
        ("Few labelled nodes", warnings),
        ("What is missing here", facts.missing),
        ("Not shown, because of too few nodes", left_out),
    ]
    return [(heading, sentences) for heading, sentences in notices if sentences]


def _changes(report: Report) -> Sequence[str]:
    """Return the changes relative to the run that training started from, one sentence each."""
    if not report.warm_start:
        return ()
    change = QualityChange(**report.warm_start)
    return (
        change.sentence,
        *(
            f"{subset}, {metric_label(name)}: {percent(before)} before, {percent(after)} after"
            for subset, name, before, after in change.rows()
        ),
    )


def _lead(report: Report, mode: str) -> str:
    graph = report.graph
    return (
        f"{graph['nodes']:,} nodes, {report.edges:,} edges, {graph['features']:,} "
        f"features, {graph['classes']} classes. {_training(report, mode)}"
    )


def _training(report: Report, mode: str) -> str:
    if "train" not in report.seconds:
        return "The model was trained earlier and loaded from a file."
    return (
        f"Trained in {mode} mode on {report.graph['train_nodes']:,} labelled nodes for "
        f"{report.epochs:,} epochs; the weights are those of epoch {report.best_epoch:,}."
    )


def _quality(report: Report) -> list[tuple[str, str, str]]:
    """Return the quality on test nodes; a figure without an interval rests on too few of them."""
    test, intervals = report.metrics["test"], report.intervals.get("test", {})
    largest = percent(test.get("accuracy_largest_class"))
    accuracy, ece, brier = (intervals.get(name) for name in ("accuracy", "ece", "brier"))
    return [
        (
            "Accuracy",
            percent(test["accuracy"]),
            f"of the test nodes are classified correctly{_between(accuracy)}. Always the "
            f"largest class: {largest}",
        ),
        (
            "ECE",
            percent(None if ece is None else test["ece"]),
            f"mean gap between confidence and accuracy{_between(ece)}",
        ),
        (
            "Brier score",
            figures(None if brier is None else test["brier"]),
            "squared error of the probabilities; 0 is best"
            + ("" if brier is None else f" (95 %: {figures(brier[0])} to {figures(brier[1])})"),
        ),
        (
            "NLL",
            figures(None if brier is None else test["nll"]),
            "mean of -log p of the true class; 0 is best",
        ),
    ]


def _between(interval: Sequence[float] | None) -> str:
    if interval is None:
        return ""
    return f" (95 % interval: {100 * interval[0]:.1f} to {percent(interval[1])})"


def _auroc(
    metrics: Mapping[str, float], intervals: Mapping[str, Any], score: str
) -> tuple[str, str]:
    """Return the AUC-ROC of a score and its interval, as texts; empty without an interval."""
    if (name := f"auroc_{score}") not in intervals:
        return "", ""
    return percent(metrics[name]), _between(intervals[name])


def _detection(detection: UnknownDetection, intervals: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table of AUC-ROC by mark, which is empty for a single mark."""
    scores = [*PAGE_SCORES.values()]
    if not math.isnan(detection.together.get(f"auroc_{P_KNOWN.name}", math.nan)):
        scores.append(P_KNOWN)
    by_mark = intervals.get("marks", {})
    groups = [("all", detection.together, intervals)]
    groups += [(mark, values, by_mark.get(mark, {})) for mark, values in detection.marks.items()]
    rows = [
        [_name(mark), *(_cell(metrics, ends, f"auroc_{score.name}") for score in scores)]
        for mark, metrics, ends in groups
    ]
    return {
        "unknown_nodes": f"{int(detection.together['ood_nodes']):,}",
        "known_nodes": f"{detection.known_nodes:,}",
        "header": ["unknown nodes", *(score.title for score in scores)],
        "marks": rows if len(detection.marks) > 1 else [],
    }


def _cell(metrics: Mapping[str, float], intervals: Mapping[str, Any], name: str) -> str:
    if name not in intervals:
        return percent(None)
    low, high = intervals[name]
    return f"{percent(metrics[name])} ({100 * low:.0f} to {100 * high:.0f})"


def _name(mark: str) -> Markup:
    return rendered("name.html", text=mark.replace("_", " "))
