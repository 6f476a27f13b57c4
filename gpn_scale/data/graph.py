"""`Graph`: the one value object for a graph; NumPy arrays only, so it can be memory-mapped.

Shapes: N nodes, E stored edges (both directions of an undirected edge), F feature columns,
C classes.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from gpn_scale.errors import GraphError

MISSING_LABEL = -1
"""Label of a node whose class is not known (or not to be known: see `leave_out_classes`)."""

NodeIds = NDArray[np.int64]
_HASH_BYTES = 1 << 24


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CSRFeatures:
    """Sparse node features in compressed rows; row v is `values[indptr[v]:indptr[v + 1]]`."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float32]
    num_columns: int

    @property
    def shape(self) -> tuple[int, int]:
        """(N, F)."""
        return len(self.indptr) - 1, self.num_columns

    def rows(self, start: int, stop: int) -> "CSRFeatures":
        """Rows `start` to `stop`, without a copy of the values."""
        first, last = int(self.indptr[start]), int(self.indptr[stop])
        return CSRFeatures(
            indptr=self.indptr[start : stop + 1] - first,
            indices=self.indices[first:last],
            values=self.values[first:last],
            num_columns=self.num_columns,
        )

    def to_dense(self) -> NDArray[np.float32]:
        """The same numbers as an (N, F) array; for tests and small graphs."""
        matrix = scipy.sparse.csr_array((self.values, self.indices, self.indptr), shape=self.shape)
        dense: NDArray[np.float32] = matrix.toarray()
        return dense


Features = NDArray[np.float16] | NDArray[np.float32] | CSRFeatures


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Split:
    """Which labelled nodes are for training, validation and test; sorted, disjoint node ids."""

    train: NodeIds
    val: NodeIds
    test: NodeIds

    def __post_init__(self) -> None:
        for name in ("train", "val", "test"):
            ids = as_node_ids(getattr(self, name), f"split: {name}")
            object.__setattr__(self, name, np.unique(ids).astype(np.int64))
        parts = np.concatenate([self.train, self.val, self.test])
        ids, counts = np.unique(parts, return_counts=True)
        if (counts > 1).any():
            raise GraphError(
                f"split: node {ids[counts > 1][0]} is in more than one of train, val and test; "
                "expected disjoint sets"
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Graph:
    """An attributed graph: CSR adjacency, features, labels, and (once chosen) a split.

    Rules: rows are sorted by column and hold no duplicates and no self-loops (the diffusion adds
    its own). An undirected graph stores both directions. Build one with `build_graph`, which checks
    its input; the constructor checks shapes only, so that an opened memory map stays lazy.
    """

    name: str
    indptr: NDArray[np.int64]
    """Row offsets, (N + 1,)."""
    indices: NDArray[np.int32]
    """Neighbour ids, (E,)."""
    edge_weight: NDArray[np.float32] | None = None
    """Positive weights, (E,); absent means 1."""
    features: Features | None = None
    """Dense (N, F) or sparse rows; absent for graphs that are only diffused on."""
    labels: NDArray[np.int32]
    """Class per node in [0, num_classes), or `MISSING_LABEL`; (N,)."""
    num_classes: int
    """Number of classes the model knows."""
    directed: bool = False
    """Whether (u, v) may be stored without (v, u)."""
    split: Split | None = None
    """The chosen or public split, over labelled nodes."""
    marks: Mapping[str, NodeIds] = field(default_factory=dict)
    """Named sets of out-of-distribution nodes that evaluation looks for; never trained on."""
    node_names: NDArray[np.str_] | None = None
    """The user's own node ids, where they were not 0..N-1; (N,)."""
    class_names: NDArray[np.str_] | None = None
    """The user's own class names, where labels were texts and not class indices; (C,)."""
    _hashes: dict[str, str] = field(default_factory=dict, init=False, repr=False)
    """Fingerprints that were computed before; a graph does not change."""

    def __post_init__(self) -> None:
        if self.indptr.dtype != np.int64 or self.indices.dtype != np.int32:
            raise GraphError(
                f"graph {self.name!r}: offsets and columns must be int64 and int32, "
                f"got {self.indptr.dtype} and {self.indices.dtype}"
            )
        expected = {
            "edge_weight": (self.num_edges,),
            "features": (self.num_nodes, self.num_features),
            "labels": (self.num_nodes,),
            "node_names": (self.num_nodes,),
            "class_names": (self.num_classes,),
        }
        for what, shape in expected.items():
            array = getattr(self, what)
            if array is not None and array.shape != shape:
                raise GraphError(
                    f"graph {self.name!r}: {what} has shape {array.shape}, expected {shape}"
                )

    def __repr__(self) -> str:
        return (
            f"Graph({self.name!r}, nodes={self.num_nodes}, edges={self.num_edges}, "
            f"features={self.num_features}, classes={self.num_classes})"
        )

    @property
    def num_nodes(self) -> int:
        """N."""
        return len(self.indptr) - 1

    @property
    def num_edges(self) -> int:
        """E: stored edges; an undirected edge counts twice."""
        return len(self.indices)

    @property
    def num_features(self) -> int:
        """F; 0 without features."""
        return 0 if self.features is None else self.features.shape[-1]

    @property
    def has_plain_edges(self) -> bool:
        """Whether edges have neither direction nor weight."""
        return not self.directed and self.edge_weight is None

    @property
    def out_degree(self) -> NDArray[np.int64]:
        """Number of stored neighbours per node, (N,)."""
        return np.diff(self.indptr)

    @property
    def marked(self) -> NodeIds:
        """Union of all marks, sorted."""
        return np.unique(np.concatenate([np.empty(0, np.int64), *self.marks.values()]))

    def structure_fingerprint(self) -> str:
        """Hash of what a diffusion depends on: adjacency, weights, direction."""
        if "structure" not in self._hashes:
            parts = [("directed", np.array(self.directed)), *self._structure()]
            self._hashes["structure"] = _hash(parts)
        return self._hashes["structure"]

    def fingerprint(self) -> str:
        """Hash of all that training depends on; names do not count. Reads every array once."""
        if "all" not in self._hashes:
            self._hashes["all"] = _hash(self._content())
        return self._hashes["all"]

    def _content(self) -> list[tuple[str, NDArray[Any] | None]]:
        parts: list[tuple[str, NDArray[Any] | None]] = [("directed", np.array(self.directed))]
        parts += self._structure()
        if isinstance(self.features, CSRFeatures):
            parts += [("x_indptr", self.features.indptr), ("x_indices", self.features.indices)]
            parts += [("x_values", self.features.values)]
            parts += [("x_columns", np.array(self.features.num_columns))]
        else:
            parts += [("x", self.features)]
        parts += [("labels", self.labels), ("classes", np.array(self.num_classes))]
        if self.split is not None:
            split = self.split
            parts += [("train", split.train), ("val", split.val), ("test", split.test)]
        parts += [(f"mark {name}", ids) for name, ids in sorted(self.marks.items())]
        return parts

    def _structure(self) -> list[tuple[str, NDArray[Any] | None]]:
        return [("indptr", self.indptr), ("indices", self.indices), ("weight", self.edge_weight)]

    def with_split(self, split: Split) -> "Graph":
        """The same graph with `split`, checked to be one that a classifier can be trained on.

        Raises:
            GraphError: an id is out of range or unlabelled, or a class has no training node.
        """
        for part in ("train", "val", "test"):
            ids = getattr(split, part)
            if len(ids) and not (ids[0] >= 0 and ids[-1] < self.num_nodes):
                wrong = ids[0] if ids[0] < 0 else ids[-1]
                raise GraphError(
                    f"split: {part} holds node {wrong}, expected ids in [0, {self.num_nodes})"
                )
            unlabelled = ids[self.labels[ids] == MISSING_LABEL]
            if len(unlabelled):
                raise GraphError(
                    f"split: {part} holds node {unlabelled[0]}, which has no label; "
                    "expected labelled nodes only"
                )
        counts = np.bincount(self.labels[split.train], minlength=self.num_classes)
        if not counts.all():
            empty = np.flatnonzero(counts == 0)
            raise GraphError(
                f"split: class {empty[0]} has no node in the training set "
                f"({len(empty)} of {self.num_classes} classes are empty); expected at least one "
                "each: use another split seed, a larger training share, or leave the class out"
            )
        return replace(self, split=split)


def as_node_ids(ids: ArrayLike, what: str) -> NDArray[Any]:
    """`ids` as a vector of integers of any width; `what` begins the message if they are not.

    Raises:
        GraphError: `ids` are a mask, a table, or not integers.
    """
    array = as_array(ids, what)
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise GraphError(
            f"{what} must be a vector of integer node ids, got {array.dtype} of shape {array.shape}"
        )
    return array


def as_array(values: ArrayLike, what: str) -> NDArray[Any]:
    """`np.asarray`, where rows of unequal length are a `GraphError` that begins with `what`."""
    try:
        return np.asarray(values)
    except ValueError as error:
        raise GraphError(f"{what} cannot become an array, expected equal rows ({error})") from error


def _hash(parts: list[tuple[str, NDArray[Any] | None]]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for name, array in parts:
        if array is None:
            continue
        digest.update(f"{name}:{array.dtype.str}:{array.shape};".encode())
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        for start in range(0, len(flat), _HASH_BYTES):
            digest.update(flat[start : start + _HASH_BYTES].data)
    return digest.hexdigest()
