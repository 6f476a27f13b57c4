"""The sections of a drift page: the verdict, p-values, classes, nodes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from gpn_scale.drift.comparison import DRIFT_CSV, Drift
from gpn_scale.drift.nodes import NOTABLE_FACTOR, NOTABLE_PROBABILITY
from gpn_scale.drift.parts import GRID, LEVELS, PART_NAMES, PartDrift
from gpn_scale.drift.two_samples import CONDITION, Share
from gpn_scale.drift.verdict import THRESHOLDS
from gpn_scale.page.chart import percent_axis
from gpn_scale.page.curve_chart import CurveAxes, Line, curve_chart
from gpn_scale.page.paired_bars import paired_bars
from gpn_scale.page.section import Figure, Section, section
from gpn_scale.page.templates import rendered
from gpn_scale.page.texts import figures, percent

SHOWN_NODES = 100
"""Number of nodes that the page lists."""
_SHOWN_CLASSES = 15


def overview(drift: Drift) -> Section:
    """Return the verdict, the main figures, what to do and what is compared."""
    return section(
        "overview",
        "What has moved?",
        "drift_overview.html",
        verdict=drift.verdict,
        tiles=_tiles(drift),
        advice=drift.advice,
        reference=drift.reference,
        left_out=drift.left_out,
        thresholds=THRESHOLDS,
        condition=CONDITION,
    )


def known(drift: Drift) -> Section | None:
    """Return how p-values moved; None without them."""
    if not drift.parts:
        return None
    part = drift.most_moved_part
    levels = [level for level in LEVELS if any(level in each.shares for each in drift.parts)]
    most = "No part moved more than chance explains."
    if part is not None:
        most = f"The part that moved most is {part.name}."
    return section(
        "known",
        "Do more nodes look unknown?",
        "drift_section.html",
        paragraphs=[
            f"{most} Small p-values are strange ones: of known nodes, 5 % have a p-value of at "
            "most 5 %."
        ],
        tables=[
            {
                "header": ["p-value", *_level_heads(levels), "distance", "moved", "it is about"],
                "rows": [_part_row(each, levels) for each in drift.parts],
                "caption": "Shares of nodes with small p-values, with 95 % intervals, and the "
                "Kolmogorov-Smirnov distance of all p-values",
                "kind": "texts",
            }
        ],
        figures=tuple(Figure(_cumulative_chart(each), each.sentence) for each in drift.parts),
        notes=[CONDITION],
    )


def classes(drift: Drift) -> Section:
    """Return how the shares of predicted classes moved."""
    values = drift.classes
    shown = values.classes[:_SHOWN_CLASSES]
    paragraphs = []
    if values.probability is not None:
        before, after = values.probability
        paragraphs.append(
            f"The mean probability of the predicted class is {percent(before.value)} in A and "
            f"{percent(after.value)} in B."
        )
    if values.abstained is not None:
        paragraphs.append(
            f"Not answered are {_with_interval(values.abstained[0])} of the nodes of A and "
            f"{_with_interval(values.abstained[1])} of those of B. The promise behind it does not "
            "hold after a drift."
        )
    if len(shown) < len(values.classes):
        paragraphs.append(f"Of {len(values.classes):,} classes, these changed most.")
    chart = paired_bars(
        "class-shares",
        "Predicted classes",
        [each.name for each in shown],
        {"A": [each.a.value for each in shown], "B": [each.b.value for each in shown]},
        description="Fraction of nodes that are predicted as each class, in A and in B",
    )
    return section(
        "classes",
        "Which classes are predicted more often, or less?",
        "drift_section.html",
        paragraphs=paragraphs,
        tables=[
            {
                "header": ["class", "in A", "in B", "change", "moved", "status"],
                "rows": [
                    [
                        _name(each.name),
                        _with_interval(each.a),
                        _with_interval(each.b),
                        _points(each.change),
                        _yes(each.moved),
                        each.status or "in both",
                    ]
                    for each in shown
                ],
                "caption": "Shares of predicted classes, with 95 % intervals",
                "kind": "shares",
            }
        ],
        figures=(Figure(chart, "Sorted by the size of the change."),),
        notes=[],
    )


def nodes(drift: Drift) -> Section:
    """Return the nodes that moved most, and those that joined or left."""
    values = drift.nodes
    rows = values.table.slice(0, SHOWN_NODES).to_pylist()
    names = values.table.column_names
    paragraphs = [
        f"{values.in_both:,} compared nodes are in A and in B. {values.moved:,} of them moved "
        f"notably: the class changed ({values.changed_class:,} nodes), its probability changed by "
        f"{NOTABLE_PROBABILITY:g} or more, or the p-value that they are known by a factor of "
        f"{NOTABLE_FACTOR:g}.",
        f"{values.joined:,} nodes joined and {values.left:,} left.{_joined_text(drift)}",
    ]
    tables = []
    if rows:
        shown = min(SHOWN_NODES, values.table.num_rows)
        tables.append(
            {
                "header": [_head(name) for name in names],
                "rows": [[_cell(name, row[name]) for name in names] for row in rows],
                "caption": f"The first {shown:,} of {values.table.num_rows:,} nodes; {DRIFT_CSV} "
                "has all of them",
                "kind": "table-box",
            }
        )
    return section(
        "nodes",
        "Which nodes moved most?",
        "drift_section.html",
        paragraphs=paragraphs,
        tables=tables,
        notes=[
            "The movement of a node is the number of powers of ten by which its p-value moved, "
            "plus how far its class probabilities moved at least. Joined nodes that look unknown "
            "follow the nodes that moved."
        ],
    )


def _tiles(drift: Drift) -> list[tuple[str, str, str]]:
    tiles = []
    joint = next((part for part in drift.parts if part.name == "known"), None)
    if joint is not None and LEVELS[0] in joint.shares:
        share_a, share_b = joint.shares[LEVELS[0]]
        low, high = share_b.interval
        tiles.append(
            (
                "Nodes that look unknown",
                percent(share_b.value),
                f"of B (95 % interval: {100 * low:.1f} to {percent(high)}); A: "
                f"{percent(share_a.value)}",
            )
        )
    if drift.classes.classes:
        first = drift.classes.classes[0]
        moved = sum(each.moved for each in drift.classes.classes)
        tiles.append(
            (
                "Classes that moved",
                f"{moved} of {len(drift.classes.classes)}",
                f"largest change: {first.name}, {_points(first.change)}",
            )
        )
    if drift.columns is not None:
        moved = len([each for each in drift.columns.moved if each.kind != "network"])
        meaning = "none moved more than chance explains"
        if moved:
            names = [each.name for each in drift.columns.moved if each.kind != "network"]
            meaning = f"most: {', '.join(names[:3])}"
        tiles.append(("Columns that moved", f"{moved} of {drift.columns.compared:,}", meaning))
    values = drift.nodes
    tiles.append(
        ("Nodes that moved notably", f"{values.moved:,}", f"of {values.in_both:,} that are in both")
    )
    tiles.append(("Nodes that joined", f"{values.joined:,}", f"{values.left:,} left"))
    return tiles


def _level_heads(levels: Sequence[float]) -> list[str]:
    return [f"at most {percent(level, 0)}, {side}" for level in levels for side in ("A", "B")]


def _part_row(part: PartDrift, levels: Sequence[float]) -> list[Any]:
    cells: list[Any] = [part.column]
    for level in levels:
        pair = part.shares.get(level)
        cells += ["n.a.", "n.a."] if pair is None else [_with_interval(each) for each in pair]
    cells += [percent(part.distribution.distance), _yes(part.moved or part.share_moved)]
    return [*cells, PART_NAMES[part.name]]


def _cumulative_chart(part: PartDrift) -> Any:
    lines = [
        Line(GRID, part.cumulative[0], "A"),
        Line(GRID, part.cumulative[1], "B"),
        Line(np.array([0.0, 1.0]), np.array([0.0, 1.0]), "known nodes, if the p-values hold"),
    ]
    axes = CurveAxes(
        x_title=f"{part.column} at most",
        y_title="share of nodes",
        x_axis=percent_axis(f"{part.column} at most"),
        is_percent=True,
        y_range=(0.0, 1.0),
    )
    return curve_chart(f"cumulative-{part.name}", part.column, lines, axes)


def _joined_text(drift: Drift) -> str:
    values = drift.nodes
    if values.strange_joined is None or values.strange_in_both is None:
        return ""
    return (
        f" Of those that joined, {_with_interval(values.strange_joined)} look unknown; of those "
        f"that were there before, {_with_interval(values.strange_in_both)}."
    )


def _with_interval(share: Share) -> str:
    low, high = share.interval
    return f"{percent(share.value)} ({100 * low:.1f} to {100 * high:.1f})"


def _points(change: float) -> str:
    return f"{100 * change:+.1f} points"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _name(text: str) -> Markup:
    return rendered("name.html", text=text)


def _head(name: str) -> str:
    """Return a heading that keeps the names of columns, such as p_known."""
    stem, _, side = name.rpartition("_")
    return f"{stem} {side}" if side in ("before", "after") else name


def _cell(name: str, value: Any) -> Any:
    if value is None:
        return "-"
    if name.startswith(("probability", "p_")):
        return percent(value)
    if isinstance(value, float):
        return figures(value)
    return _name(value) if isinstance(value, str) else value
