"""Small raw files in the layouts of the benchmark graphs."""

import pickle
from pathlib import Path

import numpy as np
import scipy.sparse

BAG = scipy.sparse.csr_array(np.array([[0, 0, 0, 0, 0, 2], [0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0]]))


def put_shchur(path: Path) -> None:
    """The layout of the graph2gauss and gnn-benchmark files: two CSR matrices and labels."""
    adjacency = scipy.sparse.csr_array(np.array([[1, 1, 0], [0, 0, 1], [0, 0, 0]], np.float32))
    arrays = {"labels": np.array([0, 1, 1])}
    for key, matrix in (("adj", adjacency), ("attr", BAG.astype(np.float32))):
        arrays[f"{key}_data"] = matrix.data
        arrays[f"{key}_indices"] = matrix.indices
        arrays[f"{key}_indptr"] = matrix.indptr
        arrays[f"{key}_shape"] = np.array(matrix.shape)
    path.parent.mkdir(parents=True)
    np.savez(path, **arrays)


def put_planetoid(folder: Path, prefix: str, test_nodes: list[int]) -> int:
    """Two training nodes, 500 validation nodes, and test nodes in an order of their own."""
    folder.mkdir(parents=True)
    count = min(test_nodes)
    features = scipy.sparse.csr_matrix(np.eye(count, 8, dtype=np.float32))
    classes = np.eye(2, dtype=np.int32)[np.arange(count) % 2]
    test_features = scipy.sparse.csr_matrix(np.eye(len(test_nodes), 8, dtype=np.float32))
    test_classes = np.eye(2, dtype=np.int32)[np.ones(len(test_nodes), int)]
    parts = {
        "x": features[:2],
        "tx": test_features,
        "allx": features,
        "y": classes[:2],
        "ty": test_classes,
        "ally": classes,
        "graph": {0: [1, 1, 0], 1: [0], test_nodes[0]: [1]},
    }
    for key, part in parts.items():
        (folder / f"ind.{prefix}.{key}").write_bytes(pickle.dumps(part, protocol=2))
    (folder / f"ind.{prefix}.test.index").write_text("".join(f"{node}\n" for node in test_nodes))
    return max(test_nodes) + 1


class Marker:
    """An object whose unpickling would create a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self):
        return Path.touch, (self._path,)
