"""The section that a reader sees first: quality of the model, and what its four scores mean."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gpn_scale.evaluation.detection import UnknownDetection
from gpn_scale.evaluation.scores import P_KNOWN, PAGE_SCORES, Score
from gpn_scale.page.components import Section, name_of, paragraph, table, tiles
from gpn_scale.page.facts import RunFacts
from gpn_scale.page.markup import escaped, figures, percent, tag


def overview(facts: RunFacts) -> Section:
    """Return what the model was trained on, how good it is, and what the four scores ask."""
    parts = []
    if facts.report is not None and facts.report.warnings:
        parts.append(_notice("Few labelled nodes", facts.report.warnings))
    if facts.missing:
        parts.append(_notice("What is missing here", facts.missing))
    if facts.prediction is not None and facts.prediction.left_out:
        parts.append(_notice("Not shown, because of too few nodes", facts.prediction.left_out))
    if facts.report is not None:
        graph = facts.report.graph
        parts.append(
            paragraph(
                f"{graph['nodes']:,} nodes, {facts.report.edges:,} edges, {graph['features']:,} "
                f"features, {graph['classes']} classes. Trained in {facts.config.mode} mode on "
                f"{graph['train_nodes']:,} labelled nodes for {facts.report.epochs:,} epochs; the "
                f"weights are those of epoch {facts.report.best_epoch:,}.",
                "lead",
            )
        )
        intervals = facts.report.intervals.get("test", {})
        parts.append(_quality(facts.report.metrics["test"], intervals))
    prediction = facts.prediction
    detection = None if prediction is None else prediction.detection
    detected = {} if prediction is None else prediction.detection_intervals
    parts.append(tag("h3", "Four kinds of uncertainty"))
    parts.append(_score_cards({} if detection is None else detection.together, detected))
    if detection is not None:
        parts.append(_detection(detection, detected))
    return Section("overview", "Overview", "".join(parts))


def _notice(title: str, sentences: Sequence[str]) -> str:
    notes = tag("ul", *(tag("li", escaped(sentence)) for sentence in sentences))
    return tag("div", tag("strong", escaped(title)), notes, class_="notice")


def _quality(test: Mapping[str, float], intervals: Mapping[str, Sequence[float]]) -> str:
    """Return the quality on test nodes; a figure without an interval rests on too few of them."""
    largest = percent(test.get("accuracy_largest_class"))
    accuracy, ece, brier = (intervals.get(name) for name in ("accuracy", "ece", "brier"))
    return tiles(
        [
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
    )


def _between(interval: Sequence[float] | None) -> str:
    if interval is None:
        return ""
    return f" (95 % interval: {100 * interval[0]:.1f} to {percent(interval[1])})"


def _score_cards(metrics: Mapping[str, float], intervals: Mapping[str, Any]) -> str:
    """Return a card for each score, with its AUC-ROC if it has an interval."""
    cards = (_card(score, metrics, intervals) for score in PAGE_SCORES.values())
    return tag("div", *cards, class_="columns")


def _card(score: Score, metrics: Mapping[str, float], intervals: Mapping[str, Any]) -> str:
    parts = [tag("h4", escaped(score.title)), tag("p", escaped(score.question), class_="question")]
    parts.append(paragraph(score.meaning))
    if (name := f"auroc_{score.name}") in intervals:
        number = tag("strong", percent(metrics[name]))
        text = f" AUC-ROC for unknown nodes{_between(intervals[name])}"
        parts.append(tag("p", number, text, class_="auroc"))
    return tag("article", *parts, class_="card")


def _detection(detection: UnknownDetection, intervals: Mapping[str, Any]) -> str:
    text = paragraph(
        "Unknown nodes are nodes that training could not prepare the model for; the graph marks "
        "them for this test. AUC-ROC is the probability that one of the "
        f"{int(detection.together['ood_nodes']):,} unknown nodes has a higher score than one of "
        f"the {detection.known_nodes:,} known test nodes: 50 % is chance, 100 % is a complete "
        "separation."
    )
    if len(detection.marks) < 2:
        return text
    by_mark = intervals.get("marks", {})
    groups = [("all", detection.together, intervals)]
    groups += [(mark, values, by_mark.get(mark, {})) for mark, values in detection.marks.items()]
    scores = [*PAGE_SCORES.values()]
    if not math.isnan(detection.together.get(f"auroc_{P_KNOWN.name}", math.nan)):
        scores.append(P_KNOWN)
    header = ["unknown nodes", *(score.title for score in scores)]
    rows = [
        [
            name_of(mark.replace("_", " ")),
            *(_cell(metrics, ends, f"auroc_{score.name}") for score in scores),
        ]
        for mark, metrics, ends in groups
    ]
    return text + table(header, rows, "AUC-ROC by kind of unknown node, with 95 % intervals")


def _cell(metrics: Mapping[str, float], intervals: Mapping[str, Any], name: str) -> str:
    if name not in intervals:
        return percent(None)
    low, high = intervals[name]
    return f"{percent(metrics[name])} ({100 * low:.0f} to {100 * high:.0f})"
