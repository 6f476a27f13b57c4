"""The section that shows how p-values are distributed, and how far to believe them."""

from gpn_scale.evaluation.known_calibration import P_VALUE_CONDITION
from gpn_scale.page.facts import KnownFacts, PredictionFacts
from gpn_scale.page.histogram_chart import histogram_chart
from gpn_scale.page.section import Figure, Section, section
from gpn_scale.page.texts import percent


def known(facts: PredictionFacts) -> Section | None:
    """Return how p-values are distributed; None without p-values."""
    if (values := facts.known) is None:
        return None
    return section(
        "known",
        "How far can the p-values be believed?",
        "figures.html",
        figures=_figures(values),
        text="The p-value that a node is known is the fraction of known nodes that look at least "
        f"as strange, measured on {values.validation_nodes:,} validation nodes. It joins the "
        "p-values of the node's own features, its neighbourhood, the opinion about its class "
        "and the labels near it, and counts how strange its surroundings are. "
        f"{P_VALUE_CONDITION}",
        notes=values.notes,
        kind="",
    )


def _figures(values: KnownFacts) -> tuple[Figure, ...]:
    """Return the distribution of p-values, if there are enough of them."""
    if values.p_known is None:
        return ()
    chart = histogram_chart(
        "p-known",
        "P-value that a node is known",
        values.p_known,
        "fraction of known nodes that look at least this strange",
        kind="percent",
    )
    caption = "P-values of known nodes should be uniform, a flat line"
    if values.distance is not None:
        caption += f": theirs are within {percent(values.distance)} of it"
    return (Figure(chart, f"{caption}. Unknown nodes should have small ones."),)
