"""Numbers of labelled nodes by class and by subset of the split."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gpn_scale.data.graph import MISSING_LABEL, Graph


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassCount:
    """Labelled nodes of one class.

    >>> ClassCount(name="fraud", labelled=12, train=7, val=2, test=3).to_dict()
    {'name': 'fraud', 'labelled': 12, 'train': 7, 'val': 2, 'test': 3}
    """

    name: str
    labelled: int
    """Number of all nodes with this label, whether in a subset or not."""
    train: int = 0
    val: int = 0
    test: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the counts by name."""
        return asdict(self)


def class_counts(graph: Graph) -> tuple[ClassCount, ...]:
    """Return the counts of every class; those of subsets are 0 for a graph without a split.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.data.graph import Split
    >>> split = Split(train=[0, 1], val=[], test=[3])
    >>> graph = build_graph([], [], labels=[0, 1, -1, 0], class_names=["a", "b"], split=split)
    >>> [(each.name, each.labelled, each.train, each.test) for each in class_counts(graph)]
    [('a', 2, 1, 1), ('b', 1, 1, 0)]
    """
    labelled = graph.labels[graph.labels != MISSING_LABEL]
    subsets = {"labelled": np.bincount(labelled, minlength=graph.num_classes)}
    if graph.split is not None:
        for subset in ("train", "val", "test"):
            labels = graph.labels[getattr(graph.split, subset)]
            subsets[subset] = np.bincount(labels, minlength=graph.num_classes)
    return tuple(
        ClassCount(
            name=class_name(graph, label),
            **{subset: int(counts[label]) for subset, counts in subsets.items()},
        )
        for label in range(graph.num_classes)
    )


def class_name(graph: Graph, label: int) -> str:
    """Return the user's name of a class, or `class 3`.

    >>> from gpn_scale import build_graph
    >>> class_name(build_graph([], [], labels=[0, 1]), 1)
    'class 1'
    """
    return f"class {label}" if graph.class_names is None else str(graph.class_names[label])
