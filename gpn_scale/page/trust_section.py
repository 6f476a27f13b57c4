"""The section that shows whether confidence can be trusted."""

import math
from typing import Any

from gpn_scale.evaluation.conformal import ConformalSummary
from gpn_scale.evaluation.intervals import exact_interval
from gpn_scale.evaluation.scores import PAGE_SCORES
from gpn_scale.page.chart import Chart, percent_axis
from gpn_scale.page.curve_chart import CurveAxes, Line, curve_chart
from gpn_scale.page.detection_charts import detection_figures
from gpn_scale.page.facts import PredictionFacts, ScoreCurve, TemperatureFacts
from gpn_scale.page.reliability_chart import reliability_chart
from gpn_scale.page.section import Figure, Section, section
from gpn_scale.page.texts import figures, percent


def trust(facts: PredictionFacts) -> Section | None:
    """Return reliability, risk and rejection, temperature, detection of errors, conformal sets.

    Each is left out if there are too few nodes; None if all are.
    """
    captioned = []
    if facts.reliability is not None:
        caption = (
            "Bars: accuracy of a bin. Discs: its mean confidence; size: number of nodes. On the "
            "dashed line, confidence equals accuracy: of the nodes with a confidence of 80 %, 80 % "
            "are correct."
        )
        chart = reliability_chart("reliability", "Reliability", facts.reliability)
        captioned.append(Figure(chart, caption))
    if facts.risk:
        captioned += _risk_figures(facts.risk)
    if facts.temperature is not None:
        chart = temperature_chart(facts.temperature)
        captioned.append(Figure(chart, temperature_sentence(facts.temperature)))
    captioned += detection_figures("errors", facts.errors)
    if not captioned and facts.conformal is None:
        return None
    return section(
        "trust",
        "Can confidence be trusted?",
        "trust.html",
        figures=tuple(captioned),
        conformal=facts.conformal,
        **({} if facts.conformal is None else _conformal(facts.conformal)),
    )


def _risk_figures(risk: tuple[ScoreCurve, ...]) -> list[Figure]:
    """Return the two charts of risk with their captions."""
    return [
        Figure(
            risk_chart(risk),
            "The most certain test nodes are predicted first. A score that puts the errors last "
            "keeps the risk low, and with it the area under the curve (AURC).",
        ),
        Figure(
            rejection_chart(risk),
            "The same curves from the other side: accuracy on the remaining nodes when the least "
            "certain ones are rejected.",
        ),
    ]


def risk_chart(risk: tuple[ScoreCurve, ...]) -> Chart:
    """Draw risk over coverage, one line for each score."""
    title = "coverage: fraction of nodes predicted"
    return curve_chart(
        "risk-coverage",
        "Risk and coverage",
        [
            Line(c.coverage, c.risk, f"{PAGE_SCORES[c.score].title}: AURC {figures(c.area)}")
            for c in risk
        ],
        CurveAxes(
            x_title=title,
            y_title="risk: fraction of errors",
            x_axis=percent_axis(title),
            is_percent=True,
            y_range=(0.0, 0.01),
        ),
    )


def rejection_chart(risk: tuple[ScoreCurve, ...]) -> Chart:
    """Draw accuracy over the fraction of nodes rejected, one line for each score."""
    title = "rejected: fraction of nodes not predicted"
    return curve_chart(
        "accuracy-rejection",
        "Accuracy and rejection",
        [Line(1 - c.coverage, 1 - c.risk, PAGE_SCORES[c.score].title) for c in risk],
        CurveAxes(
            x_title=title,
            y_title="accuracy on the other nodes",
            x_axis=percent_axis(title),
            is_percent=True,
            y_range=(0.99, 1.0),
        ),
    )


def temperature_chart(facts: TemperatureFacts) -> Chart:
    """Draw the calibration error over temperature, with the fitted one marked."""
    title = "temperature, log scale"
    return curve_chart(
        "temperature",
        "Temperature",
        [Line(facts.log_temperature, facts.eces)],
        CurveAxes(
            x_title=title,
            y_title="calibration error (ECE)",
            x_axis={
                "title": title,
                "tickCount": 5,
                "labelExpr": "format(pow(10, datum.value), '.2~g')",
            },
            is_percent=True,
            y_range=(0.0, 0.01),
        ),
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


def _conformal(summary: ConformalSummary) -> dict[str, Any]:
    target, measured = percent(1 - summary.miss, 0), summary.measured_nodes
    low, high = exact_interval(summary.coverage * measured, measured)
    return {
        "target": target,
        "tiles": [
            (
                "Measured coverage",
                percent(summary.coverage),
                f"target: at least {target} (95 % interval: {100 * low:.1f} to {percent(high)})",
            ),
            ("Mean set size", figures(summary.mean_size), "classes; below 1, some sets are empty"),
        ],
        "calibration_nodes": f"{summary.calibration_nodes:,}",
        "measured_nodes": f"{summary.measured_nodes:,}",
    }
