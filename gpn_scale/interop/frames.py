"""`to_frames`: a graph as two pandas frames, the tables that `Graph.from_tables` reads.

Shapes: N nodes, E edges, F feature columns.
"""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from gpn_scale.data.graph import MISSING_LABEL, CSRFeatures, Graph
from gpn_scale.errors import GraphError

_ROLES = ("id", "label", "split")


class GraphFrames(NamedTuple):
    """The tables of a graph.

    >>> from gpn_scale import build_graph
    >>> frames = to_frames(build_graph([0, 1], [1, 2]))
    >>> len(frames.nodes), len(frames.edges)
    (3, 2)
    """

    nodes: Any
    """A pandas frame with a row per node."""
    edges: Any
    """A pandas frame with a row per edge; an undirected one is listed once."""


def to_frames(graph: Graph) -> GraphFrames:
    """Return the nodes and the edges of a graph as pandas frames.

    Nodes have the columns `id`, the user's own or 0 to N - 1; `label`, a class name or index, or
    missing; `split`, if there is one; and the features by their names, or `x0` to `xF-1`. A graph
    whose raw columns were kept has these instead of features. Edges have `source`, `target` and, if
    they have one, `weight`. `Graph.from_tables(nodes, edges)` prepares the columns again;
    Parquet files of both in a folder are read by `load_graph` with the numbers as they are.

    >>> from gpn_scale import Graph, build_graph
    >>> graph = build_graph([0, 1], [1, 2], features=[[0.5], [1.5], [2.5]], labels=[0, 1, -1])
    >>> nodes, edges = to_frames(graph)
    >>> nodes
       id  label   x0
    0   0      0  0.5
    1   1      1  1.5
    2   2   <NA>  2.5
    >>> edges.values.tolist()
    [[0, 1], [1, 2]]

    Raises:
        GraphError: a feature has the name of one of the other columns.
    """
    import pandas

    columns: dict[str, Any] = {"id": _ids(graph)}
    if graph.num_classes:
        columns["label"] = _labels(graph, pandas)
    if graph.split is not None:
        split = np.full(graph.num_nodes, None, object)
        for subset in ("train", "val", "test"):
            split[getattr(graph.split, subset)] = subset
        columns["split"] = split
    values = _values(graph)
    if taken := [name for name in _ROLES if name in values]:
        raise GraphError(
            f"graph {graph.name!r} has a feature column {taken[0]!r}, expected other names than "
            f"{', '.join(_ROLES)}: rename the feature",
            arguments=("graph",),
        )
    return GraphFrames(pandas.DataFrame(columns | values), _edges(graph, pandas))


def _ids(graph: Graph) -> Any:
    return np.arange(graph.num_nodes) if graph.node_names is None else graph.node_names.astype("O")


def _labels(graph: Graph, pandas: Any) -> Any:
    is_missing = graph.labels == MISSING_LABEL
    if graph.class_names is None:
        return pandas.arrays.IntegerArray(graph.labels.astype(np.int64), is_missing)
    names = graph.class_names.astype("O")[graph.labels]
    names[is_missing] = None
    return names


def _values(graph: Graph) -> dict[str, Any]:
    """Return the columns of values of the nodes: raw ones, or else features."""
    if graph.raw_columns is not None:
        table: pa.Table = graph.raw_columns.table()
        return {name: table.column(name).to_pandas() for name in table.column_names}
    if graph.features is None:
        return {}
    features = graph.features
    dense = features.to_dense() if isinstance(features, CSRFeatures) else np.asarray(features)
    names = graph.feature_names
    texts = [f"x{i}" for i in range(graph.num_features)] if names is None else names.tolist()
    return dict(zip(texts, dense.T, strict=True))


def _edges(graph: Graph, pandas: Any) -> Any:
    row = np.repeat(np.arange(graph.num_nodes), graph.out_degree)
    shown = np.full(len(row), True) if graph.directed else row < graph.indices
    ids = _ids(graph)
    columns = {"source": ids[row[shown]], "target": ids[graph.indices[shown]]}
    if graph.edge_weight is not None:
        columns["weight"] = np.asarray(graph.edge_weight)[shown]
    return pandas.DataFrame(columns)
