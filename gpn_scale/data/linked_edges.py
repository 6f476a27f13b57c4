"""Reads the table of edges block by block, and looks up both ends among the nodes.

Shapes: E edges, N nodes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gpn_scale.data.column_roles import ColumnRoles
from gpn_scale.data.compressed_edges import EdgeBlock, edge_list_blocks
from gpn_scale.data.edge_tables import EndProblems, Ends, WeightReader, ends_of
from gpn_scale.data.fault_collector import FaultCollector
from gpn_scale.data.import_rules import UnknownIds
from gpn_scale.data.node_tables import NodeTable
from gpn_scale.data.table_inputs import BLOCK_ROWS, InputTable, table_blocks
from gpn_scale.scratch import GrowingArray, release_pages

_ADVICE = ("add the node, or choose the rule unknown_ids", "add the node, or remove the edge")
"""Advice on unknown ids, with and without the rule `unknown_ids`."""
_REASON_ROWS = 1 << 14
_MAPPED_EDGES = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinkedEdges:
    """Edges between numbered nodes, after the rule for unknown ids; many are in mapped arrays.

    >>> edges = LinkedEdges(
    ...     source=np.array([0, 1]), target=np.array([1, 1]), weight=None, num_listed=3
    ... )
    >>> edges.num_listed - len(edges.source), edges.num_self_loops
    (1, 1)
    >>> edges.renumbered(np.array([7, 5])).target.tolist()
    [5, 5]
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

    def blocks(self) -> Iterator[EdgeBlock]:
        """Yield all edges in blocks."""
        return edge_list_blocks(self.source, self.target, self.weight)()

    @property
    def num_self_loops(self) -> int:
        """Number of edges that join a node to itself."""
        return sum(int((block.source == block.target).sum()) for block in self.blocks())

    def renumbered(
        self, number_N: NDArray[np.int64], directory: Path | None = None
    ) -> "LinkedEdges":
        """Return the edges between nodes that have other numbers.

        Args:
            number_N: New number of each node.
            directory: Folder of temporary files; None for the system's default.
        """
        return LinkedEdges(
            source=_mapped(self.source, number_N, directory),
            target=_mapped(self.target, number_N, directory),
            weight=self.weight,
            num_listed=self.num_listed,
            added=self.added,
        )


def read_edges(
    table: InputTable,
    roles: ColumnRoles,
    nodes: NodeTable | None,
    unknown_ids: UnknownIds | None,
    faults: FaultCollector,
    *,
    directory: Path | None = None,
    block_rows: int = BLOCK_ROWS,
) -> LinkedEdges | None:
    """Return the edges of a table; None if they cannot be read.

    The table is read in blocks, so memory grows with the number of nodes alone.

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
        directory: Folder of temporary files; None for the system's default.
        block_rows: Number of rows that are read at a time.
    """
    used = [name for name in (roles.source, roles.target, roles.weight) if name is not None]
    used = list(dict.fromkeys(used))
    if not used:
        return None

    def scanned() -> _Scan:
        has_points: dict[str, bool] = {}
        while True:
            scan = _Scan(roles, nodes, unknown_ids, directory, has_points)
            blocks = table_blocks(table, used, block_rows=block_rows)
            if all(scan.add(block) for block in blocks):
                return scan

    scan = faults.attempt(scanned)
    if scan is None:
        return None
    if roles.weight is not None:
        faults.add(scan.weights.faults(table.name, roles.weight), "weight", "drop")
    if nodes is None or roles.source is None or roles.target is None:
        return None
    for name in (roles.source, roles.target):
        _check_ends(name, scan.problems[name], table, roles, nodes, unknown_ids, faults)
    return scan.linked()


class _Scan:
    """One pass over the table of edges."""

    def __init__(
        self,
        roles: ColumnRoles,
        nodes: NodeTable | None,
        unknown_ids: UnknownIds | None,
        directory: Path | None,
        has_points: dict[str, bool],
    ) -> None:
        self._roles, self._nodes, self._directory = roles, nodes, directory
        self._adds = unknown_ids == "add"
        self._has_points = has_points
        """Whether all ids of a column so far are written as "7.0"."""
        self.weights = WeightReader()
        ends = [name for name in (roles.source, roles.target) if name is not None]
        self.problems = {name: EndProblems() for name in ends}
        self._arrays = [GrowingArray(np.int64, directory) for _ in range(2)]
        self._weight = GrowingArray(np.float64, directory)
        self._added = pa.array([], pa.large_string())
        self._num_rows = 0

    def add(self, block: pa.Table) -> bool:
        """Add a block; False if it shows that earlier blocks were read by a wrong rule."""
        weight = None
        if self._roles.weight is not None:
            weight = self.weights.weights(block[self._roles.weight], self._num_rows)
        if self._nodes is not None and len(self.problems) == 2:
            ends = []
            for name in self.problems:
                read = self._read_ends(name, block[name], self._nodes.ids)
                if read is None:
                    return False
                self.problems[name].add(read, self._num_rows)
                ends.append(read)
            self._keep(ends, weight, self._nodes.num_nodes)
        self._num_rows += block.num_rows
        return True

    def linked(self) -> LinkedEdges:
        """Return the edges that were kept, after all blocks."""
        assert self._nodes is not None
        linked = LinkedEdges(
            source=self._arrays[0].array(),
            target=self._arrays[1].array(),
            weight=None if self._roles.weight is None else self._weight.array(),
            num_listed=self._num_rows,
        )
        if not len(self._added):
            return linked
        # Added nodes were numbered as they occurred; their order is that of their ids.
        order = np.asarray(pc.array_sort_indices(self._added)).astype(np.int64)
        number = np.arange(self._nodes.num_nodes + len(order))
        number[self._nodes.num_nodes + order] = self._nodes.num_nodes + np.arange(len(order))
        numbered = linked.renumbered(number, self._directory)
        return LinkedEdges(
            source=numbered.source,
            target=numbered.target,
            weight=numbered.weight,
            num_listed=numbered.num_listed,
            added=self._added.take(pa.array(order)),
        )

    def _read_ends(self, name: str, column: pa.ChunkedArray, ids: pa.Array) -> Ends | None:
        """Return the ends in a block; None if earlier blocks have shortened their ids wrongly."""
        known = self._has_points.get(name)
        ends = ends_of(column, ids, shorten=False if known is False else None)
        if ends.has_points is not None:
            self._has_points[name] = ends.has_points
        return None if known and ends.has_points is False else ends

    def _keep(self, ends: list[Ends], weight: NDArray[Any] | None, num_nodes: int) -> None:
        """Keep the edges of a block that have both ends; unknown ids are added by rule."""
        numbers = [each.nodes for each in ends]
        if self._adds and any(each.is_unknown.any() for each in ends):
            texts = [each.texts.filter(pa.array(each.is_unknown)) for each in ends]
            unknown = pc.unique(pa.concat_arrays([self._added, *texts]))
            self._added = unknown  # the earlier ones come first, in their order
            for each, own_texts in zip(ends, texts, strict=True):
                places = np.asarray(pc.index_in(own_texts, value_set=unknown))
                each.nodes[each.is_unknown] = num_nodes + places
        kept = (numbers[0] >= 0) & (numbers[1] >= 0)
        for array, number in zip(self._arrays, numbers, strict=True):
            array.append(number[kept])
        if weight is not None:
            self._weight.append(weight[kept])


def _check_ends(
    name: str,
    problems: EndProblems,
    table: InputTable,
    roles: ColumnRoles,
    nodes: NodeTable,
    unknown_ids: UnknownIds | None,
    faults: FaultCollector,
) -> None:
    refused = unknown_ids in ("refuse", None)
    reason = None
    if refused and problems.mostly_unknown:
        used = {roles.source, roles.target}
        others = [column for column in table.column_names if column not in used]
        first = next(table_blocks(table, others, block_rows=_REASON_ROWS), pa.table({}))
        assert roles.id is not None
        reason = problems.likely_reason(
            nodes.ids, id_column=roles.id, nodes=nodes.columns, edges=first
        )
    wrong = problems.faults(
        table.name,
        name,
        unknown=_ADVICE[unknown_ids is None] if refused else None,
        missing=unknown_ids != "drop",
        reason=reason,
    )
    choices = () if unknown_ids is None else ("unknown_ids",)
    faults.add(wrong, *choices, *(("id", "source", "target") if reason else ()))


def _mapped(
    ends: NDArray[np.int64], number_N: NDArray[np.int64], directory: Path | None
) -> NDArray[np.int64]:
    """Return the new numbers of the ends of all edges."""
    result = GrowingArray(np.int64, directory)
    for start in range(0, len(ends), _MAPPED_EDGES):
        result.append(number_N[ends[start : start + _MAPPED_EDGES]])
        release_pages(ends)
    return result.array()
