"""`ServedModel`: the immutable object from which requests are answered.

A swapped model is a new object that replaces the old one as a whole, so that a request sees either
the old model or the new one.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.known_calibration import (
    ELSEWHERE_CONDITION,
    LATER_CONDITION,
    P_VALUE_CONDITION,
)
from gpn_scale.evaluation.prediction_table import class_names
from gpn_scale.evaluation.reasons import reason_kind
from gpn_scale.inference.all_nodes import DEFAULT_MEMORY_BYTES, ProgressCallback
from gpn_scale.inference.evidence import EvidenceSummary
from gpn_scale.inference.live import LivePredictor
from gpn_scale.inference.stored_rows import open_rows
from gpn_scale.ppr.manifest import MANIFEST
from gpn_scale.ppr.store import PPRStore
from gpn_scale.serve.ids import AbstractIds, ids_of
from gpn_scale.serve.node_table import NodeTable
from gpn_scale.serve.served_files import served_files, served_key
from gpn_scale.train.run_directory import RunDirectory
from gpn_scale.train.run_graph import has_validation_nodes, training_fingerprint
from gpn_scale.triage.label_next import unused_nodes
from gpn_scale.triage.node_reasons import UsualValues
from gpn_scale.triage.promise import Promise
from gpn_scale.triage.promise_file import model_fingerprint, read_promise

Value = TypeVar("Value")
Stamp = tuple[tuple[int, int, int] | None, ...]
"""Times, sizes and numbers of the watched files; None for a file that is missing."""


@dataclass(frozen=True, kw_only=True)
class ModelSource:
    """Locations of a service's model, graph and rows; can be sent to another process."""

    run: Path
    load_graph: Callable[[], Graph]
    """Returns the current graph of the run, with its split."""
    graph_files: tuple[Path, ...] = ()
    """Files that change if the graph changes; some may not exist."""
    store: Path | None = None
    """PPR store of the graph; None without one."""
    folder: Path
    """Folder of the files that are computed once and mapped."""
    device: str = "auto"
    memory_bytes: int = DEFAULT_MEMORY_BYTES

    def stamp(self) -> Stamp:
        """Return a stamp that changes if the model, promise, graph or store is replaced."""
        directory = RunDirectory(self.run)
        paths = [directory.model, directory.promise, directory.report, *self.graph_files]
        paths += [] if self.store is None else [self.store / MANIFEST]
        return tuple(map(_stamp, paths))

    def opened(self, graph: Graph, progress: ProgressCallback | None = None) -> "ServedModel":
        """Return the model that is currently on disk.

        Args:
            graph: The graph of the run, or a later version of it.
            progress: Called while nodes are predicted, if they are.

        Raises:
            GpnScaleError: the model, the promise or the store cannot be used.
        """
        directory = RunDirectory(self.run)
        fingerprint, classifier = self._load(directory.model)
        aligned = classifier.aligned(graph).graph
        store = None
        if self.store is not None:
            store = open_rows(self.store, aligned, classifier.predicts_with)
        is_later = _is_later(directory, graph, aligned)
        is_refreshed = is_later and has_validation_nodes(aligned)
        files = served_files(
            self.folder,
            served_key(fingerprint, aligned),
            classifier,
            aligned,
            memory_bytes=self.memory_bytes,
            progress=progress,
            calibrate=is_refreshed,
        )
        promise = None
        if directory.promise.exists():
            promise = read_promise(directory.promise, directory.model)
        model = ServedModel(
            fingerprint=fingerprint,
            classifier=files.classifier,
            graph=aligned,
            table=files.table,
            latent=files.latent,
            values=files.values,
            ids=ids_of(aligned, files.order),
            store=store,
            promise=promise,
            condition=_condition(is_later, is_refreshed),
        )
        if classifier.predicts_with.of == "evidence":
            model.live()  # prepare it now, so that the first request does not wait
        return model

    def _load(self, path: Path) -> tuple[str, GPNClassifier]:
        """Return the fingerprint of the model file together with the model in it."""
        fingerprint = model_fingerprint(path)
        while True:
            classifier = GPNClassifier.load(path, device=self.device)
            before, fingerprint = fingerprint, model_fingerprint(path)
            if before == fingerprint:  # else the file was replaced while it was read
                return fingerprint, classifier


def _is_later(directory: RunDirectory, graph: Graph, aligned: Graph) -> bool:
    """Return whether the graph has changed since the run was trained on it."""
    trained_on = training_fingerprint(directory)
    if trained_on is None:
        return False
    return trained_on not in (graph.fingerprint(), aligned.fingerprint())


def _condition(is_later: bool, is_refreshed: bool) -> str:
    if not is_later:
        return P_VALUE_CONDITION
    return LATER_CONDITION if is_refreshed else ELSEWHERE_CONDITION


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_size, facts.st_ino


@dataclass(frozen=True, kw_only=True, eq=False)
class ServedModel:
    """A model, its graph, and the predictions of all nodes; immutable.

    Values that take time are computed on first use.
    """

    fingerprint: str
    """Hash of the model file."""
    classifier: GPNClassifier
    graph: Graph
    """The graph, with the model's columns and classes."""
    table: NodeTable
    latent: NDArray[np.float32]
    """Latent positions of all nodes, (N, D)."""
    values: NDArray[np.float32]
    """What all nodes diffuse, (N, W)."""
    ids: AbstractIds
    store: PPRStore | None = None
    promise: Promise | None = None
    condition: str = P_VALUE_CONDITION
    """Condition under which the p-values of the table are valid."""
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _locks: dict[str, threading.Lock] = field(default_factory=dict, init=False, repr=False)
    _cached: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes."""
        return tuple(class_names(self.graph, self.table.num_classes))

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each reason of the table, by its code."""
        return tuple(map(reason_kind, self.table.reasons))

    def once(self, name: str, compute: Callable[[], Value]) -> Value:
        """Return a value that is computed on the first call with this name; other calls wait."""
        with self._lock:
            own = self._locks.setdefault(name, threading.Lock())
        with own:
            if name not in self._cached:
                self._cached[name] = compute()
            value: Value = self._cached[name]
            return value

    def evidence(self) -> EvidenceSummary:
        """Return the feature evidence of all nodes."""
        return self.once("evidence", self.table.evidence)

    def live(self) -> LivePredictor:
        """Return the predictor of new nodes and changes.

        Raises:
            ConfigError: the model diffuses logarithms of evidence.
        """
        return self.once("live", self._live)

    def usual(self) -> UsualValues:
        """Return the medians of the validation nodes."""
        return self.once("usual", self._usual)

    def unused_by_trust(self) -> NodeIds:
        """Return the nodes outside training and validation, the least trusted first."""
        return self.once("unused", self._unused_by_trust)

    def ordered(self, name: str) -> NDArray[np.integer]:
        """Return all nodes in increasing order of a column, `degree` or `id`; (N,)."""
        return self.once(f"order {name}", lambda: self._ordered(name))

    def _ordered(self, name: str) -> NDArray[np.integer]:
        if name == "id":
            return self.ids.in_order()
        values = self.graph.out_degree if name == "degree" else self.table.column(name)
        return np.argsort(values, kind="stable").astype(np.int32)

    def _live(self) -> LivePredictor:
        surprise = self.table.column("surprise") if self.table.has_p_values else None
        return LivePredictor(
            self.classifier.trained,
            self.graph,
            self.classifier.contract,
            surprise=surprise,
            table=self.values,
        )

    def _usual(self) -> UsualValues:
        val = np.empty(0, np.int64) if self.graph.split is None else self.graph.split.val
        near = self.table.prediction(val)
        labels = near.label_evidence
        return UsualValues(
            alpha_0=float(np.median(near.alpha_0)) if len(val) else None,
            label_evidence=float(np.median(labels)) if len(val) and labels is not None else None,
        )

    def _unused_by_trust(self) -> NodeIds:
        nodes = unused_nodes(self.graph)
        trust = self.table.values("trust", nodes)
        return np.asarray(nodes[np.argsort(trust, kind="stable")])
