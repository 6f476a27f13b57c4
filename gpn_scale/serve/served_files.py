"""The folder of files that a service computes from a model and a graph, and that it maps.

Files are named by a key, the fingerprint of model and graph, so that a restart does not predict
again and another model never reads these files. The record of a key is written last and holds a
hash of every file: files that are damaged, incomplete or of another version are computed again.
"""

import hashlib
import io
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpn_scale import __version__
from gpn_scale.block_checksums import file_hash, has_hash
from gpn_scale.data.graph import Graph
from gpn_scale.errors import RunError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.files import remove, replacing, replacing_map, write_json
from gpn_scale.inference.all_nodes import ProgressCallback
from gpn_scale.inference.node_values import node_values_into, num_columns
from gpn_scale.inference.similar import latent_into
from gpn_scale.locks import claimed
from gpn_scale.reading import read_json
from gpn_scale.serve.ids import id_order
from gpn_scale.serve.node_table import NodeTable, write_table
from gpn_scale.train.run_directory import SERVED_SUFFIXES

_FORMAT = 2
"""Version of the files; files of other versions are computed again."""
_LOCK = "served.lock"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServedFiles:
    """The files of one model and one graph, mapped into memory."""

    table: NodeTable
    latent: NDArray[np.float32]
    """Latent positions of all nodes, (N, D)."""
    values: NDArray[np.float32]
    """Diffused columns of all nodes, (N, W), for predictions of new nodes."""
    order: NDArray[np.int32] | None
    """Nodes in the order of their ids, (N,); None for a graph without ids."""
    classifier: GPNClassifier
    """The model, calibrated on the graph if this was requested."""


def served_key(model: str, graph: Graph) -> str:
    """Return the key of a model file's fingerprint and an aligned graph; names count too."""
    digest = hashlib.blake2b(digest_size=12)
    names = [] if graph.node_names is None else [graph.node_names]
    names += [] if graph.class_names is None else [graph.class_names]
    for text in (str(_FORMAT), __version__, model, graph.fingerprint()):
        digest.update(f"{text}\n".encode())
    for array in names:
        digest.update(str(array.dtype).encode())
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


def served_files(
    folder: Path,
    key: str,
    classifier: GPNClassifier,
    graph: Graph,
    *,
    memory_bytes: int,
    progress: ProgressCallback | None = None,
    calibrate: bool = False,
) -> ServedFiles:
    """Return the files of a key; predict all nodes and write the files unless they exist.

    One process at a time does this work; others wait and then use its files.

    Args:
        folder: The folder, which is created if needed.
        key: From `served_key`.
        classifier: The model.
        graph: The graph, with the model's columns and classes.
        memory_bytes: Memory budget of the prediction.
        progress: Called while nodes are predicted.
        calibrate: Whether to calibrate the model on the validation nodes of this graph first.

    Raises:
        RunError: the folder cannot be written.
    """
    try:
        with claimed(folder / _LOCK, wait=True):
            files = _opened(folder, key, graph, classifier, calibrate)
            if files is None:
                _write(folder, key, classifier, graph, memory_bytes, progress, calibrate)
                files = _opened(folder, key, graph, classifier, calibrate)
    except OSError as error:
        raise RunError(
            f"{folder} cannot be written ({error.strerror}): free some disk space, or run the "
            "service as a user who may write there",
            arguments=("run",),
        ) from error
    if files is None:
        raise RunError(f"files written to {folder} cannot be read back: check the disk")
    return files


def _write(
    folder: Path,
    key: str,
    classifier: GPNClassifier,
    graph: Graph,
    memory_bytes: int,
    progress: ProgressCallback | None,
    calibrate: bool,
) -> None:
    _remove_others(folder, key)
    prediction, evidence = classifier.predict_with_evidence(
        graph,
        memory_bytes=memory_bytes,
        scratch=folder,
        progress=progress,
        calibrate=calibrate,
    )
    table, latent, values, order, *calibrated = paths = [
        folder / name for name in _names(key, calibrate)
    ]
    for path in calibrated:
        classifier.save(path)
    reasons = write_table(table, graph, prediction, evidence)
    del prediction, evidence
    trained, size = classifier.trained, graph.num_nodes
    width = trained.network.flow.latent
    _write_array(latent, (size, width), partial(latent_into, trained, graph))
    width = num_columns(trained)
    _write_array(values, (size, width), partial(node_values_into, trained, graph))
    ordered = id_order(graph)
    with replacing(order) as file:
        np.save(file, np.empty(0, np.int32) if ordered is None else ordered)
    hashes = {path.name: file_hash(path) for path in paths}
    write_json(folder / f"{key}.json", {"reasons": list(reasons), "hashes": hashes})


def _names(key: str, calibrate: bool) -> tuple[str, ...]:
    arrays = (f"{key}_{what}.npy" for what in ("latent", "values", "order"))
    return f"{key}.arrow", *arrays, *([f"{key}_model.safetensors"] if calibrate else [])


def _remove_others(folder: Path, key: str) -> None:
    """Remove files of other keys; processes that have mapped them keep them."""
    files = (path for path in folder.iterdir() if path.suffix in SERVED_SUFFIXES)
    kept = (key, _LOCK)
    remove(*(path for path in files if path.is_file() and not path.name.startswith(kept)))


def _write_array(
    path: Path, shape: tuple[int, int], fill: Callable[[NDArray[np.float32]], None]
) -> None:
    """Write an array that is filled in place and never in memory as a whole."""
    header, dtype = io.BytesIO(), np.dtype(np.float32)
    facts = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(header, facts)
    start = header.tell()
    with replacing_map(path, start + math.prod(shape) * dtype.itemsize) as mapping:
        mapping[:start] = header.getvalue()
        fill(np.ndarray(shape, dtype, mapping, start))


def _opened(
    folder: Path, key: str, graph: Graph, classifier: GPNClassifier, calibrate: bool
) -> ServedFiles | None:
    """Return the mapped files of a key; None if any is missing or damaged."""
    names = _names(key, calibrate)
    try:
        record: dict[str, Any] = read_json(folder / f"{key}.json")
        reasons, hashes = record["reasons"], record["hashes"]
        if not all(has_hash(folder / name, hashes[name]) for name in names):
            return None
        table = NodeTable(folder / names[0], reasons)
        latent, values, order = (np.load(folder / name, mmap_mode="r") for name in names[1:4])
        for name in names[4:]:
            classifier = GPNClassifier.load(folder / name, device=str(classifier.device))
    except (RunError, OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException):
        return None
    sizes = {table.num_nodes, len(latent), len(values), graph.num_nodes}
    if len(sizes) > 1 or (graph.node_names is not None and len(order) != graph.num_nodes):
        return None
    own_order = None if graph.node_names is None else order
    return ServedFiles(
        table=table, latent=latent, values=values, order=own_order, classifier=classifier
    )
