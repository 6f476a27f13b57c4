"""The graph of a run: as it was in training, or a later version of it.

A trained model can be used on a later version of its graph. Nodes keep their roles: training nodes
remain sources of label evidence, and validation nodes remain the basis of p-values.

Shapes: N nodes.
"""

import io
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gpn_scale.config import RunConfig
from gpn_scale.data.contract import DataContract
from gpn_scale.data.earlier_nodes import EarlierNodes
from gpn_scale.data.graph import Graph, NodeIds, Split
from gpn_scale.data.splits import hide_classes, leave_out_classes, prepare_graph
from gpn_scale.errors import FileError, GraphError, RunError, StoreError
from gpn_scale.evaluation.earlier_predictions import EarlierPredictions
from gpn_scale.files import replacing
from gpn_scale.ppr.store import PPRStore
from gpn_scale.reading import read_bytes, read_json
from gpn_scale.train.run_directory import RunDirectory

Relation = Literal["training", "later", "other"]
_SUBSETS = ("train", "val", "test")
_MARKED = len(_SUBSETS) + 1
_HEADER_BYTES = 1 << 12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunGraph:
    """A graph to predict with the model of a run, and its relation to the training graph."""

    graph: Graph
    relation: Relation
    """`training` for the same graph, `later` for a later version of it, `other` for others."""
    notes: tuple[str, ...] = ()
    """Notes on the preparation, one sentence each."""


def prepared_for_run(directory: RunDirectory, graph: Graph, config: RunConfig) -> Graph:
    """Return the training graph of a run with the run's split, and with left-out classes hidden.

    Raises:
        GraphError: the graph does not allow the split.
        RunError: the split stored with the run does not match the graph or is damaged.
    """
    if not directory.split.exists():
        return prepare_graph(graph, config)
    own = read_splits(directory.split, graph.num_nodes)[0]
    return with_left_out(graph.with_split(own), config)


def with_left_out(graph: Graph, config: RunConfig) -> Graph:
    """Return a graph that has its split, with left-out classes hidden."""
    count, class_set = config.data.left_out_classes, config.data.left_out_set
    return leave_out_classes(graph, count, class_set) if count else graph


def related_graph(
    directory: RunDirectory,
    graph: Graph,
    config: RunConfig,
    contract: DataContract,
    *,
    dataset: str,
    stores: Sequence[Path] = (),
) -> RunGraph:
    """Return a graph with its split for a run's model, and its relation to the training graph.

    A graph can be a later version of the training graph if it has the same name, or if a store of
    the run was updated to it; `EarlierNodes` decides whether it is. A later version keeps the
    training and validation nodes of the run, and its other labelled nodes are test nodes; if
    training used the graph's own split, it keeps its own split instead. Other graphs are not
    changed.

    Args:
        directory: The run.
        graph: The graph as it was loaded.
        config: Configuration of the run.
        contract: Columns and classes of its model.
        dataset: Name by which the graph was loaded.
        stores: Stores of the run.
    """
    fingerprint, has_same_name = training_fingerprint(directory), dataset == config.data.dataset
    if not has_same_name and not _is_followed(graph, stores):
        return RunGraph(graph=graph, relation="other")
    if has_same_name:
        same = _prepared(directory, graph, config)
        if same is not None and (fingerprint is None or _is_same(same, fingerprint, contract)):
            return RunGraph(graph=same, relation="training")
    try:
        earlier = EarlierPredictions(directory.predictions).nodes()
        later = _later_graph(graph, earlier, config)
        difference = earlier.difference(contract.with_classes(later).graph)
    except (RunError, GraphError) as error:
        difference = str(error)
    if difference is not None:
        return RunGraph(graph=graph, relation="other", notes=_notes_on_other(dataset, difference))
    if fingerprint is not None and _is_same(later, fingerprint, contract):
        return RunGraph(graph=later, relation="training")
    joined = later.num_nodes - earlier.num_nodes
    return RunGraph(graph=later, relation="later", notes=_notes_on_later(dataset, joined))


def _is_followed(graph: Graph, stores: Sequence[Path]) -> bool:
    """Return whether one of the stores was updated to this graph."""
    for store in stores:
        with suppress(StoreError):
            wanted = graph.structure_fingerprint()
            if PPRStore.open(store, graph_fingerprint=wanted).history:
                return True
    return False


def training_fingerprint(directory: RunDirectory) -> str | None:
    """Return the fingerprint of the graph that a finished run was trained on; None if unknown."""
    try:
        return str(read_json(directory.report, allow_nan=True)["graph"]["fingerprint"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def has_validation_nodes(graph: Graph) -> bool:
    """Return whether a model can be calibrated on the graph."""
    return graph.split is not None and len(graph.split.val) > 0


def _prepared(directory: RunDirectory, graph: Graph, config: RunConfig) -> Graph | None:
    """Return the graph as training prepared it, or None if it cannot be the training graph."""
    try:
        return prepared_for_run(directory, graph, config)
    except (RunError, GraphError):
        return None


def _is_same(graph: Graph, fingerprint: str, contract: DataContract) -> bool:
    if graph.fingerprint() == fingerprint:
        return True
    # Training with a warm start has read the columns by the rule of the earlier run.
    if graph.preparation is None or graph.preparation == contract.preparation:
        return False
    return contract.aligned(graph).graph.fingerprint() == fingerprint


def _later_graph(graph: Graph, earlier: EarlierNodes, config: RunConfig) -> Graph:
    """Return a later version of the graph with its split, which may lack nodes of a class."""
    if graph.num_nodes < earlier.num_nodes:
        raise GraphError(str(earlier.difference(graph)))
    has_own = config.split.kind == "public" and graph.split is not None
    split = graph.split if has_own else earlier.split_of(graph)
    count, class_set = config.data.left_out_classes, config.data.left_out_set
    later = replace(graph, split=split)
    return hide_classes(later, count, class_set) if count else later


def _notes_on_later(dataset: str, joined: int) -> tuple[str, ...]:
    return (
        f"{dataset} is a later version of the training graph"
        + (f", {joined:,} nodes have joined" if joined else "")
        + ": the model is used unchanged, with the training and validation nodes of its run.",
    )


def _notes_on_other(dataset: str, difference: str) -> tuple[str, ...]:
    return (
        f"{dataset} is neither the training graph nor a later version of it ({difference}): it is "
        "predicted as a different graph.",
    )


def write_splits(path: Path, num_nodes: int, own: Split, earlier: Split, marked: NodeIds) -> None:
    """Write the split of a run and the split of the run that it started from.

    Args:
        path: The file.
        num_nodes: Number N of nodes of the run's graph.
        own: Its split, before classes are left out.
        earlier: Split of the other run's graph, whose nodes are the first ones.
        marked: Marked nodes of that graph.
    """
    codes_2N = np.zeros((2, num_nodes), np.int8)
    for codes_N, split in zip(codes_2N, (own, earlier), strict=True):
        for code, name in enumerate(_SUBSETS, start=1):
            codes_N[getattr(split, name)] = code
    codes_2N[1, marked] = _MARKED
    with replacing(path) as file:
        np.save(file, codes_2N, allow_pickle=False)


def read_splits(path: Path, num_nodes: int) -> tuple[Split, Split, NodeIds]:
    """Return what `write_splits` wrote.

    Raises:
        RunError: the file is missing or damaged, or is about another number of nodes.
    """
    try:
        data = read_bytes(path, _HEADER_BYTES + 2 * num_nodes)
        codes_2N: NDArray[Any] = np.load(io.BytesIO(data), allow_pickle=False)
    except (OSError, FileError, ValueError, EOFError) as error:
        raise RunError(
            f"{path} cannot be read ({error}), expected the split of a run: train again"
        ) from error
    fits = codes_2N.shape == (2, num_nodes) and codes_2N.dtype == np.int8
    if not fits or (num_nodes and not 0 <= codes_2N.min() <= codes_2N.max() <= _MARKED):
        raise RunError(
            f"{path} is not the split of a graph of {num_nodes:,} nodes: the graph has changed "
            "since training, or the file is damaged; train again"
        )
    own, earlier = (
        Split(**{name: np.flatnonzero(codes_N == code) for code, name in enumerate(_SUBSETS, 1)})
        for codes_N in codes_2N
    )
    return own, earlier, np.flatnonzero(codes_2N[1] == _MARKED)
