"""The section that lists nodes: those that the model does not know, and why."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpn_scale.evaluation.reasons import NOTHING_UNUSUAL, reason_kind
from gpn_scale.page.facts import PredictionFacts
from gpn_scale.page.map_chart import map_charts
from gpn_scale.page.node_rows import SPLITS, NodeRows
from gpn_scale.page.section import Section
from gpn_scale.page.templates import rendered
from gpn_scale.page.texts import figures, percent

STRANGEST = 10
"""Number of nodes of each kind that are named first."""
PART_TITLES = {
    "features": "own features",
    "neighbourhood": "neighbourhood",
    "opinion": "opinion",
    "labels": "labels near",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedNode:
    """A node of a list, as texts."""

    row: int
    """Place of the node among all listed nodes."""
    name: str
    predicted: int
    numbers: tuple[str, ...]
    reason: str


def nodes(facts: PredictionFacts) -> Section:
    """Return the strangest nodes, unlabelled ones first, and all nodes to search and to select."""
    rows = facts.nodes
    candidates = np.flatnonzero(rows.split != SPLITS.index("train"))
    unlabelled = candidates[rows.is_unlabelled[candidates]]
    labelled = candidates[~rows.is_unlabelled[candidates]]
    kinds = sorted({reason_kind(rows.reasons[i]) for i in set(rows.reason.tolist())})
    body = rendered(
        "nodes.html",
        rows=rows,
        names=facts.class_names,
        header=_header(rows),
        unlabelled=_listed(rows, unlabelled),
        labelled=_listed(rows, labelled),
        num_unlabelled=f"{len(unlabelled):,}",
        num_labelled=f"{len(labelled):,}",
        kinds=kinds if rows.p_known is not None else [],
        splits=SPLITS,
        marks=[mark for mark in rows.marks if mark],
        parts=PART_TITLES,
        variance=_variance(rows),
    )
    heading = "Which nodes does the model not know, and why?"
    return Section("nodes", heading, body, map_charts(rows, len(facts.class_names)))


def _header(rows: NodeRows) -> list[str]:
    if rows.p_known is None:
        return ["node", "predicted", "probability", "evidence"]
    parts = (PART_TITLES[part] for part in rows.p_parts)
    return ["node", "predicted", "probability", "p known", *parts, "reason"]


def _listed(rows: NodeRows, places: NDArray[np.int64]) -> list[ListedNode]:
    return [_listed_node(rows, int(row)) for row in places[:STRANGEST]]


def _listed_node(rows: NodeRows, row: int) -> ListedNode:
    numbers = [percent(float(rows.probability[row]))]
    if rows.p_known is None:
        numbers.append(figures(10.0 ** float(rows.evidence[row]), 2))
    else:
        values = (rows.p_known, *rows.p_parts.values())
        numbers += [figures(float(value[row]), 2) for value in values]
    reason = rows.reasons[rows.reason[row]]
    return ListedNode(
        row=row,
        name=rows.names[row],
        predicted=int(rows.predicted[row]),
        numbers=tuple(numbers),
        reason="" if reason == NOTHING_UNUSUAL else reason,
    )


def _variance(rows: NodeRows) -> str:
    assert rows.components.explained_variance is not None
    first, second = (percent(fraction, 0) for fraction in rows.components.explained_variance)
    return f"{first} and {second}"
