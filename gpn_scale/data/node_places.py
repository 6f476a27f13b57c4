"""Places of nodes in a later version of a graph: old nodes keep their places, new ones follow.

A store of rows can only be updated to a graph whose old nodes keep their places.

Shapes: N nodes that are placed, M nodes of the later graph.
"""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpn_scale.data.graph import MISSING_LABEL, Graph, Split
from gpn_scale.data.growing_table import GrowingTable
from gpn_scale.data.node_tables import NodeTable
from gpn_scale.errors import GraphError

_TAKEN_ROWS = 1 << 20


class PlacedNodes(NamedTuple):
    """Nodes in the order of a later graph.

    >>> PlacedNodes._fields
    ('nodes', 'place', 'num_gone')
    """

    nodes: NodeTable
    """The nodes in their places, with those that are gone, (M,)."""
    place: NDArray[np.int64]
    """Place of each node that was placed, (N,)."""
    num_gone: int
    """Number of nodes of the earlier graph that are missing among the N; they have neither a label
    nor values."""


def earlier_ids(graph: Graph) -> pa.Array:
    """Return the ids of the nodes of an earlier graph, which keep their places.

    >>> from gpn_scale import build_graph
    >>> earlier_ids(build_graph([0], [1], node_names=["a", "b"])).to_pylist()
    ['a', 'b']

    Raises:
        GraphError: the nodes have no names.
    """
    if graph.node_names is None:
        raise GraphError(
            f"the nodes of graph {graph.name!r} have no names, so they cannot keep their places: "
            "expected a graph that was imported from tables",
            arguments=("like",),
        )
    return pa.array(graph.node_names, pa.large_string())


def gone_ids(nodes: NodeTable, earlier: pa.Array) -> pa.Array:
    """Return the earlier ids that no node has any more, in their order.

    >>> from gpn_scale.data.column_roles import ColumnRoles
    >>> from gpn_scale.data.fault_collector import FaultCollector
    >>> from gpn_scale.data.node_tables import read_nodes
    >>> from gpn_scale.data.table_inputs import input_table
    >>> table = input_table({"id": ["new", "b"]}, "nodes")
    >>> nodes = read_nodes(table, ColumnRoles(id="id"), FaultCollector())
    >>> gone_ids(nodes, pa.array(["a", "b"])).to_pylist()
    ['a']
    """
    earlier = earlier.cast(nodes.ids.type)
    return earlier.filter(pc.invert(pc.is_in(earlier, value_set=nodes.ids)))


def placed_after(nodes: NodeTable, earlier: pa.Array, directory: Path | None = None) -> PlacedNodes:
    """Return the nodes with those of an earlier graph first, in their old places.

    >>> from gpn_scale.data.column_roles import ColumnRoles
    >>> from gpn_scale.data.fault_collector import FaultCollector
    >>> from gpn_scale.data.node_tables import read_nodes
    >>> from gpn_scale.data.table_inputs import input_table
    >>> table = input_table({"id": ["new", "b"], "age": [31, 29]}, "nodes")
    >>> roles = ColumnRoles(id="id", features=("age",))
    >>> nodes = read_nodes(table, roles, FaultCollector())
    >>> placed = placed_after(nodes, pa.array(["a", "b"]))
    >>> placed.nodes.ids.to_pylist(), placed.place.tolist(), placed.num_gone
    (['a', 'b', 'new'], [2, 1], 1)
    >>> placed.nodes.columns.to_pydict()
    {'age': [None, 29, 31]}

    Args:
        nodes: The nodes, with distinct ids.
        earlier: Distinct ids of the nodes of the earlier graph.
        directory: Folder of temporary files; None for the system's default.
    """
    earlier = earlier.cast(nodes.ids.type)
    place = np.asarray(pc.fill_null(pc.index_in(nodes.ids, value_set=earlier), -1)).astype(np.int64)
    is_new = place < 0
    place[is_new] = len(earlier) + np.arange(int(is_new.sum()))
    size = len(earlier) + int(is_new.sum())
    row_M = np.full(size, -1, np.int64)
    row_M[place] = np.arange(len(place))
    rows = pa.array(row_M, mask=row_M < 0)
    labels, split = nodes.labels, nodes.split
    if labels is not None:
        labels = labels._replace(labels=np.append(labels.labels, MISSING_LABEL)[row_M])
    if split is not None:
        split = Split(train=place[split.train], val=place[split.val], test=place[split.test])
    placed = replace(
        nodes,
        ids=pa.concat_arrays([earlier, nodes.ids.filter(pa.array(is_new))]),
        labels=labels,
        split=split,
        columns=_taken(nodes.columns, rows, directory),
    )
    return PlacedNodes(placed, place, size - len(place))


def _taken(columns: pa.Table, rows: pa.Array, directory: Path | None) -> pa.Table:
    """Return some rows of the columns in a given order; a null gives a row without values."""
    if not columns.num_columns or not len(rows):
        return columns
    taken = GrowingTable(directory)
    for start in range(0, len(rows), _TAKEN_ROWS):
        taken.append(columns.take(rows.slice(start, _TAKEN_ROWS)))
    return taken.table()
