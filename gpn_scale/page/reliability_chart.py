"""The reliability diagram: accuracy by confidence."""

from typing import Any

import numpy as np

from gpn_scale.evaluation.metrics import Reliability
from gpn_scale.page.chart import HEIGHT, WIDTH, Chart, percent_axis
from gpn_scale.page.palette import LIGHT
from gpn_scale.page.texts import percent


def reliability_chart(name: str, title: str, bins: Reliability) -> Chart:
    """Draw accuracy by confidence: bars, a disc at each bin's mean confidence, a dashed ideal."""
    whole = {"domain": [0, 1]}
    x = {"type": "quantitative", "scale": whole, "axis": percent_axis("confidence")}
    y = {"type": "quantitative", "scale": whole, "axis": percent_axis("accuracy")}
    bars = {
        "mark": {
            "type": "bar",
            "color": LIGHT["hue-0"],
            "fillOpacity": 0.3,
            "stroke": LIGHT["hue-0"],
        },
        "encoding": {
            "x": x | {"field": "left"},
            "x2": {"field": "right"},
            "y": y | {"field": "accuracy"},
            "y2": {"datum": 0},
            "description": {"field": "text"},
        },
    }
    discs = {
        "mark": {"type": "circle", "color": LIGHT["hue-3"], "opacity": 1, "stroke": LIGHT["paper"]},
        "encoding": {
            "x": x | {"field": "confidence"},
            "y": y | {"field": "accuracy"},
            "size": {
                "field": "fraction",
                "type": "quantitative",
                "scale": {"domain": [0, 1], "range": [20, 200]},
                "legend": None,
            },
            "description": {"field": "text"},
        },
    }
    ideal = {
        "data": {"values": [{"confidence": 0, "accuracy": 0}, {"confidence": 1, "accuracy": 1}]},
        "mark": {"type": "line", "color": LIGHT["muted"], "strokeDash": [7, 3], "aria": False},
        "encoding": {"x": x | {"field": "confidence"}, "y": y | {"field": "accuracy"}},
    }
    return Chart(
        name=name,
        title=title,
        description="Accuracy of nodes by confidence, in bins (bars), with the mean confidence of "
        "each bin (discs), against the ideal diagonal (dashed)",
        specification={
            "width": WIDTH,
            "height": HEIGHT,
            "data": {"values": _rows(bins)},
            "layer": [bars, ideal, discs],
        },
    )


def _rows(bins: Reliability) -> list[dict[str, Any]]:
    edges = np.linspace(0.0, 1.0, len(bins.count_B) + 1)
    total = int(bins.count_B.sum())
    rows = []
    for place in np.flatnonzero(bins.count_B):
        count, accuracy = int(bins.count_B[place]), float(bins.accuracy_B[place])
        confidence = float(bins.confidence_B[place])
        rows.append(
            {
                "left": float(edges[place]),
                "right": float(edges[place + 1]),
                "accuracy": accuracy,
                "confidence": confidence,
                "fraction": count / total,
                "text": f"{count:,} nodes with a mean confidence of {percent(confidence)}: "
                f"{percent(accuracy)} correct",
            }
        )
    return rows
