"""Histograms of groups of values, as outlines that differ in colour and dashes."""

import math
from typing import Literal

import numpy as np

from gpn_scale.page.chart import HEIGHT, WIDTH, Chart, Specification, ordered_scale, percent_axis
from gpn_scale.page.histograms import FloatArray, Histogram
from gpn_scale.page.palette import LIGHT
from gpn_scale.page.texts import power_of_ten

AxisKind = Literal["plain", "percent", "log"]
"""Formats of labels: plain values, fractions in percent, or powers of ten."""

_COLOURS = (LIGHT["hue-0"], LIGHT["hue-3"], LIGHT["hue-2"])
_DASHES = ([1, 0], [7, 3], [2, 3])
_MOST_TICKS = 7


def histogram_chart(
    name: str, title: str, values: Histogram, x_title: str, *, kind: AxisKind = "plain"
) -> Chart:
    """Draw the densities of groups, each with its name and number of nodes in the legend."""
    labels = {group: f"{group} ({values.counts[group]:,})" for group in values.densities}
    rows = [
        {"x": float(x), "density": float(y), "group": labels[group]}
        for group, density in values.densities.items()
        for x, y in zip(*_outline(values.edges, density), strict=True)
    ]
    domain = list(labels.values())
    x = {
        "field": "x",
        "type": "quantitative",
        "scale": {"zero": False, "nice": False},
        "axis": value_axis(x_title, kind, values.edges),
    }
    colour = {
        "field": "group",
        "type": "nominal",
        "sort": None,
        "scale": ordered_scale(domain, _COLOURS),
        **({} if domain else {"legend": None}),
    }
    dash = colour | {"scale": ordered_scale(domain, _DASHES)}
    y = {"field": "density", "type": "quantitative", "stack": None, "axis": {"tickCount": 4}}
    area = {"type": "area", "interpolate": "step-after", "opacity": 0.18}
    line = {"type": "line", "interpolate": "step-after", "strokeWidth": 2, "aria": False}
    return Chart(
        name=name,
        title=title,
        description=f"Histogram of {x_title}: "
        + ", ".join(f"{group}, {count:,} nodes" for group, count in values.counts.items()),
        specification={
            "width": WIDTH,
            "height": HEIGHT,
            "data": {"values": rows},
            "encoding": {"x": x, "y": y, "color": colour},
            "layer": [
                {"mark": area | {"aria": False}},
                {"mark": line, "encoding": {"strokeDash": dash}},
            ],
        },
    )


def value_axis(title: str, kind: AxisKind, edges: FloatArray) -> Specification:
    """Return the axis of values between the first and the last edge.

    Values of kind `log` are logarithms to the base 10, labelled by what they are logarithms of.
    """
    if kind == "percent":
        return percent_axis(title)
    if kind == "plain":
        return {"title": title, "tickCount": 5}
    low, high = math.ceil(edges[0]), math.floor(edges[-1])
    step = max(1, math.ceil((high - low + 1) / _MOST_TICKS))
    ticks = range(low, high + 1, step)
    labels = ", ".join(f"'{tick}': '{power_of_ten(tick)}'" for tick in ticks)
    return {"title": title, "values": list(ticks), "labelExpr": f"{{{labels}}}[datum.value]"}


def _outline(edges: FloatArray, density: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the corners of the steps, which begin and end at 0."""
    x = np.concatenate([edges[:1], edges, edges[-1:]])
    y = np.concatenate([[0.0], density, density[-1:], [0.0]])
    return x, y
