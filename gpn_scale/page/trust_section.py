"""The section that shows whether confidence can be trusted."""

import math

from gpn_scale.evaluation.conformal import ConformalSummary
from gpn_scale.evaluation.intervals import exact_interval
from gpn_scale.evaluation.scores import PAGE_SCORES
from gpn_scale.page.charts import Line, curves, reliability_diagram
from gpn_scale.page.components import Section, columns, figure, paragraph, tiles
from gpn_scale.page.facts import PredictionFacts, ScoreCurve, TemperatureFacts
from gpn_scale.page.markup import figures, percent, tag
from gpn_scale.page.svg import Plot, log_label, percent_label


def trust(facts: PredictionFacts) -> Section | None:
    """Return reliability, risk and rejection, temperature and conformal sets.

    Each is left out if there are too few nodes; None if all are.
    """
    captioned = []
    if facts.reliability is not None:
        plot = reliability_diagram("reliability", "Reliability", facts.reliability)
        caption = (
            "On the dashed line, confidence equals accuracy: of the nodes with a confidence of "
            "80 %, 80 % are correct."
        )
        captioned.append((plot, caption))
    if facts.risk:
        captioned += _risk_figures(facts.risk)
    if facts.temperature is not None:
        plot = temperature_plot(facts.temperature)
        captioned.append((plot, temperature_sentence(facts.temperature)))
    body = columns(*(figure(plot, caption) for plot, caption in captioned))
    if facts.conformal is not None:
        body += _conformal(facts.conformal)
    plots = tuple(plot for plot, _ in captioned)
    if not plots and facts.conformal is None:
        return None
    return Section("trust", "Can confidence be trusted?", body, plots)


def _risk_figures(risk: tuple[ScoreCurve, ...]) -> list[tuple[Plot, str]]:
    """Return the two plots of risk with their captions."""
    return [
        (
            risk_plot(risk),
            "The most certain test nodes are predicted first. A score that puts the errors last "
            "keeps the risk low, and with it the area under the curve (AURC).",
        ),
        (
            rejection_plot(risk),
            "The same curves from the other side: accuracy on the remaining nodes when the least "
            "certain ones are rejected.",
        ),
    ]


def risk_plot(risk: tuple[ScoreCurve, ...]) -> Plot:
    """Draw risk over coverage, one line for each score."""
    return curves(
        "risk-coverage",
        "Risk and coverage",
        [
            Line(c.coverage, c.risk, f"{PAGE_SCORES[c.score].title}: AURC {figures(c.area)}")
            for c in risk
        ],
        "coverage: fraction of nodes predicted",
        "risk: fraction of errors",
        x_label=percent_label,
        y_label=percent_label,
        include=(0.0, 0.01),
    )


def rejection_plot(risk: tuple[ScoreCurve, ...]) -> Plot:
    """Draw accuracy over the fraction of nodes rejected, one line for each score."""
    return curves(
        "accuracy-rejection",
        "Accuracy and rejection",
        [Line(1 - c.coverage, 1 - c.risk, PAGE_SCORES[c.score].title) for c in risk],
        "rejected: fraction of nodes not predicted",
        "accuracy on the other nodes",
        x_label=percent_label,
        y_label=percent_label,
        include=(1.0, 0.99),
    )


def temperature_plot(facts: TemperatureFacts) -> Plot:
    """Draw the calibration error over temperature, with the fitted one marked."""
    return curves(
        "temperature",
        "Temperature",
        [Line(facts.log_temperature, facts.eces)],
        "temperature, log scale",
        "calibration error (ECE)",
        x_label=log_label,
        y_label=percent_label,
        include=(0.0, 0.01),
        marked=(math.log10(facts.fitted), f"fitted: {figures(facts.fitted)}"),
    )


def temperature_sentence(facts: TemperatureFacts) -> str:
    """Return what the fitted temperature says about the model."""
    if abs(math.log(facts.fitted)) < 0.05:
        verdict = "The model's confidence is about right."
    elif facts.fitted < 1:
        verdict = "The model is underconfident: temperatures below 1 sharpen its probabilities."
    else:
        verdict = "The model is overconfident: temperatures above 1 flatten its probabilities."
    return (
        f"{verdict} The temperature fitted to {facts.nodes:,} validation nodes would give an ECE "
        f"of {percent(facts.ece)} and an NLL of {figures(facts.nll)} on the test nodes. Predicted "
        "classes and evidence would not change."
    )


def _conformal(summary: ConformalSummary) -> str:
    target, measured = percent(1 - summary.miss, 0), summary.measured_nodes
    low, high = exact_interval(summary.coverage * measured, measured)
    return (
        tag("h3", f"Sets of classes that contain the true class in {target} of cases")
        + tiles(
            [
                (
                    "Measured coverage",
                    percent(summary.coverage),
                    f"target: at least {target} "
                    f"(95 % interval: {100 * low:.1f} to {percent(high)})",
                ),
                (
                    "Mean set size",
                    figures(summary.mean_size),
                    "classes; below 1, some sets are empty",
                ),
            ]
        )
        + paragraph(
            f"Split-conformal sets, calibrated on {summary.calibration_nodes:,} test nodes drawn "
            f"at random and measured on the other {summary.measured_nodes:,}. Coverage holds on "
            "average for nodes that are exchangeable with the calibration nodes, that is, drawn at "
            "random from the same nodes of this graph. It does not hold for nodes that join later, "
            "for other classes, or if features or edges shift."
        )
    )
