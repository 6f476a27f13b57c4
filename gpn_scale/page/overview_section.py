"""The section that a reader sees first: quality of the model, and what its four scores mean."""

import math
from collections.abc import Mapping

from gpn_scale.evaluation.detection import UnknownDetection
from gpn_scale.evaluation.report import Report
from gpn_scale.evaluation.scores import P_KNOWN, PAGE_SCORES, Score
from gpn_scale.page.components import Section, name_of, paragraph, table, tiles
from gpn_scale.page.facts import RunFacts
from gpn_scale.page.markup import escaped, figures, percent, tag


def overview(facts: RunFacts) -> Section:
    """Return what the model was trained on, how good it is, and what the four scores ask."""
    parts = []
    if facts.missing:
        notes = tag("ul", *(tag("li", escaped(sentence)) for sentence in facts.missing))
        parts.append(tag("div", tag("strong", "What is missing here"), notes, class_="notice"))
    if facts.report is not None:
        graph = facts.report.graph
        parts.append(
            paragraph(
                f"{graph['nodes']:,} nodes, {graph['edges']:,} edges, {graph['features']:,} "
                f"features, {graph['classes']} classes. {_training(facts, facts.report)}",
                "lead",
            )
        )
        parts.append(_quality(facts.report.metrics["test"]))
    detection = None if facts.prediction is None else facts.prediction.detection
    parts.append(tag("h3", "Four kinds of uncertainty"))
    parts.append(_score_cards({} if detection is None else detection.together))
    if detection is not None:
        parts.append(_detection(detection))
    return Section("overview", "Overview", "".join(parts))


def _training(facts: RunFacts, report: Report) -> str:
    if "train" not in report.seconds:
        return "The model was trained before and loaded from a file."
    return (
        f"Trained in {facts.config.mode} mode on {report.graph['train_nodes']:,} labelled nodes "
        f"for {report.epochs:,} epochs; the weights are those of epoch {report.best_epoch:,}."
    )


def _quality(test: Mapping[str, float]) -> str:
    return tiles(
        [
            ("Accuracy", percent(test["accuracy"]), "of the test nodes are classified correctly"),
            ("ECE", percent(test["ece"]), "mean gap between confidence and accuracy"),
            (
                "Brier score",
                figures(test["brier"]),
                "squared error of the probabilities; 0 is best",
            ),
            ("NLL", figures(test["nll"]), "mean of -log p of the true class; 0 is best"),
        ]
    )


def _score_cards(metrics: Mapping[str, float]) -> str:
    """Return a card for each score, with its AUC-ROC if `metrics` has one."""
    return tag("div", *(_card(score, metrics) for score in PAGE_SCORES.values()), class_="columns")


def _card(score: Score, metrics: Mapping[str, float]) -> str:
    parts = [tag("h4", escaped(score.title)), tag("p", escaped(score.question), class_="question")]
    parts.append(paragraph(score.meaning))
    if (name := f"auroc_{score.name}") in metrics:
        number = tag("strong", percent(metrics[name]))
        parts.append(tag("p", number, " AUC-ROC for unknown nodes", class_="auroc"))
    return tag("article", *parts, class_="card")


def _detection(detection: UnknownDetection) -> str:
    text = paragraph(
        "Unknown nodes are nodes that training could not prepare the model for; the graph marks "
        "them for this test. AUC-ROC is the probability that one of the "
        f"{int(detection.together['ood_nodes']):,} unknown nodes has a higher score than one of "
        f"the {detection.known_nodes:,} known test nodes: 50 % is chance, 100 % is a complete "
        "separation."
    )
    if len(detection.marks) < 2:
        return text
    groups = [("all", detection.together), *detection.marks.items()]
    scores = [*PAGE_SCORES.values()]
    if not math.isnan(detection.together.get(f"auroc_{P_KNOWN.name}", math.nan)):
        scores.append(P_KNOWN)
    header = ["unknown nodes", *(score.title for score in scores)]
    rows = [
        [
            name_of(mark.replace("_", " ")),
            *(percent(metrics[f"auroc_{score.name}"]) for score in scores),
        ]
        for mark, metrics in groups
    ]
    return text + table(header, rows, "AUC-ROC by kind of unknown node")
