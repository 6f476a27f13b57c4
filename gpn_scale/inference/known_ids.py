"""Ids of existing nodes to which the tables of new nodes may refer: all of them, or by a lookup.

Shapes: N nodes, B ids, K known ids.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpn_scale.data.column_roles import ColumnNames, node_roles
from gpn_scale.data.faults import TableFaults
from gpn_scale.data.graph import Graph
from gpn_scale.data.table_inputs import InputTable
from gpn_scale.data.text_columns import text_column, without_point


class NodeLookup(Protocol):
    """Finds nodes of a graph by the user's ids.

    >>> class Numbered:
    ...     def positions(self, ids):
    ...         return np.array([int(text) if text in ("0", "1") else -1 for text in ids])
    >>> lookup: NodeLookup = Numbered()
    >>> lookup.positions(["1", "x"]).tolist()
    [1, -1]
    """

    def positions(self, ids: Sequence[str]) -> NDArray[np.int64]:
        """Return the position of each id, -1 for ids that no node has, (B,)."""


class KnownIds(NamedTuple):
    """Ids of existing nodes, and where they are in the graph.

    >>> KnownIds(pa.array(["b"]), np.array([1])).positions.tolist()
    [1]
    """

    texts: pa.Array
    """Ids as canonical texts, (K,)."""
    positions: NDArray[np.int64]
    """Positions of the nodes, (K,)."""


KnownIdsOf = Callable[[InputTable | None, InputTable | None, ColumnNames], KnownIds]
"""Maps the tables of nodes and edges, and the names of their columns, to the ids that matter."""


def all_ids(
    graph: Graph, nodes: InputTable | None, edges: InputTable | None, names: ColumnNames
) -> KnownIds:
    """Return all nodes of a graph, independent of the tables; takes a pass over the graph.

    >>> from gpn_scale import build_graph
    >>> all_ids(build_graph([0], [1]), None, None, ColumnNames()).texts.to_pylist()
    ['0', '1']
    """
    del nodes, edges, names
    texts = graph.node_names
    if texts is None:
        texts = np.arange(graph.num_nodes).astype(np.str_)
    return KnownIds(pa.array(texts, pa.large_string()), np.arange(graph.num_nodes))


def looked_up_ids(
    lookup: NodeLookup, nodes: InputTable | None, edges: InputTable | None, names: ColumnNames
) -> KnownIds:
    """Return the nodes whose ids occur in the tables.

    All columns of the edges are searched, and other forms of the texts, because faults name them.

    >>> from gpn_scale.data.table_inputs import input_table
    >>> class Letters:
    ...     def positions(self, ids):
    ...         return np.array(["ab".find(text) for text in ids])
    >>> edges = input_table({"source": ["B ", "c"], "target": ["a", "x"]}, "edges")
    >>> looked_up_ids(Letters(), None, edges, ColumnNames()).positions.tolist()
    [1, 0]
    """
    columns: list[pa.ChunkedArray] = []
    if nodes is not None:
        node_id = node_roles(names, nodes.column_names, file=nodes.name)[0].id
        columns += [] if node_id is None else _columns(nodes, [node_id])
    if edges is not None:
        columns += _columns(edges, edges.column_names)
    texts = [form for column in columns for form in _forms(column)]
    distinct = pc.unique(pa.concat_arrays([pa.array([], pa.large_string()), *texts])).drop_null()
    positions = np.asarray(lookup.positions(distinct.to_pylist()), np.int64)
    known = positions >= 0
    return KnownIds(distinct.filter(pa.array(known)), positions[known])


def _columns(table: InputTable, names: Sequence[str]) -> list[pa.ChunkedArray]:
    """Return columns; none of a table that cannot be read, which is reported elsewhere."""
    try:
        return list(table.read(names).columns)
    except TableFaults:
        return []


def _forms(column: pa.ChunkedArray) -> list[pa.Array]:
    """Return the texts of a column unchanged, and in forms that the user may have meant."""
    texts = text_column(column).texts
    trimmed = pc.utf8_trim_whitespace(texts)
    return [texts, without_point(texts), trimmed, pc.utf8_lower(trimmed), pc.utf8_upper(trimmed)]
