"""The table of nodes: ids, labels, split and raw feature columns."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from gpn_scale.data.column_roles import ColumnRoles
from gpn_scale.data.edge_tables import read_node_ids
from gpn_scale.data.fault_collector import FaultCollector
from gpn_scale.data.faults import Fault
from gpn_scale.data.graph import MISSING_LABEL, Split
from gpn_scale.data.growing_table import GrowingTable
from gpn_scale.data.label_columns import Labels, read_labels, read_split
from gpn_scale.data.table_inputs import BLOCK_ROWS, InputTable, table_blocks


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeTable:
    """Nodes in the order of their table; if the table has faults, parts may be unusable.

    >>> from gpn_scale.data.table_inputs import input_table
    >>> table = input_table({"id": ["a", "b"], "age": [31, 29]}, "nodes")
    >>> roles, faults = ColumnRoles(id="id", features=("age",)), FaultCollector()
    >>> nodes = read_nodes(table, roles, faults)
    >>> nodes.ids.to_pylist(), nodes.columns.to_pydict()
    (['a', 'b'], {'age': [31, 29]})
    >>> nodes.with_added(pa.array(["c"])).columns.to_pydict()
    {'age': [31, 29, None]}
    """

    file: str
    """Name of the table in faults."""
    ids: pa.Array
    """Ids as canonical texts, (N,)."""
    labels: Labels | None
    """Classes; None without a column of labels."""
    split: Split | None
    columns: pa.Table
    """Raw feature columns, N rows."""

    @property
    def num_nodes(self) -> int:
        """Number of nodes N."""
        return len(self.ids)

    def with_added(self, ids: pa.Array) -> "NodeTable":
        """Return the table with nodes that have no label and no value in any column."""
        if not len(ids):
            return self
        nothing = [pa.nulls(len(ids), kind) for kind in self.columns.schema.types]
        missing = pa.table(nothing, schema=self.columns.schema) if nothing else self.columns
        labels = self.labels
        if labels is not None:
            unlabelled = np.full(len(ids), MISSING_LABEL, np.int64)
            labels = labels._replace(labels=np.append(labels.labels, unlabelled))
        return replace(
            self,
            ids=pa.concat_arrays([self.ids, ids.cast(self.ids.type)]),
            labels=labels,
            columns=pa.concat_tables([self.columns, missing]),
        )


def read_nodes(
    table: InputTable,
    roles: ColumnRoles,
    faults: FaultCollector,
    *,
    directory: Path | None = None,
    block_rows: int = BLOCK_ROWS,
) -> NodeTable | None:
    """Return the nodes of a table; None if it cannot be read or has no column of ids.

    Large raw columns are written to an unnamed file and mapped from it.

    >>> from gpn_scale.data.table_inputs import input_table
    >>> table, faults = input_table({"id": [1, 1]}, "nodes"), FaultCollector()
    >>> nodes = read_nodes(table, ColumnRoles(id="id"), faults)
    >>> faults.report()
    Traceback (most recent call last):
        ...
    gpn_scale.data.faults.TableFaults: 1 fault in the tables:
      file   row  column  value  what to do
      nodes  2    id      '1'    the id stands further up already: give every node its own id

    Args:
        table: The opened table.
        roles: Its columns.
        faults: Gets all that is wrong with ids, labels and split.
        directory: Folder of the file; None for the system's default.
        block_rows: Number of rows that are read at a time.
    """
    used = [name for name in (roles.id, roles.label, roles.split) if name is not None]
    own = list(dict.fromkeys(used))

    def read() -> tuple[pa.Table, pa.Table]:
        parts, columns = [], GrowingTable(directory)
        for block in table_blocks(table, [*own, *roles.features], block_rows=block_rows):
            parts.append(block.select(own))
            columns.append(block.select(list(roles.features)))
        if not parts:
            return table.read(own), table.read(roles.features)
        return pa.concat_tables(parts), columns.table()

    tables = faults.attempt(read) if own or roles.features else None
    if tables is None:
        return None
    content, columns = tables
    file = table.name
    num_rows = max(content.num_rows, columns.num_rows)
    if not num_rows:
        faults.add([Fault(file=file, advice="the table has no rows: list at least one node")])
    labels, split = None, None
    if roles.label is not None:
        labels, wrong = read_labels(content[roles.label], file=file, column_name=roles.label)
        faults.add(wrong if num_rows else [], "label", "drop")
    if roles.split is not None:
        column = content[roles.split]
        split, wrong = read_split(column, labels, file=file, column_name=roles.split)
        faults.add(wrong, "split", "drop")
    if roles.id is None:
        return None
    ids, wrong = read_node_ids(content[roles.id], file=file, column_name=roles.id)
    faults.add(wrong, "id")
    return NodeTable(
        file=file,
        ids=ids,
        labels=labels,
        split=split,
        columns=columns,
    )
