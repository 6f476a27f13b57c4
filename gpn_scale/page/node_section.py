"""The nodes that the model is least and most sure of, each with the sources of its evidence."""

from collections.abc import Sequence

from gpn_scale.page.components import Section, class_badge, class_list, name_of, paragraph, table
from gpn_scale.page.facts import ContributorFacts, ExplainedNode, PredictionFacts
from gpn_scale.page.markup import escaped, figures, part_of_whole, percent, tag
from gpn_scale.page.neighbourhood import neighbourhood
from gpn_scale.page.svg import Plot

_HEADING = "Which nodes the model does not know, and why"


def nodes(found: PredictionFacts) -> Section:
    """Drawings and tables, the least certain nodes first."""
    explained = found.explained
    if explained.absent:
        return Section("nodes", _HEADING, paragraph(explained.absent))
    plots: list[Plot] = []
    parts = [
        paragraph(
            "Test and unknown nodes by their total evidence. A node gets a weighted share of the "
            "evidence of every node that its walk through the graph reaches; these supplied most. "
            f"{explained.source}"
        ),
        paragraph(
            "Drawings: the wider a line, the larger the share; dashed where no edge joins the two. "
            "The ring about the middle is what the node supplies itself. Letters are the classes "
            "that features speak for, in the middle the predicted one.",
            "note",
        ),
        class_list(found.class_names),
    ]
    for group, heading, which in (
        ("least-certain", "Least certain", explained.uncertain),
        ("most-certain", "Most certain", explained.certain),
    ):
        cards = []
        for place, node in enumerate(which, 1):
            plot = neighbourhood(f"{group}-{place}", node)
            plots.append(plot)
            cards.append(_card(plot, node, explained.typical_evidence, found.class_names))
        parts.append(tag("h3", heading) + tag("div", *cards, class_="columns cards"))
    return Section("nodes", _HEADING, "".join(parts), tuple(plots))


def _card(plot: Plot, node: ExplainedNode, typical: float, class_names: Sequence[str]) -> str:
    kind = "test node"
    if node.marks:
        kind = f"unknown: {', '.join(mark.replace('_', ' ') for mark in node.marks)}"
    label = "has no known class"
    if node.label >= 0:
        label = f"is {_class_name(node.label, class_names)}"
    predicted = _class_name(node.predicted, class_names)
    said = f"Predicted {predicted} with {percent(node.probability)}; {label}."
    why = (
        f"{figures(node.evidence)} pseudo-counts reach it, where a typical known node gets "
        f"{figures(typical)}; its own features alone would give it {figures(node.own_evidence)}."
    )
    if all(each.itself for each in node.contributors):
        why += " No other node is in its reach."
    rows = [_row(rank, each) for rank, each in enumerate(node.contributors, 1)]
    rows.append(["all others", "", "", part_of_whole(node.rest_share)])
    title = tag("h4", "Node ", name_of(node.name), " ", tag("small", escaped(kind)))
    header = ["contributor", "speaks for", "weight", "share"]
    return tag(
        "article",
        title,
        tag("p", said),
        paragraph(why, "why"),
        plot.inline(),
        table(header, rows, f"Evidence of node {node.name}"),
        class_="card",
    )


def _row(rank: int, each: ContributorFacts) -> list[str]:
    who = "itself" if each.itself else name_of(each.name)
    weight, share = figures(each.weight, 2), part_of_whole(each.share)
    return [f"{rank}: {who}", class_badge(each.speaks_for), weight, share]


def _class_name(label: int, class_names: Sequence[str]) -> str:
    return f"{class_badge(label)} {name_of(class_names[label])}"
