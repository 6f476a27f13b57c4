"""P-values over the parts that both tables have.

`p_known` joins the p-values of all parts. If A has a part that B lacks, such as the labels near a
node on a graph without training labels, then the two columns are not the same quantity: a node may
have looked unknown only because no label was near. So both are computed again as `p_common`, from
the parts that both tables have:

    p_common(v) = (1 + number of calibration nodes u with S(u) >= S(v)) / (1 + number of them),

with S the sum over the common parts of -log p. The calibration nodes are the validation nodes of A,
as for `p_known`, or the compared nodes of A if the table has too few of them. The surroundings of
nodes, which count in `p_known`, are left out.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gpn_scale.drift.scored_table import ScoredTable
from gpn_scale.evaluation.known_calibration import LEAST_NODES
from gpn_scale.evaluation.p_values import PARTS, conformal_p

COMMON = "p_common"
"""Name of the joint p-value over the parts that both tables have."""
_ROUND_OFF = 1e-6


def with_common_parts(
    a: ScoredTable, b: ScoredTable
) -> tuple[ScoredTable, ScoredTable, tuple[str, ...]]:
    """Return both tables with the same parts, and notes on what has changed.

    >>> import pyarrow as pa
    >>> columns = {"node": range(30), "predicted_class": [0] * 30, "aleatoric": [-0.9] * 30}
    >>> p = pa.array((1 + np.arange(30)) / 31)
    >>> b = ScoredTable.of(pa.table(columns | {"p_known": p, "p_features": p}))
    >>> a = ScoredTable.of(pa.table(columns | {"p_known": p, "p_features": p, "p_labels": p}))
    >>> a, b, sentences = with_common_parts(a, b)
    >>> sorted(a.p), a.joint, len(sentences)
    (['features', 'known'], 'p_common', 1)
    """
    parts_a, parts_b = ([part for part in PARTS if part in table.p] for table in (a, b))
    if parts_a == parts_b or not (a.p and b.p):
        return a, b, ()
    common = [part for part in parts_a if part in parts_b]
    only = {"A": _without(parts_a, common), "B": _without(parts_b, common)}
    held = " and ".join(f"only {side} has {_listed(own)}" for side, own in only.items() if own)
    if not common:
        sentence = f"P-values are not compared, since no part is in both: {held}."
        return replace(a, p={}), replace(b, p={}), (sentence,)
    surprise_a, surprise_b = (_surprise(table, common) for table in (a, b))
    validation = np.flatnonzero(a.validation)
    if len(validation) >= LEAST_NODES:
        step = 1 / (1 + len(validation))
        calibration = _surprise(a, common, validation, step)
        whom = f"the {len(validation):,} validation nodes of A"
    else:
        calibration = surprise_a[~(a.used | a.marked)]
        whom = "the compared nodes of A"
    ordered = np.sort(calibration)
    tables = [
        replace(
            table,
            joint=COMMON,
            p={
                "known": conformal_p(ordered, surprise - _ROUND_OFF).astype(np.float64),
                **{part: table.p[part] for part in common},
            },
        )
        for table, surprise in ((a, surprise_a), (b, surprise_b))
    ]
    sentence = (
        f"The parts differ: {held}. So {COMMON} replaces p_known: the p-value over the parts that "
        f"both have, measured on {whom}."
    )
    return tables[0], tables[1], (sentence,)


def _surprise(
    table: ScoredTable,
    parts: Sequence[str],
    rows: NDArray[np.int64] | None = None,
    step: float = 0.0,
) -> NDArray[np.float64]:
    """Return the sum of -log p over parts, of all rows or of some.

    A validation node has counted itself in its p-values; `step` takes it out again
    (`calibration_p`).
    """
    chosen = slice(None) if rows is None else rows
    values = [np.maximum(table.p[part][chosen] - step, max(step, 1e-9)) for part in parts]
    return np.asarray(-np.sum(np.log(values), axis=0))


def _without(parts: Sequence[str], common: Sequence[str]) -> list[str]:
    return [part for part in parts if part not in common]


def _listed(parts: Sequence[str]) -> str:
    return ", ".join(f"p_{part}" for part in parts)
