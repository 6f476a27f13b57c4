"""Applies a table of changes to a graph: edges are added, removed, or get another weight.

Shapes: N nodes, E stored edges, M changes.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpn_scale.data.column_roles import ColumnNames, edge_roles
from gpn_scale.data.column_values import is_readable
from gpn_scale.data.edge_tables import EndProblems, WeightReader, ends_of
from gpn_scale.data.fault_collector import FaultCollector
from gpn_scale.data.faults import Fault
from gpn_scale.data.graph import Graph
from gpn_scale.data.prepared_blocks import features_by_block
from gpn_scale.data.table_inputs import InputTable, TableLike, input_table
from gpn_scale.data.text_columns import joined, text_column, value_faults

CHANGES = ("add", "remove", "set")
"""Changes of an edge; `set` gives it another weight."""

_CHANGE = "change"
_NEW_NODES = (
    "import new tables to add nodes, since they need features (gpn-import, with the old graph as "
    "the one whose nodes keep their places)"
)


class EdgeChanges(NamedTuple):
    """Changes of distinct edges; each undirected edge is listed once, with its smaller end first.

    >>> from gpn_scale import build_graph
    >>> table = {"source": [1], "target": [0], "change": ["remove"]}
    >>> changes = read_changes(build_graph([0], [1]), table)
    >>> changes.source.tolist(), changes.change.tolist()
    ([0], ['remove'])
    """

    source: NDArray[np.int64]
    """Nodes where edges start, (M,)."""
    target: NDArray[np.int64]
    """Nodes where edges end, (M,)."""
    change: NDArray[np.str_]
    """One of `CHANGES` per edge, (M,)."""
    weight: NDArray[np.float32]
    """Weights of edges that are added or set, else NaN, (M,)."""


def graph_with_changes(graph: Graph, changes: TableLike) -> Graph:
    """Return a graph with changed edges; nodes and everything else stay the same.

    Structural features are recomputed by the rule of the graph.

    >>> from gpn_scale import build_graph
    >>> graph = build_graph([0, 1], [1, 2], node_names=["a", "b", "c"])
    >>> changes = {"source": ["a", "c"], "target": ["b", "a"], "change": ["remove", "add"]}
    >>> changed = graph_with_changes(graph, changes)
    >>> changed.indptr.tolist(), changed.indices.tolist()
    ([0, 1, 2, 4], [2, 2, 0, 1])

    Args:
        graph: The graph before the changes.
        changes: A path, a frame or a dictionary with the columns `source` and `target` (your ids,
            or positions if the graph has no names), `change` (`add`, `remove` or `set`) and, for a
            weighted graph, `weight`.

    Raises:
        TableFaults: changes are impossible, such as adding an existing edge; it lists all of them.
        GraphError: `changes` is not a table.
    """
    read = read_changes(graph, changes)
    source, target, weight = read.source, read.target, read.weight
    change = read.change
    if not graph.directed:
        source, target = np.append(source, target), np.append(target, source)
        weight, change = np.append(weight, weight), np.append(change, change)
    indptr, indices = np.asarray(graph.indptr), np.asarray(graph.indices)
    values = None if graph.edge_weight is None else np.array(graph.edge_weight)
    places, _ = _places(indptr, indices, source, target)
    if values is not None:
        values[places[change == "set"]] = weight[change == "set"]
    stays = np.ones(len(indices), bool)
    stays[places[change == "remove"]] = False
    removed = np.bincount(source[change == "remove"], minlength=graph.num_nodes)
    indptr = indptr - np.append(0, np.cumsum(removed))
    indices = indices[stays]
    values = None if values is None else values[stays]
    added = np.flatnonzero(change == "add")
    added = added[np.lexsort((target[added], source[added]))]
    places, _ = _places(indptr, indices, source[added], target[added])
    indices = np.insert(indices, places, target[added])
    values = None if values is None else np.insert(values, places, weight[added])
    counts = np.bincount(source[added], minlength=graph.num_nodes)
    indptr = indptr + np.append(0, np.cumsum(counts))
    return _with_structure(
        replace(graph, indptr=indptr, indices=indices, edge_weight=values, source=None)
    )


def read_changes(graph: Graph, changes: TableLike) -> EdgeChanges:
    """Return the changes in a table, after checking that the graph allows them.

    >>> from gpn_scale import build_graph
    >>> table = {"source": [0, 0], "target": [1, 2], "change": ["add", "remove"]}
    >>> read_changes(build_graph([0], [1], num_nodes=3), table)
    Traceback (most recent call last):
        ...
    gpn_scale.data.faults.TableFaults: 2 faults in the tables:
      file     row  column  value     what to do
      changes  1    change  'add'     the graph has this edge already: remove the row
      changes  2    change  'remove'  the graph has no such edge: remove the row

    Raises:
        TableFaults: the table does not list changes, or the graph does not allow some of them.
        GraphError: `changes` is not a table.
    """
    faults = FaultCollector()
    table = input_table(changes, "changes")
    roles, wrong = edge_roles(ColumnNames(), table.column_names, file=table.name)
    if _CHANGE not in table.column_names:
        advice = f"add a column of this name that holds {', '.join(CHANGES)}"
        wrong.append(Fault(file=table.name, column=_CHANGE, advice=advice))
    faults.add(wrong, "changes")
    faults.report()
    assert roles.source is not None
    assert roles.target is not None
    used = [name for name in ("source", "target", _CHANGE, roles.weight) if name is not None]
    content = table.read(used)
    source, target = (
        _ends(content[name], graph, table, name, faults) for name in ("source", "target")
    )
    kind = _kinds(content[_CHANGE], table, faults)
    weight = _weights(content, roles.weight, kind, graph, table, faults)
    if not graph.directed:
        source, target = np.minimum(source, target), np.maximum(source, target)
    _check_edges(source, target, kind, graph, table, faults)
    faults.report()
    return EdgeChanges(source, target, kind, weight)


def _ends(
    column: pa.ChunkedArray, graph: Graph, table: InputTable, name: str, faults: FaultCollector
) -> NDArray[np.int64]:
    names = graph.node_names
    ids = pa.array(np.arange(graph.num_nodes)).cast(pa.large_string())
    if names is not None:
        ids = pa.array(np.asarray(names), pa.large_string())
    ends, problems = ends_of(column, ids), EndProblems()
    problems.add(ends)
    wrong = problems.faults(table.name, name, unknown=_NEW_NODES, missing=True, reason=None)
    faults.add(wrong, "changes")
    return ends.nodes


def _kinds(column: pa.ChunkedArray, table: InputTable, faults: FaultCollector) -> NDArray[np.str_]:
    texts = text_column(column).texts
    kinds = np.array([text or "" for text in texts.to_pylist()], np.str_)
    wrong = ~np.isin(kinds, CHANGES)
    advice = f"write one of {', '.join(CHANGES)}"
    faults.add(value_faults(texts, wrong, file=table.name, column=_CHANGE, advice=advice))
    return kinds


def _weights(
    content: pa.Table,
    name: str | None,
    kind: NDArray[np.str_],
    graph: Graph,
    table: InputTable,
    faults: FaultCollector,
) -> NDArray[np.float32]:
    """Return the weights of added and set edges, and collect what is wrong with the column."""
    weights = np.full(len(kind), np.nan, np.float32)
    needed = np.isin(kind, ("add", "set"))
    column = None if name is None else content[name]
    if graph.edge_weight is None:
        _refuse(kind == "set", kind, "the edges have no weights: add or remove it", table, faults)
        if column is not None:
            texts = joined(column.cast(pa.large_string()))
            given = np.asarray(texts.is_valid()) & needed
            advice = "the edges of the graph have no weights: leave it empty"
            where = {"file": table.name, "column": str(name)}
            faults.add(value_faults(texts, given, advice=advice, **where), "changes")
        return weights
    if column is None:
        _refuse(needed, kind, "add a column 'weight' with the weight of the edge", table, faults)
        return weights
    if is_readable(column.type):  # weights of removed edges do not count
        texts = joined(column.cast(pa.large_string()))
        column = pa.chunked_array([pc.if_else(pa.array(needed), texts, "1")])
    reader = WeightReader()
    numbers = reader.weights(column, first_row=0)
    faults.add(reader.faults(table.name, str(name)), "changes")
    with np.errstate(over="ignore", under="ignore"):  # such weights are faults
        return np.where(needed, numbers, np.nan).astype(np.float32)


def _check_edges(
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    kind: NDArray[np.str_],
    graph: Graph,
    table: InputTable,
    faults: FaultCollector,
) -> None:
    """Collect changes that the edges of the graph do not allow."""
    known = (source >= 0) & (target >= 0)
    loop = known & (source == target)
    _refuse(loop, kind, "the edge joins a node to itself: remove the row", table, faults)
    rows = np.flatnonzero(known & ~loop)
    _, exists_M = _places(
        np.asarray(graph.indptr), np.asarray(graph.indices), source[rows], target[rows]
    )
    exists, absent = np.zeros(len(kind), bool), np.zeros(len(kind), bool)
    exists[rows], absent[rows] = exists_M, ~exists_M
    advice = "the graph has this edge already: remove the row"
    if graph.edge_weight is not None:
        advice += ", or set the weight"
    _refuse(exists & (kind == "add"), kind, advice, table, faults)
    advice = "the graph has no such edge: remove the row"
    _refuse(absent & np.isin(kind, ("remove", "set")), kind, advice, table, faults)
    pairs = np.stack([source[rows], target[rows]])
    _, first, inverse = np.unique(pairs, axis=1, return_index=True, return_inverse=True)
    repeated = np.zeros(len(kind), bool)
    repeated[rows] = first[inverse.reshape(-1)] != np.arange(len(rows))
    advice = "a row further up changes this edge already: keep one of them"
    _refuse(repeated, kind, advice, table, faults)


def _refuse(
    wrong: NDArray[np.bool_],
    kind: NDArray[np.str_],
    advice: str,
    table: InputTable,
    faults: FaultCollector,
) -> None:
    """Collect a fault per row; the file has all of them, a message the first."""
    faults.add(
        [
            Fault(
                file=table.name,
                row=int(row) + 1,
                column=_CHANGE,
                value=str(kind[row]),
                advice=advice,
            )
            for row in np.flatnonzero(wrong)
        ],
        "changes",
    )


def _places(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    source: NDArray[np.int64],
    target: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return where edges are, or would be, among the sorted ones, (M,), and which of them exist.

    All are looked for at once by bisection of their rows.
    """
    low, high = indptr[source], indptr[source + 1]
    end = high.copy()
    while (open_rows := np.flatnonzero(low < high)).size:
        middle = (low[open_rows] + high[open_rows]) // 2
        is_before = indices[middle] < target[open_rows]
        low[open_rows[is_before]] = middle[is_before] + 1
        high[open_rows[~is_before]] = middle[~is_before]
    exists = low < end
    exists[exists] = indices[low[exists]] == target[exists]
    return low, exists


def _with_structure(graph: Graph) -> Graph:
    """Return the graph with structural features of its own edges, if it has such features."""
    preparation = graph.preparation
    if preparation is None or not preparation.structure:
        return graph
    columns = pa.table({}) if graph.raw_columns is None else graph.raw_columns.table()
    return replace(graph, features=features_by_block(preparation, columns, graph))
