"""Sections about evidence: how much there is, how far it conflicts, what stored rows leave out."""

from gpn_scale.page.facts import PredictionFacts
from gpn_scale.page.histogram_chart import histogram_chart
from gpn_scale.page.section import Figure, Section, section


def evidence(facts: PredictionFacts) -> Section | None:
    """Return how much evidence known and unknown nodes have; None for too few of both."""
    if facts.alpha_0 is None or facts.alpha_0_no_network is None:
        return None
    title = "total concentration alpha_0, log scale"
    text = (
        "alpha_0 measures the evidence behind a prediction: one count for each class as the prior, "
        "plus pseudo-counts that grow with the resemblance to the training nodes."
    )
    if facts.unknown_nodes and len(facts.alpha_0.densities) > 1:
        text += (
            " The farther the unknown nodes (dashed) lie to the left of the known ones, the better "
            "the model recognises them."
        )
    with_network = histogram_chart(
        "alpha0-with-network", "With network", facts.alpha_0, title, kind="log"
    )
    without = histogram_chart(
        "alpha0-without-network", "Without network", facts.alpha_0_no_network, title, kind="log"
    )
    return section(
        "evidence",
        "How much evidence do nodes have?",
        "figures.html",
        figures=(
            Figure(with_network, "Evidence of the node and its neighbourhood."),
            Figure(without, "Evidence of the node's own features alone."),
        ),
        text=text,
        notes=(),
        kind="",
    )


def reasons(facts: PredictionFacts) -> Section | None:
    """Return whether uncertainty comes from too little evidence or from conflicting evidence.

    None for too few nodes.
    """
    captioned = []
    if facts.vacuity is not None:
        title = "fraction of belief without evidence, log scale"
        chart = histogram_chart("vacuity", "Vacuity", facts.vacuity, title, kind="log")
        captioned.append(Figure(chart, "High for nodes that do not resemble the training data."))
    if facts.dissonance is not None:
        title = "conflict between the evidence of classes"
        chart = histogram_chart("dissonance", "Dissonance", facts.dissonance, title)
        caption = "High where classes mix; wrong predictions should lie to the right."
        captioned.append(Figure(chart, caption))
    if not captioned:
        return None
    return section(
        "kinds",
        "Too little evidence, or conflicting evidence?",
        "figures.html",
        figures=tuple(captioned),
        text="Subjective logic has a measure for each reason to be uncertain: vacuity is high if "
        "there is little evidence, dissonance is high if the evidence supports several classes "
        "(Jøsang et al., 2018).",
        notes=(),
        kind="",
    )


def missing_mass(facts: PredictionFacts) -> Section | None:
    """Return what the stored rows of minibatch mode leave out; None in exact mode."""
    if facts.missing_mass is None:
        return None
    chart = histogram_chart(
        "missing-mass", "Missing mass", facts.missing_mass, "mass that was cut from a row"
    )
    return section(
        "missing-mass",
        "What do stored rows leave out?",
        "figures.html",
        figures=(Figure(chart, "All stored rows; 0 is a complete row."),),
        text="Minibatch training keeps only the largest entries of each node's diffusion row. The "
        "missing mass is what the cut removed; unless a tail stands in for it, it looks like "
        "missing evidence. A full row has the mass 1 with the normalisation rw, and more or less "
        "than 1 with sym.",
        notes=(),
        kind="",
    )
