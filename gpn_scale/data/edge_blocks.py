"""The edges of a graph in blocks, so that a memory-mapped graph is never copied as a whole.

Shapes: N nodes, M edges of a block.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from gpn_scale.data.graph import Graph
from gpn_scale.scratch import release_pages

BLOCK_EDGES = 1 << 22
"""Number of edges of a block; only a single node with more neighbours makes a larger block."""

Edges = tuple[NDArray[np.int64], NDArray[np.int32]]
"""Sources and targets, (M,) each."""


def row_ranges(graph: Graph, block_edges: int = BLOCK_EDGES) -> Iterator[tuple[int, int]]:
    """Yield consecutive ranges of nodes, each with a limited number of edges or a single node.

    >>> from gpn_scale import build_graph
    >>> list(row_ranges(build_graph([0, 1, 2], [1, 2, 0]), block_edges=4))
    [(0, 2), (2, 3)]
    """
    start = 0
    while start < graph.num_nodes:
        last = int(graph.indptr[start]) + block_edges
        stop = max(int(np.searchsorted(graph.indptr, last, side="right")) - 1, start + 1)
        yield start, stop
        start = stop


def edge_blocks(graph: Graph, block_edges: int = BLOCK_EDGES) -> Iterator[Edges]:
    """Yield all edges in blocks; each undirected edge is yielded once, with its smaller end first.

    >>> from gpn_scale import build_graph
    >>> graph = build_graph([0, 1, 2], [1, 2, 0])
    >>> [(source.tolist(), target.tolist()) for source, target in edge_blocks(graph)]
    [([0, 0, 1], [1, 2, 2])]
    """
    for start, stop in row_ranges(graph, block_edges):
        degree = np.diff(graph.indptr[start : stop + 1])
        source = np.repeat(np.arange(start, stop), degree)
        target = np.asarray(graph.indices[graph.indptr[start] : graph.indptr[stop]])
        if not graph.directed:
            first = source < target
            source, target = source[first], target[first]
        if len(source):
            yield source, target
        release_pages(graph.indices)


def component_sizes(graph: Graph, block_edges: int = BLOCK_EDGES) -> NDArray[np.int64]:
    """Return the numbers of nodes of the connected components, the largest first.

    Directions do not count. Each block of edges joins components of the blocks before it.

    >>> from gpn_scale import build_graph
    >>> component_sizes(build_graph([0, 1, 3], [1, 2, 4], num_nodes=6)).tolist()
    [3, 2, 1]
    """
    component_N = np.arange(graph.num_nodes, dtype=np.int32)
    count = graph.num_nodes
    for source, target in edge_blocks(graph, block_edges):
        ends = (component_N[source], component_N[target])
        joined = coo_array((np.ones(len(source), np.int8), ends), shape=(count, count))
        count, component_of = connected_components(joined.tocsr(), directed=False)
        component_N = component_of[component_N]
    return -np.sort(-np.bincount(component_N, minlength=count))


def degrees(graph: Graph) -> NDArray[np.int64]:
    """Return the number of edges at each node, (N,); with directions, those of both.

    >>> from gpn_scale import build_graph
    >>> degrees(build_graph([0, 1], [1, 2], directed=True)).tolist()
    [1, 2, 1]
    """
    degree = graph.out_degree
    if graph.directed:
        for _, target in edge_blocks(graph):
            degree += np.bincount(target, minlength=graph.num_nodes)
    return degree
