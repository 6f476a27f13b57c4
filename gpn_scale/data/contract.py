"""`DataContract`: what a trained model expects of a graph, by name: feature columns and classes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.features import take_columns
from gpn_scale.data.graph import MISSING_LABEL, Graph, NodeIds, Split
from gpn_scale.errors import GraphError

_SHOWN = 5
"""Number of names that a message lists."""


class AlignedGraph(NamedTuple):
    """A graph with the columns and classes of a model, and what was done to get there.

    >>> from gpn_scale import build_graph
    >>> pair = build_graph([0], [1])
    >>> AlignedGraph(pair, notes=()).graph is pair
    True
    """

    graph: Graph
    notes: tuple[str, ...]
    """What was ignored or changed, one sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataContract:
    """The feature columns and classes of a model's training graph.

    >>> from gpn_scale import build_graph
    >>> trained_on = build_graph([0], [1], features=[[1.0, 9.0]] * 2, feature_names=["age", "size"])
    >>> other = build_graph([0], [1], features=[[7.0, 2.0]] * 2, feature_names=["size", "age"])
    >>> DataContract.of(trained_on).aligned(other).graph.features[0].tolist()
    [2.0, 7.0]
    """

    num_features: int
    num_classes: int
    feature_names: tuple[str, ...] = ()
    """Names of the feature columns; () if they have none."""
    class_names: tuple[str, ...] = ()
    """Names of the classes; () if they have none."""

    @classmethod
    def of(cls, graph: Graph) -> "DataContract":
        """Return the contract of a model that is trained on `graph`."""
        return cls(
            num_features=graph.num_features,
            num_classes=graph.num_classes,
            feature_names=_texts(graph.feature_names),
            class_names=_texts(graph.class_names),
        )

    def aligned(self, graph: Graph) -> AlignedGraph:
        """Return the graph with the model's columns in their order, and with its classes.

        Columns are matched by name if both have names, else by position. Columns that the model
        does not have are ignored. Labels are matched in the same way, and a label that the model
        does not know counts as missing. If the model has names of classes, the graph gets them.

        Raises:
            GraphError: feature columns are missing.
        """
        graph, column_notes = self._with_columns(graph)
        graph, class_notes = self._with_classes(graph)
        return AlignedGraph(graph, (*column_notes, *class_notes))

    def _with_columns(self, graph: Graph) -> AlignedGraph:
        names = _texts(graph.feature_names)
        if names == self.feature_names or not names or not self.feature_names:
            return AlignedGraph(graph, ())
        place = {name: column for column, name in enumerate(names)}
        if missing := [name for name in self.feature_names if name not in place]:
            raise GraphError(
                f"graph {graph.name!r} has no feature column {_listed(missing)}, which the model "
                "was trained on: add the missing columns, or train again without them"
            )
        notes: tuple[str, ...] = ()
        own = set(self.feature_names)
        if extra := [name for name in names if name not in own]:
            notes = (f"The feature column {_listed(extra)} is not in the model and was ignored.",)
        order = np.array([place[name] for name in self.feature_names], np.int64)
        assert graph.features is not None
        features = take_columns(graph.features, order)
        named = replace(graph, features=features, feature_names=np.array(self.feature_names))
        return AlignedGraph(named, notes)

    def _with_classes(self, graph: Graph) -> AlignedGraph:
        names = _texts(graph.class_names)
        if names and not self.class_names:
            if len(names) == self.num_classes:
                return AlignedGraph(graph, ())
            names, graph = (), replace(graph, class_names=None)
        if names == self.class_names and (names or graph.num_classes <= self.num_classes):
            return AlignedGraph(graph, ())
        own = {name: label for label, name in enumerate(self.class_names)}
        known = np.array([own.get(name, MISSING_LABEL) for name in names], np.int32)
        if not names:  # labels are numbers of classes
            numbers = np.arange(graph.num_classes, dtype=np.int32)
            known = np.where(numbers < self.num_classes, numbers, MISSING_LABEL).astype(np.int32)
        labels = np.full(graph.num_nodes, MISSING_LABEL, np.int32)
        labelled = graph.labels != MISSING_LABEL
        labels[labelled] = known[graph.labels[labelled]]
        notes = []
        if lost := [label for label in range(graph.num_classes) if known[label] == MISSING_LABEL]:
            texts = [names[label] if names else str(label) for label in lost]
            count = int(np.isin(graph.labels, lost).sum())
            notes.append(
                f"The model does not know the class {_listed(texts)}; the labels of {count:,} "
                "nodes were ignored."
            )
        relabelled = replace(
            graph,
            labels=labels,
            num_classes=self.num_classes,
            class_names=np.array(self.class_names) if self.class_names else None,
            split=_labelled_split(graph.split, labels),
        )
        return AlignedGraph(relabelled, tuple(notes))


def _labelled_split(split: Split | None, labels: NDArray[np.int32]) -> Split | None:
    """Return the split without nodes that have lost their label."""

    def kept(nodes: NodeIds) -> NodeIds:
        return np.asarray(nodes[labels[nodes] != MISSING_LABEL])

    if split is None:
        return None
    return Split(train=kept(split.train), val=kept(split.val), test=kept(split.test))


def _texts(names: NDArray[np.str_] | None) -> tuple[str, ...]:
    return () if names is None else tuple(str(name) for name in names)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_SHOWN])
    more = len(names) - _SHOWN
    return f"{shown} and {more:,} more" if more > 0 else shown
