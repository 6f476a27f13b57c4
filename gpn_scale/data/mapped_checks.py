"""Checks of a graph that was mapped from a folder: the ranges of its numbers and their shapes.

Checksums detect damage, but folders of earlier versions have none. Numbers out of range must not be
used as indices or in compiled code. Arrays are read in pieces, so memory does not grow with them.

Shapes: N nodes, E edges, F feature columns, C classes.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import MISSING_LABEL, CSRFeatures, Graph
from gpn_scale.errors import GraphError
from gpn_scale.field_types import shown

_TYPES: dict[str, tuple[type, ...]] = {
    "name": (str,),
    "num_classes": (int,),
    "directed": (bool,),
    "num_columns": (int, type(None)),
    "marks": (dict,),
    "arrays": (dict,),
    "source": (str, type(None)),
    "preparation": (dict, type(None)),
    "raw_columns": (dict, type(None)),
}
"""Entries of `graph.json`, with their types; those that may be None may be missing."""
_MOST = (1 << 31) - 1
_PIECE = 1 << 20


def check_manifest(manifest: Mapping[str, Any]) -> None:
    """Refuse a `graph.json` with entries of the wrong type, or with files outside its folder.

    >>> check_manifest({"name": 7})
    Traceback (most recent call last):
        ...
    gpn_scale.errors.GraphError: it has 7 for 'name'

    Raises:
        GraphError: an entry is missing, of another type, or out of range.
    """
    for key, kinds in _TYPES.items():
        if type(manifest.get(key)) not in kinds:
            raise GraphError(f"it has {shown(manifest.get(key))} for {key!r}")
    for key in ("num_classes", "num_columns"):
        if not 0 <= (manifest.get(key) or 0) <= _MOST:
            raise GraphError(f"it has {shown(manifest[key])} for {key!r}")
    entries = [*manifest["arrays"].items(), ("raw_columns", manifest.get("raw_columns"))]
    for key, entry in entries:
        name = entry.get("file") if isinstance(entry, dict) else entry
        if name is not None and (not isinstance(name, str) or set(name) & set("/\\\0")):
            raise GraphError(f"it has {shown(name)} for the file of {key!r}")
    keys = manifest["marks"].values()
    if not all(isinstance(key, str) and key in manifest["arrays"] for key in keys):
        raise GraphError("it has a mark without an array")


def check_mapped(graph: Graph) -> None:
    """Refuse a graph whose arrays hold invalid numbers; reads all arrays except the features.

    >>> from gpn_scale import build_graph
    >>> check_mapped(build_graph([0, 1], [1, 2]))

    Raises:
        GraphError: an array has another type than it should, or a number is out of range.
    """
    nodes, name = graph.num_nodes, graph.name
    _check_rows("the edges", graph.indptr, graph.indices, nodes, name)
    _check_numbers("labels", graph.labels, "i", (MISSING_LABEL, graph.num_classes), name)
    if graph.edge_weight is not None:
        _check_numbers("edge_weight", graph.edge_weight, "f", (0, np.inf), name)
    features = graph.features
    if isinstance(features, CSRFeatures):
        kinds = (features.indptr.dtype.kind, features.indices.dtype.kind)
        if kinds != ("i", "i") or features.values.shape != features.indices.shape:
            raise _refusal(name, "the features", "do not fit each other")
        _check_rows("the features", features.indptr, features.indices, features.shape[1], name)
    values = features.values if isinstance(features, CSRFeatures) else features
    if values is not None and values.dtype.kind != "f":
        raise _refusal(name, "the features", f"are {values.dtype}, expected real numbers")
    for mark, ids in graph.marks.items():
        _check_numbers(f"mark {mark!r}", ids, "i", (0, nodes), name)
    for what in ("node_names", "class_names", "feature_names"):
        texts = getattr(graph, what)
        if texts is not None and texts.dtype.kind != "U":
            raise _refusal(name, what, f"are {texts.dtype}, expected texts")
    if graph.split is not None:
        graph.with_split(graph.split)


def _check_rows(
    what: str, pointers: NDArray[Any], ids: NDArray[Any], below: int, name: str
) -> None:
    """Refuse compressed rows whose pointers fall, or whose ids are not in [0, `below`)."""
    if pointers.ndim != 1 or not len(pointers) or pointers[0] != 0 or pointers[-1] != len(ids):
        raise _refusal(name, what, "have row pointers that do not fit their number")
    for start in range(0, len(pointers), _PIECE):
        piece = pointers[start : start + _PIECE + 1]
        if (piece[1:] < piece[:-1]).any():
            raise _refusal(name, what, "have row pointers that fall")
    _check_numbers(what, ids, "i", (0, below), name)


def _check_numbers(
    what: str, values: NDArray[Any], kind: str, limits: tuple[float, float], name: str
) -> None:
    if values.ndim != 1 or values.dtype.kind != kind:
        raise _refusal(name, what, f"are {values.dtype} of shape {values.shape}")
    low, high = limits
    for start in range(0, len(values), _PIECE):
        piece = values[start : start + _PIECE]
        if not (piece.min() >= low and piece.max() < high):
            raise _refusal(name, what, f"hold a number outside [{low}, {high})")


def _refusal(name: str, what: str, problem: str) -> GraphError:
    return GraphError(f"graph {name!r}: {what} {problem}: it is damaged, save the graph again")
