"""Edges from columns of ids and weights."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpn_scale.data.column_values import ColumnReader, is_readable
from gpn_scale.data.faults import Fault
from gpn_scale.data.text_columns import joined, text_column, value_faults, without_point
from gpn_scale.data.wrong_values import WrongValues

MOST = 0.5
"""Fraction of unknown ids in a column above which a wrong column is the likely reason."""

_SAMPLE_IDS = 10_000


def read_node_ids(
    column: pa.ChunkedArray, *, file: str, column_name: str
) -> tuple[pa.Array, list[Fault]]:
    """Return the ids of the nodes as canonical texts, and what is wrong with them.

    >>> ids, faults = read_node_ids(pa.chunked_array([[7, 8, 7]]), file="n.csv", column_name="id")
    >>> ids.to_pylist(), faults[0].row, faults[0].value
    (['7', '8', '7'], 3, '7')
    """
    texts, wrong, advice, _ = text_column(column)
    where = {"file": file, "column": column_name}
    faults = value_faults(texts, wrong, advice=advice, **where)
    missing = np.asarray(texts.is_null()) & ~wrong
    faults += value_faults(texts, missing, advice="give the node an id", **where)
    first = pc.index_in(texts, value_set=texts, skip_nulls=True)
    repeated = np.asarray(pc.fill_null(pc.not_equal(first, pa.array(np.arange(len(texts)))), False))
    advice = "the id stands further up already: give every node its own id"
    return texts, faults + value_faults(texts, repeated, advice=advice, **where)


class Ends(NamedTuple):
    """One end of every edge of a block.

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
    has_points: bool | None
    """Whether all ids of the block are written as "7.0"; see `TextColumn`."""

    @property
    def is_missing(self) -> NDArray[np.bool_]:
        """Whether there is no id, (E,)."""
        return np.asarray(np.asarray(self.texts.is_null()) & ~self.wrong)

    @property
    def is_unknown(self) -> NDArray[np.bool_]:
        """Whether there is an id that no node has, (E,)."""
        return np.asarray((self.nodes < 0) & np.asarray(self.texts.is_valid()) & ~self.wrong)


def ends_of(column: pa.ChunkedArray, ids: pa.Array, *, shorten: bool | None = None) -> Ends:
    """Return the nodes that a column of ids names.

    An id that no node has and that is written as "7.0" counts as "7".

    >>> ends_of(pa.chunked_array([["7.0", "x", "8"]]), pa.array(["7", "8"])).nodes.tolist()
    [0, -1, 1]

    Args:
        column: Ids of any type, (E,).
        ids: Ids of the nodes as canonical texts.
        shorten: Whether ids such as "7.0" become integers; None to decide it by all of them.
    """
    texts, wrong, advice, has_points = text_column(column, shorten=shorten)
    numbers = pc.fill_null(pc.index_in(texts, value_set=ids, skip_nulls=True), -1)
    nodes = np.asarray(numbers).astype(np.int64)
    unknown = np.flatnonzero((nodes < 0) & np.asarray(texts.is_valid()))
    if len(unknown):
        shorter = without_point(texts.take(pa.array(unknown)))
        nodes[unknown] = np.asarray(pc.fill_null(pc.index_in(shorter, value_set=ids), -1))
    return Ends(texts, nodes, wrong, advice, has_points)


class EndProblems:
    """What is wrong with one end of the edges, collected block by block.

    >>> problems = EndProblems()
    >>> problems.add(ends_of(pa.chunked_array([["b", "z"]]), pa.array(["a", "b"])))
    >>> faults = problems.faults("e.csv", "to", unknown="add the node", missing=True, reason=None)
    >>> [(fault.row, fault.value) for fault in faults]
    [(2, 'z')]
    """

    def __init__(self) -> None:
        self._wrong, self._missing, self._unknown = WrongValues(), WrongValues(), WrongValues()
        self._advice = ""
        self._num_present = 0
        self._sample: list[str] = []

    def add(self, ends: Ends, first_row: int = 0) -> None:
        """Add a block of ends, before which there are `first_row` rows."""
        self._wrong.add(ends.texts, ends.wrong, first_row)
        self._missing.add(ends.texts, ends.is_missing, first_row)
        self._unknown.add(ends.texts, ends.is_unknown, first_row)
        self._advice = self._advice or ends.advice
        self._num_present += len(ends.texts) - ends.texts.null_count
        if room := _SAMPLE_IDS - len(self._sample):
            self._sample += ends.texts.drop_null().slice(0, room).to_pylist()

    @property
    def mostly_unknown(self) -> bool:
        """Whether more than the fraction `MOST` of the ids belongs to no node."""
        return self._unknown.num_rows > MOST * self._num_present

    def faults(
        self, file: str, column: str, *, unknown: str | None, missing: bool, reason: str | None
    ) -> list[Fault]:
        """Return all that is wrong.

        Args:
            file: Name of the table.
            column: Name of the column.
            unknown: What to do about an id that no node has; None if it is no fault.
            missing: Whether missing ids are a fault.
            reason: Why most ids are unknown, in a sentence; None if only some are.
        """
        faults = self._wrong.faults(file, column, self._advice)
        if missing:
            advice = "the edge has no node at this end: fill it, or drop such edges"
            faults += self._missing.faults(file, column, advice)
        if unknown is not None and reason is not None:
            faults.append(self._unknown.one_fault(file, column, reason))
        elif unknown is not None:
            advice = f"no node has this id (blanks count): {unknown}"
            faults += self._unknown.faults(file, column, advice)
        return faults

    def likely_reason(
        self, ids: pa.Array, *, id_column: str, nodes: pa.Table, edges: pa.Table
    ) -> str:
        """Return a sentence on why most ids are unknown.

        It names the other column of either table that fits best, or says what is the matter with
        the texts. A sample of the ids decides.

        >>> ids, problems = pa.array(["a", "b"]), EndProblems()
        >>> problems.add(ends_of(pa.chunked_array([["x", "y"]]), ids))
        >>> nodes, edges = pa.table({"ref": ["y", "x"]}), pa.table({"sum": ["1", "2"]})
        >>> problems.likely_reason(ids, id_column="id", nodes=nodes, edges=edges)
        "100 % of these ids are in no node's 'id', but 100 % are in its 'ref': is that the id?"

        Args:
            ids: Ids of the nodes.
            id_column: Name of the column that holds them.
            nodes: Columns of the nodes that may hold the ids instead.
            edges: Columns of the edges, or their first rows, that may be the end instead.
        """
        sample = pa.array(self._sample, pa.large_string())
        percent = round(100 * self._unknown.num_rows / max(self._num_present, 1))
        given = f"{percent} % of these ids are in no node's {id_column!r}"
        other = {name: _fitting(edges[name], ids) for name in edges.column_names}
        if (best := max(other, key=other.__getitem__, default="")) and other[best] > MOST:
            fit = f"{other[best]:.0%}".replace("%", " %")
            return f"{given}, but {fit} of the column {best!r} are: were columns exchanged?"
        other = {
            name: _known(sample, text_column(nodes[name]).texts) for name in nodes.column_names
        }
        if (best := max(other, key=other.__getitem__, default="")) and other[best] > MOST:
            fit = f"{other[best]:.0%}".replace("%", " %")
            return f"{given}, but {fit} are in its {best!r}: is that the id?"
        folded = pc.utf8_lower(pc.utf8_trim_whitespace(sample))
        if _known(folded, pc.utf8_lower(pc.utf8_trim_whitespace(ids))) > MOST:
            return f"{given}: they differ in blanks, or in upper and lower case"
        return f"{given}: name the columns that hold the same ids in both tables"


class WeightReader:
    """Reads the weights of the edges block by block, and collects what is wrong with them.

    >>> reader = WeightReader()
    >>> reader.weights(pa.chunked_array([["2", "-1", "x"]]), first_row=0).tolist()
    [2.0, -1.0, nan]
    >>> [(fault.row, fault.advice) for fault in reader.faults("edges.csv", "sum")]
    [(3, 'write a number'), (2, 'write a number above 0, or remove the edge')]
    """

    def __init__(self) -> None:
        self._missing, self._wrong, self._useless = WrongValues(), WrongValues(), WrongValues()
        self._unreadable: pa.DataType | None = None

    def weights(self, column: pa.ChunkedArray, first_row: int) -> NDArray[np.float64]:
        """Return the weights of a block, (E,), before which there are `first_row` rows."""
        if not is_readable(column.type):
            self._unreadable = column.type
            return np.zeros(len(column))
        numbers = ColumnReader(column).numbers
        texts = joined(column.cast(pa.large_string()))
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            weights = numbers.value.astype(np.float32)  # as it is stored
        wrong = numbers.wrong | np.isinf(weights)
        self._missing.add(texts, numbers.missing, first_row)
        self._wrong.add(texts, wrong, first_row)
        self._useless.add(texts, (weights <= 0) & ~wrong, first_row)
        return numbers.value

    def faults(self, file: str, column: str) -> list[Fault]:
        """Return all that is wrong with the column of a table."""
        if self._unreadable is not None:
            advice = f"write numbers, not values of type {self._unreadable}"
            return [Fault(file=file, column=column, advice=advice)]
        faults = self._missing.faults(file, column, "write a weight, or remove the edge")
        faults += self._wrong.faults(file, column, "write a number")
        advice = "write a number above 0, or remove the edge"
        return faults + self._useless.faults(file, column, advice)


def _fitting(column: pa.ChunkedArray, ids: pa.Array) -> float:
    """Return the fraction of a sample of `column` that are ids."""
    return _known(text_column(column.slice(0, _SAMPLE_IDS)).texts.drop_null(), ids)


def _known(sample: pa.Array, texts: pa.Array) -> float:
    known = np.asarray(pc.is_in(sample, value_set=texts, skip_nulls=True))
    return float(known.mean()) if len(known) else 0.0
