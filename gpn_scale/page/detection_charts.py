"""ROC and precision-recall curves of scores."""

from collections.abc import Sequence

from gpn_scale.evaluation.scores import P_KNOWN, PAGE_SCORES
from gpn_scale.page.chart import percent_axis
from gpn_scale.page.curve_chart import CurveAxes, Line, curve_chart
from gpn_scale.page.detection_curves import DetectionCurve
from gpn_scale.page.section import Figure
from gpn_scale.page.texts import percent

_TITLES = {name: score.title for name, score in PAGE_SCORES.items()} | {P_KNOWN.name: P_KNOWN.title}


def detection_figures(what: str, curves: Sequence[DetectionCurve]) -> tuple[Figure, ...]:
    """Return the ROC and the precision-recall curves of scores that detect `what`; none for none.

    Args:
        what: `unknown` or `errors`, which is also the beginning of the names of the charts.
        curves: A curve for each score.
    """
    if not curves:
        return ()
    noun = "unknown nodes" if what == "unknown" else "errors"
    others = "known test nodes" if what == "unknown" else "correct predictions"
    false_alarms = f"fraction of {others} above the threshold"
    recall = f"fraction of {noun} above the threshold"
    roc = curve_chart(
        f"{what}-roc",
        f"ROC curves: detecting {noun}",
        [
            Line(c.false_alarms, c.recall, f"{_TITLES[c.score]}: AUC-ROC {percent(c.auroc)}")
            for c in curves
        ],
        CurveAxes(
            x_title=false_alarms,
            y_title=recall,
            x_axis=percent_axis(false_alarms),
            is_percent=True,
            y_range=(0.0, 1.0),
        ),
    )
    precision = f"fraction of {noun} among those above"
    pr = curve_chart(
        f"{what}-pr",
        f"Precision and recall: detecting {noun}",
        [
            Line(c.recall, c.precision, f"{_TITLES[c.score]}: AUC-PR {percent(c.aupr)}")
            for c in curves
        ],
        CurveAxes(
            x_title=recall,
            y_title=precision,
            x_axis=percent_axis(recall),
            is_percent=True,
            y_range=(0.0, 1.0),
        ),
    )
    return (
        Figure(roc, "The closer to the upper left corner, the better; chance is the diagonal."),
        Figure(pr, f"Chance is a flat line at the fraction of {noun}."),
    )
