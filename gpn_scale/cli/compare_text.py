"""Text of a comparison for the terminal."""

from collections.abc import Sequence
from typing import Any

from gpn_scale.cli.terminal_table import cell, table_lines
from gpn_scale.drift.column_drift import ColumnDrift
from gpn_scale.drift.comparison import Drift
from gpn_scale.drift.parts import LEVELS
from gpn_scale.drift.two_samples import CONDITION, Share
from gpn_scale.drift.verdict import THRESHOLDS

PRINTED_NODES = 20
"""Number of nodes that are printed."""
_COLUMNS = 10
_CLASSES = 10
_WIDTH = 100
_SHORT = 30
_LONGEST = 10_000


def drift_text(drift: Drift) -> str:
    """Return the verdict, what to do, and the figures, as lines."""
    sentences = (*drift.reference, *drift.left_out)
    lines = [_line(drift.verdict), *(f"  {each}" for each in drift.advice), ""]
    lines += ["what is compared:", *(f"  {_line(each)}" for each in sentences)]
    for title, rows in (
        ("p-values, A -> B:", _part_rows(drift)),
        ("predicted classes, A -> B:", _class_rows(drift)),
        ("columns, A -> B:", _column_rows(drift)),
        (_node_title(drift), _node_rows(drift)),
    ):
        if len(rows) > 1:
            lines += ["", title, *table_lines(rows, _WIDTH)]
    lines += ["", *_further(drift), f"{THRESHOLDS} {CONDITION}"]
    return "\n".join(lines)


def _line(sentence: str) -> str:
    """Return a sentence without control characters, which names of columns and files may hold."""
    return cell(sentence, _LONGEST)


def _part_rows(drift: Drift) -> list[Sequence[Any]]:
    levels = [level for level in LEVELS if any(level in each.shares for each in drift.parts)]
    heads = [f"at or below {100 * level:g} %" for level in levels]
    rows: list[Sequence[Any]] = [["", *heads, "distance", "moved"]]
    for part in drift.parts:
        pairs = [part.shares.get(level) for level in levels]
        texts = ["n.a." if pair is None else _change(*pair) for pair in pairs]
        moved = _yes(part.moved or part.share_moved)
        rows.append([part.column, *texts, _percent(part.distribution.distance), moved])
    return rows


def _class_rows(drift: Drift) -> list[Sequence[Any]]:
    rows: list[Sequence[Any]] = [["class", "share", "moved", ""]]
    rows += [
        [cell(each.name), _change(each.a, each.b), _yes(each.moved), each.status]
        for each in drift.classes.classes[:_CLASSES]
    ]
    if (more := len(drift.classes.classes) - _CLASSES) > 0:
        rows.append([f"... and {more:,} more", "", "", ""])
    return rows


def _column_rows(drift: Drift) -> list[Sequence[Any]]:
    values: Sequence[ColumnDrift] = () if drift.columns is None else drift.columns.columns
    rows: list[Sequence[Any]] = [["column", "kind", "distance", "moved", ""]]
    for each in values[:_COLUMNS]:
        distance = _percent(each.movement.distance)
        rows.append([cell(each.name), each.kind, distance, _yes(each.moved), _column_detail(each)])
    if (more := len(values) - _COLUMNS) > 0:
        rows.append([f"... and {more:,} more", "", "", "", ""])
    return rows


def _column_detail(drift: ColumnDrift) -> str:
    if drift.missing is None or drift.movement is drift.values:
        return drift.detail
    return f"missing values {_change(*drift.missing)}" if drift.moved else drift.detail


def _node_title(drift: Drift) -> str:
    return (
        f"nodes that moved most ({drift.nodes.moved:,} of {drift.nodes.in_both:,} moved notably, "
        f"{drift.nodes.changed_class:,} changed their class):"
    )


def _node_rows(drift: Drift) -> list[Sequence[Any]]:
    table = drift.nodes.table.slice(0, min(PRINTED_NODES, drift.nodes.moved))
    joint = [name for name in table.column_names if name.startswith(("p_known", "p_common"))]
    column = joint[0].removesuffix("_before").removesuffix("_after") if joint else ""
    rows: list[Sequence[Any]] = [["id", "class", "probability", column, "reason"]]
    names = ("class", "probability", column, "reason")
    rows += [[cell(row["id"]), *(_pair(row, name) for name in names)] for row in table.to_pylist()]
    if (more := drift.nodes.moved - table.num_rows) > 0:
        rows.append([f"... and {more:,} more", "", "", "", ""])
    return rows


def _pair(row: dict[str, Any], name: str) -> str:
    before, after = row.get(f"{name}_before"), row.get(f"{name}_after")
    if before is None and after is None:
        return ""
    texts = [cell(before, _SHORT), cell(after, _SHORT)]
    return texts[0] if texts[0] == texts[1] else f"{texts[0]} -> {texts[1]}"


def _further(drift: Drift) -> list[str]:
    lines, values = [], drift.nodes
    joined = f"{values.joined:,} nodes joined, {values.left:,} left."
    if values.strange_joined is not None and values.strange_in_both is not None:
        joined += (
            f" Of those that joined, {_percent(values.strange_joined.value)} look unknown; of the "
            f"others, {_percent(values.strange_in_both.value)}."
        )
    lines.append(joined)
    if (means := drift.classes.probability) is not None:
        lines.append(f"Mean probability {means[0].value:.3f} -> {means[1].value:.3f}.")
    if (shares := drift.classes.abstained) is not None:
        lines.append(f"Not answered, by the promise: {_change(*shares)}.")
    return lines


def _change(a: Share, b: Share) -> str:
    return f"{_with_interval(a)} -> {_with_interval(b)}"


def _with_interval(share: Share) -> str:
    low, high = share.interval
    return f"{_percent(share.value)} ({100 * low:.1f} to {100 * high:.1f})"


def _percent(share: float) -> str:
    return "n.a." if share != share else f"{100 * share:.1f} %"


def _yes(value: bool) -> str:
    return "yes" if value else "no"
