"""Prepares the features of many nodes block by block, into arrays in a file.

Shapes: N nodes, F features.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse
from numpy.typing import NDArray

from gpn_scale.data.column_values import ColumnReader
from gpn_scale.data.feature_matrix import joined_features
from gpn_scale.data.graph import CSRFeatures, Features, Graph
from gpn_scale.data.preparation import Preparation
from gpn_scale.scratch import MEMORY_BYTES, GrowingArray, release_pages, scratch_array

BLOCK_NODES = 1 << 18
"""Number of nodes of a block."""


def features_by_block(
    preparation: Preparation,
    columns: pa.Table,
    graph: Graph,
    *,
    directory: Path | None = None,
    block_nodes: int = BLOCK_NODES,
    memory_bytes: int = MEMORY_BYTES,
) -> Features:
    """Return the features that `Preparation.apply` returns, without its checks.

    >>> from gpn_scale import build_graph
    >>> table = pa.table({"age": [31, 29, 30]})
    >>> graph = build_graph([0, 1], [1, 2])
    >>> preparation = Preparation.fit(table, structural=True).fitted_to(graph)
    >>> features_by_block(preparation, table, graph, block_nodes=2).shape
    (3, 3)

    Args:
        preparation: The rule; if it has structural features, it is fitted to a graph.
        columns: Raw columns to which the rule was fitted, perhaps followed by rows without values.
        graph: The graph of the nodes.
        directory: Folder of temporary files; None for the system's default.
        block_nodes: Number of nodes whose features are made at a time.
        memory_bytes: Size above which the features are in a file.
    """
    if preparation.is_sparse:
        return _sparse(preparation, columns, graph, directory, block_nodes, memory_bytes)
    shape = (graph.num_nodes, preparation.num_features)
    features: NDArray[Any] = np.empty((0, 0), np.float32)
    if 4 * shape[0] * shape[1] <= memory_bytes:
        features = np.empty(shape, np.float32)
    else:
        features = scratch_array(shape, directory, advice="free some disk space")
    start = 0
    for block in _blocks(preparation, columns, graph, block_nodes):
        rows = joined_features(block, _num_rows(graph, start, block_nodes), sparse=False)
        assert not isinstance(rows, CSRFeatures)
        features[start : start + block_nodes] = rows
        release_pages(features)
        start += block_nodes
    return features


def _sparse(
    preparation: Preparation,
    columns: pa.Table,
    graph: Graph,
    directory: Path | None,
    block_nodes: int,
    memory_bytes: int,
) -> CSRFeatures:
    indices = GrowingArray(np.int32, directory, memory_bytes)
    values = GrowingArray(np.float32, directory, memory_bytes)
    counts: list[NDArray[Any]] = [np.zeros(1, np.int64)]
    start = 0
    for block in _blocks(preparation, columns, graph, block_nodes):
        rows = joined_features(block, _num_rows(graph, start, block_nodes), sparse=True)
        assert isinstance(rows, CSRFeatures)
        counts.append(np.diff(rows.indptr))
        indices.append(rows.indices)
        values.append(rows.values)
        start += block_nodes
    return CSRFeatures(
        indptr=np.cumsum(np.concatenate(counts)),
        indices=indices.array(),
        values=values.array(),
        num_columns=preparation.num_features,
    )


def _num_rows(graph: Graph, start: int, block_nodes: int) -> int:
    return min(block_nodes, graph.num_nodes - start)


def _blocks(
    preparation: Preparation, columns: pa.Table, graph: Graph, block_nodes: int
) -> Iterator[list[scipy.sparse.csr_array]]:
    """Yield the features of each rule for consecutive blocks of nodes."""
    structure = [rule.encoded(graph) for rule in preparation.structure]
    for start in range(0, graph.num_nodes, block_nodes):
        encoded = [
            rule.encoded(ColumnReader(columns[rule.column].slice(start, block_nodes))).features
            for rule in preparation.rules
        ]
        yield [*encoded, *(feature[start : start + block_nodes] for feature in structure)]
