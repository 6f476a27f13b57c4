"""Reads CiteSeer and PubMed from Planetoid's raw files, which are pickles, without running them.

Shapes: N nodes, T test nodes, F feature columns, C classes.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import Graph, NodeIds, Split
from gpn_scale.data.plain_pickle import read_plain_pickle
from gpn_scale.data.pyg import compact_matrix
from gpn_scale.errors import FileError, GraphError
from gpn_scale.reading import read_bytes, read_text

PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
"""Endings of the raw files."""
_LARGEST_FILE = 512 << 20
_VALIDATION_NODES = 500
_LARGEST_GAP = 10
"""Largest ratio of isolated test nodes, which no file lists, to listed ones."""


def read_planetoid(folder: Path, prefix: str, name: str) -> Graph:
    """Return the graph of Planetoid's raw files `folder/ind.PREFIX.*`, with its public split.

    It is the graph that PyG's reader makes of them (Yang et al., 2016): the files `allx` and `ally`
    hold all nodes but the test nodes, the training nodes first; `tx` and `ty` hold the test nodes
    in the order of `test.index`. Test nodes that this file skips are isolated, with features and
    label 0. Nothing is written, and nothing in the pickles is run (`read_plain_pickle`).

    >>> import pickle
    >>> from tempfile import TemporaryDirectory
    >>> eye = scipy.sparse.csr_matrix(np.eye(502, 4, dtype=np.float32))
    >>> parts = {"x": eye[:2], "tx": eye[:1], "allx": eye, "graph": {0: [1], 502: [1]}}
    >>> one_hot = np.eye(2, dtype=np.int32)[np.arange(502) % 2]
    >>> parts |= {"y": one_hot[:2], "ty": one_hot[:1], "ally": one_hot}
    >>> with TemporaryDirectory() as folder:
    ...     for key, part in parts.items():
    ...         _ = Path(folder, f"ind.tiny.{key}").write_bytes(pickle.dumps(part, protocol=2))
    ...     _ = Path(folder, "ind.tiny.test.index").write_text("502")
    ...     read_planetoid(Path(folder), "tiny", "tiny")
    Graph('tiny', nodes=503, edges=4, features=4, classes=2)

    Raises:
        GraphError: the files are incomplete, damaged, do not fit each other, or hold anything else
            than arrays, matrices, lists and dictionaries.
    """
    try:
        return _graph(folder, prefix, name)
    except FileError as error:
        raise GraphError(str(error), arguments=("data_dir",)) from error


def _graph(folder: Path, prefix: str, name: str) -> Graph:
    paths = {part: folder / f"ind.{prefix}.{part}" for part in PARTS}
    values = {part: _value(path) for part, path in paths.items() if part != "test.index"}
    features = {part: _matrix(values[part], paths[part]) for part in ("x", "tx", "allx")}
    classes = {part: _array(values[part], paths[part]) for part in ("y", "ty", "ally")}
    for left, right in (("x", "y"), ("tx", "ty"), ("allx", "ally")):
        if features[left].shape[0] != classes[right].shape[0]:
            raise FileError(
                f"{paths[left]} has {features[left].shape[0]:,} rows, but {paths[right].name} has "
                f"{classes[right].shape[0]:,}"
            )
    widths = [{each.shape[1] for each in part.values()} for part in (features, classes)]
    if any(len(width) != 1 for width in widths):
        raise FileError(f"{paths['x']} and its other parts have different numbers of columns")
    test = _test_nodes(paths["test.index"], *features["tx"].shape[:1], first=len(classes["ally"]))
    num_nodes = int(test.max(initial=len(classes["ally"]) - 1)) + 1
    train = np.arange(len(classes["y"]))
    val = np.arange(len(train), len(train) + _VALIDATION_NODES)
    if len(val) + len(train) > len(classes["ally"]):
        raise FileError(
            f"{paths['ally']} has {len(classes['ally']):,} rows, expected the {len(train):,} "
            f"training nodes and {_VALIDATION_NODES} more for validation"
        )
    source, target = _edges(values["graph"], paths["graph"])
    if len(source) and max(source.max(), target.max()) >= num_nodes:
        raise FileError(
            f"{paths['graph']} has the node {max(source.max(), target.max())}, but there are only "
            f"{num_nodes:,}"
        )
    labels = np.zeros(num_nodes, np.int64)
    labels[: len(classes["ally"])] = classes["ally"].argmax(axis=1)
    labels[test] = classes["ty"].argmax(axis=1)
    return build_graph(
        source,
        target,
        name=name,
        features=compact_matrix(_stacked(features["allx"], features["tx"], test, num_nodes)),
        labels=labels,
        split=Split(train=train, val=val, test=test),
    )


def _value(path: Path) -> Any:
    return read_plain_pickle(read_bytes(path, _LARGEST_FILE), str(path))


def _matrix(value: Any, path: Path) -> scipy.sparse.csr_array:
    if isinstance(value, np.ndarray) and value.ndim == 2:
        value = scipy.sparse.csr_array(value)
    if not isinstance(value, scipy.sparse.csr_array):
        raise FileError(f"{path} holds a {type(value).__name__}, expected a matrix of features")
    return value.astype(np.float32)


def _array(value: Any, path: Path) -> NDArray[Any]:
    if not isinstance(value, np.ndarray) or value.ndim != 2 or not value.shape[1]:
        raise FileError(f"{path} holds no array of nodes by classes, as labels should be")
    return value


def _test_nodes(path: Path, count: int, *, first: int) -> NodeIds:
    """Return the ids of the test nodes in the order of the file, (T,)."""
    lines = read_text(path).split()
    if not all(line.isascii() and line.isdigit() and len(line) < 10 for line in lines):
        raise FileError(f"{path} holds something else than one node id per line")
    nodes = np.array([int(line) for line in lines], np.int64)
    if len(nodes) != count or len(np.unique(nodes)) != count:
        raise FileError(f"{path} holds {len(nodes):,} ids, expected {count:,} different ones")
    last = first + _LARGEST_GAP * count
    if count and not (nodes.min() == first and nodes.max() < last):
        raise FileError(
            f"{path} holds ids from {nodes.min()} to {nodes.max()}, expected them to begin at "
            f"{first}, the number of the other nodes, and to stay below {last}"
        )
    return nodes


def _edges(value: Any, path: Path) -> tuple[NodeIds, NodeIds]:
    """Return the ends of all edges of a dictionary from nodes to lists of neighbours."""
    if not isinstance(value, Mapping):
        raise FileError(f"{path} holds a {type(value).__name__}, expected a dictionary of lists")
    # A list that stands in the file once may be the neighbours of many nodes.
    counts = [len(each) if type(each) is list else -1 for each in value.values()]
    if min(counts, default=0) < 0 or sum(counts) > path.stat().st_size:
        raise FileError(f"{path} holds something else than a list of neighbours per node")
    keys, ends = list(value), [end for each in value.values() for end in each]
    if not all(type(node) is int and 0 <= node < 1 << 31 for each in (keys, ends) for node in each):
        raise FileError(f"{path} holds something else than a list of neighbours per node")
    return np.repeat(np.array(keys, np.int64), counts), np.array(ends, np.int64)


def _stacked(
    known: scipy.sparse.csr_array, test: scipy.sparse.csr_array, nodes: NodeIds, num_nodes: int
) -> scipy.sparse.csr_array:
    """Return all features, (N, F): row `nodes[t]` is row t of `test`, rows in no file are 0."""
    first, second = known.tocoo(), test.tocoo()
    rows = np.concatenate([first.row, nodes[second.row]])
    columns = np.concatenate([first.col, second.col])
    values = np.concatenate([first.data, second.data])
    return scipy.sparse.csr_array((values, (rows, columns)), shape=(num_nodes, known.shape[1]))
