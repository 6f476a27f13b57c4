"""Further views of a prediction: facts -> plots and a section."""

import math

from gpn_scale.page.charts import Line, curves, histogram
from gpn_scale.page.components import Section, columns, figure, paragraph
from gpn_scale.page.facts import PredictionFacts, TemperatureFacts
from gpn_scale.page.markup import figures, percent
from gpn_scale.page.svg import Plot, log_label, percent_label


def temperature_plot(found: TemperatureFacts) -> Plot:
    """Calibration over temperature, with the fitted one marked."""
    return curves(
        "temperature",
        "Temperature",
        [Line(found.log_temperature, found.eces)],
        "temperature, log scale",
        "calibration error (ECE)",
        x_label=log_label,
        y_label=percent_label,
        include=(0.0, 0.01),
        marked=(math.log10(found.fitted), f"fitted: {figures(found.fitted)}"),
    )


def temperature_words(found: TemperatureFacts) -> str:
    """What the fitted temperature tells."""
    if abs(math.log(found.fitted)) < 0.05:
        leaning = "The probabilities are about as sharp as they should be."
    elif found.fitted < 1:
        leaning = "The model is too modest: below 1, a temperature sharpens its probabilities."
    else:
        leaning = "The model is too sure: above 1, a temperature flattens its probabilities."
    return (
        f"{leaning} Fitted to {found.nodes:,} validation nodes, it would leave an ECE of "
        f"{percent(found.ece)} and an NLL of {figures(found.nll)} on the test nodes; classes and "
        "evidence stay as they are."
    )


def kinds(found: PredictionFacts) -> Section:
    """Too little evidence, or evidence that conflicts."""
    vacuity = histogram(
        "vacuity",
        "Vacuity",
        found.vacuity,
        "share of the posterior that is prior, log scale",
        label=log_label,
    )
    dissonance = histogram(
        "dissonance", "Dissonance", found.dissonance, "conflict between the classes' evidence"
    )
    body = paragraph(
        "Subjective logic's words for the two kinds: vacuity is what is left to the prior for want "
        "of evidence, dissonance is evidence that speaks for several classes at once (Jøsang et "
        "al., 2018)."
    ) + columns(
        figure(vacuity, "Large for nodes that resemble nothing seen in training."),
        figure(dissonance, "Large where classes mix; wrong predictions should stand to the right."),
    )
    return Section("kinds", "No evidence, or evidence in conflict?", body, (vacuity, dissonance))
