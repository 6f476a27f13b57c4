"""Graphs as folders of memory-mapped arrays, of which only the parts in use are read from disk.

The folder holds one `.npy` file per array, raw columns as a `.parquet` file, and `graph.json`,
which names them and holds the preparation of the columns. File names contain a hash of the content,
and `graph.json` is replaced by one rename, so a save that is killed at any moment leaves the old
graph or the new one, never a mixture. `graph.json` holds a checksum of each file and of itself,
which are checked when the graph is opened; folders of earlier versions have none.
"""

import hashlib
import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from gpn_scale.block_checksums import file_hash, has_hash
from gpn_scale.checked_json import json_checksum, write_checked_json
from gpn_scale.data.array_hash import byte_chunks
from gpn_scale.data.graph import CSRFeatures, Features, Graph, Split
from gpn_scale.data.mapped_checks import check_manifest, check_mapped
from gpn_scale.data.npz_arrays import UNREADABLE, load_array
from gpn_scale.data.preparation import Preparation
from gpn_scale.data.raw_columns import RawColumns
from gpn_scale.errors import GraphError
from gpn_scale.files import TEMPORARY, make_folder, remove, remove_left_over, replacing
from gpn_scale.reading import check_file, read_json

FORMAT_VERSION = 1
MANIFEST = "graph.json"
_RAW_COLUMNS, _CHECKSUM, _TOKEN = "raw_columns", "checksum", "?" * 16
_OWN_NAMES = (f"*-{_TOKEN}.npy", f"{_RAW_COLUMNS}-{_TOKEN}.parquet")

_Arrays = Mapping[str, NDArray[Any]]


def save_graph(graph: Graph, directory: Path) -> None:
    """Write `graph` into `directory`, replacing a graph that is already there.

    All arrays are read once for the fingerprint and once to be written. Old files are removed after
    the new `graph.json` is in place; processes that have mapped them can still read them.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale import build_graph
    >>> with TemporaryDirectory() as folder:
    ...     save_graph(build_graph([0, 1], [1, 2], labels=[0, 1, 0]), Path(folder))
    ...     sorted(path.name.partition("-")[0] for path in Path(folder).iterdir())
    ['graph.json', 'indices', 'indptr', 'labels']
    """
    make_folder(directory)
    fingerprint = graph.fingerprint()
    token = _content_token(graph, fingerprint)
    arrays, marks = _arrays_of(graph)
    entries = {}
    for key, array in arrays.items():
        file_name = f"{key}-{token}.npy"
        with replacing(directory / file_name) as file:
            _save_array(file, array)
        entries[key] = {"file": file_name, "dtype": array.dtype.str, "shape": list(array.shape)}
        entries[key][_CHECKSUM] = file_hash(directory / file_name)
    sparse = isinstance(graph.features, CSRFeatures)
    manifest: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "name": graph.name,
        "num_classes": graph.num_classes,
        "directed": graph.directed,
        "fingerprint": fingerprint,
        "num_columns": graph.num_features if sparse else None,
        "marks": marks,
        "arrays": entries,
    }
    kept = {entry["file"] for entry in entries.values()}
    if graph.source is not None:
        manifest["source"] = graph.source
    if graph.preparation is not None:
        manifest["preparation"] = graph.preparation.to_dict()
    if graph.raw_columns is not None:
        file_name = f"{_RAW_COLUMNS}-{graph.raw_columns.content_hash()}.parquet"
        graph.raw_columns.write(directory / file_name)
        manifest[_RAW_COLUMNS] = {"file": file_name, _CHECKSUM: file_hash(directory / file_name)}
        kept.add(file_name)
    write_checked_json(directory / MANIFEST, manifest)
    remove(*(path for path in directory.iterdir() if _is_own(path.name) and path.name not in kept))
    remove_left_over(directory, _is_own)


def _is_own(name: str) -> bool:
    """Return whether `save_graph` gives files such names, besides `graph.json`."""
    return any(fnmatchcase(name, pattern) for pattern in _OWN_NAMES)


def is_unfinished(directory: Path) -> bool:
    """Return whether a folder holds only files that a killed `save_graph` has left.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     before = is_unfinished(Path(folder))
    ...     Path(folder, "notes.txt").touch()
    ...     before, is_unfinished(Path(folder))
    (True, False)
    """
    names = [path.name for path in directory.iterdir()]
    finished = [match["name"] if (match := TEMPORARY.fullmatch(name)) else name for name in names]
    is_ours = all(name == MANIFEST or _is_own(name) for name in finished)
    return is_ours and MANIFEST not in names


def open_graph(directory: Path) -> Graph:
    """Return the graph that `save_graph` wrote to `directory`; arrays are mapped.

    All files are read once to check them.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale import build_graph
    >>> with TemporaryDirectory() as folder:
    ...     save_graph(build_graph([0, 1], [1, 2], labels=[0, 1, 0]), Path(folder))
    ...     open_graph(Path(folder))
    Graph('graph', nodes=3, edges=4, features=0, classes=2)

    Raises:
        GraphError: `graph.json` or a file it names is missing or damaged, has another shape or
            type than stated, or the folder has another format version.
    """
    path = directory / MANIFEST
    manifest = _read_manifest(path)
    try:
        graph = _graph_of(manifest, directory)
    except (KeyError, TypeError, AttributeError) as error:
        raise GraphError(f"{path} is incomplete ({error!r}): save the graph again") from error
    check_mapped(graph)
    return graph


def _graph_of(manifest: Mapping[str, Any], directory: Path) -> Graph:
    arrays = {
        key: _open_array(directory / entry["file"], entry)
        for key, entry in manifest["arrays"].items()
    }
    return Graph(
        name=manifest["name"],
        indptr=arrays["indptr"],
        indices=arrays["indices"],
        edge_weight=arrays.get("edge_weight"),
        features=_features(arrays, manifest["num_columns"]),
        labels=arrays["labels"],
        num_classes=manifest["num_classes"],
        directed=manifest["directed"],
        split=_split(arrays),
        marks={name: arrays[key] for name, key in manifest["marks"].items()},
        node_names=arrays.get("node_names"),
        class_names=arrays.get("class_names"),
        feature_names=arrays.get("feature_names"),
        preparation=_preparation(manifest, directory / MANIFEST),
        raw_columns=_raw_columns(manifest, directory),
        source=manifest.get("source"),
    )


def _preparation(manifest: Mapping[str, Any], path: Path) -> Preparation | None:
    values = manifest.get("preparation")
    if values is None:
        return None
    try:
        return Preparation.from_dict(values)
    except GraphError as error:
        raise GraphError(f"{path}: {error}") from error


def _raw_columns(manifest: Mapping[str, Any], directory: Path) -> RawColumns | None:
    entry = manifest.get(_RAW_COLUMNS)
    if entry is None:
        return None
    _check_file(directory / entry["file"], entry)
    return RawColumns(directory / entry["file"])


def _save_array(file: BinaryIO, array: NDArray[Any]) -> None:
    """Write what `np.save` writes; of a mapped array, a part at a time is in memory."""
    contiguous = np.ascontiguousarray(array)
    npy_format.write_array_header_1_0(file, npy_format.header_data_from_array_1_0(contiguous))
    for part in byte_chunks(array):
        file.write(part)


def _content_token(graph: Graph, fingerprint: str) -> str:
    """Return a hash that is equal for equal arrays only: of the fingerprint and of all names."""
    digest = hashlib.blake2b(fingerprint.encode(), digest_size=8)
    # Without feature names, files have the names that earlier versions gave them.
    named = () if graph.feature_names is None else (graph.feature_names,)
    for names in (graph.node_names, graph.class_names, *named):
        digest.update(repr(None if names is None else (names.dtype.str, names.shape)).encode())
        if names is not None:
            for part in byte_chunks(names):
                digest.update(part)
    # Files of marks are numbered in the order of the marks, so the order counts too.
    digest.update(json.dumps(list(graph.marks)).encode())
    return digest.hexdigest()


def _arrays_of(graph: Graph) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Return all arrays by file key, and the file key of each mark, whose name may be any text."""
    arrays: dict[str, NDArray[Any] | None] = {
        "indptr": graph.indptr,
        "indices": graph.indices,
        "edge_weight": graph.edge_weight,
        "labels": graph.labels,
        "node_names": graph.node_names,
        "class_names": graph.class_names,
        "feature_names": graph.feature_names,
    }
    if isinstance(graph.features, CSRFeatures):
        arrays["x_indptr"] = graph.features.indptr
        arrays["x_indices"] = graph.features.indices
        arrays["x_values"] = graph.features.values
    else:
        arrays["x"] = graph.features
    if graph.split is not None:
        arrays |= {"train": graph.split.train, "val": graph.split.val, "test": graph.split.test}
    marks = {name: f"mark_{number}" for number, name in enumerate(graph.marks)}
    arrays |= {marks[name]: ids for name, ids in graph.marks.items()}
    return {key: array for key, array in arrays.items() if array is not None}, marks


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = read_json(path)
    except OSError as error:
        raise GraphError(f"{path} cannot be read ({error}); expected a saved graph") from error
    except ValueError as error:
        raise GraphError(f"{path} is not JSON ({error}): save the graph again") from error
    version = manifest.get("format_version") if isinstance(manifest, dict) else None
    if version != FORMAT_VERSION:
        raise GraphError(
            f"{path} has format version {version!r}, expected {FORMAT_VERSION}: "
            "save the graph again with this version of gpn_scale"
        )
    if _CHECKSUM in manifest and manifest[_CHECKSUM] != json_checksum(manifest):
        raise GraphError(f"{path} is damaged: its checksum is wrong: save the graph again")
    try:
        check_manifest(manifest)
    except GraphError as error:
        raise GraphError(f"{path} is damaged: {error}: save the graph again") from error
    return dict(manifest)


def _check_file(path: Path, entry: Mapping[str, Any]) -> None:
    """Refuse a file whose checksum is not the one in `graph.json`."""
    if (wanted := entry.get(_CHECKSUM)) is None:
        return
    try:
        is_same = has_hash(path, wanted)
    except OSError as error:
        raise GraphError(
            f"{path} is missing or damaged ({error}), but graph.json names it: save the graph again"
        ) from error
    if not is_same:
        raise GraphError(
            f"{path} is damaged: its checksum is not {wanted}, as in graph.json: save the graph "
            "again"
        )


def _open_array(path: Path, entry: Mapping[str, Any]) -> NDArray[Any]:
    _check_file(path, entry)
    try:
        check_file(path)
        array = load_array(path, mapped=True)
    except UNREADABLE as error:
        raise GraphError(
            f"{path} is missing or damaged ({error}), but graph.json names it: save the graph again"
        ) from error
    if array.dtype.str != entry["dtype"] or list(array.shape) != entry["shape"]:
        raise GraphError(
            f"{path} holds {array.dtype.str} of shape {list(array.shape)}, graph.json says "
            f"{entry['dtype']} of shape {entry['shape']}: save the graph again"
        )
    return array


def _features(arrays: _Arrays, num_columns: int | None) -> Features | None:
    if num_columns is None:
        return arrays.get("x")
    return CSRFeatures(
        indptr=arrays["x_indptr"],
        indices=arrays["x_indices"],
        values=arrays["x_values"],
        num_columns=num_columns,
    )


def _split(arrays: _Arrays) -> Split | None:
    if "train" not in arrays:
        return None
    return Split(train=arrays["train"], val=arrays["val"], test=arrays["test"])
