"""`Graph`: an immutable graph of NumPy arrays, which may be memory-mapped.

Shapes: N nodes, E stored edges (both directions of an undirected edge), F feature columns,
C classes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from gpn_scale.data.array_hash import array_hash
from gpn_scale.errors import GraphError

if TYPE_CHECKING:
    from gpn_scale.data.preparation import Preparation
    from gpn_scale.data.raw_columns import RawColumns

MISSING_LABEL = -1
"""Label of a node whose class is unknown or hidden (see `leave_out_classes`)."""

NodeIds = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CSRFeatures:
    """Sparse node features in compressed rows; row v is `values[indptr[v]:indptr[v + 1]]`.

    >>> features = CSRFeatures(
    ...     indptr=np.array([0, 2, 3]),
    ...     indices=np.array([0, 2, 1]),
    ...     values=np.array([5.0, 1.0, 2.0]),
    ...     num_columns=3,
    ... )
    >>> features.to_dense().tolist()
    [[5.0, 0.0, 1.0], [0.0, 2.0, 0.0]]
    >>> features.rows(1, 2).shape
    (1, 3)
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float32]
    num_columns: int

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of nodes and feature columns, (N, F)."""
        return len(self.indptr) - 1, self.num_columns

    def rows(self, start: int, stop: int) -> "CSRFeatures":
        """Return the rows `start` to `stop` (excluded) without copying the values."""
        first, last = int(self.indptr[start]), int(self.indptr[stop])
        return CSRFeatures(
            indptr=self.indptr[start : stop + 1] - first,
            indices=self.indices[first:last],
            values=self.values[first:last],
            num_columns=self.num_columns,
        )

    def to_dense(self) -> NDArray[np.float32]:
        """Return the same numbers as an (N, F) array; for tests and small graphs."""
        matrix = scipy.sparse.csr_array((self.values, self.indices, self.indptr), shape=self.shape)
        dense: NDArray[np.float32] = matrix.toarray()
        return dense


Features = NDArray[np.float16] | NDArray[np.float32] | CSRFeatures


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Split:
    """Labelled nodes for training, validation and testing: sorted, disjoint node ids.

    >>> Split(train=[4, 0], val=[2], test=[1, 3]).train.tolist()
    [0, 4]
    """

    train: NodeIds
    val: NodeIds
    test: NodeIds

    def __post_init__(self) -> None:
        for name in ("train", "val", "test"):
            ids = as_node_ids(getattr(self, name), f"split: {name}")
            object.__setattr__(self, name, np.unique(ids).astype(np.int64))
        members = np.concatenate([self.train, self.val, self.test])
        ids, counts = np.unique(members, return_counts=True)
        if (counts > 1).any():
            raise GraphError(
                f"split: node {ids[counts > 1][0]} is in more than one of train, val and test; "
                "expected disjoint sets"
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Graph:
    """An attributed graph: CSR adjacency, features, labels, and (once chosen) a split.

    Create graphs with `build_graph` or `load_graph`, which check their input. The constructor only
    checks shapes, so that memory-mapped arrays are not read. Adjacency rows are sorted by column
    and contain neither duplicates nor self-loops (the diffusion adds its own); an undirected graph
    stores both directions of an edge.

    >>> from gpn_scale import build_graph
    >>> graph = build_graph([0, 1], [1, 2], name="path", labels=[0, 1, 0])
    >>> graph
    Graph('path', nodes=3, edges=4, features=0, classes=2)
    >>> graph.out_degree.tolist()
    [1, 2, 1]
    """

    name: str
    indptr: NDArray[np.int64]
    """Row offsets, (N + 1,)."""
    indices: NDArray[np.int32]
    """Neighbour ids, (E,)."""
    edge_weight: NDArray[np.float32] | None = None
    """Positive edge weights, (E,); None means that all are 1."""
    features: Features | None = None
    """Dense (N, F) or sparse features; None for a graph that only a diffusion uses."""
    labels: NDArray[np.int32]
    """Class per node in [0, num_classes), or `MISSING_LABEL`; (N,)."""
    num_classes: int
    """Number of classes C that a model learns."""
    directed: bool = False
    """Whether (u, v) may be stored without (v, u)."""
    split: Split | None = None
    """The public or drawn split of the labelled nodes."""
    marks: Mapping[str, NodeIds] = field(default_factory=dict)
    """Named sets of unknown nodes, which are never trained on and which the evaluation detects."""
    node_names: NDArray[np.str_] | None = None
    """The user's own node ids if they were not 0..N-1, (N,)."""
    class_names: NDArray[np.str_] | None = None
    """The user's own class names if labels were texts and not class indices, (C,)."""
    feature_names: NDArray[np.str_] | None = None
    """Names of the feature columns, distinct, (F,); None if they have none."""
    preparation: "Preparation | None" = None
    """The rule by which raw columns became `features`; None if they were given as numbers."""
    raw_columns: "RawColumns | None" = None
    """The raw columns of the nodes, N rows; None if they were not kept."""
    source: str | None = None
    """File or folder from which the graph was read, or None."""
    _fingerprints: dict[str, str] = field(default_factory=dict, init=False, repr=False)
    """Cached fingerprints; a copy made by `dataclasses.replace` starts without them."""

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
            "feature_names": (self.num_features,),
        }
        for what, shape in expected.items():
            array = getattr(self, what)
            if array is not None and array.shape != shape:
                raise GraphError(
                    f"graph {self.name!r}: {what} has shape {array.shape}, expected {shape}"
                )

        if self.preparation is not None and self.preparation.num_features != self.num_features:
            raise GraphError(
                f"graph {self.name!r} has {self.num_features} features, but its preparation makes "
                f"{self.preparation.num_features}; expected the features of the preparation"
            )
        if self.raw_columns is not None and self.raw_columns.num_rows != self.num_nodes:
            raise GraphError(
                f"graph {self.name!r}: the raw columns have {self.raw_columns.num_rows} rows, "
                f"expected one for each of the {self.num_nodes} nodes"
            )

    def __repr__(self) -> str:
        return (
            f"Graph({self.name!r}, nodes={self.num_nodes}, edges={self.num_edges}, "
            f"features={self.num_features}, classes={self.num_classes})"
        )

    @property
    def num_nodes(self) -> int:
        """Number of nodes N."""
        return len(self.indptr) - 1

    @property
    def num_edges(self) -> int:
        """Number of stored edges E; an undirected edge counts twice."""
        return len(self.indices)

    @property
    def num_features(self) -> int:
        """Number of feature columns F; 0 without features."""
        return 0 if self.features is None else self.features.shape[-1]

    @property
    def has_plain_edges(self) -> bool:
        """Whether edges have neither a direction nor a weight."""
        return not self.directed and self.edge_weight is None

    @property
    def out_degree(self) -> NDArray[np.int64]:
        """Number of stored neighbours per node, (N,)."""
        return np.diff(self.indptr)

    @property
    def marked(self) -> NodeIds:
        """Ids of all marked nodes, sorted."""
        return np.unique(np.concatenate([np.empty(0, np.int64), *self.marks.values()]))

    def structure_fingerprint(self) -> str:
        """Return a hash of all that a diffusion depends on: adjacency, weights and direction.

        The first call reads these arrays; later calls return the cached hash.
        """
        if "structure" not in self._fingerprints:
            self._fingerprints["structure"] = array_hash(self._structure())
        return self._fingerprints["structure"]

    def fingerprint(self) -> str:
        """Return a hash of everything that training depends on, which does not include names.

        The first call reads every array; later calls return the cached hash.
        """
        if "all" not in self._fingerprints:
            self._fingerprints["all"] = array_hash(self._content())
        return self._fingerprints["all"]

    def _content(self) -> list[tuple[str, NDArray[Any] | None]]:
        arrays = self._structure()
        if isinstance(self.features, CSRFeatures):
            arrays += [("x_indptr", self.features.indptr), ("x_indices", self.features.indices)]
            arrays += [("x_values", self.features.values)]
            arrays += [("x_columns", np.array(self.features.num_columns))]
        else:
            arrays += [("x", self.features)]
        arrays += [("labels", self.labels), ("classes", np.array(self.num_classes))]
        if self.split is not None:
            split = self.split
            arrays += [("train", split.train), ("val", split.val), ("test", split.test)]
        arrays += [(f"mark {name}", ids) for name, ids in sorted(self.marks.items())]
        return arrays

    def _structure(self) -> list[tuple[str, NDArray[Any] | None]]:
        return [
            ("directed", np.array(self.directed)),
            ("indptr", self.indptr),
            ("indices", self.indices),
            ("weight", self.edge_weight),
        ]

    @classmethod
    def from_tables(
        cls,
        nodes: Any,
        edges: Any,
        *,
        id: str | None = None,
        label: str | None = None,
        split: str | None = None,
        source: str | None = None,
        target: str | None = None,
        weight: str | None = None,
        drop: Sequence[str] = (),
        name: str = "graph",
        **rules: Any,
    ) -> "Graph":
        """Build a graph from two raw tables, whose columns become features by their kinds.

        >>> nodes = {"ref": ["a", "b"], "age": [31, None], "verdict": ["ok", "bad"]}
        >>> edges = {"source": ["a"], "target": ["b"]}
        >>> graph = Graph.from_tables(nodes, edges, id="ref", label="verdict", name="pair")
        >>> graph.feature_names.tolist(), graph.class_names.tolist()
        (['age', 'age is missing'], ['bad', 'ok'])

        Args:
            nodes: The path of a CSV or Parquet file, a pandas or polars frame, a pyarrow table or
                a dictionary of columns, with one row per node.
            edges: The same, with one row per edge.
            id: Column of the nodes' ids; by default `id`.
            label: Column of the classes; by default `label`, if it exists.
            split: Column with train, val and test; by default `split`, if it exists.
            source: Column of the ids where edges start; by default `source`.
            target: Column of the ids where edges end; by default `target`.
            weight: Column of the edges' weights; by default `weight`, if it exists.
            drop: Columns to ignore.
            name: Name of the graph.
            rules: Fields of `gpn_scale.data.import_rules.ImportRules`: `unknown_ids`, `missing`,
                `kinds`, `directed` and `structural_features`.

        Raises:
            TableFaults: the tables cannot become a graph; it lists all faults.
            ConfigError: a rule has a value that is not allowed.
            TypeError: a rule does not exist.
        """
        from gpn_scale.data.column_roles import ColumnNames
        from gpn_scale.data.import_rules import ImportRules
        from gpn_scale.data.import_tables import import_tables

        names = ColumnNames(
            id=id,
            label=label,
            split=split,
            source=source,
            target=target,
            weight=weight,
            drop=(drop,) if isinstance(drop, str) else tuple(drop),
        )
        rule = ImportRules(**rules)
        return import_tables(nodes, edges, names=names, rules=rule, name=name).graph

    def with_split(self, split: Split) -> "Graph":
        """Return the same graph with `split`, after checking that a model can be trained on it.

        Raises:
            GraphError: an id is out of range or unlabelled, or a class has no training node.
        """
        for subset in ("train", "val", "test"):
            ids = getattr(split, subset)
            if len(ids) and not (ids[0] >= 0 and ids[-1] < self.num_nodes):
                wrong = ids[0] if ids[0] < 0 else ids[-1]
                raise GraphError(
                    f"split: {subset} holds node {wrong}, expected ids in [0, {self.num_nodes})"
                )
            unlabelled = ids[self.labels[ids] == MISSING_LABEL]
            if len(unlabelled):
                raise GraphError(
                    f"split: {subset} holds node {unlabelled[0]}, which has no label; "
                    "expected labelled nodes only"
                )
        counts = np.bincount(self.labels[split.train], minlength=self.num_classes)
        if not counts.all():
            empty = np.flatnonzero(counts == 0)
            raise GraphError(
                f"split: class {empty[0]} has no node in the training set "
                f"({len(empty)} of {self.num_classes} classes have none); expected at least one "
                "each: use another seed or a larger training fraction, or leave the class out",
                arguments=("split.rng_seed", "split.train"),
            )
        return replace(self, split=split)


def as_node_ids(ids: ArrayLike, what: str) -> NDArray[Any]:
    """Return `ids` as a vector of integers of any width; `what` names them in messages.

    >>> as_node_ids([3, 1], "nodes").tolist()
    [3, 1]
    >>> as_node_ids([True, False], "nodes")
    Traceback (most recent call last):
        ...
    gpn_scale.errors.GraphError: nodes must be a vector of integer node ids, got bool of shape (2,)

    Raises:
        GraphError: `ids` are a mask, have several dimensions, or are not integers.
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
    """Return `np.asarray(values)`, or a mapped array itself; `what` names it in messages.

    >>> as_array([[1, 2], [3, 4]], "features").shape
    (2, 2)

    Raises:
        GraphError: rows have different lengths.
    """
    if isinstance(values, np.memmap):
        return values  # keeps its pages under control of `release_pages`
    try:
        return np.asarray(values)
    except ValueError as error:
        raise GraphError(
            f"{what} cannot become an array, expected rows of equal length ({error})"
        ) from error
