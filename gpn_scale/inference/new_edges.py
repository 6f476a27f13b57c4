"""Edges of new nodes from a table: each is listed once, at one of its new ends.

Shapes: N existing nodes, K known ids, M new nodes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph
from gpn_scale.data.linked_edges import LinkedEdges


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NewEdges:
    """Edges of new nodes, each listed once at one of its new ends.

    >>> edges = NewEdges(neighbours=[np.array([0, 2])], weights=None, notes=())
    >>> len(edges.neighbours[0])
    2
    """

    neighbours: list[NDArray[np.int64]]
    weights: list[NDArray[np.float64]] | None
    notes: tuple[str, ...]


def new_edges(
    linked: LinkedEdges | None, positions: NDArray[np.int64], graph: Graph, num_new: int
) -> NewEdges:
    """Return the neighbours of each new node; edges merge as in `build_graph`.

    >>> from gpn_scale import build_graph
    >>> path = build_graph([0, 1], [1, 2])
    >>> source, target = np.array([1, 0]), np.array([0, 1])  # the known node 2, and a new one
    >>> linked = LinkedEdges(source=source, target=target, weight=None, num_listed=2)
    >>> new_edges(linked, np.array([2]), path, num_new=1).neighbours
    [array([2])]

    Args:
        linked: The edges, whose ends count known ids first and then new nodes.
        positions: Positions of the known ids in the graph.
        graph: Graph of the existing nodes.
        num_new: Number of new nodes.
    """
    ends = np.append(positions, graph.num_nodes + np.arange(num_new))
    empty = np.empty(0, np.int64)
    source, target = (
        (empty, empty) if linked is None else (ends[linked.source], ends[linked.target])
    )
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
            "since new nodes do not change predictions of other nodes."
        )
        kept &= ~back
    if graph.edge_weight is not None and weight is None and kept.any():
        notes.append("The edges of the graph have weights; edges of new nodes get weight 1.")
    source, target = source[kept], target[kept]
    values = np.ones(len(source)) if weight is None else weight[kept]
    source, target, values = _merged(source, target, values, num_existing + num_new)
    if not graph.directed:
        # Each edge is listed at a new end; the larger weight of its two directions counts.
        flipped = (source < num_existing) | ((target >= num_existing) & (target < source))
        source, target = np.where(flipped, target, source), np.where(flipped, source, target)
        order = np.lexsort((-values, target, source))
        source, target, values = source[order], target[order], values[order]
        first = np.append(True, (np.diff(source) != 0) | (np.diff(target) != 0))[: len(source)]
        source, target, values = source[first], target[first], values[first]
    bounds = np.searchsorted(source, np.arange(num_existing + 1, num_existing + num_new))
    return NewEdges(
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
