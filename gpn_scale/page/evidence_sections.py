"""Sections about evidence: how much there is, how far it conflicts, what stored rows leave out."""

from gpn_scale.page.charts import histogram
from gpn_scale.page.components import Section, columns, figure, paragraph
from gpn_scale.page.facts import PredictionFacts
from gpn_scale.page.svg import log_label


def evidence(facts: PredictionFacts) -> Section:
    """Return how much evidence known and unknown nodes have."""
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
    if facts.unknown_nodes:
        text += (
            " The farther the unknown nodes (dashed) lie to the left of the known ones, the better "
            "the model recognises them."
        )
    body = paragraph(text) + columns(
        figure(with_network, "Evidence of the node and its neighbourhood."),
        figure(without, "Evidence of the node's own features alone."),
    )
    return Section("evidence", "How much evidence nodes have", body, (with_network, without))


def reasons(facts: PredictionFacts) -> Section:
    """Return whether uncertainty comes from too little evidence or from conflicting evidence."""
    vacuity = histogram(
        "vacuity",
        "Vacuity",
        facts.vacuity,
        "fraction of belief without evidence, log scale",
        label=log_label,
    )
    dissonance = histogram(
        "dissonance", "Dissonance", facts.dissonance, "conflict between the evidence of classes"
    )
    body = paragraph(
        "Subjective logic has a measure for each reason to be uncertain: vacuity is high if there "
        "is little evidence, dissonance is high if the evidence supports several classes (Jøsang "
        "et al., 2018)."
    ) + columns(
        figure(vacuity, "High for nodes that do not resemble the training data."),
        figure(dissonance, "High where classes mix; wrong predictions should lie to the right."),
    )
    heading = "Too little evidence, or conflicting evidence?"
    return Section("kinds", heading, body, (vacuity, dissonance))


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
