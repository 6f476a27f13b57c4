"""Graphs from two raw tables, of nodes and of edges, with columns of any names and kinds.

All faults of both tables are collected before they are reported.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from gpn_scale.data.building import graph_with_edges
from gpn_scale.data.column_roles import (
    ColumnNames,
    ColumnRoles,
    edge_roles,
    exchanged_tables,
    missing_roles,
    node_roles,
    unknown_columns,
)
from gpn_scale.data.column_values import MISSING_TOKENS
from gpn_scale.data.compressed_edges import compressed_edges
from gpn_scale.data.fault_collector import FaultCollector
from gpn_scale.data.faults import Fault
from gpn_scale.data.graph import Graph
from gpn_scale.data.import_facts import ImportFacts
from gpn_scale.data.import_rules import ImportRules
from gpn_scale.data.linked_edges import LinkedEdges, read_edges
from gpn_scale.data.node_places import earlier_ids, gone_ids, placed_after
from gpn_scale.data.node_tables import NodeTable, read_nodes
from gpn_scale.data.preparation import Preparation
from gpn_scale.data.prepared_blocks import features_by_block
from gpn_scale.data.raw_columns import RawColumns
from gpn_scale.data.table_files import TableFile
from gpn_scale.data.table_inputs import BLOCK_ROWS, InputTable, TableLike, input_table
from gpn_scale.data.text_columns import text_array
from gpn_scale.memory import give_back_freed_memory

_NAMED_COLUMNS = 5
"""Number of unused columns of the edges that a note names."""


class ImportedGraph(NamedTuple):
    """A graph from tables, and how it was made.

    >>> nodes, edges = {"id": ["a", "b"], "age": [31, 29]}, {"source": ["a"], "target": ["b"]}
    >>> import_tables(nodes, edges).graph
    Graph('graph', nodes=2, edges=2, features=1, classes=0)
    """

    graph: Graph
    facts: ImportFacts
    columns: ColumnRoles
    """The columns that were used."""


def import_tables(
    nodes: TableLike,
    edges: TableLike,
    *,
    names: ColumnNames | None = None,
    rules: ImportRules | None = None,
    name: str = "graph",
    earlier: Graph | None = None,
    scratch: Path | None = None,
    block_rows: int = BLOCK_ROWS,
) -> ImportedGraph:
    """Return the graph of two raw tables, and what was done to them.

    Ids are texts, integers or whole numbers, and compare as texts: 7 is "7", "007" is not. All
    columns of the nodes without a role become features by a `Preparation` that is fitted to them.
    Classes always have names; nodes are numbered in the order of their table, with added ones at
    the end in the order of their ids. The nodes of an earlier graph keep their places and come
    first; those that are gone stay without edges, label and values.

    >>> nodes = {"ref": [1, 2, 3], "kind": ["x", "y", None], "verdict": ["ok", "bad", None]}
    >>> edges = {"a": [1, 2, 2, 9], "b": [2, 1, 2, 3]}
    >>> names = ColumnNames(id="ref", label="verdict", source="a", target="b")
    >>> graph, facts, _ = import_tables(
    ...     nodes, edges, names=names, rules=ImportRules(unknown_ids="drop")
    ... )
    >>> graph.class_names.tolist(), facts.self_loops, facts.duplicates, facts.unknown_ids
    (['bad', 'ok'], 1, 1, 1)

    Args:
        nodes: A path, a pandas or polars frame, a pyarrow table or a dictionary of columns.
        edges: The same for the edges.
        names: Names of the columns that are no features.
        rules: What to do where the tables leave a choice.
        name: Name of the graph.
        earlier: A graph of earlier tables, whose nodes keep their places.
        scratch: Folder of temporary files, which large tables need; None for the system's default.
        block_rows: Number of rows of a table that are read at a time.

    Raises:
        TableFaults: the tables cannot become a graph; it lists all faults.
        GraphError: an argument is no table, or the nodes of `earlier` have no names.
    """
    names, rules = names or ColumnNames(), rules or ImportRules()
    faults = FaultCollector()
    old_ids = None if earlier is None else earlier_ids(earlier)
    inputs = _opened(nodes, edges, faults)
    roles = _roles(*inputs, names, faults)
    node_input, edge_input = inputs
    listed = None
    if node_input is not None:
        listed = read_nodes(node_input, roles, faults, directory=scratch, block_rows=block_rows)
        _give_back_memory()
    linked = None
    if edge_input is not None:
        linked = read_edges(
            edge_input,
            roles,
            listed,
            rules.unknown_ids,
            faults,
            directory=scratch,
            block_rows=block_rows,
        )
        _give_back_memory()
    preparation = None
    if listed is not None:
        added = None if linked is None else linked.added
        everyone = listed if added is None else listed.with_added(added)
        preparation = faults.attempt(lambda: _fitted(everyone, rules))
        if old_ids is not None and rules.missing == "refuse":
            _check_gone(everyone, old_ids, roles, faults)
    faults.report()
    _give_back_memory()
    assert listed is not None
    assert edge_input is not None
    assert linked is not None
    assert preparation is not None
    placed = everyone
    if old_ids is not None:
        placed, place, _ = placed_after(everyone, old_ids, scratch)
        linked = linked.renumbered(place, scratch)
    edge_rows = compressed_edges(
        linked.blocks,
        placed.num_nodes,
        weighted=linked.weight is not None,
        directed=rules.directed,
        directory=scratch,
    )
    graph = graph_with_edges(
        edge_rows,
        name=name,
        directed=rules.directed,
        node_names=text_array(placed.ids, scratch),
        **_label_arguments(placed),
    )
    facts = _facts(graph, listed, everyone, linked, preparation, roles)
    unused = set(edge_input.column_names) - {roles.source, roles.target, roles.weight, *names.drop}
    notes = (*_unused_notes(sorted(unused), roles), *_gone_notes(facts.nodes_gone))
    facts = replace(facts, notes=(*facts.notes, *notes))
    return ImportedGraph(_with_features(graph, placed, preparation, scratch), facts, roles)


def _give_back_memory() -> None:
    """Return what Arrow and the heap keep for later to the system, between two phases."""
    pa.default_memory_pool().release_unused()
    give_back_freed_memory()


def _opened(
    nodes: TableLike, edges: TableLike, faults: FaultCollector
) -> tuple[InputTable | None, InputTable | None]:
    """Return the two tables; None for one that cannot be opened."""
    first = faults.attempt(lambda: input_table(nodes, "nodes"))
    second = faults.attempt(lambda: input_table(edges, "edges"))
    if isinstance(first, TableFile) and isinstance(second, TableFile) and first.name == second.name:
        return replace(first, name=str(first.path)), replace(second, name=str(second.path))
    return first, second


def _roles(
    nodes: InputTable | None,
    edges: InputTable | None,
    names: ColumnNames,
    faults: FaultCollector,
) -> ColumnRoles:
    """Return the roles of all columns, and collect what is wrong with them."""
    if nodes is not None and edges is not None:
        if exchanged_tables(names, nodes.column_names, edges.column_names):
            advice = f"exchange the tables: {edges.name} has the columns of nodes"
            faults.add([Fault(file=nodes.name, advice=advice)], "nodes", "edges")
            return ColumnRoles()
        columns = (*nodes.column_names, *edges.column_names)
        both = f"{nodes.name}, {edges.name}"
        faults.add(unknown_columns(names.drop, columns, file=both, purpose="drop"), "drop")
    roles = ColumnRoles()
    if nodes is not None:
        roles, wrong = node_roles(names, nodes.column_names, file=nodes.name)
        faults.add(wrong, *missing_roles(names, roles, ("id", "label", "split")))
    if edges is not None:
        ends, wrong = edge_roles(names, edges.column_names, file=edges.name)
        faults.add(wrong, *missing_roles(names, ends, ("source", "target", "weight")))
        roles = replace(roles, source=ends.source, target=ends.target, weight=ends.weight)
    return roles


def _fitted(nodes: NodeTable, rules: ImportRules) -> Preparation:
    preparation = Preparation.fit(
        nodes.columns,
        kinds=rules.kinds,
        missing=rules.missing,
        structural=rules.structural_features == "on",
        file=nodes.file,
    )
    if rules.structural_features == "auto" and not preparation.rules:
        return replace(preparation, structural=True)
    return preparation


def _check_gone(
    nodes: NodeTable, old_ids: pa.Array, roles: ColumnRoles, faults: FaultCollector
) -> None:
    """Refuse nodes that are gone if they must not have missing values."""
    gone = gone_ids(nodes, old_ids)
    if len(gone) and nodes.columns.num_columns:
        advice = (
            "the earlier graph has this node, which would keep its place with missing values: list "
            "it, or let missing values be filled or flagged"
        )
        fault = Fault(
            file=nodes.file, column=roles.id, value=gone[0].as_py(), count=len(gone), advice=advice
        )
        faults.add([fault], "missing", "order")


def _label_arguments(nodes: NodeTable) -> dict[str, Any]:
    if nodes.labels is None:
        return {}
    labels, class_names = nodes.labels
    return {"labels": labels, "class_names": class_names, "split": nodes.split}


def _with_features(
    graph: Graph, nodes: NodeTable, preparation: Preparation, scratch: Path | None
) -> Graph:
    fitted = preparation.fitted_to(graph)
    if not fitted.num_features:
        return graph
    return replace(
        graph,
        features=features_by_block(fitted, nodes.columns, graph, directory=scratch),
        feature_names=np.array(fitted.feature_names),
        preparation=fitted,
        raw_columns=RawColumns(nodes.columns) if nodes.columns.num_columns else None,
    )


def _facts(
    graph: Graph,
    listed: NodeTable,
    everyone: NodeTable,
    linked: LinkedEdges,
    preparation: Preparation,
    roles: ColumnRoles,
) -> ImportFacts:
    self_loops = linked.num_self_loops
    edges = graph.num_edges if graph.directed else graph.num_edges // 2
    missing = {
        rule.column: round(rule.missing_fraction * everyone.num_nodes)
        for rule in preparation.rules
        if rule.missing_fraction > 0
    }
    return ImportFacts(
        nodes_listed=listed.num_nodes,
        nodes_added=everyone.num_nodes - listed.num_nodes,
        nodes_gone=graph.num_nodes - everyone.num_nodes,
        edges_listed=linked.num_listed,
        unknown_ids=linked.num_listed - len(linked.source),
        self_loops=self_loops,
        duplicates=len(linked.source) - self_loops - edges,
        weight=roles.weight,
        missing=missing,
        notes=(*preparation.notes, *_label_notes(graph, roles), *_feature_notes(preparation)),
    )


def _label_notes(graph: Graph, roles: ColumnRoles) -> list[str]:
    """Return a note if there are no labels, or on each class whose name stands for a gap."""
    if roles.label is None:
        return [
            "No column holds labels, so that a model can predict this graph but not learn from it; "
            "if one does, name it as the column of labels (label)."
        ]
    names = [] if graph.class_names is None else graph.class_names.tolist()
    return [
        f"The label {name!r} counts as a class; leave the label of a node empty if it is unknown."
        for name in names
        if name in MISSING_TOKENS
    ]


def _unused_notes(columns: Sequence[str], roles: ColumnRoles) -> list[str]:
    """Return a note on columns of the edges without a role."""
    if not columns:
        return []
    named = ", ".join(repr(name) for name in columns[:_NAMED_COLUMNS])
    if (more := len(columns) - _NAMED_COLUMNS) > 0:
        named += f" and {more:,} more"
    subject = f"The column {named}" if len(columns) == 1 else f"The columns {named}"
    what = f"{subject} of the edges {'is' if len(columns) == 1 else 'are'}"
    weight = "" if roles.weight else "; a column of numbers can be the weight of the edges (weight)"
    return [f"{what} not used{weight}."]


def _gone_notes(num_gone: int) -> list[str]:
    """Return a note on nodes of the earlier graph that the tables no longer have."""
    if not num_gone:
        return []
    who = (
        "One node is gone and keeps its place"
        if num_gone == 1
        else "Nodes that are gone keep their places"
    )
    return [
        f"{who}, so that a store of rows can be updated. Predictions and comparisons count such "
        "nodes, without edges and values; the order of the table leaves them out (order)."
    ]


def _feature_notes(preparation: Preparation) -> list[str]:
    if preparation.rules:
        return []
    if preparation.structural:
        return ["No column became a feature, so features of the network itself are used."]
    return ["No column became a feature: a model cannot be trained on this graph."]
