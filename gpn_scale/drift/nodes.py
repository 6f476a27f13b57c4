"""Nodes that moved most, that joined, and that left.

The movement of a node that is in both tables is the sum of two numbers: how far `p_known` (or
`p_common`) moved, in powers of ten, and how far the class probabilities moved at least. If the
class is the same, these moved by at least the difference of its probabilities p and q (total
variation distance); if it has changed, by at least p + q - 1. So a node that is torn between two
classes, before and after, has not moved much.

Shapes: M nodes in both tables.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpn_scale.drift.parts import LEVELS
from gpn_scale.drift.reference import ComparedNodes
from gpn_scale.drift.scored_table import ScoredTable
from gpn_scale.drift.two_samples import Share

NOTABLE_FACTOR = 10.0
"""A node moved notably if its p_known has grown or shrunk by this factor,"""
NOTABLE_PROBABILITY = 0.25
"""or if the probability of its class has changed by this much, or if its class has changed."""
_ROUND_OFF = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodesDrift:
    """The nodes that moved, and those that joined or left.

    >>> drift = NodesDrift(
    ...     table=pa.table({}), in_both=90, moved=7, changed_class=2, joined=10, left=0,
    ...     strange_in_both=Share(5, 90), strange_joined=Share(5, 10), listed_joined=5,
    ... )
    >>> drift.to_dict()["joined"]
    10
    """

    table: pa.Table
    """Nodes that moved notably, the farthest first, then joined nodes that look unknown."""
    in_both: int
    """Number of compared nodes that are in A and in B."""
    moved: int
    """Number of these that moved notably."""
    changed_class: int
    """Number of these whose class has changed."""
    joined: int
    """Number of compared nodes of B that A does not have."""
    left: int
    """Number of compared nodes of A that B does not have."""
    strange_in_both: Share | None
    """Nodes of B at or below 5 % among those that A has as well; None without p-values."""
    strange_joined: Share | None
    """The same among those that A does not have; None if there are none."""
    listed_joined: int
    """Number of joined nodes in the table."""

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as JSON values."""
        strange = (self.strange_in_both, self.strange_joined)
        values = [None if each is None else each.to_dict() for each in strange]
        return {
            "in_both": self.in_both,
            "moved": self.moved,
            "changed_class": self.changed_class,
            "joined": self.joined,
            "left": self.left,
            "strange_in_both": values[0],
            "strange_joined": values[1],
            "listed_joined": self.listed_joined,
        }


def node_drifts(a: ScoredTable, b: ScoredTable, nodes: ComparedNodes) -> NodesDrift:
    """Return the nodes that moved.

    >>> columns = {"node": [0, 1], "predicted_class": [0, 1], "p_known": [0.5, 0.5]}
    >>> a = ScoredTable.of(pa.table(columns | {"aleatoric": [-0.9, -0.9]}))
    >>> columns |= {"node": [0, 7], "predicted_class": [1, 1]}
    >>> b = ScoredTable.of(pa.table(columns | {"aleatoric": [-0.9, -0.9]}))
    >>> drift = node_drifts(a, b, ComparedNodes.of(a, b))
    >>> drift.table.select(["id", "class_before", "class_after"]).to_pylist()
    [{'id': '0', 'class_before': '0', 'class_after': '1'}]
    >>> drift.joined, drift.left
    (1, 1)
    """
    rows_a, rows_b = nodes.in_both_a, nodes.in_both_b
    changed = _changed_class(a, b, rows_a, rows_b)
    probability = a.probability[rows_a], b.probability[rows_b]
    powers = _powers_of_ten(a, b, rows_a, rows_b)
    moved = changed | (np.abs(probability[1] - probability[0]) >= NOTABLE_PROBABILITY)
    if powers is not None:
        moved |= np.abs(powers) >= np.log10(NOTABLE_FACTOR) - _ROUND_OFF
    distance = movement(*probability, changed, powers)
    chosen = np.flatnonzero(moved)
    chosen = chosen[np.argsort(-distance[chosen], kind="stable")]
    joined = np.setdiff1d(nodes.b, rows_b, assume_unique=True)
    unknown = _unknown(b, joined)
    table = _table(a, b, rows_a[chosen], rows_b[chosen], distance[chosen], unknown)
    has_p = bool(b.p)
    return NodesDrift(
        table=table,
        in_both=len(rows_a),
        moved=len(chosen),
        changed_class=int(changed.sum()),
        joined=len(joined),
        left=len(nodes.a) - len(rows_a),
        strange_in_both=Share(len(_unknown(b, rows_b)), len(rows_b)) if has_p else None,
        strange_joined=Share(len(unknown), len(joined)) if has_p and len(joined) else None,
        listed_joined=len(unknown),
    )


def movement(
    before_M: NDArray[np.floating],
    after_M: NDArray[np.floating],
    changed_M: NDArray[np.bool_],
    powers_M: NDArray[np.floating] | None,
) -> NDArray[np.float64]:
    """Return how far nodes moved, (M,).

    >>> movement(np.array([0.9, 0.5]), np.array([0.8, 0.5]), np.array([True, True]), None).round(1)
    array([0.7, 0. ])

    Args:
        before_M: Probability of the predicted class in A.
        after_M: The same in B.
        changed_M: Whether the class has changed.
        powers_M: log10 of p_known in B over p_known in A; None without p-values.
    """
    same = np.abs(after_M - before_M)
    other = np.maximum(before_M + after_M - 1.0, 0.0)
    total = np.where(changed_M, other, same)
    return np.asarray(total if powers_M is None else total + np.abs(powers_M))


def _changed_class(
    a: ScoredTable, b: ScoredTable, rows_a: NDArray[np.int64], rows_b: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return whether classes differ, by names if both tables have them, else by numbers, (M,)."""
    if not (a.has_class_names and b.has_class_names):
        return np.asarray(a.predicted_number[rows_a] != b.predicted_number[rows_b])
    place = {name: number for number, name in enumerate(a.class_names)}
    of_b = np.array([place.get(name, -1) for name in b.class_names], np.int64)
    return np.asarray(a.predicted[rows_a] != of_b[b.predicted[rows_b]])


def _powers_of_ten(
    a: ScoredTable, b: ScoredTable, rows_a: NDArray[np.int64], rows_b: NDArray[np.int64]
) -> NDArray[np.float64] | None:
    if not (a.p and b.p):
        return None
    least = 1e-9  # p-values are positive; a damaged 0 must not become infinite
    before, after = (np.maximum(p, least) for p in (a.p["known"][rows_a], b.p["known"][rows_b]))
    return np.asarray(np.log10(after) - np.log10(before))


def _unknown(table: ScoredTable, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows whose nodes look unknown, the strangest first."""
    if not table.p:
        return np.empty(0, np.int64)
    p_known = table.p["known"][rows]
    chosen = np.flatnonzero(p_known <= LEVELS[0] + _ROUND_OFF)
    return np.asarray(rows[chosen[np.argsort(p_known[chosen], kind="stable")]])


def _table(
    a: ScoredTable,
    b: ScoredTable,
    rows_a: NDArray[np.int64],
    rows_b: NDArray[np.int64],
    distance: NDArray[np.float64],
    joined: NDArray[np.int64],
) -> pa.Table:
    """Return the list of nodes; what joined nodes were before is null."""
    count = len(joined)
    after = np.concatenate([rows_b, joined])
    columns: dict[str, Any] = {
        "id": b.ids.take(pa.array(after)).cast(pa.string()),
        "status": pa.array(["in both"] * len(rows_b) + ["joined"] * count, pa.string()),
    }
    columns["movement"] = _followed(_floats(distance), count)
    columns["class_before"] = _followed(_classes(a, b, a, rows_a), count)
    columns["class_after"] = _classes(a, b, b, after)
    columns["probability_before"] = _followed(_floats(a.probability[rows_a]), count)
    columns["probability_after"] = _floats(b.probability[after])
    for side, table in (("before", a), ("after", b)):
        if table.p:
            rows = rows_a if side == "before" else after
            values = _floats(table.p["known"][rows])
            columns[f"{table.joint}_{side}"] = _followed(values, len(after) - len(rows))
    for side, table in (("before", a), ("after", b)):
        if table.reason is not None:
            rows = rows_a if side == "before" else after
            texts = table.reason.take(pa.array(rows)).cast(pa.string())
            columns[f"reason_{side}"] = _followed(texts, len(after) - len(rows))
    return pa.table(columns)


def _classes(
    a: ScoredTable, b: ScoredTable, table: ScoredTable, rows: NDArray[np.int64]
) -> pa.Array:
    """Return the classes of rows, by names if both tables have them, else by numbers."""
    if a.has_class_names and b.has_class_names:
        return pa.array(table.class_names, pa.string()).take(pa.array(table.predicted[rows]))
    return pc.cast(pa.array(table.predicted_number[rows]), pa.string())


def _floats(values: NDArray[np.float64]) -> pa.Array:
    return pa.array(values.astype(np.float32))


def _followed(values: pa.Array, missing: int) -> pa.Array:
    """Return the values, followed by nulls."""
    return pa.concat_arrays([values, pa.nulls(missing, values.type)])
