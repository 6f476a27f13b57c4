"""Which nodes of the demo look unknown? Draws the picture of the README from a finished run.

    make demo
    python benchmarks/readme_picture.py --run runs/demo/run --write docs/pictures/readme.svg

Reads predictions.parquet of a run on the synthetic graph, whose unknown nodes are marked. Trains
nothing.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyarrow import parquet

from gpn_scale.files import write_text
from gpn_scale.page.chart import Chart, percent_axis
from gpn_scale.page.palette import LIGHT

LEVEL = 0.05
"""A node with a p-value of at most this looks unknown."""
BINS = 20
MARKS = {
    "mark_unseen_class": "unseen class",
    "mark_isolated": "isolated nodes",
    "mark_foreign_features": "foreign features",
}
"""Columns of unknown nodes, and what the picture calls them."""
KNOWN = "known nodes"
_WIDTH, _HEIGHT, _TEXT_X = 360, 42, 376


def p_values_of_groups(run: Path) -> dict[str, NDArray[np.float64]]:
    """Return `p_known` of the known test nodes and of each kind of unknown nodes."""
    table = parquet.read_table(run / "predictions.parquet")
    p_known = table["p_known"].to_numpy().astype(np.float64)
    marked = {name: table[name].to_numpy() for name in MARKS}
    is_test = np.array(table["split"].to_pylist()) == "test"
    known = is_test & ~np.logical_or.reduce(list(marked.values()))
    return {KNOWN: p_known[known]} | {MARKS[name]: p_known[marked[name]] for name in MARKS}


def picture(groups: dict[str, NDArray[np.float64]]) -> Chart:
    """Return a histogram per group, with the fraction of nodes that look unknown."""
    shares = {name: float((values <= LEVEL).mean()) for name, values in groups.items()}
    facts = ", ".join(f"{100 * share:.0f} % of the {name}" for name, share in shares.items())
    return Chart(
        name="readme",
        title="Which nodes does the model not know?",
        description=f"P-values of four groups of nodes. Look unknown (p_known at most 5 %): {facts}"
        ". Made by make demo and benchmarks/readme_picture.py.",
        specification={
            "background": LIGHT["paper"],
            "padding": 14,
            "title": {
                "text": "Which nodes does the model not know?",
                "subtitle": "Histograms of p_known on the demo's graph. "
                "At most 5 %: the node looks unknown.",
                "subtitleColor": LIGHT["muted"],
                "fontSize": 15,
                "offset": 12,
            },
            "data": {"values": _bars(groups, shares)},
            "facet": {"row": _row(list(groups))},
            "spacing": 8,
            "resolve": {"scale": {"y": "independent"}},
            "spec": {"width": _WIDTH, "height": _HEIGHT, "layer": [_BAR, _TEXT]},
        },
    )


_BAR: dict[str, Any] = {
    "mark": {"type": "rect", "stroke": LIGHT["paper"], "strokeWidth": 1},
    "encoding": {
        "x": {
            "field": "low",
            "type": "quantitative",
            "scale": {"domain": [0, 1], "nice": False},
            "axis": percent_axis("p_known: fraction of known nodes that look at least as strange"),
        },
        "x2": {"field": "high"},
        "y": {"field": "fraction", "type": "quantitative", "axis": None, "scale": {"zero": True}},
        "y2": {"datum": 0},
        "color": {
            "field": "looks",
            "type": "nominal",
            "legend": None,
            "scale": {
                "domain": ["unknown", "known"],
                "range": [LIGHT["hue-3"], LIGHT["hue-0"]],
            },
        },
    },
}
_TEXT: dict[str, Any] = {
    "transform": [{"filter": "datum.text != null"}],
    "mark": {"type": "text", "align": "left", "fontSize": 12, "baseline": "middle"},
    "encoding": {
        "x": {"value": _TEXT_X},
        "y": {"value": _HEIGHT / 2},
        "text": {"field": "text", "type": "nominal"},
    },
}


def _bars(groups: dict[str, NDArray[np.float64]], shares: dict[str, float]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    edges = np.linspace(0.0, 1.0, BINS + 1)
    for name, values in groups.items():
        # A p-value of exactly 5 % looks unknown, so bins include their upper edge.
        counts = np.bincount(np.ceil(values * BINS).astype(int) - 1, minlength=BINS)
        text = f"{100 * shares[name]:.0f} % of {len(values):,} look unknown"
        rows += [
            {
                "group": name,
                "low": float(low),
                "high": float(high),
                "fraction": int(count) / len(values),
                "looks": "unknown" if place == 0 else "known",
                "text": text if place == 0 else None,
            }
            for place, (low, high, count) in enumerate(
                zip(edges[:-1], edges[1:], counts, strict=True)
            )
        ]
    return rows


def _row(names: list[str]) -> dict[str, Any]:
    header = {
        "title": None,
        "labelAngle": 0,
        "labelAlign": "left",
        "labelAnchor": "middle",
        "labelColor": LIGHT["ink"],
        "labelFontSize": 12,
        "labelPadding": 6,
    }
    return {"field": "group", "type": "nominal", "sort": names, "header": header}


def main() -> None:
    """Draw the picture of a run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    add("--run", type=Path, default=Path("runs/demo/run"), help="finished run of make demo")
    add("--write", type=Path, default=Path("docs/pictures/readme.svg"), help="the SVG file")
    options = parser.parse_args()
    write_text(options.write, picture(p_values_of_groups(options.run)).svg_file())
    print(f"written: {options.write}")


if __name__ == "__main__":
    main()
