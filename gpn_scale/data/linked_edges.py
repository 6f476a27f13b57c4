"""The table of edges, with its ends found among the nodes."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpn_scale.data.column_roles import ColumnRoles
from gpn_scale.data.edge_tables import (
    Ends,
    end_faults,
    ends_of,
    likely_reason,
    mostly_unknown,
    read_weights,
)
from gpn_scale.data.fault_collector import FaultCollector
from gpn_scale.data.import_rules import UnknownIds
from gpn_scale.data.node_tables import NodeTable
from gpn_scale.data.table_inputs import InputTable

_ADVICE = ("add the node, or choose the rule unknown_ids", "add the node, or remove the edge")
"""What to do about an unknown id: if there is a rule for them, and if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinkedEdges:
    """Edges between numbered nodes, after the rule for unknown ids.

    >>> edges = LinkedEdges(
    ...     source=np.array([0, 1]), target=np.array([1, 1]), weight=None, num_listed=3
    ... )
    >>> edges.num_listed - len(edges.source)
    1
    """

    source: NDArray[np.int64]
    """Numbers of the nodes where edges start, (E,)."""
    target: NDArray[np.int64]
    """Numbers of the nodes where edges end, (E,)."""
    weight: NDArray[np.float64] | None
    """Weights, (E,); None without a column of weights."""
    num_listed: int
    """Number of rows of the table."""
    added: pa.Array | None = None
    """Ids of nodes to add, sorted; they follow the listed ones. None without."""


def read_edges(
    table: InputTable,
    roles: ColumnRoles,
    nodes: NodeTable | None,
    unknown_ids: UnknownIds | None,
    faults: FaultCollector,
) -> LinkedEdges | None:
    """Return the edges of a table; None if they cannot be read.

    >>> from gpn_scale.data.node_tables import read_nodes
    >>> from gpn_scale.data.table_inputs import input_table
    >>> roles, faults = ColumnRoles(id="id", source="u", target="v"), FaultCollector()
    >>> nodes = read_nodes(input_table({"id": ["a", "b"]}, "nodes"), roles, faults)
    >>> table = input_table({"u": ["a", "b"], "v": ["b", "c"]}, "edges")
    >>> edges = read_edges(table, roles, nodes, "add", faults)
    >>> edges.source.tolist(), edges.target.tolist(), edges.added.to_pylist()
    ([0, 1], [1, 2], ['c'])

    Args:
        table: The opened table.
        roles: Its columns.
        nodes: The nodes that the edges join; without them, only weights are checked.
        unknown_ids: What to do with ids that no node has; None if there is no choice, and they are
            refused.
        faults: Gets all that is wrong with ends and weights.
    """
    used = [name for name in (roles.source, roles.target, roles.weight) if name is not None]
    content = faults.attempt(lambda: table.read(list(dict.fromkeys(used)))) if used else None
    if content is None:
        return None
    weight = None
    if roles.weight is not None:
        column = content[roles.weight]
        weight, wrong = read_weights(column, file=table.name, column_name=roles.weight)
        faults.add(wrong, "weight", "drop")
    if nodes is None or roles.source is None or roles.target is None:
        return None
    ends = {}
    for name in (roles.source, roles.target):
        ends[name] = ends_of(content[name], nodes.ids)
        _check_ends(name, ends[name], table, roles, nodes, unknown_ids, faults)
    del content
    return _linked(ends[roles.source], ends[roles.target], weight, nodes.num_nodes, unknown_ids)


def _check_ends(
    name: str,
    ends: Ends,
    table: InputTable,
    roles: ColumnRoles,
    nodes: NodeTable,
    unknown_ids: UnknownIds | None,
    faults: FaultCollector,
) -> None:
    refused = unknown_ids in ("refuse", None)
    reason = None
    if refused and mostly_unknown(ends):
        used = {roles.source, roles.target}
        others = [column for column in table.column_names if column not in used]
        assert roles.id is not None
        reason = likely_reason(
            ends, nodes.ids, id_column=roles.id, nodes=nodes.columns, edges=table.read(others)
        )
    wrong = end_faults(
        ends,
        file=table.name,
        column=name,
        unknown=_ADVICE[unknown_ids is None] if refused else None,
        missing=unknown_ids != "drop",
        reason=reason,
    )
    choices = () if unknown_ids is None else ("unknown_ids",)
    faults.add(wrong, *choices, *(("id", "source", "target") if reason else ()))


def _linked(
    source: Ends,
    target: Ends,
    weight: NDArray[np.float64] | None,
    num_nodes: int,
    unknown_ids: UnknownIds | None,
) -> LinkedEdges:
    """Return the edges by the rule for unknown ids; those with a missing end are dropped."""
    added, numbers = None, [source.nodes, target.nodes]
    if unknown_ids == "add" and (source.is_unknown.any() or target.is_unknown.any()):
        unknown = pc.unique(pa.concat_arrays([_unknown_texts(source), _unknown_texts(target)]))
        added = unknown.take(pc.array_sort_indices(unknown))
        numbers = [_with_numbers(ends, added, num_nodes) for ends in (source, target)]
    kept = (numbers[0] >= 0) & (numbers[1] >= 0)
    if not kept.all():
        numbers = [each[kept] for each in numbers]
        weight = None if weight is None else weight[kept]
    return LinkedEdges(
        source=numbers[0],
        target=numbers[1],
        weight=weight,
        num_listed=len(kept),
        added=added,
    )


def _with_numbers(ends: Ends, added: pa.Array, num_nodes: int) -> NDArray[np.int64]:
    """Return the numbers of the nodes, where added ones follow the others."""
    numbers = ends.nodes.copy()
    places = np.asarray(pc.index_in(_unknown_texts(ends), value_set=added))
    numbers[ends.is_unknown] = num_nodes + places
    return numbers


def _unknown_texts(ends: Ends) -> pa.Array:
    return ends.texts.filter(pa.array(ends.is_unknown))
