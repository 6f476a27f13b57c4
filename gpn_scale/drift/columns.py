"""Movements of columns: raw ones if both graphs have kept them, else features by name."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.data.surprises import listed
from gpn_scale.drift.column_drift import ColumnDrift
from gpn_scale.drift.feature_drift import KEPT, feature_drifts
from gpn_scale.drift.raw_drift import column_drift, number_drift
from gpn_scale.drift.reference import ComparedNodes
from gpn_scale.drift.scored_table import ScoredTable
from gpn_scale.errors import GraphError

NEIGHBOURS = "number of neighbours"
"""Property of the network that is compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnsDrift:
    """Movements of the columns of two graphs.

    >>> ColumnsDrift(columns=(), compared=0, left_out=("The graph of B is not known.",)).moved
    ()
    """

    columns: tuple[ColumnDrift, ...]
    """What moved first, then by distance; of features without raw columns, the farthest."""
    compared: int
    """Number of columns that were compared."""
    left_out: tuple[str, ...] = ()
    """What is not compared, one sentence each."""

    @property
    def moved(self) -> tuple[ColumnDrift, ...]:
        """Columns that moved, the farthest first."""
        return tuple(each for each in self.columns if each.moved)

    def to_dict(self) -> dict[str, Any]:
        """Return the drift as JSON values."""
        return {"compared": self.compared, "columns": [each.to_dict() for each in self.columns]}


def graph_fits(table: ScoredTable, graph: Graph) -> bool:
    """Return whether a table of predictions belongs to this graph.

    >>> from gpn_scale import build_graph
    >>> columns = {"node": [0, 1], "predicted_class": [0, 0], "aleatoric": [-0.9, -0.8]}
    >>> table = ScoredTable.of(pa.table(columns | {"node_name": ["a", "b"]}))
    >>> graph_fits(table, build_graph([0], [1], node_names=["a", "b"]))
    True
    >>> graph_fits(table, build_graph([0], [1], node_names=["b", "a"]))
    False
    """
    if table.node.max() >= graph.num_nodes or table.has_names != (graph.node_names is not None):
        return False
    if graph.node_names is None:
        return True
    names = pa.array(graph.node_names[table.node].tolist(), pa.large_string())
    return bool(names.equals(table.ids))


def check_graph(table: ScoredTable, graph: Graph, argument: str) -> None:
    """Refuse a graph to which a table of predictions does not belong.

    >>> from gpn_scale import build_graph
    >>> columns = {"node": [0, 1], "predicted_class": [0, 0], "aleatoric": [-0.9, -0.8]}
    >>> check_graph(ScoredTable.of(pa.table(columns)), build_graph([0], [1]), "graph_a")

    Raises:
        GraphError: the graph has other nodes.
    """
    if not graph_fits(table, graph):
        raise GraphError(
            f"graph {graph.name!r} is not the graph of {table.name}: its {graph.num_nodes:,} nodes "
            f"and their ids do not match the {table.num_nodes:,} predicted ones; expected the "
            "graph that was predicted",
            arguments=(argument,),
        )


def column_drifts(
    a: Graph, b: Graph, table_a: ScoredTable, table_b: ScoredTable, nodes: ComparedNodes
) -> ColumnsDrift:
    """Return how the columns of two graphs moved, for the nodes that are compared.

    >>> from gpn_scale import Graph
    >>> def scored(count):
    ...     columns = {"node": range(count), "predicted_class": [0] * count}
    ...     names = [str(place) for place in range(count)]
    ...     return ScoredTable.of(
    ...         pa.table(columns | {"aleatoric": [-0.9] * count, "node_name": names})
    ...     )
    >>> def graph(country):
    ...     nodes = {"id": range(len(country)), "country": country, "age": [30, 40] * 30}
    ...     return Graph.from_tables(nodes, {"source": [0], "target": [1]})
    >>> before, after = graph(["DE", "FR"] * 30), graph(["DE", "XK"] * 30)
    >>> table = scored(60)
    >>> nodes = ComparedNodes.of(table, table)
    >>> [drift.name for drift in column_drifts(before, after, table, table, nodes).moved]
    ['country']
    """
    nodes_a, nodes_b = table_a.node[nodes.a], table_b.node[nodes.b]
    left_out: list[str] = []
    if a.raw_columns is not None and b.raw_columns is not None and a.preparation is not None:
        drifts, left_out = _raw(a, b, nodes_a, nodes_b)
        compared = len(drifts)
    elif a.preparation == b.preparation:
        features = feature_drifts(a, nodes_a, b, nodes_b)
        compared = max(a.num_features, b.num_features)
        drifts = [] if features is None else list(features)
        if features is None:
            left_out.append("Features are not compared: the graphs have none of the same name.")
        elif compared > KEPT:
            left_out.append(f"Of {compared:,} features, the {KEPT} that moved most are listed.")
    else:
        drifts, compared = [], 0
        left_out.append(
            "Columns are not compared: one graph keeps no raw columns, and the features of both "
            "were prepared by different rules. Import both tables again."
        )
    drifts.append(_network(a, b, nodes_a, nodes_b, comparisons=2 * compared + 1))
    ordered = sorted(drifts, key=lambda each: (not each.moved, -each.movement.distance))
    return ColumnsDrift(columns=tuple(ordered), compared=compared, left_out=tuple(left_out))


def _raw(
    a: Graph, b: Graph, nodes_a: NodeIds, nodes_b: NodeIds
) -> tuple[list[ColumnDrift], list[str]]:
    """Compare the raw columns that the preparation of A uses, by its kinds."""
    assert a.preparation is not None
    assert a.raw_columns is not None
    assert b.raw_columns is not None
    columns_a, columns_b = a.raw_columns, b.raw_columns
    kinds = {rule.column: rule.kind for rule in a.preparation.rules}
    common = [name for name in kinds if name in columns_a.names and name in columns_b.names]
    left_out = []
    if missing := [name for name in kinds if name not in common]:
        left_out.append(f"Columns that B does not have are left out: {listed(missing)}.")
    if extra := [name for name in columns_b.names if name not in columns_a.names]:
        left_out.append(f"Columns that A does not have are left out: {listed(extra)}.")
    tables = columns_a.table().select(common), columns_b.table().select(common)
    chosen = tables[0].take(pa.array(nodes_a)), tables[1].take(pa.array(nodes_b))
    drifts = [column_drift(name, kinds[name], chosen[0][name], chosen[1][name]) for name in common]
    readable = [drift for drift in drifts if drift is not None]
    comparisons = 2 * len(readable) + 1  # values, missing values, and the network
    moved = [replace(each, moved=each.movement.is_notable(comparisons)) for each in readable]
    return moved, left_out


def _network(
    a: Graph, b: Graph, nodes_a: NodeIds, nodes_b: NodeIds, *, comparisons: int
) -> ColumnDrift:
    degrees = a.out_degree[nodes_a], b.out_degree[nodes_b]
    drift = number_drift(NEIGHBOURS, "network", *(each.astype(np.float64) for each in degrees))
    return replace(drift, moved=drift.movement.is_notable(comparisons))
