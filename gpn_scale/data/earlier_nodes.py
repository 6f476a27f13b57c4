"""The nodes of an earlier version of a graph, and the split of a later version based on them.

A later version has the earlier nodes in their places and new nodes after them. Nodes that a model
was trained on must stay training nodes: as test nodes, they would make the model look better than
it is, and they are the sources of label evidence.

Shapes: M nodes of the earlier graph.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import MISSING_LABEL, Graph, NodeIds, Split
from gpn_scale.data.splits import drawn_split
from gpn_scale.errors import GraphError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EarlierNodes:
    """Ids, labels and split of the nodes of an earlier version of a graph.

    >>> from gpn_scale import build_graph
    >>> split = Split(train=[0, 1], val=[2], test=[])
    >>> earlier = EarlierNodes(labels=np.array([0, 1, 0]), split=split)
    >>> later = build_graph([0, 3], [1, 2], labels=[0, 1, 0, 1])
    >>> earlier.difference(later) is None
    True
    >>> earlier.split_of(later).test.tolist()
    [3]
    """

    labels: NDArray[np.integer]
    """Class of each node, or `MISSING_LABEL`, (M,)."""
    split: Split
    names: NDArray[np.str_] | None = None
    """The user's own ids, (M,); None if the nodes have none."""
    marked: NodeIds = field(default_factory=lambda: np.empty(0, np.int64))
    """Nodes with a mark."""

    @classmethod
    def of(cls, graph: Graph) -> "EarlierNodes":
        """Return the nodes of a graph with a split.

        Raises:
            GraphError: the graph has no split.
        """
        if graph.split is None:
            raise GraphError(
                f"graph {graph.name!r} has no split, expected the split that training used"
            )
        return cls(
            labels=graph.labels, split=graph.split, names=graph.node_names, marked=graph.marked
        )

    @property
    def num_nodes(self) -> int:
        """Number of nodes M."""
        return len(self.labels)

    def difference(self, graph: Graph) -> str | None:
        """Return a clause on why `graph` is not a later version; None if it is one.

        The first nodes of a later version have the ids of the earlier nodes. If nodes have no ids,
        the labels of the training nodes must be the same.

        Args:
            graph: The graph, with the classes of `labels`.
        """
        if graph.num_nodes < self.num_nodes:
            return f"it has {graph.num_nodes:,} nodes, fewer than the {self.num_nodes:,} before"
        if (self.names is None) != (graph.node_names is None):
            return "only one of the two has ids of its own"
        if self.names is not None and graph.node_names is not None:
            other = np.flatnonzero(graph.node_names[: self.num_nodes] != self.names)
            if not len(other):
                return None
            now, before = graph.node_names[other[0]], self.names[other[0]]
            return f"the id of node {other[0]} is {str(now)!r}, it was {str(before)!r}"
        train = self.split.train[graph.labels[self.split.train] != MISSING_LABEL]
        if 2 * len(train) < len(self.split.train):
            return "most training nodes have no label in it"
        other = train[graph.labels[train] != self.labels[train]]
        if len(other):
            return f"the label of the training node {other[0]} is another one"
        return None

    def split_of(self, graph: Graph) -> Split:
        """Return the split of a later version, in which all further labelled nodes are test nodes.

        Training and validation nodes keep their roles, unless they have lost their labels.
        """
        train, val = (_labelled(graph, nodes) for nodes in (self.split.train, self.split.val))
        used = np.concatenate([train, val])
        return Split(train=train, val=val, test=np.setdiff1d(_all_labelled(graph), used))

    def grown_split_of(self, graph: Graph, *, train: float, val: float, rng_seed: int) -> Split:
        """Return the split of a later version, in which nodes with new labels are divided as well.

        Nodes that already had a label keep their roles. The others get a separate stratified
        split; marked nodes among them become test nodes.

        Args:
            graph: The later version.
            train: Fraction of nodes with new labels for training.
            val: Fraction for validation.
            rng_seed: Seed of the draw.
        """
        had_label = np.zeros(graph.num_nodes, bool)
        had_label[: self.num_nodes] = self.labels != MISSING_LABEL
        had_label[self.marked] = True
        labels = np.where(had_label, MISSING_LABEL, graph.labels).astype(np.int32)
        new = drawn_split(
            replace(graph, labels=labels, split=None), train=train, val=val, rng_seed=rng_seed
        )
        test = np.union1d(self.split.test, self.marked)
        return Split(
            train=np.union1d(_labelled(graph, self.split.train), new.train),
            val=np.union1d(_labelled(graph, self.split.val), new.val),
            test=np.union1d(_labelled(graph, test), new.test),
        )


def _labelled(graph: Graph, nodes: NodeIds) -> NodeIds:
    return np.asarray(nodes[graph.labels[nodes] != MISSING_LABEL])


def _all_labelled(graph: Graph) -> NodeIds:
    return np.flatnonzero(graph.labels != MISSING_LABEL)
