"""The section that a reader sees first: quality of the model, and what its four scores mean."""

import math
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from gpn_scale.evaluation.detection import UnknownDetection
from gpn_scale.evaluation.report import Report
from gpn_scale.evaluation.scores import P_KNOWN, PAGE_SCORES
from gpn_scale.page.detection_charts import detection_figures
from gpn_scale.page.facts import RunFacts
from gpn_scale.page.section import Section, section
from gpn_scale.page.templates import rendered
from gpn_scale.page.texts import figures, percent


def overview(facts: RunFacts) -> Section:
    """Return what the model was trained on, how good it is, and what the four scores ask."""
    prediction = facts.prediction
    detection = None if prediction is None else prediction.detection
    metrics = {} if detection is None else detection.together
    return section(
        "overview",
        "Overview",
        "overview.html",
        figures=() if prediction is None else detection_figures("unknown", prediction.unknown),
        missing=facts.missing,
        lead="" if facts.report is None else _lead(facts.report, facts.config.mode),
        quality=[] if facts.report is None else _quality(facts.report.metrics["test"]),
        scores=[(score, _auroc(metrics, score.name)) for score in PAGE_SCORES.values()],
        detection=detection,
        **({} if detection is None else _detection(detection)),
    )


def _lead(report: Report, mode: str) -> str:
    graph = report.graph
    return (
        f"{graph['nodes']:,} nodes, {graph['edges']:,} edges, {graph['features']:,} "
        f"features, {graph['classes']} classes. Trained in {mode} mode on "
        f"{graph['train_nodes']:,} labelled nodes for {report.epochs:,} epochs; the "
        f"weights are those of epoch {report.best_epoch:,}."
    )


def _quality(test: Mapping[str, float]) -> list[tuple[str, str, str]]:
    return [
        ("Accuracy", percent(test["accuracy"]), "of the test nodes are classified correctly"),
        ("ECE", percent(test["ece"]), "mean gap between confidence and accuracy"),
        ("Brier score", figures(test["brier"]), "squared error of the probabilities; 0 is best"),
        ("NLL", figures(test["nll"]), "mean of -log p of the true class; 0 is best"),
    ]


def _auroc(metrics: Mapping[str, float], score: str) -> str:
    return percent(metrics[f"auroc_{score}"]) if f"auroc_{score}" in metrics else ""


def _detection(detection: UnknownDetection) -> dict[str, Any]:
    """Return the table of AUC-ROC by mark, which is empty for a single mark."""
    scores = [*PAGE_SCORES.values()]
    if not math.isnan(detection.together.get(f"auroc_{P_KNOWN.name}", math.nan)):
        scores.append(P_KNOWN)
    groups = [("all", detection.together), *detection.marks.items()]
    rows = [
        [_name(mark), *(percent(metrics[f"auroc_{score.name}"]) for score in scores)]
        for mark, metrics in groups
    ]
    return {
        "unknown_nodes": f"{int(detection.together['ood_nodes']):,}",
        "known_nodes": f"{detection.known_nodes:,}",
        "header": ["unknown nodes", *(score.title for score in scores)],
        "marks": rows if len(detection.marks) > 1 else [],
    }


def _name(mark: str) -> Markup:
    return rendered("name.html", text=mark.replace("_", " "))
