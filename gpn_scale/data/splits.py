"""Seeded splits, left-out classes, and the class prior of the training set."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gpn_scale.config import RunConfig
from gpn_scale.data.graph import MISSING_LABEL, Graph, NodeIds, Split
from gpn_scale.errors import ConfigError, GraphError

LEFT_OUT_MARK = "left_out_classes"
"""Name of the mark of test nodes whose class was left out."""
CLASS_SETS = 5
"""Number of sets of left-out classes; a graph with fewer classes has one set per class."""


def stratified_split(
    graph: Graph, *, train: float = 0.05, val: float = 0.15, rng_seed: int
) -> Graph:
    """Return the same graph with a random split by the same fractions in every class.

    Every class gets at least one training node and, if two or more nodes remain, at least one
    validation node; the rest are test nodes. Marked nodes are never used for training or
    validation: those with a label are test nodes, and the fractions refer to the unmarked nodes.

    >>> from gpn_scale import build_graph
    >>> graph = build_graph([], [], labels=[0, 1] * 10)
    >>> split = stratified_split(graph, train=0.2, val=0.3, rng_seed=1).split
    >>> len(split.train), len(split.val), len(split.test)
    (4, 6, 10)

    Args:
        graph: Any graph with labels; its own split, if any, is replaced.
        train: Fraction for training, in (0, 1).
        val: Fraction for validation, in (0, 1); `train + val` must be below 1.
        rng_seed: Seed of the draw, at least 0; the same seed gives the same split.

    Raises:
        ConfigError: a fraction or the seed is out of range.
        GraphError: a class has no unmarked node, or the graph has no classes at all.
    """
    if not (0.0 < train < 1.0 and 0.0 < val < 1.0 and train + val < 1.0):
        raise ConfigError(
            "split: train and val must be fractions in (0, 1) with a sum below 1, "
            f"got train={train!r} and val={val!r}",
            arguments=("split.train", "split.val"),
        )
    if rng_seed < 0:
        raise ConfigError(
            f"split: rng_seed must be at least 0, got {rng_seed!r}", arguments=("split.rng_seed",)
        )
    if graph.num_classes == 0:
        raise GraphError(
            f"graph {graph.name!r} has no classes, expected labels to split by: name its column of "
            "labels when it is imported"
        )
    return graph.with_split(drawn_split(graph, train=train, val=val, rng_seed=rng_seed))


def drawn_split(graph: Graph, *, train: float, val: float, rng_seed: int) -> Split:
    """Return the split of `stratified_split` (with the same arguments) without its checks.

    Classes without nodes are allowed.

    >>> from gpn_scale import build_graph
    >>> graph = build_graph([], [], labels=[0, -1, 0, 0], num_classes=2)
    >>> split = drawn_split(graph, train=0.3, val=0.3, rng_seed=1)
    >>> len(split.train), len(split.val), len(split.test)
    (1, 1, 1)
    """
    subset_of_node = np.full(graph.num_nodes, 2, np.int8)
    for ids in _shuffled_classes(graph, np.random.default_rng(rng_seed)):
        num_train, num_val = _class_counts(len(ids), train, val)
        subset_of_node[ids[:num_train]] = 0
        subset_of_node[ids[num_train : num_train + num_val]] = 1
    labelled = np.flatnonzero(graph.labels != MISSING_LABEL)
    subset = subset_of_node[labelled]
    return Split(train=labelled[subset == 0], val=labelled[subset == 1], test=labelled[subset == 2])


def trainable_nodes(graph: Graph) -> NodeIds:
    """Return the nodes that a split may use for training: those with a label and without a mark.

    >>> from gpn_scale import build_graph
    >>> trainable_nodes(build_graph([], [], labels=[0, -1, 1], marks={"odd": [2]}))
    array([0])
    """
    eligible = graph.labels != MISSING_LABEL
    eligible[graph.marked] = False
    return np.flatnonzero(eligible)


def num_training_nodes(graph: Graph, config: RunConfig) -> int:
    """Return the number of training nodes that `prepare_graph` would give, without preparing it.

    Settings that `prepare_graph` refuses give the number of training nodes that would be left.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.config import DataConfig, SplitConfig
    >>> graph = build_graph([], [], labels=[0, 1, 2] * 10)
    >>> config = RunConfig(data=DataConfig(left_out_classes=1), split=SplitConfig(train=0.3))
    >>> num_training_nodes(graph, config), len(prepare_graph(graph, config).split.train)
    (6, 6)
    """
    split = config.split
    if split.kind == "public" and graph.split is not None:
        labels = graph.labels[graph.split.train]
        train_C = np.bincount(labels[labels != MISSING_LABEL], minlength=graph.num_classes)
    else:
        nodes_C = np.bincount(graph.labels[trainable_nodes(graph)], minlength=graph.num_classes)
        train_C = np.array([_class_counts(int(n), split.train, split.val)[0] for n in nodes_C], int)
    if left_out := min(config.data.left_out_classes, graph.num_classes):
        train_C[left_out_class_set(graph.num_classes, left_out, config.data.left_out_set)] = 0
    return int(train_C.sum())


def _shuffled_classes(graph: Graph, rng: np.random.Generator) -> list[NodeIds]:
    """Return the unmarked nodes of each class, in random order."""
    order = rng.permutation(trainable_nodes(graph))
    labels = graph.labels[order]
    class_ptr = np.cumsum(np.bincount(labels, minlength=graph.num_classes))
    return np.split(order[np.argsort(labels, kind="stable")], class_ptr[:-1])


def _class_counts(num_nodes: int, train: float, val: float) -> tuple[int, int]:
    num_train = min(max(1, round(train * num_nodes)), num_nodes)
    left = num_nodes - num_train
    num_val = max(1 if left >= 2 else 0, round(val * num_nodes))
    return num_train, min(num_val, left)


def left_out_class_set(num_classes: int, count: int, class_set: int = 0) -> NDArray[np.int64]:
    """Return the classes of one of several sets of `count` classes to leave out, (count,).

    Set 0 holds the last classes, as in the paper. The others are the same block of consecutive
    classes, shifted cyclically: set s of S begins floor(s C / S) classes later, where S is the
    smaller of C and `CLASS_SETS`. So the sets differ, and are spread evenly over all classes.

    >>> [left_out_class_set(7, 3, class_set).tolist() for class_set in range(3)]
    [[4, 5, 6], [5, 6, 0], [6, 0, 1]]
    """
    moved = class_set * num_classes // min(CLASS_SETS, num_classes)
    return (num_classes - count + moved + np.arange(count)) % num_classes


def leave_out_classes(graph: Graph, count: int, class_set: int = 0) -> Graph:
    """Return the same graph with the labels of `count` classes hidden.

    The graph must have a split. Nodes and edges of these classes stay, their labels become
    `MISSING_LABEL`, and they leave the split. Their test nodes become unknown nodes, with the mark
    `left_out_classes`. Other marks stay, so a node may have two. The other classes are numbered
    from 0, in their order.

    Args:
        graph: A graph with a split.
        count: Number of classes to hide.
        class_set: Which classes; see `left_out_class_set`. 0 stands for the last ones.

    >>> from gpn_scale import build_graph
    >>> split = Split(train=[0, 1, 2], val=[], test=[3, 4])
    >>> graph = build_graph([], [], labels=[0, 1, 2, 0, 2], split=split)
    >>> left_out = leave_out_classes(graph, 1)
    >>> left_out.labels.tolist(), left_out.marks
    ([0, 1, -1, 0, -1], {'left_out_classes': array([4])})

    Raises:
        GraphError: the graph has no split, fewer than two classes would stay, or it has no such
            set of classes.
    """
    hidden = hide_classes(graph, count, class_set)
    assert hidden.split is not None
    return replace(hidden, split=None).with_split(hidden.split)


def hide_classes(graph: Graph, count: int, class_set: int = 0) -> Graph:
    """Return `leave_out_classes` without its check that every class has a training node.

    >>> from gpn_scale import build_graph
    >>> split = Split(train=[0], val=[], test=[1, 2])
    >>> graph = replace(build_graph([], [], labels=[0, 1, 2]), split=split)
    >>> hide_classes(graph, 1).split.test.tolist()
    [1]

    Raises:
        GraphError: the graph has no split, fewer than two classes would stay, or it has no such
            set of classes.
    """
    split = _split_of(graph)
    known = graph.num_classes - count
    if count < 1 or known < 2:
        raise GraphError(
            f"graph {graph.name!r}: cannot leave out {count} of {graph.num_classes} classes, "
            "expected at least one to be left out and at least two to stay",
            arguments=("left_out_classes",),
        )
    if not 0 <= class_set < min(CLASS_SETS, graph.num_classes):
        raise GraphError(
            f"graph {graph.name!r} has {graph.num_classes} classes, got class set {class_set} to "
            f"leave out, expected 0 to {min(CLASS_SETS, graph.num_classes) - 1}",
            arguments=("data.left_out_set", "class_sets"),
        )
    hidden = left_out_class_set(graph.num_classes, count, class_set)
    kept = np.setdiff1d(np.arange(graph.num_classes), hidden)
    stays = np.isin(graph.labels, kept)
    left_out = split.test[~stays[split.test]]
    earlier = graph.marks.get(LEFT_OUT_MARK, np.empty(0, np.int64))
    renumbered = np.searchsorted(kept, graph.labels)
    return replace(
        graph,
        labels=np.where(stays, renumbered, MISSING_LABEL).astype(np.int32),
        num_classes=known,
        class_names=None if graph.class_names is None else graph.class_names[kept],
        split=Split(
            train=split.train[stays[split.train]],
            val=split.val[stays[split.val]],
            test=split.test[stays[split.test]],
        ),
        marks={**graph.marks, LEFT_OUT_MARK: np.union1d(earlier, left_out)},
    )


def class_prior(graph: Graph) -> NDArray[np.float64]:
    """Return the frequency of each class in the training set, (C,); they sum to 1.

    >>> from gpn_scale import build_graph
    >>> split = Split(train=[0, 1, 2, 3], val=[], test=[])
    >>> class_prior(build_graph([], [], labels=[0, 1, 0, 0], split=split)).tolist()
    [0.75, 0.25]

    Raises:
        GraphError: the graph has no split.
    """
    train = _split_of(graph).train
    return np.bincount(graph.labels[train], minlength=graph.num_classes) / len(train)


def _split_of(graph: Graph) -> Split:
    if graph.split is None:
        raise GraphError(
            f"graph {graph.name!r} has no split, expected one: call `stratified_split` first"
        )
    return graph.split


def prepare_graph(graph: Graph, config: RunConfig) -> Graph:
    """Return the graph with the configured split and with the left-out classes hidden.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.config import DataConfig
    >>> graph = build_graph([], [], labels=[0, 1, 2] * 10)
    >>> prepare_graph(graph, RunConfig(data=DataConfig(left_out_classes=1))).num_classes
    2

    Raises:
        GraphError: the graph has no public split but `config` asks for it, or its labels do not
            allow the split.
    """
    if config.split.kind == "public":
        if graph.split is None:
            raise GraphError(
                f"graph {graph.name!r} has no public split, but split.kind is 'public': use "
                "split.kind='stratified'",
                arguments=("split.kind",),
            )
    else:
        graph = stratified_split(
            graph,
            train=config.split.train,
            val=config.split.val,
            rng_seed=config.split.rng_seed,
        )
    count, class_set = config.data.left_out_classes, config.data.left_out_set
    return leave_out_classes(graph, count, class_set) if count else graph
