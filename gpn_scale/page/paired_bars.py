"""Bars in pairs: fractions of two groups side by side, which differ in colour and dashes."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from gpn_scale.page.chart import Chart, percent_axis
from gpn_scale.page.palette import LIGHT
from gpn_scale.page.texts import percent

_ROW = 24


def paired_bars(
    name: str,
    title: str,
    labels: Sequence[str],
    fractions: Mapping[str, NDArray[np.floating] | Sequence[float]],
    *,
    description: str,
) -> Chart:
    """Draw two bars per label.

    Args:
        name: Name of the chart.
        title: Title of the chart.
        labels: What each pair is about, the first one on top.
        fractions: One fraction per label, for each of two groups.
        description: What is drawn; the numbers follow.
    """
    values = [
        {
            "class": label,
            "kind": kind,
            "fraction": float(fraction),
            "text": f"{label}: {percent(fraction)} of {kind}",
        }
        for kind, each in fractions.items()
        for label, fraction in zip(labels, each, strict=True)
    ]
    scale = {"domain": list(fractions), "range": [LIGHT["hue-0"], LIGHT["hue-3"]]}
    dash = {"domain": list(fractions), "range": [[1, 0], [4, 2]]}
    kind = {"field": "kind", "type": "nominal", "sort": None}
    return Chart(
        name=name,
        title=title,
        description=f"{description}: " + "; ".join(str(each["text"]) for each in values),
        specification={
            "width": 300,
            "height": {"step": _ROW / 2},
            "data": {"values": values},
            "mark": {"type": "bar", "fillOpacity": 0.3, "strokeWidth": 1.5},
            "encoding": {
                "y": {
                    "field": "class",
                    "type": "nominal",
                    "sort": None,
                    "axis": {"title": None, "labelLimit": 120},
                },
                "yOffset": kind,
                "x": {
                    "field": "fraction",
                    "type": "quantitative",
                    "axis": percent_axis("fraction of nodes") | {"grid": True},
                },
                "color": kind | {"scale": scale},
                "stroke": kind | {"scale": scale},
                "strokeDash": kind | {"scale": dash},
                "description": {"field": "text"},
            },
        },
    )
