"""`DataContract`: the columns, classes and kind of edges that a trained model expects."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpn_scale.data.features import take_columns
from gpn_scale.data.graph import MISSING_LABEL, Graph, NodeIds, Split
from gpn_scale.data.preparation import Preparation, prepared_features
from gpn_scale.data.surprises import ColumnSurprise, listed
from gpn_scale.errors import GraphError


class AlignedGraph(NamedTuple):
    """A graph with the columns and classes of a model, and notes on the changes.

    >>> from gpn_scale import build_graph
    >>> pair = build_graph([0], [1])
    >>> AlignedGraph(pair, notes=()).graph is pair
    True
    """

    graph: Graph
    notes: tuple[str, ...]
    """Notes on what was ignored or changed, or is unusual, one sentence each."""
    surprises: tuple[ColumnSurprise, ...] = ()
    """Counts of unusual values per raw column, if the model has prepared raw columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataContract:
    """The feature columns, classes and kind of edges of a model's training graph.

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
    preparation: Preparation | None = None
    """The rule by which features were made of raw columns; None if they were given as numbers."""
    directed: bool | None = None
    """Whether edges had a direction; None if it is not known."""
    weighted: bool | None = None
    """Whether edges had weights; None if it is not known."""
    source: str | None = None
    """File or folder that the training graph was read from; None if there is none."""

    @classmethod
    def of(cls, graph: Graph) -> "DataContract":
        """Return the contract of a model that is trained on `graph`."""
        return cls(
            num_features=graph.num_features,
            num_classes=graph.num_classes,
            feature_names=_texts(graph.feature_names),
            class_names=_texts(graph.class_names),
            preparation=graph.preparation,
            directed=graph.directed,
            weighted=graph.edge_weight is not None,
            source=graph.source,
        )

    def aligned(self, graph: Graph) -> AlignedGraph:
        """Return the graph with the model's columns in their order, and with its classes.

        If the model has a preparation and the graph has raw columns, the features are recomputed by
        the model's rule, unless they were made by the same rule. Otherwise feature columns are
        matched by name if both have names, else by position. Columns that the model does not have
        are ignored. Labels are matched in the same way, and labels that the model does not know
        count as missing. If the model has class names, the graph gets them.

        Raises:
            GraphError: feature columns are missing.
            TableFaults: raw columns are missing or of another kind.
        """
        graph, column_notes, surprises = self._with_columns(graph)
        edge_notes = self._notes_on_edges(graph)
        graph, class_notes, _ = self.with_classes(graph)
        return AlignedGraph(graph, (*column_notes, *edge_notes, *class_notes), surprises)

    def _with_columns(self, graph: Graph) -> AlignedGraph:
        preparation = self.preparation
        if preparation is None:
            return self._with_named_columns(graph)
        if graph.preparation == preparation:
            return AlignedGraph(graph, ())
        if graph.raw_columns is None and preparation.rules:
            aligned = self._with_named_columns(graph)
            return aligned._replace(notes=(*aligned.notes, *_notes_on_preparation(graph)))
        table = pa.table({}) if graph.raw_columns is None else graph.raw_columns.table()
        prepared = prepared_features(preparation, table, graph, file=graph.name)
        made = replace(
            graph,
            features=prepared.features,
            feature_names=np.array(preparation.feature_names, np.str_),
            preparation=preparation,
        )
        return AlignedGraph(made, prepared.notes, prepared.surprises)

    def _with_named_columns(self, graph: Graph) -> AlignedGraph:
        names = _texts(graph.feature_names)
        if names == self.feature_names or not names or not self.feature_names:
            return AlignedGraph(graph, ())
        place = {name: column for column, name in enumerate(names)}
        if missing := [name for name in self.feature_names if name not in place]:
            raise GraphError(
                f"graph {graph.name!r} has no feature column {listed(missing)}, which the model "
                "was trained on: add the missing columns, or train again without them"
            )
        notes: tuple[str, ...] = ()
        own = set(self.feature_names)
        if extra := [name for name in names if name not in own]:
            notes = (f"The feature column {listed(extra)} is not in the model and was ignored.",)
        order = np.array([place[name] for name in self.feature_names], np.int64)
        assert graph.features is not None
        features = take_columns(graph.features, order)
        named = replace(
            graph, features=features, feature_names=np.array(self.feature_names), preparation=None
        )
        return AlignedGraph(named, notes)

    def _notes_on_edges(self, graph: Graph) -> tuple[str, ...]:
        notes = []
        if self.directed is not None and self.directed != graph.directed:
            notes.append(_difference("directed", "undirected", self.directed))
        if self.weighted is not None and self.weighted != (graph.edge_weight is not None):
            notes.append(_difference("weighted", "unweighted", self.weighted))
        return tuple(notes)

    def with_classes(self, graph: Graph) -> AlignedGraph:
        """Return the graph with the model's classes, as in `aligned`; features stay as they are."""
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
                f"The model does not know the class {listed(texts)}; the labels of {count:,} "
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
    """Return the split without nodes whose label was dropped."""

    def kept(nodes: NodeIds) -> NodeIds:
        return np.asarray(nodes[labels[nodes] != MISSING_LABEL])

    if split is None:
        return None
    return Split(train=kept(split.train), val=kept(split.val), test=kept(split.test))


def _notes_on_preparation(graph: Graph) -> tuple[str, ...]:
    if graph.preparation is None:
        return ()
    return (
        "The features were made by another rule than the model's, and the graph does not hold the "
        "raw columns to make them again, so predictions may be wrong: import the tables again.",
    )


def _difference(true: str, false: str, trained: bool) -> str:
    given, other = (true, false) if trained else (false, true)
    return f"The graph of training is {given}, this one is {other}."


def _texts(names: NDArray[np.str_] | None) -> tuple[str, ...]:
    return () if names is None else tuple(str(name) for name in names)
