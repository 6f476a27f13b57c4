"""`NodeFacts`: the columns of a table of predictions besides the predictions themselves.

Shapes: N nodes of a graph, B nodes of a prediction, C classes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph, NodeIds, Split


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeFacts:
    """Names, labels, split and marks of a graph's nodes; arrays are shared with the graph.

    >>> from gpn_scale import build_graph
    >>> facts = NodeFacts.of(build_graph([0], [1], labels=[0, 1], node_names=["a", "b"]))
    >>> facts.rows(np.array([1])).ids(1).tolist(), facts.node_names.tolist()
    ([1], ['a', 'b'])
    """

    nodes: NodeIds | None = None
    """Ids of the predicted nodes, (B,); None for all nodes in their order."""
    node_names: NDArray[np.str_] | None = None
    """The user's own node ids, (N,); None if they are 0..N-1."""
    class_names: NDArray[np.str_] | None = None
    """The names of the classes, (C,); None if they have none."""
    labels: NDArray[np.int32] | None = None
    """Class per node, (N,); None if nothing is known of the nodes."""
    split: Split | None = None
    marks: Mapping[str, NodeIds] = field(default_factory=dict)

    @classmethod
    def of(cls, graph: Graph, nodes: NodeIds | None = None) -> "NodeFacts":
        """Return the facts of a graph for a prediction of `nodes`, or of all nodes."""
        return cls(
            nodes=nodes,
            node_names=graph.node_names,
            class_names=graph.class_names,
            labels=graph.labels,
            split=graph.split,
            marks=graph.marks,
        )

    def ids(self, count: int) -> NodeIds:
        """Return the ids of the nodes of a prediction of `count` nodes."""
        return np.arange(count, dtype=np.int64) if self.nodes is None else self.nodes

    def rows(self, rows: slice | NodeIds) -> "NodeFacts":
        """Return the facts for some of the predicted nodes."""
        if self.nodes is not None:
            return replace(self, nodes=self.nodes[rows])
        if isinstance(rows, slice):
            size = 0 if self.labels is None else len(self.labels)
            return replace(self, nodes=np.arange(*rows.indices(size), dtype=np.int64))
        return replace(self, nodes=np.asarray(rows, np.int64))
