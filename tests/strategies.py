"""Small graphs for hypothesis, and what it means that two graphs are the same."""

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import MISSING_LABEL, CSRFeatures, Graph, Split

MAX_NODES = 8


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Graphs of 1 to 8 nodes, with and without each of the optional arrays.

    Nodes may be isolated; the edge list may hold self-loops, repetitions and one direction only.
    """
    num_nodes = draw(st.integers(1, MAX_NODES))
    node = st.integers(0, num_nodes - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=3 * num_nodes))
    edge_index = np.array(edges, np.int64).reshape(-1, 2)
    weight = st.floats(2.0**-10, 2.0**10, width=32)
    weights = st.none() | st.lists(weight, min_size=len(edges), max_size=len(edges))
    node_sets = st.sets(node).map(lambda ids: np.array(sorted(ids), np.int64))
    names = st.lists(st.text(_letters(), min_size=1), min_size=num_nodes, max_size=num_nodes)
    labels, num_classes, split = draw(labellings(num_nodes))
    graph = build_graph(
        edge_index[:, 0],
        edge_index[:, 1],
        name="drawn",
        num_nodes=num_nodes,
        edge_weight=draw(weights),
        features=draw(st.none() | dense_features(num_nodes) | csr_features(num_nodes)),
        labels=labels,
        num_classes=num_classes,
        directed=draw(st.booleans()),
        split=split,
        marks=draw(st.dictionaries(st.text(_letters(), min_size=1), node_sets, max_size=2)),
        node_names=draw(st.none() | names.map(lambda texts: np.array(texts, np.str_))),
    )
    size = graph.num_classes
    class_names = st.lists(st.text(_letters()), min_size=size, max_size=size)
    texts = draw(st.none() | class_names.map(lambda texts: np.array(texts, np.str_)))
    return replace(graph, class_names=texts)


@st.composite
def labellings(draw: st.DrawFn, num_nodes: int) -> tuple[Any, int | None, Split | None]:
    """Labels, number of classes and split; a split has every class among its training nodes."""
    classes = st.integers(MISSING_LABEL, 2)
    drawn = draw(st.none() | st.lists(classes, min_size=num_nodes, max_size=num_nodes))
    if drawn is None:
        return None, None, None
    labels = np.array(drawn)
    if not draw(st.booleans()):
        return labels, draw(st.just(None) | st.integers(3, 5)), None
    labelled = labels != MISSING_LABEL
    _, first, labels[labelled] = np.unique(labels[labelled], return_index=True, return_inverse=True)
    subset = draw(st.lists(st.integers(0, 3), min_size=num_nodes, max_size=num_nodes))
    subset = np.where(labelled, subset, 3)
    subset[np.flatnonzero(labelled)[first]] = 0
    train, val, test = (np.flatnonzero(subset == number) for number in range(3))
    return labels, None, Split(train=train, val=val, test=test)


@st.composite
def dense_features(draw: st.DrawFn, num_nodes: int) -> np.ndarray:
    num_columns = draw(st.integers(0, 4))
    size = num_nodes * num_columns
    values = draw(st.lists(st.floats(-9, 9, width=16), min_size=size, max_size=size))
    dtype = draw(st.sampled_from([np.float16, np.float32]))
    return np.array(values, dtype).reshape(num_nodes, num_columns)


@st.composite
def csr_features(draw: st.DrawFn, num_nodes: int) -> CSRFeatures:
    num_columns = draw(st.integers(1, 4))
    row = st.sets(st.integers(0, num_columns - 1)).map(sorted)
    rows = draw(st.lists(row, min_size=num_nodes, max_size=num_nodes))
    indices = np.array([column for each in rows for column in each], np.int32)
    size = len(indices)
    values = draw(st.lists(st.floats(-9, 9, width=32), min_size=size, max_size=size))
    return CSRFeatures(
        indptr=np.cumsum([0, *map(len, rows)], dtype=np.int64),
        indices=indices,
        values=np.array(values, np.float32),
        num_columns=num_columns,
    )


def assert_same_graph(got: Graph, expected: Graph) -> None:
    """Equal in everything but the name, to the bit and to the dtype."""
    assert got.fingerprint() == expected.fingerprint()
    assert got.num_classes == expected.num_classes
    assert got.directed == expected.directed
    assert (got.split is None) == (expected.split is None)
    assert isinstance(got.features, CSRFeatures) == isinstance(expected.features, CSRFeatures)
    assert got.marks.keys() == expected.marks.keys()
    for key, ids in expected.marks.items():
        np.testing.assert_array_equal(got.marks[key], ids, strict=True)
    for what in ("node_names", "class_names"):
        names, texts = getattr(got, what), getattr(expected, what)
        assert (names is None) == (texts is None)
        assert texts is None or names.tolist() == texts.tolist()


def _letters() -> st.SearchStrategy[str]:
    # NumPy drops trailing NUL characters of text, and a file name cannot hold a lone surrogate.
    return st.characters(exclude_categories=("Cs",), exclude_characters="\0")
