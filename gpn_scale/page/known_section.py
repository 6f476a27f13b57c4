"""The section that shows how p-values are distributed, and how far to believe them."""

from gpn_scale.evaluation.known_calibration import P_VALUE_CONDITION
from gpn_scale.page.facts import PredictionFacts
from gpn_scale.page.histogram_chart import histogram_chart
from gpn_scale.page.section import Figure, Section, section
from gpn_scale.page.texts import percent


def known(facts: PredictionFacts) -> Section | None:
    """Return how p-values are distributed; None without p-values."""
    if (values := facts.known) is None:
        return None
    chart = histogram_chart(
        "p-known",
        "P-value that a node is known",
        values.p_known,
        "fraction of known nodes that look at least this strange",
        kind="percent",
    )
    caption = (
        "P-values of known nodes should be uniform, a flat line: theirs are within "
        f"{percent(values.distance)} of it. Unknown nodes should have small ones."
    )
    return section(
        "known",
        "How far can the p-values be believed?",
        "figures.html",
        figures=(Figure(chart, caption),),
        text="The p-value that a node is known is the fraction of known nodes that look at least "
        f"as strange, measured on {values.validation_nodes:,} validation nodes. It joins the "
        "p-values of the node's own features, its neighbourhood, the opinion about its class "
        "and the labels near it, and counts how strange its surroundings are. "
        f"{P_VALUE_CONDITION}",
        notes=values.notes,
        kind="",
    )
