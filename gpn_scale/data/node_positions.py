"""`node_positions`: nodes by their position in the graph or by the user's own ids.

Shapes: N nodes, B chosen nodes.
"""

import difflib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpn_scale.data.graph import Graph, NodeIds, as_array, as_node_ids
from gpn_scale.errors import GraphError


def node_positions(graph: Graph, nodes: ArrayLike) -> NodeIds:
    """Return the positions of nodes, (B,): integers are positions, texts are the user's own ids.

    >>> from gpn_scale import build_graph
    >>> graph = build_graph([0], [1], node_names=["shop", "bank"])
    >>> node_positions(graph, "bank").tolist(), node_positions(graph, [0, 1]).tolist()
    ([1], [0, 1])

    Args:
        graph: The graph.
        nodes: One node or several: positions in [0, N), or names as in `Graph.node_names`. Pass an
            id that was a number as a text.

    Raises:
        GraphError: a node is not in the graph, or the graph has no names.
    """
    given = np.atleast_1d(as_array(nodes, "nodes"))
    if given.dtype.kind == "O" and all(isinstance(node, str) for node in given.flat):
        given = given.astype(np.str_)
    if given.dtype.kind == "U" and given.ndim == 1 and given.size:
        return _named(graph, given)
    ids = as_node_ids(given, "nodes").astype(np.int64)
    wrong = ids[(ids < 0) | (ids >= graph.num_nodes)]
    if len(wrong):
        named = graph.node_names is not None
        hint = f": give an id of your own as a text, such as {str(wrong[0])!r}" if named else ""
        raise GraphError(
            f"nodes holds {wrong[0]}, expected ids in [0, {graph.num_nodes}){hint}",
            arguments=("nodes",),
        )
    return ids


def _named(graph: Graph, wanted: NDArray[Any]) -> NodeIds:
    names = graph.node_names
    if names is None:
        raise GraphError(
            f"nodes holds {str(wanted[0])!r}, but the nodes of graph {graph.name!r} have no names: "
            f"expected positions in [0, {graph.num_nodes})",
            arguments=("nodes",),
        )
    candidates = np.flatnonzero(np.isin(names, wanted))
    position = {str(names[node]): int(node) for node in candidates[::-1]}
    for name in wanted.tolist():
        if name not in position:
            near = difflib.get_close_matches(name, names.tolist(), n=3)
            hint = f"; similar names are {', '.join(map(repr, near))}" if near else ""
            raise GraphError(
                f"nodes holds {name!r}, expected names of nodes of graph {graph.name!r}{hint}",
                arguments=("nodes",),
            )
    return np.array([position[name] for name in wanted.tolist()], np.int64)
