"""The section that shows which nodes the model holds for unknown, and how far to believe it."""

from gpn_scale.evaluation.known_calibration import P_VALUE_CONDITION
from gpn_scale.page.charts import histogram
from gpn_scale.page.components import (
    Section,
    class_badge,
    columns,
    figure,
    name_of,
    paragraph,
    table,
)
from gpn_scale.page.facts import KnownFacts, PredictionFacts, StrangeNode
from gpn_scale.page.histograms import Histogram
from gpn_scale.page.markup import escaped, figures, percent, tag
from gpn_scale.page.svg import Plot, percent_label

_PARTS = {
    "features": "own features",
    "neighbourhood": "neighbourhood",
    "opinion": "opinion",
    "labels": "labels near",
}


def known(facts: PredictionFacts) -> Section | None:
    """Return how p-values are distributed, and the strangest nodes; None without p-values."""
    if (values := facts.known) is None:
        return None
    plots = () if values.p_known is None else (_p_plot(values.p_known),)
    notes = "".join(paragraph(note, "note") for note in values.notes)
    header = [
        "node",
        "predicted",
        "probability",
        "p known",
        *(_PARTS[part] for part in values.parts),
        "reason",
    ]
    body = (
        paragraph(
            "The p-value that a node is known is the fraction of known nodes that look at least as "
            f"strange, measured on {values.validation_nodes:,} validation nodes. It joins the "
            "p-values of the node's own features, its neighbourhood, the opinion about its class "
            f"and the labels near it, and counts how strange its surroundings are. "
            f"{P_VALUE_CONDITION}"
        )
        + notes
        + "".join(columns(figure(plot, _caption(values))) for plot in plots)
        + tag("h3", "The strangest nodes of the graph")
        + table(header, [_row(node) for node in values.strangest], "The strangest nodes")
    )
    return Section("known", "Which nodes look unknown", body, plots)


def _p_plot(p_known: Histogram) -> Plot:
    return histogram(
        "p-known",
        "P-value that a node is known",
        p_known,
        "fraction of known nodes that look at least this strange",
        label=percent_label,
    )


def _caption(values: KnownFacts) -> str:
    text = "P-values of known nodes should be uniform, a flat line"
    if values.distance is not None:
        text += f": theirs are within {percent(values.distance)} of it"
    return f"{text}. Unknown nodes should have small ones."


def _row(node: StrangeNode) -> list[str]:
    return [
        name_of(node.name),
        class_badge(node.predicted),
        percent(node.probability),
        figures(node.p_known, 2),
        *(figures(value, 2) for value in node.p_parts),
        escaped(node.reason),
    ]
