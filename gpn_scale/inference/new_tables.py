"""New nodes from raw tables: their ids, features by the model's rule, and neighbours.

Shapes: N existing nodes, M new nodes, F features, E edges.
"""

from dataclasses import dataclass, replace

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
from gpn_scale.data.linked_edges import LinkedEdges, read_edges
from gpn_scale.data.node_tables import NodeTable
from gpn_scale.data.preparation import Preparation
from gpn_scale.data.surprises import listed
from gpn_scale.data.table_inputs import InputTable, TableLike, input_table
from gpn_scale.data.text_columns import joined, value_faults
from gpn_scale.diffusion.growth import grown_graph, new_nodes


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
    """What was ignored or unusual, one sentence each."""


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
    names, faults = names or ColumnNames(), FaultCollector()
    node_input = faults.attempt(lambda: input_table(nodes, "nodes"))
    edge_input = None
    if edges is not None:
        edge_input = faults.attempt(lambda: input_table(edges, "edges"))
    known = pa.array(_names_of(graph), pa.large_string())
    roles, joined_nodes, new_ids = ColumnRoles(), None, None
    if node_input is not None:
        roles, joined_nodes, new_ids = _read_nodes(node_input, names, known, faults)
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
    neighbourhood = _neighbourhood(linked, graph, len(new_ids))
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Neighbourhood:
    """Edges of the new nodes, each listed once at one of its new ends."""

    neighbours: list[NDArray[np.int64]]
    weights: list[NDArray[np.float64]] | None
    notes: tuple[str, ...]


def _names_of(graph: Graph) -> NDArray[np.str_]:
    names = graph.node_names
    return np.arange(graph.num_nodes).astype(np.str_) if names is None else np.asarray(names)


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
        array, wrong = _column_of_numbers(columns[name], name, file)
        arrays.append(array)
        faults.add(wrong)
    faults.report()
    extra = [name for name in given if wanted and name not in wanted]
    notes = (f"The feature column {listed(extra)} is not in the model and was ignored.",)
    features = np.column_stack(arrays) if arrays else np.empty((columns.num_rows, 0))
    return _Columns(features=features.astype(np.float32), notes=notes if extra else ())


def _column_of_numbers(
    column: pa.ChunkedArray, name: str, file: str
) -> tuple[NDArray[np.float64], list[Fault]]:
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


def _neighbourhood(linked: LinkedEdges | None, graph: Graph, num_new: int) -> _Neighbourhood:
    """Return the neighbours of each new node; edges merge as in `build_graph`."""
    empty = np.empty(0, np.int64)
    source, target = (empty, empty) if linked is None else (linked.source, linked.target)
    weight = None if linked is None else linked.weight
    num_existing, notes = graph.num_nodes, []
    old = (source < num_existing) & (target < num_existing)
    if old.any():
        notes.append(
            f"Edges that join two nodes of the graph were ignored ({int(old.sum()):,}): import the "
            "tables again to use them."
        )
    kept = ~old & (source != target)
    if graph.directed and (back := kept & (source < num_existing)).any():
        notes.append(
            f"Edges from a node of the graph to a new one were ignored ({int(back.sum()):,}), "
            "since new nodes do not change what is known of others."
        )
        kept &= ~back
    if graph.edge_weight is not None and weight is None and kept.any():
        notes.append("The edges of the graph have weights, those of the new nodes count as 1.")
    source, target = source[kept], target[kept]
    values = np.ones(len(source)) if weight is None else weight[kept]
    source, target, values = _merged(source, target, values, num_existing + num_new)
    if not graph.directed:
        # Each edge stands at a new end; of its two directions the larger weight counts.
        flipped = (source < num_existing) | ((target >= num_existing) & (target < source))
        source, target = np.where(flipped, target, source), np.where(flipped, source, target)
        order = np.lexsort((-values, target, source))
        source, target, values = source[order], target[order], values[order]
        first = np.append(True, (np.diff(source) != 0) | (np.diff(target) != 0))[: len(source)]
        source, target, values = source[first], target[first], values[first]
    bounds = np.searchsorted(source, np.arange(num_existing + 1, num_existing + num_new))
    return _Neighbourhood(
        neighbours=np.split(target, bounds),
        weights=None if graph.edge_weight is None else np.split(values, bounds),
        notes=tuple(notes),
    )


def _merged(
    source: NDArray[np.int64], target: NDArray[np.int64], weight: NDArray[np.float64], size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return each pair once, sorted, with the sum of its weights."""
    pairs, inverse = np.unique(source * size + target, return_inverse=True)
    sums = np.zeros(len(pairs))
    np.add.at(sums, inverse, weight)
    return pairs // size, pairs % size, sums


def _with_structure(
    features: Features, preparation: Preparation, graph: Graph, edges: _Neighbourhood
) -> Features:
    """Return the features of columns, followed by the structural ones in the grown graph."""
    bare = replace(graph, features=None, feature_names=None, preparation=None, raw_columns=None)
    nothing = np.empty((len(edges.neighbours), 0), np.float32)
    grown = grown_graph(bare, new_nodes(bare, nothing, edges.neighbours, edges.weights))
    blocks = [_as_sparse(features)] if preparation.rules else []
    blocks += [rule.encoded(grown)[graph.num_nodes :] for rule in preparation.structure]
    return joined_features(blocks, len(edges.neighbours), sparse=preparation.is_sparse)


def _as_sparse(features: Features) -> scipy.sparse.csr_array:
    if not isinstance(features, CSRFeatures):
        return scipy.sparse.csr_array(features)
    arrays = (features.values, features.indices, features.indptr)
    return scipy.sparse.csr_array(arrays, shape=features.shape)
