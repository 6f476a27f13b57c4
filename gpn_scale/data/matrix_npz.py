"""Benchmark graphs as two sparse matrices and labels in an `.npz` file.

CoraML (Bojchevski and Günnemann, 2018), Amazon and Coauthor (Shchur et al., 2018) are published
like this. Shapes: N nodes, F feature columns.
"""

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import Graph
from gpn_scale.data.npz_arrays import read_arrays
from gpn_scale.data.pyg import compact_matrix
from gpn_scale.errors import GraphError

_PIECES = ("data", "indices", "indptr", "shape")
_KEYS = {*(f"{name}_{piece}" for name in ("adj", "attr") for piece in _PIECES), "labels"}


def read_matrices(path: Path, name: str) -> Graph:
    """Return the undirected graph of the matrices `adj` (N, N) and `attr` (N, F) in a file.

    It is the graph that PyG's reader makes of the file: features are 1 where they are positive.
    Files of this kind hold pickled names as well, which are not read.

    >>> from tempfile import TemporaryDirectory
    >>> matrix = scipy.sparse.csr_array(np.array([[0.0, 1.0], [0.0, 0.0]]))
    >>> pieces = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
    >>> arrays = {f"{name}_{key}": each for name in ("adj", "attr") for key, each in pieces.items()}
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "pair.npz"
    ...     np.savez(path, adj_shape=[2, 2], attr_shape=[2, 2], labels=[0, 1], **arrays)
    ...     read_matrices(path, "pair")
    Graph('pair', nodes=2, edges=2, features=2, classes=2)

    Raises:
        GraphError: the file is missing or damaged, or its arrays do not fit each other.
    """
    arrays = read_arrays(path, _KEYS.__contains__)
    missing = sorted(_KEYS - arrays.keys())
    if missing:
        raise GraphError(f"{path} has no array {', '.join(missing)}, as graphs of this kind have")
    adjacency, features = (_matrix(arrays, key, path) for key in ("adj", "attr"))
    if adjacency.shape != (features.shape[0],) * 2:
        raise GraphError(
            f"{path} has an adjacency matrix of shape {adjacency.shape}, expected "
            f"({features.shape[0]}, {features.shape[0]}) for the rows of its features"
        )
    edges = adjacency.tocoo()
    features.sum_duplicates()
    features.data = np.where(features.data > 0, 1, features.data)
    return build_graph(
        edges.row,
        edges.col,
        name=name,
        features=compact_matrix(features),
        labels=arrays["labels"],
    )


def _matrix(arrays: dict[str, NDArray[Any]], key: str, path: Path) -> scipy.sparse.csr_array:
    data, indices, indptr, shape = (arrays[f"{key}_{piece}"] for piece in _PIECES)
    try:
        if data.dtype.kind not in "biuf" or shape.shape != (2,) or shape.dtype.kind not in "iu":
            raise ValueError("expected numbers, and a shape of two")
        sizes = (int(shape[0]), int(shape[1]))
        matrix = scipy.sparse.csr_array((data.astype(np.float32), indices, indptr), shape=sizes)
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, IndexError, OverflowError, MemoryError) as error:
        raise GraphError(f"{path} has a damaged matrix {key!r} ({error})") from error
    return matrix
