"""Sections about evidence: how much there is, how far it conflicts, what stored rows leave out."""

from gpn_scale.page.charts import histogram
from gpn_scale.page.components import Section, columns, figure, paragraph
from gpn_scale.page.facts import PredictionFacts
from gpn_scale.page.svg import log_label


def evidence(facts: PredictionFacts) -> Section | None:
    """Return how much evidence known and unknown nodes have; None for too few of both."""
    if facts.alpha_0 is None or facts.alpha_0_no_network is None:
        return None
    title = "total concentration alpha_0, log scale"
    with_network = histogram(
        "alpha0-with-network", "With network", facts.alpha_0, title, label=log_label
    )
    without = histogram(
        "alpha0-without-network",
        "Without network",
        facts.alpha_0_no_network,
        title,
        label=log_label,
    )
    text = (
        "alpha_0 measures the evidence behind a prediction: one count for each class as the prior, "
        "plus pseudo-counts that grow with the resemblance to the training nodes."
    )
    if facts.unknown_nodes and len(facts.alpha_0.densities) > 1:
        text += (
            " The farther the unknown nodes (dashed) lie to the left of the known ones, the better "
            "the model recognises them."
        )
    body = paragraph(text) + columns(
        figure(with_network, "Evidence of the node and its neighbourhood."),
        figure(without, "Evidence of the node's own features alone."),
    )
    return Section("evidence", "How much evidence nodes have", body, (with_network, without))


def reasons(facts: PredictionFacts) -> Section | None:
    """Return whether uncertainty comes from too little evidence or from conflicting evidence.

    None for too few nodes.
    """
    captioned = []
    if facts.vacuity is not None:
        title = "fraction of belief without evidence, log scale"
        plot = histogram("vacuity", "Vacuity", facts.vacuity, title, label=log_label)
        captioned.append((plot, "High for nodes that do not resemble the training data."))
    if facts.dissonance is not None:
        title = "conflict between the evidence of classes"
        plot = histogram("dissonance", "Dissonance", facts.dissonance, title)
        caption = "High where classes mix; wrong predictions should lie to the right."
        captioned.append((plot, caption))
    if not captioned:
        return None
    body = paragraph(
        "Subjective logic has a measure for each reason to be uncertain: vacuity is high if there "
        "is little evidence, dissonance is high if the evidence supports several classes (Jøsang "
        "et al., 2018)."
    ) + columns(*(figure(plot, caption) for plot, caption in captioned))
    heading = "Too little evidence, or conflicting evidence?"
    return Section("kinds", heading, body, tuple(plot for plot, _ in captioned))


def missing_mass(facts: PredictionFacts) -> Section | None:
    """Return what the stored rows of minibatch mode leave out; None in exact mode."""
    if facts.missing_mass is None:
        return None
    plot = histogram(
        "missing-mass", "Missing mass", facts.missing_mass, "mass that was cut from a row"
    )
    text = (
        "Minibatch training keeps only the largest entries of each node's diffusion row. The "
        "missing mass is what the cut removed; unless a tail stands in for it, it looks like "
        "missing evidence. A full row has the mass 1 with the normalisation rw, and more or less "
        "than 1 with sym."
    )
    body = paragraph(text) + columns(figure(plot, "All stored rows; 0 is a complete row."))
    return Section("missing-mass", "What stored rows leave out", body, (plot,))
