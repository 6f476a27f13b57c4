"""Dot plots: one number with its error per row, to compare many models."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpn_scale.page.charts import WIDTH
from gpn_scale.page.markup import escaped, tag
from gpn_scale.page.svg import Axis, Label, Panel, Plot, axis, line_path, plain_label

_ROW = 18
_AROUND = 64
_RADIUS = 4.0
_CAPITAL = 7.6
"""Mean width of a character in names of models, many of which are capitals."""


@dataclass(frozen=True, slots=True)
class Dot:
    """A row of a dot plot."""

    label: str
    value: float
    """The number; a row with NaN stays empty."""
    error: float = math.nan
    """Half the length of the line through the dot; NaN for none."""
    is_best: bool = False
    """Whether the row has the best number; its dot is a diamond."""


def dot_plot(
    name: str, title: str, dots: Sequence[Dot], x_title: str, *, label: Label = plain_label
) -> Plot:
    """Draw a dot per row, the first row on top; the best ones are diamonds.

    Args:
        name: Name of the plot.
        title: Title of the plot.
        dots: The rows.
        x_title: Title of the horizontal axis.
        label: Formats the ticks of the horizontal axis.
    """
    half = np.array([dot.error if math.isfinite(dot.error) else 0.0 for dot in dots])
    values = np.array([dot.value for dot in dots], np.float64)
    x = axis(np.concatenate([values - half, values + half]), x_title, label=label)
    places = range(len(dots) - 1, -1, -1)  # ticks go up, rows go down
    labels = ("", *(dots[place].label for place in places), "")
    count = max(len(dots), 1)
    rows = Axis((-0.5, *map(float, range(len(dots))), count - 0.5), labels, "")
    height = _AROUND + _ROW * count
    panel = Panel(WIDTH, height, x, rows, above=-8)
    panel.left = max(panel.left, 12 + _CAPITAL * max(map(len, labels)))
    parts = [panel.axes()]
    for place, dot in enumerate(dots):
        if math.isfinite(dot.value):
            parts.append(_drawn(panel, dot, len(dots) - 1 - place))
    known = [f"{dot.label} {dot.value:.4g}" for dot in dots if math.isfinite(dot.value)]
    return Plot(
        name=name,
        title=title,
        description=f"{x_title}: {'; '.join(known) or 'no numbers'}.",
        width=WIDTH,
        height=height,
        body="".join(parts),
    )


def _drawn(panel: Panel, dot: Dot, row: int) -> str:
    y = float(panel.up([row])[0])
    parts = []
    tooltip = f"{dot.label}: {dot.value:.4g}"
    if math.isfinite(dot.error):
        ends = panel.across([dot.value - dot.error, dot.value + dot.error])
        parts.append(tag("path", d=line_path(ends, [y, y]), class_="line k0"))
        tooltip += f" ± {dot.error:.2g}"
    x, r = float(panel.across([dot.value])[0]), _RADIUS
    if dot.is_best:
        r *= 1.6
        corners = line_path([x, x + r, x, x - r], [y - r, y, y + r, y]) + "Z"
        parts.append(tag("path", tag("title", escaped(tooltip)), d=corners, class_="disc k3"))
    else:
        parts.append(
            tag("circle", tag("title", escaped(tooltip)), cx=x, cy=y, r=r, class_="disc k0")
        )
    return "".join(parts)
