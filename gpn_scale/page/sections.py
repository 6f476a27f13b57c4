"""Facts -> the sections of a page, in the order in which they are read."""

from collections.abc import Mapping

from gpn_scale.page.charts import (
    Line,
    curves,
    histogram,
    points_by_class,
    points_by_evidence,
    reliability_diagram,
)
from gpn_scale.page.components import (
    Section,
    class_list,
    columns,
    figure,
    name_of,
    paragraph,
    table,
    tiles,
)
from gpn_scale.page.facts import ConformalFacts, PredictionFacts, RunFacts
from gpn_scale.page.markup import escaped, figures, percent, tag
from gpn_scale.page.posterior_sections import temperature_plot, temperature_words
from gpn_scale.page.svg import Plot, log_label, percent_label

SCORES = {
    "aleatoric_no_network": (
        "Aleatoric, without network",
        "Do the node's own features fit several classes?",
        "Low top probability from features alone: a borderline case among known classes.",
    ),
    "aleatoric": (
        "Aleatoric, with network",
        "Do the node and its neighbours together speak for several classes?",
        "Low top probability after neighbours had their say: classes that mix in the graph.",
    ),
    "epistemic_no_network": (
        "Epistemic, without network",
        "Do the node's own features look like anything seen in training?",
        "Little evidence from features alone: the node itself is foreign.",
    ),
    "epistemic": (
        "Epistemic, with network",
        "Is the node's neighbourhood like anything seen in training?",
        "Little evidence in all: neither the node nor its neighbours are familiar.",
    ),
}
"""Name, question and answer of each score."""


def overview(facts: RunFacts) -> Section:
    """What was trained on, how good it is, and what the four scores ask."""
    parts = []
    if facts.missing:
        notes = tag("ul", *(tag("li", escaped(words)) for words in facts.missing))
        parts.append(tag("div", tag("strong", "What is missing here"), notes, class_="notice"))
    if facts.report is not None:
        graph = facts.report.graph
        parts.append(
            paragraph(
                f"{graph['nodes']:,} nodes, {graph['edges']:,} edges, {graph['features']:,} "
                f"features, {graph['classes']} classes. Trained in {facts.config.mode} mode on "
                f"{graph['train_nodes']:,} labelled nodes for {facts.report.epochs:,} epochs; the "
                f"weights are those of epoch {facts.report.best_epoch:,}.",
                "lead",
            )
        )
        parts.append(_quality(facts.report.metrics["test"]))
    found = facts.prediction
    detection: Mapping[str, Mapping[str, float]] = {} if found is None else found.detection
    parts.append(tag("h3", "Four kinds of uncertainty"))
    parts.append(_scores(detection.get("all", {})))
    if found is not None and detection:
        parts.append(
            paragraph(
                f"AUC-ROC is the chance that one of the {found.marked_nodes:,} unknown nodes gets "
                f"a higher score than one of the {found.known_nodes:,} known test nodes: 50 % is "
                "blind, 100 % finds all. Unknown are nodes that training could not know, marked "
                "in the graph for this test."
            )
        )
        if len(detection) > 2:
            parts.append(_detection_table(detection))
    return Section("overview", "Overview", "".join(parts))


def _quality(test: Mapping[str, float]) -> str:
    return tiles(
        [
            ("Accuracy", percent(test["accuracy"]), "of the test nodes get their class"),
            ("ECE", percent(test["ece"]), "mean gap between confidence and accuracy"),
            ("Brier score", figures(test["brier"]), "squared error of probabilities; 0 is best"),
            ("NLL", figures(test["nll"]), "mean of -log p of the true class; 0 is best"),
        ]
    )


def _scores(found: Mapping[str, float]) -> str:
    cards = []
    for score, (name, question, answer) in SCORES.items():
        parts = [tag("h4", escaped(name)), tag("p", escaped(question), class_="question")]
        parts.append(paragraph(answer))
        if score in found:
            number = tag("strong", percent(found[score]))
            parts.append(tag("p", number, " AUC-ROC for unknown nodes", class_="auroc"))
        cards.append(tag("article", *parts, class_="card"))
    return tag("div", *cards, class_="columns")


def _detection_table(detection: Mapping[str, Mapping[str, float]]) -> str:
    header = ["unknown nodes", *(name for name, _, _ in SCORES.values())]
    rows = [
        [name_of(mark.replace("_", " ")), *(percent(found[score]) for score in SCORES)]
        for mark, found in detection.items()
    ]
    return table(header, rows, "AUC-ROC by kind of unknown node")


def evidence(found: PredictionFacts) -> Section:
    """How much evidence known and unknown nodes have."""
    title = "total concentration alpha_0, log scale"
    with_network = histogram(
        "alpha0-with-network", "With network", found.alpha_0, title, label=log_label
    )
    without = histogram(
        "alpha0-without-network",
        "Without network",
        found.alpha_0_no_network,
        title,
        label=log_label,
    )
    words = (
        "alpha_0 counts the evidence behind a prediction: one for each class before anything is "
        "seen, and on top the pseudo-counts of all that resembles the training nodes."
    )
    if found.marked_nodes:
        words += " The farther the dashed group stands to the left, the better it is recognised."
    body = paragraph(words) + columns(
        figure(with_network, "Evidence of the node and its soft neighbourhood."),
        figure(without, "Evidence of the node's own features alone."),
    )
    heading = "How much evidence nodes have"
    return Section("evidence", heading, body, (with_network, without))


def trust(found: PredictionFacts) -> Section:
    """Whether confidence means what it says."""
    diagram = reliability_diagram("reliability", "Reliability", found.reliability)
    risk, rejection = (_selective(found, rejecting=rejecting) for rejecting in (False, True))
    figures_ = [
        figure(
            diagram, "Discs on the dashed line mean: of nodes with 80 % confidence, 80 % are right."
        ),
        figure(
            risk,
            "The surest test nodes are answered first. A score that refuses the right nodes stays "
            "low, with a small area under the curve (AURC).",
        ),
        figure(
            rejection,
            "The same from the other side: how accurate the answers are when the least certain "
            "nodes are handed to somebody else.",
        ),
    ]
    plots = [diagram, risk, rejection]
    if found.temperature is not None:
        plots.append(temperature_plot(found.temperature))
        figures_.append(figure(plots[-1], temperature_words(found.temperature)))
    body = columns(*figures_)
    if found.conformal is not None:
        body += _conformal(found.conformal)
    return Section("trust", "Can confidence be trusted?", body, tuple(plots))


def _selective(found: PredictionFacts, *, rejecting: bool) -> Plot:
    """Risk over coverage, or accuracy over what is rejected."""
    lines = [
        Line(1 - each.coverage, 1 - each.risk, SCORES[each.score][0])
        if rejecting
        else Line(each.coverage, each.risk, f"{SCORES[each.score][0]}: AURC {figures(each.area)}")
        for each in found.risk
    ]
    return curves(
        "accuracy-rejection" if rejecting else "risk-coverage",
        "Accuracy and rejection" if rejecting else "Risk and coverage",
        lines,
        "rejected: share of nodes that are not answered"
        if rejecting
        else "coverage: share of nodes that are answered",
        "accuracy on the others" if rejecting else "risk: share of wrong answers",
        x_label=percent_label,
        y_label=percent_label,
        include=(1.0, 0.99) if rejecting else (0.0, 0.01),
    )


def _conformal(found: ConformalFacts) -> str:
    wanted = percent(1 - found.miss, 0)
    return (
        tag("h3", f"Sets of classes that hold the true one in {wanted} of cases")
        + tiles(
            [
                ("Measured coverage", percent(found.coverage), f"wanted: at least {wanted}"),
                (
                    "Mean size of a set",
                    figures(found.mean_size),
                    "classes; below 1, some sets are empty",
                ),
            ]
        )
        + paragraph(
            f"Split-conformal sets, calibrated on a random {found.calibration_nodes:,} of the test "
            f"nodes and measured on the other {found.measured_nodes:,}. Coverage holds on average "
            "for nodes that are exchangeable with those of the calibration: drawn at random from "
            "the same nodes of this graph, and not for nodes that join later, other classes, or "
            "shifted features or edges."
        )
    )


def missing_mass(found: PredictionFacts) -> Section | None:
    """What the stored rows of minibatch mode cut off."""
    if found.missing_mass is None:
        return None
    plot = histogram(
        "missing-mass", "Missing mass", found.missing_mass, "mass that a row has lost by the cut"
    )
    words = (
        "Minibatch training reads the strongest entries of each node's diffusion row. What was cut "
        "is estimated from graph clusters, not dropped: dropped, it would be false uncertainty."
    )
    body = paragraph(words) + columns(figure(plot, "Of all stored rows; 0 is a row that is whole."))
    return Section("missing-mass", "What stored rows leave out", body, (plot,))


def latent(found: PredictionFacts) -> Section:
    """The space in which densities are learned."""
    assert found.latent.explained is not None
    first, second = (percent(share, 0) for share in found.latent.explained)
    plots = [
        points_by_class("latent-classes", "By class", found.latent),
        points_by_evidence("latent-evidence", "By evidence", found.latent),
    ]
    words = ["Colour, shape and letter: the true class.", "Yellow: little evidence. Blue: much."]
    if (near := found.neighbours) is not None:
        plots.append(points_by_class("neighbours-classes", f"By class, {near.method}", near))
        plots.append(points_by_evidence("neighbours-evidence", f"By evidence, {near.method}", near))
        words += [
            f"{len(near.label):,} of the nodes by {near.method}: near ones stay near, but "
            "distances and sizes of groups mean nothing.",
            "The same. Evidence should be low between groups and in groups of unknown nodes.",
        ]
    body = (
        paragraph(
            f"Where the encoder puts {len(found.latent.label):,} test and unknown nodes, before "
            f"any neighbour is asked: the two directions of most variance ({first} and {second} of "
            "it, the farthest nodes at the edge). Evidence should fade away from the classes, "
            "and unknown nodes should lie where it has."
        )
        + columns(*(figure(plot, told) for plot, told in zip(plots, words, strict=True)))
        + class_list(found.class_names)
    )
    return Section("latent", "The latent space", body, tuple(plots))
