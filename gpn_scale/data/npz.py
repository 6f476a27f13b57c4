"""Graphs as plain `.npz` files, readable without pickle.

Arrays (E edges, N nodes, F feature columns, C classes); any other array is ignored:

- `edge_index` (2, E), the only required array; `edge_weight` (E,)
- `x` (N, F), or the CSR pieces `x_data`, `x_indices`, `x_indptr`, `x_shape`
- `y` (N,), -1 where unknown; `num_classes`, `num_nodes`, `directed`: one number each
- `train_idx`, `val_idx`, `test_idx`: node ids of a public split, all three or none
- `mark_NAME`: node ids of the set NAME in `Graph.marks`
- `node_names` (N,), `class_names` (C,), `feature_names` (F,): your own names, as text or integers
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import CSRFeatures, Graph, Split
from gpn_scale.data.npz_arrays import read_arrays
from gpn_scale.errors import GraphError
from gpn_scale.files import replacing

_Arrays = dict[str, NDArray[Any]]

_CSR_KEYS = ("x_data", "x_indices", "x_indptr", "x_shape")
_SPLIT_KEYS = ("train_idx", "val_idx", "test_idx")
_SINGLE_KEYS = ("num_nodes", "num_classes", "directed")
_KEYS = {"edge_index", "edge_weight", "x", "y", "node_names", "class_names", "feature_names"}
_KEYS |= {*_CSR_KEYS, *_SPLIT_KEYS, *_SINGLE_KEYS}
_MARK = "mark_"


def read_npz(path: Path, name: str) -> Graph:
    """Return the graph in the file `path`, in the format at the top of this module.

    The graph is undirected unless the file's array `directed` is true: a file without this array is
    read as undirected even if its `edge_index` is not symmetric.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mine.npz"
    ...     np.savez(path, edge_index=[[0, 1], [1, 2]], y=[0, 1, -1])
    ...     read_npz(path, "mine")
    Graph('mine', nodes=3, edges=4, features=0, classes=2)

    Raises:
        GraphError: the file is missing or damaged, holds pickled objects, or an array has a
            wrong shape or type.
    """
    if not path.is_file():
        raise GraphError(f"{path} is not a file, expected a graph in .npz format")
    arrays = read_arrays(path, lambda key: key in _KEYS or key.startswith(_MARK))
    if "edge_index" not in arrays:
        raise GraphError(f"{path} has no array 'edge_index', expected one of shape (2, E)")
    edge_index = arrays["edge_index"]
    if edge_index.ndim != 2 or edge_index.shape[0] != 2:
        raise GraphError(f"{path}: edge_index has shape {edge_index.shape}, expected (2, E)")
    single = {key: _single(arrays, key, path) for key in _SINGLE_KEYS}
    return build_graph(
        edge_index[0],
        edge_index[1],
        name=name,
        num_nodes=single["num_nodes"],
        edge_weight=arrays.get("edge_weight"),
        features=_features(arrays, path),
        labels=arrays.get("y"),
        num_classes=single["num_classes"],
        directed=bool(single["directed"]),
        split=_split(arrays, path),
        marks={key.removeprefix(_MARK): arrays[key] for key in arrays if key.startswith(_MARK)},
        node_names=arrays.get("node_names"),
        class_names=arrays.get("class_names"),
        feature_names=arrays.get("feature_names"),
    )


def write_npz(graph: Graph, path: Path) -> None:
    """Write `graph` to the file `path` for `read_npz`, atomically.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_npz(build_graph([0, 1], [1, 2]), Path(folder) / "mine.npz")
    ...     read_npz(Path(folder) / "mine.npz", "mine")
    Graph('mine', nodes=3, edges=4, features=0, classes=0)
    """
    source = np.repeat(np.arange(graph.num_nodes, dtype=np.int32), graph.out_degree)
    arrays: dict[str, Any] = {
        "edge_index": np.stack([source, graph.indices]),
        "y": graph.labels,
        "num_nodes": np.array(graph.num_nodes),
        "num_classes": np.array(graph.num_classes),
        "directed": np.array(graph.directed),
    }
    if graph.edge_weight is not None:
        arrays["edge_weight"] = graph.edge_weight
    if isinstance(graph.features, CSRFeatures):
        csr = graph.features
        pieces = (csr.values, csr.indices, csr.indptr, np.array(csr.shape, np.int64))
        arrays |= dict(zip(_CSR_KEYS, pieces, strict=True))
    elif graph.features is not None:
        arrays["x"] = graph.features
    if graph.split is not None:
        subsets = (graph.split.train, graph.split.val, graph.split.test)
        arrays |= dict(zip(_SPLIT_KEYS, subsets, strict=True))
    names = {
        "node_names": graph.node_names,
        "class_names": graph.class_names,
        "feature_names": graph.feature_names,
    }
    arrays |= {key: texts for key, texts in names.items() if texts is not None}
    arrays |= {_MARK + key: ids for key, ids in graph.marks.items()}
    with replacing(path) as file:
        np.savez(file, **arrays)


def _single(arrays: _Arrays, key: str, path: Path) -> int | None:
    array = arrays.get(key)
    if array is None:
        return None
    if array.size != 1 or array.dtype.kind not in "iub":
        raise GraphError(
            f"{path}: {key} is {array.dtype} of shape {array.shape}, expected one integer"
        )
    return int(array.reshape(-1)[0])


def _split(arrays: _Arrays, path: Path) -> Split | None:
    missing = [key for key in _SPLIT_KEYS if key not in arrays]
    if len(missing) == len(_SPLIT_KEYS):
        return None
    if missing:
        raise GraphError(
            f"{path} has part of a split but no {', '.join(missing)}; "
            f"expected all of {', '.join(_SPLIT_KEYS)}, or none"
        )
    train, val, test = (arrays[key] for key in _SPLIT_KEYS)
    return Split(train=train, val=val, test=test)


def _features(arrays: _Arrays, path: Path) -> NDArray[Any] | CSRFeatures | None:
    present = [key for key in _CSR_KEYS if key in arrays]
    if "x" in arrays or not present:
        return arrays.get("x")
    missing = [key for key in _CSR_KEYS if key not in arrays]
    if missing:
        raise GraphError(
            f"{path} has {', '.join(present)} but no {', '.join(missing)}; "
            "expected all pieces of sparse features, or dense 'x'"
        )
    data, indices, indptr, shape = (arrays[key] for key in _CSR_KEYS)
    if shape.shape != (2,) or shape.dtype.kind not in "iu":
        raise GraphError(f"{path}: x_shape is {shape.tolist()}, expected two integers [N, F]")
    if indptr.shape != (int(shape[0]) + 1,):
        raise GraphError(
            f"{path}: x_indptr has shape {indptr.shape}, expected ({int(shape[0]) + 1},) "
            f"for the {shape[0]} rows of x_shape"
        )
    return CSRFeatures(indptr=indptr, indices=indices, values=data, num_columns=int(shape[1]))
