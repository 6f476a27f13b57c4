"""The listed nodes and their charts as JSON, for the scripts of a page.

Shapes: R listed nodes.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.evaluation.reasons import reason_kind
from gpn_scale.page.chart import Specification, cleaned, for_browser
from gpn_scale.page.histogram_chart import AxisKind, value_axis
from gpn_scale.page.histograms import FloatArray, data_range
from gpn_scale.page.map_chart import map_specification
from gpn_scale.page.node_rows import SPLITS, IndexLists, NodeRows
from gpn_scale.page.palette import DARK, LIGHT
from gpn_scale.page.texts import class_letter

SHARE_UNITS = 10_000
"""Shares are whole numbers of this part of all evidence, since they are many."""
_DIGITS = 4
_BINS = 40
_ESCAPES = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}
_NUMERIC: Mapping[str, tuple[str, AxisKind]] = {
    "p_known": ("P-value that a node is known", "percent"),
    "evidence": ("Pseudo-counts, with network, log scale", "log"),
    "probability": ("Probability of the predicted class", "percent"),
}
"""Titles and axes of the numbers that have a histogram."""


def json_text(value: Any) -> str:
    """Return JSON that can stand in a script element: no text in it can end the element."""
    text = json.dumps(cleaned(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return text


def node_data(rows: NodeRows, class_names: Sequence[str]) -> dict[str, Any]:
    """Return all columns of the listed nodes, with numbers rounded as they are shown."""
    contributors, neighbours = rows.contributors, rows.neighbours
    return {
        "classes": list(class_names),
        "letters": [class_letter(label) for label in range(len(class_names))],
        "names": list(rows.names),
        "splits": list(SPLITS),
        "marks": list(rows.marks),
        "reasons": list(rows.reasons),
        "kinds": [reason_kind(reason) for reason in rows.reasons],
        "parts": list(rows.p_parts),
        "median": _rounded(np.array([rows.median_evidence]))[0],
        "leading": rows.leading_class.tolist(),
        "predicted": rows.predicted.tolist(),
        "probability": _rounded(rows.probability),
        "label": rows.label.tolist(),
        "split": rows.split.tolist(),
        "mark": rows.mark.tolist(),
        "evidence": _rounded(rows.evidence),
        "own": _rounded(rows.own_evidence),
        "p_known": None if rows.p_known is None else _rounded(rows.p_known),
        "p_parts": {part: _rounded(values) for part, values in rows.p_parts.items()},
        "reason": rows.reason.tolist(),
        "degree": rows.degree.tolist(),
        "neighbours": _lists(neighbours),
        "contributors": {
            **_lists(contributors.lists),
            "units": SHARE_UNITS,
            "share": np.rint(SHARE_UNITS * contributors.share).astype(int).tolist(),
            "weight": _rounded(contributors.weight, 2),
            "adjacent": _bits(contributors.adjacent),
            "bound": _bits(contributors.is_bound),
        },
        "maps": {
            name: {"x": _rounded(placed.position[:, 0]), "y": _rounded(placed.position[:, 1])}
            for name, placed in (("components", rows.components), ("near", rows.near))
            if placed is not None
        },
    }


def view_data(rows: NodeRows, num_classes: int) -> dict[str, Any]:
    """Return the linked views as specifications of Vega, and what scripts need to feed them."""
    maps = {
        f"{name}-{kind}": for_browser(map_specification(rows, placed, num_classes, kind))
        for name, placed in (("components", rows.components), ("near", rows.near))
        if placed is not None
        for kind in ("class", "evidence")
    }
    histograms = {}
    for column, (title, kind) in _NUMERIC.items():
        values = getattr(rows, column)
        if values is not None:
            edges = _edges(values, kind)
            axis = value_axis(title, kind, edges)
            histograms[column] = {
                "edges": _rounded(edges, 6),
                "specification": for_browser(_histogram(axis, edges)),
            }
    return {"maps": maps, "histograms": histograms, "dark": {LIGHT[c]: DARK[c] for c in LIGHT}}


def _histogram(axis: Specification, edges: FloatArray) -> Specification:
    """Return a histogram for the browser, with data sets `all` and `shown` and signal `range`."""
    x = {
        "field": "left",
        "type": "quantitative",
        "axis": axis,
        "scale": {"domain": [float(edges[0]), float(edges[-1])], "nice": False},
    }
    # Labels get wider once there are data, so their room is kept free.
    upright = {"title": "nodes", "tickCount": 3, "minExtent": 36}
    y = {"field": "count", "type": "quantitative", "axis": upright}
    outline = {"filled": False, "stroke": LIGHT["muted"], "strokeWidth": 1}
    select = {"type": "interval", "encodings": ["x"], "clear": "dblclick"}
    return {
        "width": "container",
        "height": 80,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "encoding": {"x": x, "x2": {"field": "right"}, "y": y, "y2": {"datum": 0}},
        "layer": [
            {
                "data": {"name": "all"},
                "mark": {"type": "bar", **outline},
                "params": [{"name": "range", "select": select}],
            },
            {
                "data": {"name": "shown"},
                "mark": {"type": "bar", "color": LIGHT["hue-0"], "opacity": 0.7},
                "encoding": {"tooltip": {"field": "text"}},
            },
        ],
    }


def _edges(values: FloatArray, kind: AxisKind) -> FloatArray:
    low, high = (0.0, 1.0) if kind == "percent" else data_range(values)
    return np.linspace(low, high, _BINS + 1)


def _lists(lists: IndexLists) -> dict[str, Any]:
    """Return the length of every list, and the entries of all."""
    return {"count": np.diff(lists.start).tolist(), "index": lists.index.tolist()}


def _bits(values: NDArray[np.bool_]) -> str:
    """Return a digit per value, 1 for true."""
    return "".join(np.where(values, "1", "0").tolist())


def _rounded(values: NDArray[np.floating], digits: int = _DIGITS) -> list[float | None]:
    """Return numbers with some significant digits; None for those that are not finite."""
    return [float(f"{v:.{digits}g}") if np.isfinite(v) else None for v in values.tolist()]
