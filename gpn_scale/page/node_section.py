"""The nodes that the model is least and most certain about, with the sources of their evidence."""

from collections.abc import Sequence

from gpn_scale.page.components import Section, class_badge, class_list, name_of, paragraph, table
from gpn_scale.page.contributor_plot import contributor_plot
from gpn_scale.page.facts import ContributorFacts, ExplainedNode, PredictionFacts
from gpn_scale.page.markup import escaped, figures, part_of_whole, percent, tag
from gpn_scale.page.svg import Plot

_HEADING = "Which nodes the model does not know, and why"


def nodes(facts: PredictionFacts) -> Section:
    """Return a drawing and a table for each node, the least certain nodes first."""
    extremes = facts.extremes
    if extremes.absent:
        return Section("nodes", _HEADING, paragraph(extremes.absent))
    plots: list[Plot] = []
    parts = [
        paragraph(
            "Test and unknown nodes with the least and the most evidence. A node's evidence is a "
            "weighted sum of the feature evidence of all nodes that it reaches through the graph. "
            f"The tables list the nodes that supplied most of it. {extremes.source}"
        ),
        paragraph(
            "Drawings: the width of a line shows a contributor's share; a dashed line means that "
            "no edge joins the two nodes. The ring around the centre is the node's own share. "
            "Letters are classes: the predicted class in the centre, and around it the leading "
            "class of each contributor's own features.",
            "note",
        ),
        class_list(facts.class_names),
    ]
    for group, heading, explained in (
        ("least-certain", "Least certain", extremes.uncertain),
        ("most-certain", "Most certain", extremes.certain),
    ):
        cards = []
        for position, node in enumerate(explained, 1):
            plot = contributor_plot(f"{group}-{position}", node)
            plots.append(plot)
            cards.append(_card(plot, node, extremes.median_evidence, facts.class_names))
        parts.append(tag("h3", heading) + tag("div", *cards, class_="columns cards"))
    return Section("nodes", _HEADING, "".join(parts), tuple(plots))


def _card(plot: Plot, node: ExplainedNode, median: float, class_names: Sequence[str]) -> str:
    rows = [_row(number, each) for number, each in enumerate(node.contributors, 1)]
    rows.append(["all others", "", "", part_of_whole(node.rest_share)])
    title = tag("h4", "Node ", name_of(node.name), " ", tag("small", escaped(_kind(node))))
    header = ["contributor", "leading class", "weight", "share"]
    return tag(
        "article",
        title,
        tag("p", _prediction_sentence(node, class_names)),
        paragraph(_evidence_sentence(node, median), "why"),
        plot.inline(),
        table(header, rows, f"Evidence of node {node.name}"),
        class_="card",
    )


def _kind(node: ExplainedNode) -> str:
    if not node.marks:
        return "test node"
    return f"unknown node: {', '.join(mark.replace('_', ' ') for mark in node.marks)}"


def _prediction_sentence(node: ExplainedNode, class_names: Sequence[str]) -> str:
    """Return markup, since names of classes come from the data."""
    label = "its true class is not known"
    if node.label >= 0:
        label = f"its true class is {_class_name(node.label, class_names)}"
    predicted = _class_name(node.predicted, class_names)
    return f"Predicted {predicted} with {percent(node.probability)}; {label}."


def _evidence_sentence(node: ExplainedNode, median: float) -> str:
    sentence = (
        f"It has {figures(node.evidence)} pseudo-counts of evidence; the median of the known test "
        f"nodes is {figures(median)}. Its own features alone would give it "
        f"{figures(node.own_evidence)}."
    )
    if all(each.itself for each in node.contributors):
        sentence += " No other node contributes."
    return sentence


def _row(number: int, contributor: ContributorFacts) -> list[str]:
    name = "itself" if contributor.itself else name_of(contributor.name)
    return [
        f"{number}: {name}",
        class_badge(contributor.leading_class),
        figures(contributor.weight, 2),
        part_of_whole(contributor.share),
    ]


def _class_name(label: int, class_names: Sequence[str]) -> str:
    return f"{class_badge(label)} {name_of(class_names[label])}"
