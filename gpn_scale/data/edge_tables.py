"""Edges from columns of ids and weights."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpn_scale.data.faults import Fault
from gpn_scale.data.text_columns import joined, text_column, value_faults, without_point

MOST = 0.5
"""Fraction of unknown ids in a column above which a wrong column is the likely reason."""

_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_SAMPLE_IDS = 10_000


def read_node_ids(
    column: pa.ChunkedArray, *, file: str, column_name: str
) -> tuple[pa.Array, list[Fault]]:
    """Return the ids of the nodes as canonical texts, and what is wrong with them.

    >>> ids, faults = read_node_ids(pa.chunked_array([[7, 8, 7]]), file="n.csv", column_name="id")
    >>> ids.to_pylist(), faults[0].row, faults[0].value
    (['7', '8', '7'], 3, '7')
    """
    texts, wrong, advice = text_column(column)
    where = {"file": file, "column": column_name}
    faults = value_faults(texts, wrong, advice=advice, **where)
    missing = np.asarray(texts.is_null()) & ~wrong
    faults += value_faults(texts, missing, advice="give the node an id", **where)
    first = pc.index_in(texts, value_set=texts, skip_nulls=True)
    repeated = np.asarray(pc.fill_null(pc.not_equal(first, pa.array(np.arange(len(texts)))), False))
    advice = "the id stands further up already: give every node its own id"
    return texts, faults + value_faults(texts, repeated, advice=advice, **where)


class Ends(NamedTuple):
    """One end of every edge.

    >>> ends_of(pa.chunked_array([["b", "z", None]]), pa.array(["a", "b"])).nodes.tolist()
    [1, -1, -1]
    """

    texts: pa.Array
    """The ids, null where missing, (E,)."""
    nodes: NDArray[np.int64]
    """Numbers of the nodes, -1 where the id is missing or unknown, (E,)."""
    wrong: NDArray[np.bool_]
    """Whether a value can be no id, (E,)."""
    advice: str
    """What to do about the wrong values."""

    @property
    def is_missing(self) -> NDArray[np.bool_]:
        """Whether there is no id, (E,)."""
        return np.asarray(self.texts.is_null()) & ~self.wrong

    @property
    def is_unknown(self) -> NDArray[np.bool_]:
        """Whether there is an id that no node has, (E,)."""
        return (self.nodes < 0) & np.asarray(self.texts.is_valid()) & ~self.wrong


def ends_of(column: pa.ChunkedArray, ids: pa.Array) -> Ends:
    """Return the nodes that a column of ids names.

    An id that no node has and that is written as "7.0" counts as "7".

    Args:
        column: Ids of any type, (E,).
        ids: Ids of the nodes as canonical texts.
    """
    texts, wrong, advice = text_column(column)
    numbers = pc.fill_null(pc.index_in(texts, value_set=ids, skip_nulls=True), -1)
    nodes = np.asarray(numbers).astype(np.int64)
    unknown = np.flatnonzero((nodes < 0) & np.asarray(texts.is_valid()))
    if len(unknown):
        shorter = without_point(texts.take(pa.array(unknown)))
        nodes[unknown] = np.asarray(pc.fill_null(pc.index_in(shorter, value_set=ids), -1))
    return Ends(texts, nodes, wrong, advice)


def end_faults(
    ends: Ends, *, file: str, column: str, unknown: bool, missing: bool, reason: str | None
) -> list[Fault]:
    """Return what is wrong with one end of the edges.

    >>> ends = ends_of(pa.chunked_array([["b", "z"]]), pa.array(["a", "b"]))
    >>> faults = end_faults(
    ...     ends, file="e.csv", column="to", unknown=True, missing=True, reason=None
    ... )
    >>> [(fault.row, fault.value) for fault in faults]
    [(2, 'z')]

    Args:
        ends: The ids.
        file: Name of the table.
        column: Name of the column.
        unknown: Whether ids that no node has are a fault.
        missing: Whether missing ids are a fault.
        reason: Why most ids are unknown, in a sentence; None if only some are.
    """
    where = {"file": file, "column": column}
    faults = []
    if unknown and reason is not None:
        faults.append(Fault(**where, advice=reason, count=int(ends.is_unknown.sum())))
    faults += value_faults(ends.texts, ends.wrong, advice=ends.advice, **where)
    if missing:
        advice = "the edge has no node at this end: fill it, or drop such edges"
        faults += value_faults(ends.texts, ends.is_missing, advice=advice, **where)
    if unknown:
        advice = "no node has this id (blanks count): add the node, or choose a rule for such ids"
        faults += value_faults(ends.texts, ends.is_unknown, advice=advice, **where)
    return faults


def mostly_unknown(ends: Ends) -> bool:
    """Return whether more than the fraction `MOST` of the ids belongs to no node.

    >>> mostly_unknown(ends_of(pa.chunked_array([["x", "y", "a"]]), pa.array(["a", "b"])))
    True
    """
    present = np.asarray(ends.texts.is_valid()).sum()
    return bool(present) and bool(ends.is_unknown.sum() > MOST * present)


def likely_reason(
    ends: Ends,
    ids: pa.Array,
    id_column: str,
    node_column: Callable[[str], pa.ChunkedArray],
    node_columns: Sequence[str],
    edge_column: Callable[[str], pa.ChunkedArray],
    edge_columns: Sequence[str],
) -> str:
    """Return a sentence on why most ids of a column are unknown.

    It names the other column of either table that fits best, or says what is the matter with the
    texts. A sample of the ids decides.

    Args:
        ends: The ids, most of which are unknown.
        ids: Ids of the nodes.
        id_column: Name of the column that holds them.
        node_column: Returns a column of the nodes by name.
        node_columns: Columns of the nodes that may hold the ids instead.
        edge_column: Returns a column of the edges by name.
        edge_columns: Columns of the edges that may be the end instead.
    """
    sample = ends.texts.drop_null().slice(0, _SAMPLE_IDS)
    percent = round(100 * float(ends.is_unknown.sum()) / max(len(ends.texts.drop_null()), 1))
    given = f"{percent} % of these ids are no id of a node (column {id_column!r})"
    best, fraction = _best(edge_columns, lambda name: _fitting(edge_column(name), ids))
    if fraction > MOST:
        return f"{given}: the column {best!r} fits to {fraction:.0%}; are columns exchanged?"
    best, fraction = _best(node_columns, lambda name: _known(sample, node_column(name)))
    if fraction > MOST:
        return f"{given}: they are in the nodes' column {best!r} to {fraction:.0%}; is it the id?"
    folded = pc.utf8_lower(pc.utf8_trim_whitespace(sample))
    plain_ids = pc.utf8_lower(pc.utf8_trim_whitespace(ids))
    if _fraction(pc.is_in(folded, value_set=plain_ids, skip_nulls=True)) > MOST:
        return f"{given}: they differ in blanks or in upper and lower case only"
    return f"{given}: name the columns that hold the same ids in both tables"


def read_weights(
    column: pa.ChunkedArray, *, file: str, column_name: str
) -> tuple[NDArray[np.float64], list[Fault]]:
    """Return the weights of the edges, (E,), and what is wrong with them.

    >>> weights, faults = read_weights(pa.chunked_array([["2", "-1", "x"]]), file="e", column_name="w")
    >>> [(fault.row, fault.advice) for fault in faults]
    [(3, 'write a number'), (2, 'write a finite number above 0, or remove the edge')]
    """
    where = {"file": file, "column": column_name}
    kind = column.type
    if pa.types.is_temporal(kind) or pa.types.is_nested(kind) or pa.types.is_binary(kind):
        advice = f"write numbers, not values of type {kind}"
        return np.zeros(len(column)), [Fault(**where, advice=advice)]
    texts = joined(column.cast(pa.large_string()))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        trimmed = pc.utf8_ltrim(pc.utf8_trim_whitespace(texts), "+")
        written = pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.large_string()), trimmed)
        is_number = pc.match_substring_regex(written, _NUMBER)
        numbers = pc.if_else(is_number, written, None).cast(pa.float64())
        wrong = np.asarray(pc.fill_null(pc.invert(is_number), False))
        missing = np.asarray(written.is_null())
    else:
        numbers = joined(pc.cast(column, pa.float64(), safe=False))
        wrong, missing = np.zeros(len(texts), bool), np.asarray(numbers.is_null())
    weights: NDArray[np.float64] = np.asarray(pc.fill_null(numbers, 1.0))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        single = weights.astype(np.float32)  # as it is stored
        useless = ~(np.isfinite(single) & (single > 0))
    faults = value_faults(texts, missing, advice="write a weight, or remove the edge", **where)
    faults += value_faults(texts, wrong, advice="write a number", **where)
    advice = "write a finite number above 0, or remove the edge"
    return weights, faults + value_faults(texts, useless, advice=advice, **where)


def _best(names: Sequence[str], fraction_of: Callable[[str], float]) -> tuple[str, float]:
    """Return the name with the largest fraction; ("", 0) without names."""
    fractions = [(fraction_of(name), name) for name in names]
    fraction, name = max(fractions, key=lambda pair: pair[0], default=(0.0, ""))
    return name, fraction


def _fitting(column: pa.ChunkedArray, ids: pa.Array) -> float:
    """Return the fraction of a sample of `column` that are ids."""
    return _known(text_column(column.slice(0, _SAMPLE_IDS)).texts.drop_null(), ids)


def _known(sample: pa.Array, column: pa.ChunkedArray | pa.Array) -> float:
    texts = column if isinstance(column, pa.Array) else text_column(column).texts
    return _fraction(pc.is_in(sample, value_set=texts, skip_nulls=True))


def _fraction(mask: pa.Array) -> float:
    return float(np.asarray(mask).mean()) if len(mask) else 0.0
