"""Dot charts: one number with its error per row, to compare many models."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpn_scale.page.chart import WIDTH, Chart, Specification
from gpn_scale.page.palette import LIGHT

_ROW = 18


@dataclass(frozen=True, slots=True)
class Dot:
    """A row of a dot chart."""

    label: str
    value: float
    """The number; a row with NaN stays empty."""
    error: float = math.nan
    """Half the length of the line through the dot; NaN for none."""
    is_best: bool = False
    """Whether the row has the best number; its dot is a diamond."""


def dot_chart(name: str, title: str, dots: Sequence[Dot], x_title: str) -> Chart:
    """Draw a dot per row, the first row on top; the best ones are diamonds."""
    known = [f"{dot.label} {dot.value:.4g}" for dot in dots if math.isfinite(dot.value)]
    x: Specification = {
        "type": "quantitative",
        "scale": {"zero": False},
        "axis": {"title": x_title, "grid": True, "tickCount": 5},
    }
    labels = [dot.label for dot in dots]
    y = {
        "field": "label",
        "type": "nominal",
        "sort": None,
        "scale": {"domain": labels},
        "axis": {"title": None, "ticks": False, "labelColor": LIGHT["ink"]},
    }
    is_best = {"test": "datum.best", "value": "diamond"}
    colour = {"condition": {"test": "datum.best", "value": LIGHT["hue-3"]}, "value": LIGHT["hue-0"]}
    rule = {"type": "rule", "color": LIGHT["hue-0"], "strokeWidth": 2, "aria": False}
    point = {"type": "point", "filled": True, "opacity": 1}
    return Chart(
        name=name,
        title=title,
        description=f"{x_title}: {'; '.join(known) or 'no numbers'}.",
        specification={
            "width": WIDTH - 40,
            "height": {"step": _ROW},
            "data": {"values": [_row(dot) for dot in dots if math.isfinite(dot.value)]},
            "encoding": {"y": y},
            "layer": [
                {"mark": rule, "encoding": {"x": x | {"field": "low"}, "x2": {"field": "high"}}},
                {
                    "mark": point,
                    "encoding": {
                        "x": x | {"field": "value"},
                        "shape": {"condition": is_best, "value": "circle"},
                        "size": {"condition": {"test": "datum.best", "value": 90}, "value": 50},
                        "color": colour,
                        "description": {"field": "text"},
                    },
                },
            ],
        },
    )


def _row(dot: Dot) -> dict[str, Any]:
    half, text = 0.0, f"{dot.label}: {dot.value:.4g}"
    if math.isfinite(dot.error):
        half, text = dot.error, f"{text} ± {dot.error:.2g}"
    return {
        "label": dot.label,
        "value": dot.value,
        "low": dot.value - half,
        "high": dot.value + half,
        "best": dot.is_best,
        "text": text,
    }
