"""Charts of what shifts do to models: one per quantity, and all quantities side by side."""

from collections.abc import Sequence

import numpy as np

from gpn_scale.experiments.curves import QUANTITIES, ShiftCurve
from gpn_scale.page.chart import Chart, percent_axis
from gpn_scale.page.curve_chart import (
    MOST_LINES,
    CurveAxes,
    Line,
    curve_chart,
    curve_specification,
)
from gpn_scale.page.texts import anchor

_COLUMNS = 2
_FRACTION = "fraction changed"
_NEAR_ZERO = ("ece",)
"""Quantities whose axis may end below 100 %."""


def shift_charts(all_curves: Sequence[ShiftCurve]) -> list[Chart]:
    """Draw a chart per experiment, graph, kind of shift and quantity; models are its lines."""
    charts = []
    places = dict.fromkeys((c.experiment, c.dataset, c.kind, c.quantity) for c in all_curves)
    for experiment, dataset, kind, quantity in places:
        own = [
            curve
            for curve in all_curves
            if (curve.experiment, curve.dataset, curve.kind, curve.quantity)
            == (experiment, dataset, kind, quantity)
        ]
        title = f"{dataset}, {kind}: {QUANTITIES[quantity]}"
        for part, some in enumerate(_few(own)):
            name = f"{experiment}-{dataset}-{kind}-{quantity}{f'-{part + 1}' if part else ''}"
            lines = [_line(curve, curve.model) for curve in some]
            axes = _axes(f"{_FRACTION} ({kind})", quantity)
            charts.append(curve_chart(anchor(name), title, lines, axes))
    return charts


def _few(own: Sequence[ShiftCurve]) -> list[list[ShiftCurve]]:
    """Return groups of as many curves as a chart can hold, each with the first curve to compare."""
    step = MOST_LINES - 1
    return [[own[0], *own[at : at + step]] for at in range(1, max(len(own), 2), step)]


def shift_picture(name: str, title: str, all_curves: Sequence[ShiftCurve]) -> Chart:
    """Draw all four quantities of a graph and an experiment in one picture.

    Models and kinds of shifts are lines.
    """
    panels = []
    for quantity, quantity_title in QUANTITIES.items():
        own = [curve for curve in all_curves if curve.quantity == quantity][:MOST_LINES]
        lines = [_line(curve, f"{curve.model}, {curve.kind}") for curve in own]
        panel = curve_specification(lines, _axes(_FRACTION, quantity))
        panels.append(panel | {"title": quantity_title})
    return Chart(
        name=name,
        title=title,
        description=f"{', '.join(QUANTITIES.values())} over the {_FRACTION}",
        specification={"columns": _COLUMNS, "concat": panels},
    )


def _line(curve: ShiftCurve, label: str) -> Line:
    return Line(np.array(curve.fractions), np.array(curve.means), label, np.array(curve.errors))


def _axes(x_title: str, quantity: str) -> CurveAxes:
    return CurveAxes(
        x_title=x_title,
        y_title=QUANTITIES[quantity],
        x_axis=percent_axis(x_title),
        is_percent=True,
        y_range=(0.0, 0.2 if quantity in _NEAR_ZERO else 1.0),
    )
