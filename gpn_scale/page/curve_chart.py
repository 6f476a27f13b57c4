"""Charts of curves, which differ in colour and dashes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.page.chart import HEIGHT, WIDTH, Chart, Specification, ordered_scale, percent_axis
from gpn_scale.page.palette import LIGHT

_COLOURS = (LIGHT["hue-0"], LIGHT["hue-3"], LIGHT["hue-2"], LIGHT["hue-4"], LIGHT["ink"])
_DASHES = ([1, 0], [7, 3], [2, 3], [9, 3, 2, 3], [14, 3])
MOST_LINES = len(_DASHES)
"""Number of curves that can be distinguished in one chart."""


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A curve, its name in the legend, and half the height of the band around it."""

    x: NDArray[np.floating]
    y: NDArray[np.floating]
    label: str = ""
    error: NDArray[np.floating] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveAxes:
    """Axes of a chart of curves."""

    x_title: str
    y_title: str
    x_axis: Specification | None = None
    """The horizontal axis, if it is not a plain one."""
    is_percent: bool = False
    """Whether the vertical axis is labelled in percent."""
    y_range: tuple[float, float] | None = None
    """Ends of the vertical axis at least; None to fit the curves."""


def curve_chart(
    name: str,
    title: str,
    lines: Sequence[Line],
    axes: CurveAxes,
    *,
    marked: tuple[float, str] | None = None,
) -> Chart:
    """Draw at most `MOST_LINES` lines, named in a legend below the axes.

    Args:
        name: Name of the chart.
        title: Title of the chart.
        lines: The lines, of which points that are not finite are left out.
        axes: What the axes show.
        marked: A value on the horizontal axis to mark, and its name.
    """
    named = [line.label for line in lines if line.label]
    return Chart(
        name=name,
        title=title,
        description=f"{axes.y_title} over {axes.x_title}. {'; '.join(named)}".rstrip(),
        specification=curve_specification(lines, axes, marked=marked),
    )


def curve_specification(
    lines: Sequence[Line],
    axes: CurveAxes,
    *,
    marked: tuple[float, str] | None = None,
) -> Specification:
    """Return the specification of a chart of curves; arguments as in `curve_chart`."""
    domain = [line.label for line in lines]
    legend = {} if any(domain) else {"legend": None}
    colour = {
        "field": "line",
        "type": "nominal",
        "sort": None,
        "scale": ordered_scale(domain, _COLOURS),
        **legend,
    }
    dash = colour | {"scale": ordered_scale(domain, _DASHES)}
    x = {
        "field": "x",
        "type": "quantitative",
        "scale": {"zero": False, "nice": False},
        "axis": axes.x_axis or {"title": axes.x_title, "tickCount": 5},
    }
    upright = percent_axis(axes.y_title) if axes.is_percent else {"title": axes.y_title}
    y = {
        "field": "y",
        "type": "quantitative",
        "scale": _covering(axes.y_range, lines) or {"zero": False},
        "axis": upright | {"tickCount": 5},
    }
    own = {"x": x, "y": y, "color": colour}
    line_mark = {"type": "line", "strokeWidth": 2, "clip": True, "aria": False}
    layers: list[Specification] = [{"mark": line_mark, "encoding": own | {"strokeDash": dash}}]
    if any(line.error is not None for line in lines):
        band = own | {"y": y | {"field": "low"}, "y2": {"field": "high"}}
        area = {"type": "area", "opacity": 0.18, "clip": True, "aria": False}
        layers.insert(0, {"mark": area, "encoding": band})
    if marked is not None:
        layers += _mark(*marked, x)
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "data": {"values": _rows(lines)},
        "layer": layers,
    }


def _rows(lines: Sequence[Line]) -> list[dict[str, Any]]:
    rows = []
    for line in lines:
        half = np.zeros(len(line.y)) if line.error is None else np.nan_to_num(line.error)
        finite = np.isfinite(line.x) & np.isfinite(line.y)
        rows += [
            {
                "x": float(x),
                "y": float(y),
                "low": float(y - e),
                "high": float(y + e),
                "line": line.label,
            }
            for x, y, e in zip(line.x[finite], line.y[finite], half[finite], strict=True)
        ]
    return rows


def _covering(least: tuple[float, float] | None, lines: Sequence[Line]) -> Specification | None:
    """Return a scale that covers all lines, and at least the given range; None to leave it open."""
    if least is None:
        return None
    values = [value for row in _rows(lines) for value in (row["low"], row["high"])]
    return {"domain": [min([least[0], *values]), max([least[1], *values])], "nice": True}


def _mark(at: float, label: str, x: Specification) -> list[Specification]:
    """Return a dashed line across the chart, and its name beside it."""
    data = {"values": [{"x": at, "label": label}]}
    rule = {"type": "rule", "color": LIGHT["muted"], "strokeDash": [7, 3], "aria": False}
    text = {
        "type": "text",
        "align": {"expr": f"scale('x', {at!r}) > width / 2 ? 'right' : 'left'"},
        "dx": {"expr": f"scale('x', {at!r}) > width / 2 ? -5 : 5"},
        "y": -6,
    }
    return [
        {"data": data, "mark": rule, "encoding": {"x": x}},
        {"data": data, "mark": text, "encoding": {"x": x, "text": {"field": "label"}}},
    ]
