"""Maps of latent positions, by predicted class and by evidence, for files and for the browser.

Classes have colours, shapes, and letters at their centres.

Shapes: R listed nodes.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gpn_scale.page.chart import WIDTH, Chart, Specification, ordered_scale
from gpn_scale.page.histograms import FloatArray, data_range
from gpn_scale.page.node_rows import LatentMap, NodeRows
from gpn_scale.page.palette import HUES, LIGHT, STEPS
from gpn_scale.page.texts import class_letter

MapKind = Literal["class", "evidence"]

MOST_DRAWN = 1000
"""Number of nodes that a file shows at most."""
_HEIGHT = 340
_RARE_POSITION, _RARE_EVIDENCE = 0.02, 0.06
"""Fraction of nodes that may lie outside the frame and the colour scale."""
_SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "stroke")
_UNKNOWN = "cross"
_RNG_SEED = 0


def map_charts(rows: NodeRows, num_classes: int) -> tuple[Chart, ...]:
    """Draw every map by class and by evidence, with a sample of the nodes if there are many."""
    maps = {"latent": rows.components} | ({} if rows.near is None else {"neighbours": rows.near})
    charts = []
    for name, placed in maps.items():
        drawn = _sample(np.flatnonzero(np.isfinite(placed.position).all(1)))
        for kind, plural in (("class", "classes"), ("evidence", "evidence")):
            charts.append(
                Chart(
                    name=f"{name}-{plural}",
                    title=f"By {kind}, {placed.method}",
                    description=f"{len(drawn):,} nodes, placed by {placed.method}; crosses are "
                    "unknown nodes",
                    specification=map_specification(
                        rows, placed, num_classes, "class" if kind == "class" else "evidence", drawn
                    ),
                )
            )
    return tuple(charts)


def map_specification(
    rows: NodeRows,
    placed: LatentMap,
    num_classes: int,
    kind: MapKind,
    drawn: NDArray[np.int64] | None = None,
) -> Specification:
    """Return a map of the given rows.

    Without rows the map is for the browser, which provides the data sets `all`, `shown`, `picked`
    and `letters`, and reads the selected area from the signal `area`.
    """
    axes = {
        name: {
            "field": name,
            "type": "quantitative",
            "axis": None,
            "scale": {"domain": list(_usual_range(placed.position[:, column])), "clamp": True},
        }
        for column, name in enumerate(("x", "y"))
    }
    point = {"type": "point", "filled": True, "size": 26, "opacity": 0.75, "strokeWidth": 1.2}
    shown: Specification = {
        "mark": point | {"aria": False},
        "encoding": _colour(rows, num_classes, kind),
    }
    letters: Specification = {
        "mark": {
            "type": "text",
            "fontSize": 17,
            "fontWeight": "bold",
            "stroke": LIGHT["paper"],
            "strokeWidth": 3,
            "strokeJoin": "round",
        },
        "encoding": {"text": {"field": "letter"}},
    }
    # The outline of a letter would cover it, so that it is drawn below.
    plain = {"mark": letters["mark"] | {"strokeWidth": 0}, "encoding": letters["encoding"]}
    layers = [shown] if kind == "evidence" else [shown, letters, plain]
    size: Specification = {"width": WIDTH + 20}
    if drawn is None:
        layers = _for_browser(layers)
        size = {"width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}
    else:
        values = _values(rows, placed, drawn)
        shown["data"] = {"values": values}
        for layer in layers[1:]:
            layer["data"] = {"values": _letters(values)}
    return {
        **size,
        "height": _HEIGHT,
        "view": {"stroke": LIGHT["grid"]},
        "encoding": axes,
        "layer": layers,
    }


def _for_browser(layers: list[Specification]) -> list[Specification]:
    shown, *letters = layers
    background = {"type": "circle", "size": 10, "color": LIGHT["muted"], "opacity": 0.25}
    ring = {"type": "point", "size": 220, "strokeWidth": 2.5, "color": LIGHT["ink"], "opacity": 1}
    shown["params"] = [{"name": "area", "select": {"type": "interval", "clear": "dblclick"}}]
    shown["encoding"] |= {"tooltip": {"field": "name"}}
    shown["data"] = {"name": "shown"}
    return [
        {"data": {"name": "all"}, "mark": background | {"tooltip": None}},
        shown,
        *({"data": {"name": "letters"}, **layer} for layer in letters),
        {"data": {"name": "picked"}, "mark": ring},
    ]


def _colour(rows: NodeRows, num_classes: int, kind: MapKind) -> Specification:
    if kind == "class":
        domain = [class_letter(label) for label in range(num_classes)]
        colour = {"field": "letter", "type": "nominal", "scale": ordered_scale(domain, HUES)}
        is_unknown = {"test": "datum.unknown", "value": _UNKNOWN}
        shape = colour | {"scale": ordered_scale(domain, _SHAPES), "legend": None}
        return {
            "color": colour | {"legend": None},
            "shape": {"condition": is_unknown, **shape},
        }
    low, high = _usual_range(rows.own_evidence, _RARE_EVIDENCE)
    scale = {"type": "quantize", "domain": [low, high], "range": list(STEPS)}
    legend = {
        "title": "log10 of pseudo-counts from own features",
        "titleColor": LIGHT["muted"],
        "titleFontSize": 11,
        "titleLimit": 320,
        "direction": "horizontal",
        "gradientLength": 220,
        "format": ".1f",
    }
    return {
        "color": {"field": "own", "type": "quantitative", "scale": scale, "legend": legend},
        "shape": {"condition": {"test": "datum.unknown", "value": _UNKNOWN}, "value": "circle"},
    }


def _values(rows: NodeRows, placed: LatentMap, drawn: NDArray[np.int64]) -> list[dict[str, Any]]:
    return [
        {
            "x": float(placed.position[row, 0]),
            "y": float(placed.position[row, 1]),
            "letter": class_letter(int(rows.predicted[row])),
            "own": float(rows.own_evidence[row]),
            "unknown": bool(rows.mark[row]),
        }
        for row in drawn.tolist()
    ]


def _letters(values: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each class's letter at the medians of its nodes."""
    letters = []
    for letter in dict.fromkeys(value["letter"] for value in values):
        own = [value for value in values if value["letter"] == letter]
        middle = {axis: float(np.median([value[axis] for value in own])) for axis in ("x", "y")}
        letters.append({"letter": letter, **middle})
    return letters


def _sample(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    rng = np.random.default_rng(_RNG_SEED)
    return np.sort(rng.choice(rows, min(len(rows), MOST_DRAWN), replace=False))


def _usual_range(values: FloatArray, rare: float = _RARE_POSITION) -> tuple[float, float]:
    """Return the range that covers all values but the fraction `rare`, with a margin."""
    finite = values[np.isfinite(values)]
    if len(finite) == 0:
        return data_range(finite)
    low, high = data_range(np.quantile(finite, [rare / 2, 1 - rare / 2]))
    margin = 0.04 * (high - low)
    return low - margin, high + margin
