"""New nodes from raw tables: their ids, features by the model's rule, and neighbours.

Shapes: N existing nodes, M new nodes, F features, E edges.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse
from numpy.typing import NDArray

from gpn_scale.data.column_roles import ColumnNames, ColumnRoles, edge_roles, node_roles
from gpn_scale.data.column_values import ColumnReader, is_readable
from gpn_scale.data.contract import DataContract
from gpn_scale.data.edge_tables import read_node_ids
from gpn_scale.data.fault_collector import FaultCollector
from gpn_scale.data.faults import Fault
from gpn_scale.data.feature_matrix import joined_features
from gpn_scale.data.graph import CSRFeatures, Features, Graph
from gpn_scale.data.linked_edges import read_edges
from gpn_scale.data.node_tables import NodeTable
from gpn_scale.data.preparation import Preparation
from gpn_scale.data.surprises import listed
from gpn_scale.data.table_inputs import InputTable, TableLike, input_table
from gpn_scale.data.text_columns import joined, value_faults
from gpn_scale.diffusion.edge_patch import grown
from gpn_scale.diffusion.growth import new_nodes
from gpn_scale.inference.known_ids import KnownIdsOf, NodeLookup, all_ids, looked_up_ids
from gpn_scale.inference.local_structure import structural_rows
from gpn_scale.inference.new_edges import NewEdges, new_edges


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NewTables:
    """New nodes as `GPNClassifier.predict_new` takes them.

    >>> from gpn_scale import build_graph
    >>> graph = build_graph(
    ...     [0], [1], features=[[1.0], [2.0]], feature_names=["age"], node_names=["a", "b"]
    ... )
    >>> nodes, edges = {"id": ["c"], "age": [1.5]}, {"source": ["c", "b"], "target": ["a", "c"]}
    >>> new = read_new_tables(nodes, edges, graph, DataContract.of(graph))
    >>> new.ids.tolist(), new.features.tolist(), [ids.tolist() for ids in new.neighbours]
    (['c'], [[1.5]], [[0, 1]])
    """

    ids: NDArray[np.str_]
    """The user's ids of the new nodes, (M,)."""
    features: Features
    """Their features, (M, F)."""
    neighbours: list[NDArray[np.int64]]
    """Numbers of the neighbours of each new node; N + j is the j-th new node."""
    edge_weights: list[NDArray[np.float64]] | None
    """Weights of these edges; None for a graph without weights, or for weights of 1."""
    notes: tuple[str, ...]
    """Notes on what was ignored or is unusual, one sentence each."""


def read_new_tables(
    nodes: TableLike,
    edges: TableLike | None,
    graph: Graph,
    contract: DataContract,
    names: ColumnNames | None = None,
) -> NewTables:
    """Return the new nodes of two tables.

    Columns become features by the preparation of the contract; without one, they are numbers and
    are matched by name. Edges join new nodes to each other and to existing ones. Structural
    features are those of the graph with all new nodes.

    >>> from gpn_scale import build_graph
    >>> graph = build_graph([0], [1], features=[[1.0], [2.0]], feature_names=["age"])
    >>> read_new_tables({"id": ["c"], "age": ["3"]}, None, graph, DataContract.of(graph)).features
    array([[3.]], dtype=float32)

    Args:
        nodes: Table with a row per new node: a path, a frame or a dictionary of columns.
        edges: Table with a row per edge; None if the new nodes have none.
        graph: Graph of the existing nodes; its ids are those of `node_names`, or 0 to N - 1.
        contract: What the model expects.
        names: Names of the columns that are no features.

    Raises:
        TableFaults: the tables do not fit the graph or the model; it lists all faults.
        GraphError: an argument is no table.
    """
    return _read(nodes, edges, graph, contract, partial(all_ids, graph), names)


def read_looked_up_tables(
    nodes: TableLike,
    edges: TableLike | None,
    graph: Graph,
    contract: DataContract,
    lookup: NodeLookup,
    names: ColumnNames | None = None,
) -> NewTables:
    """Return the new nodes of two tables, with work that grows with the tables alone.

    The result and the faults are those of `read_new_tables`, whose arguments it shares.

    >>> from gpn_scale import build_graph
    >>> class Numbered:
    ...     def positions(self, ids):
    ...         return np.array([int(text) if text in ("0", "1") else -1 for text in ids])
    >>> graph = build_graph([0], [1], features=[[1.0], [2.0]], feature_names=["age"])
    >>> nodes, edges = {"id": ["c"], "age": [3]}, {"source": ["c"], "target": ["1"]}
    >>> new = read_looked_up_tables(nodes, edges, graph, DataContract.of(graph), Numbered())
    >>> [ids.tolist() for ids in new.neighbours]
    [[1]]

    Args:
        nodes: Table with a row per new node.
        edges: Table with a row per edge; None if the new nodes have none.
        graph: Graph of the existing nodes.
        contract: What the model expects.
        lookup: Finds existing nodes by their ids.
        names: Names of the columns that are no features.

    Raises:
        TableFaults: the tables do not fit the graph or the model; it lists all faults.
        GraphError: an argument is no table.
    """
    return _read(nodes, edges, graph, contract, partial(looked_up_ids, lookup), names)


def _read(
    nodes: TableLike,
    edges: TableLike | None,
    graph: Graph,
    contract: DataContract,
    known_ids: KnownIdsOf,
    names: ColumnNames | None,
) -> NewTables:
    names, faults = names or ColumnNames(), FaultCollector()
    node_input = faults.attempt(lambda: input_table(nodes, "nodes"))
    edge_input = None
    if edges is not None:
        edge_input = faults.attempt(lambda: input_table(edges, "edges"))
    known = known_ids(node_input, edge_input, names)
    roles, joined_nodes, new_ids = ColumnRoles(), None, None
    if node_input is not None:
        roles, joined_nodes, new_ids = _read_nodes(node_input, names, known.texts, faults)
    linked = None
    if edge_input is not None:
        ends, wrong = edge_roles(names, edge_input.column_names, file=edge_input.name)
        faults.add(wrong, "source", "target", "weight")
        weight = ends.weight if graph.edge_weight is not None else None
        roles = replace(roles, source=ends.source, target=ends.target, weight=weight)
        linked = read_edges(edge_input, roles, joined_nodes, None, faults)
    columns = None
    if node_input is not None and joined_nodes is not None:
        columns = faults.attempt(lambda: _features(joined_nodes.columns, contract, node_input.name))
    faults.report()
    assert columns is not None
    assert new_ids is not None
    neighbourhood = new_edges(linked, known.positions, graph, len(new_ids))
    features = columns.features
    if contract.preparation is not None and contract.preparation.structure:
        features = _with_structure(columns.features, contract.preparation, graph, neighbourhood)
    return NewTables(
        ids=new_ids.to_numpy(zero_copy_only=False).astype(np.str_),
        features=features,
        neighbours=neighbourhood.neighbours,
        edge_weights=neighbourhood.weights,
        notes=(*columns.notes, *neighbourhood.notes),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Columns:
    features: Features
    notes: tuple[str, ...]


def _read_nodes(
    table: InputTable, names: ColumnNames, known: pa.Array, faults: FaultCollector
) -> tuple[ColumnRoles, NodeTable | None, pa.Array | None]:
    """Return roles, the existing nodes with the new ones behind them, and the ids of the new."""
    roles, wrong = node_roles(names, table.column_names, file=table.name)
    faults.add(wrong, "id")
    node_id = roles.id
    content = None
    if node_id is not None:
        content = faults.attempt(lambda: table.read([node_id, *roles.features]))
    if node_id is None or content is None:
        return roles, None, None
    if not content.num_rows:
        faults.add([Fault(file=table.name, advice="the table has no rows: list a new node")])
    ids, wrong = read_node_ids(content[node_id], file=table.name, column_name=node_id)
    faults.add(wrong, "id")
    exists = np.asarray(pc.is_in(ids, value_set=known, skip_nulls=True))
    advice = "the graph has a node of this id: list new nodes only"
    faults.add(value_faults(ids, exists, file=table.name, column=node_id, advice=advice))
    everyone = NodeTable(
        file=table.name,
        ids=pa.concat_arrays([known, ids]),
        labels=None,
        split=None,
        columns=content.select(list(roles.features)),
    )
    return roles, everyone, ids


def _features(columns: pa.Table, contract: DataContract, file: str) -> _Columns:
    """Return the features of the columns by the model's rule, without structural ones."""
    preparation = contract.preparation
    if preparation is None:
        return _numbers(columns, contract, file)
    if not preparation.rules:
        return _Columns(features=np.empty((0, 0), np.float32), notes=())
    prepared = preparation.apply(columns, file=file)
    return _Columns(features=prepared.features, notes=prepared.notes)


def _numbers(columns: pa.Table, contract: DataContract, file: str) -> _Columns:
    """Return columns of numbers by the model's names, or by position if it has none."""
    faults, wanted = FaultCollector(), contract.feature_names
    given = columns.column_names
    if not wanted and len(given) != contract.num_features:
        advice = f"give {contract.num_features} columns of features, not {len(given)}"
        faults.add([Fault(file=file, advice=advice)])
    missing = [name for name in wanted if name not in given]
    advice = "add the column, which the model was trained on"
    faults.add(Fault(file=file, column=name, advice=advice) for name in missing)
    arrays = []
    for name in (name for name in (wanted or given) if name in given):
        array, wrong = numbers_of(columns[name], name, file)
        arrays.append(array)
        faults.add(wrong)
    faults.report()
    extra = [name for name in given if wanted and name not in wanted]
    notes = (f"The feature column {listed(extra)} is not in the model and was ignored.",)
    features = np.column_stack(arrays) if arrays else np.empty((columns.num_rows, 0))
    return _Columns(features=features.astype(np.float32), notes=notes if extra else ())


def numbers_of(
    column: pa.ChunkedArray, name: str, file: str
) -> tuple[NDArray[np.float64], list[Fault]]:
    """Return a column as numbers, and what is wrong with it; booleans are 1 and 0.

    >>> values, faults = numbers_of(pa.chunked_array([["1.5", "x"]]), "age", "nodes")
    >>> float(values[0]), [(fault.row, fault.value) for fault in faults]
    (1.5, [(2, 'x')])
    """
    if not is_readable(column.type):
        advice = f"write numbers, not values of type {column.type}"
        return np.zeros(len(column)), [Fault(file=file, column=name, advice=advice)]
    reader = ColumnReader(column)
    is_flag = pa.types.is_boolean(column.type)
    numbers = reader.booleans if is_flag else reader.numbers
    texts = joined(column.cast(pa.large_string()))
    wrong = numbers.missing | numbers.wrong
    faults = value_faults(texts, wrong, file=file, column=name, advice="write a number")
    return numbers.value, faults


def _with_structure(
    features: Features, preparation: Preparation, graph: Graph, edges: NewEdges
) -> Features:
    """Return the features of columns, followed by the structural ones in the grown graph."""
    bare = replace(graph, features=None, feature_names=None, preparation=None, raw_columns=None)
    nothing = np.empty((len(edges.neighbours), 0), np.float32)
    new = new_nodes(bare, nothing, edges.neighbours, edges.weights)
    blocks = [_as_sparse(features)] if preparation.rules else []
    structure = structural_rows(bare, grown(new), new.ids, preparation.structure)
    blocks.append(scipy.sparse.csr_array(structure))
    return joined_features(blocks, len(edges.neighbours), sparse=preparation.is_sparse)


def _as_sparse(features: Features) -> scipy.sparse.csr_array:
    if not isinstance(features, CSRFeatures):
        return scipy.sparse.csr_array(features)
    arrays = (features.values, features.indices, features.indptr)
    return scipy.sparse.csr_array(arrays, shape=features.shape)
