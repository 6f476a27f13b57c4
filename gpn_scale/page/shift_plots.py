"""Plots of what shifts do to models: one per quantity, and all quantities side by side."""

from collections.abc import Sequence

import numpy as np

from gpn_scale.experiments.curves import QUANTITIES, ShiftCurve
from gpn_scale.page.charts import MOST_LINES, Line, curves
from gpn_scale.page.markup import coordinate, tag
from gpn_scale.page.svg import Plot, percent_label

_GAP = 24.0
_COLUMNS = 2
_FRACTION = "fraction changed"
_NEAR_ZERO = ("ece",)
"""Quantities whose axis may end below 100 %."""


def shift_plots(all_curves: Sequence[ShiftCurve]) -> list[Plot]:
    """Draw a plot per experiment, graph, kind of shift and quantity; models are its lines."""
    plots = []
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
            plots.append(_plot(anchor(name), title, lines, f"{_FRACTION} ({kind})", quantity))
    return plots


def _few(own: Sequence[ShiftCurve]) -> list[list[ShiftCurve]]:
    """Return groups of as many curves as a plot can hold, each with the first curve to compare."""
    step = MOST_LINES - 1
    return [[own[0], *own[at : at + step]] for at in range(1, max(len(own), 2), step)]


def shift_picture(name: str, title: str, all_curves: Sequence[ShiftCurve]) -> Plot:
    """Draw all four quantities of a graph and an experiment in one picture.

    Models and kinds of shifts are lines.
    """
    panels = []
    for place, quantity in enumerate(QUANTITIES):
        own = [curve for curve in all_curves if curve.quantity == quantity][:MOST_LINES]
        named = place >= len(QUANTITIES) - _COLUMNS  # a legend once per column, below the last plot
        lines = [_line(c, f"{c.model}, {c.kind}" if named else "") for c in own]
        panels.append(_plot(f"{name}-{quantity}", QUANTITIES[quantity], lines, _FRACTION, quantity))
    return side_by_side(name, title, panels)


def side_by_side(name: str, title: str, plots: Sequence[Plot]) -> Plot:
    """Return several plots as one drawing, row by row."""
    width = max((plot.width for plot in plots), default=0.0) + _GAP
    parts, top = [], 0.0
    for at in range(0, len(plots), _COLUMNS):
        row = plots[at : at + _COLUMNS]
        for place, plot in enumerate(row):
            corner = f"translate({coordinate(place * width)} {coordinate(top)})"
            parts.append(tag("g", plot.body, transform=corner))
        top += max(plot.height for plot in row) + _GAP
    return Plot(
        name=name,
        title=title,
        description=" ".join(plot.description for plot in plots),
        width=width * min(_COLUMNS, len(plots)) - _GAP,
        height=top - _GAP,
        body="".join(parts),
    )


def _line(curve: ShiftCurve, label: str) -> Line:
    return Line(np.array(curve.fractions), np.array(curve.means), label, np.array(curve.errors))


def _plot(name: str, title: str, lines: Sequence[Line], x_title: str, quantity: str) -> Plot:
    return curves(
        name,
        title,
        lines,
        x_title,
        QUANTITIES[quantity],
        x_label=percent_label,
        y_label=percent_label,
        include=(0.0, 0.2 if quantity in _NEAR_ZERO else 1.0),
    )


def anchor(name: str) -> str:
    """Return `name` with hyphens for all characters but letters and digits, for ids and files."""
    return "".join(letter if letter.isalnum() else "-" for letter in name)
