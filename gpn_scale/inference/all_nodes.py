"""Prediction of all nodes of a graph of any size: no truncation, memory within a budget.

Shapes: N nodes, C classes, B classes that are diffused at a time.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpn_scale.data.graph import Graph
from gpn_scale.diffusion.blocks import AdjacencyBlocks, BlockDiffusion
from gpn_scale.diffusion.power_iteration import from_logs
from gpn_scale.distributed import World
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.inference.encoder_inputs import required_features
from gpn_scale.inference.evidence import Observer, chunk_rows, node_evidence
from gpn_scale.inference.memory_plan import InferencePlan, plan_inference
from gpn_scale.inference.trained_model import TrainedModel
from gpn_scale.nn.posterior import DirichletPosterior
from gpn_scale.scratch import release_pages, scratch_array

DEFAULT_MEMORY_BYTES = 4 << 30
"""Memory budget of a prediction of all nodes."""
_COPY_BYTES = 4 << 20
"""Size of the pieces in which results are copied and divided."""

ProgressCallback = Callable[[int, str], object]
"""Called with (nodes done, name of the phase); e.g. `ProgressMeter.update` with N as its total."""


def predict_all(
    trained: TrainedModel,
    graph: Graph,
    *,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
    scratch: Path | None = None,
    progress: ProgressCallback | None = None,
    observers: Sequence[Observer] = (),
    observer_bytes: int = 0,
    plan: InferencePlan | None = None,
    world: World | None = None,
) -> Prediction:
    """Return the prediction of every node by exact diffusion.

    Evidence is computed in chunks of nodes, then diffused in blocks of classes and of rows. What
    does not fit the budget is kept on disk, and the result's arrays are then memory maps. Between
    the two phases evidence is float32 whatever the model's dtype, as the result is.

    >>> from gpn_scale import GPNClassifier, load_graph
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> graph = load_graph("synthetic:nodes=100,classes=2")
    >>> trained = GPNClassifier(RunConfig(train=TrainConfig(epochs=5))).fit(graph).trained
    >>> prediction = predict_all(trained, graph)
    >>> alone = graph.marks["isolated"]  # without edges, all evidence is a node's own
    >>> np.allclose(prediction.alpha_0[alone], prediction.alpha_0_no_network[alone])
    True

    Args:
        trained: The model.
        graph: Graph with features; may be a memory map.
        memory_bytes: The budget in addition to graph and model, for main and device memory alike.
        scratch: Directory for what does not fit; None for the system's default.
        progress: Called as work proceeds; half of it is evidence, half diffusion.
        observers: Called with the feature evidence of all nodes as it is computed.
        observer_bytes: Memory that the observers hold, which counts as part of the budget.
        plan: How to divide the work; None for the cheapest plan within the budget.
        world: The processes that share the work: each encodes some of the nodes and diffuses some
            of the classes, and all get the whole result.

    Raises:
        ConfigError: the budget (the message says what would suffice) or the disk is too small.
        GraphError: the graph has no features, or features that cannot be scaled.
    """
    world = world or World()
    plan = plan or plan_inference(
        graph.num_nodes,
        graph.num_edges,
        trained.num_classes,
        memory_bytes,
        max_degree=int(graph.out_degree.max(initial=0)),
        itemsize=trained.dtype.itemsize,
        extra_bytes=observer_bytes,
    )
    with_network, without_network = (_result_array(trained, graph, plan, scratch) for _ in range(2))
    alpha_0_no_network = np.empty(graph.num_nodes, np.float32)

    def observe(start: int, stop: int, evidence_NC: Tensor) -> None:
        for observer in observers:
            observer(start, stop, evidence_NC)
        posterior = DirichletPosterior.from_evidence(evidence_NC)
        without_network[start:stop] = posterior.mean_NC.cpu().numpy()
        alpha_0_no_network[start:stop] = posterior.alpha_0_N.cpu().numpy()
        release_pages(with_network, without_network)

    chunk = chunk_rows(trained, required_features(graph), plan.chunk_bytes)
    report = progress or (lambda done, phase: None)
    _evidence_into(trained, graph, chunk, world, report, observe, with_network)
    adjacency = AdjacencyBlocks(
        graph,
        entries=plan.block_entries,
        keep=plan.keep_adjacency,
        device=trained.device,
        dtype=trained.dtype,
    )
    power = BlockDiffusion(graph, trained.diffusion, adjacency, trained.device, trained.dtype)
    alpha_0 = _diffuse_into(power, trained, plan.columns, world, report, with_network)
    return Prediction(
        probabilities=with_network,
        probabilities_no_network=without_network,
        alpha_0=alpha_0,
        alpha_0_no_network=alpha_0_no_network,
    )


def _result_array(
    trained: TrainedModel, graph: Graph, plan: InferencePlan, scratch: Path | None
) -> NDArray[np.float32]:
    shape = (graph.num_nodes, trained.num_classes)
    return scratch_array(shape, scratch) if plan.results_on_disk else np.empty(shape, np.float32)


def _evidence_into(
    trained: TrainedModel,
    graph: Graph,
    chunk: int,
    world: World,
    report: ProgressCallback,
    observe: Observer,
    evidence: NDArray[np.float32],
) -> None:
    """Write the feature evidence of all nodes, (N, C), and pass it to `observe` in order."""
    own = world.part.slice_of(graph.num_nodes)
    if world.size > 1:
        evidence[:] = 0.0
    for start, stop, evidence_NC in node_evidence(trained, graph, chunk=chunk, nodes=own):
        evidence[start:stop] = evidence_NC.cpu().numpy()
        if world.size == 1:
            observe(start, stop, evidence_NC)
        report((stop - own.start) * world.size // 2, "evidence")
    if world.size > 1:
        world.total_into(evidence)
        for rows in _row_pieces(evidence):
            stop = min(rows.stop, graph.num_nodes)
            piece = torch.from_numpy(evidence[rows]).to(trained.device, trained.dtype)
            observe(rows.start, stop, piece)


def _diffuse_into(
    power: BlockDiffusion,
    trained: TrainedModel,
    columns: int,
    world: World,
    report: ProgressCallback,
    evidence: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Turn feature evidence (N, C) into expected class probabilities in place; return alpha_0."""
    num_nodes, num_classes = evidence.shape
    alpha_0 = np.zeros(num_nodes)
    own = world.part.slice_of(num_classes)
    columns = min(columns, max(own.stop - own.start, 1))
    passes = -(-(own.stop - own.start) // columns)
    steps_done = 0

    def count_step() -> None:
        nonlocal steps_done
        steps_done += 1
        fraction = steps_done / (passes * power.steps)
        report(num_nodes // 2 + int(fraction * (num_nodes - num_nodes // 2)), "diffusion")

    for first in range(own.start, own.stop, columns):
        block = slice(first, min(first + columns, own.stop))
        state_NB = torch.empty(
            num_nodes, block.stop - first, dtype=trained.dtype, device=trained.device
        )
        for rows in _row_pieces(evidence):
            piece = torch.from_numpy(evidence[rows, block]).to(trained.device, trained.dtype)
            state_NB[rows] = piece.log() if power.in_logs else piece
            release_pages(evidence)
        state_NB = power.run_into(state_NB, count_step)
        for rows in _row_pieces(evidence):
            piece = from_logs(state_NB[rows]) if power.in_logs else state_NB[rows]
            alpha = 1.0 + piece.cpu().numpy()
            alpha_0[rows] += alpha.sum(1)
            evidence[rows, block] = alpha
            release_pages(evidence)
        del state_NB
    if world.size > 1:
        evidence[:, : own.start] = evidence[:, own.stop :] = 0.0
        world.total_into(evidence)
        world.total_into(alpha_0)
    for rows in _row_pieces(evidence):
        evidence[rows] /= alpha_0[rows, None]
        release_pages(evidence)
    report(num_nodes, "done")
    return alpha_0.astype(np.float32)


def _row_pieces(array: NDArray[Any]) -> Iterator[slice]:
    rows = max(1, _COPY_BYTES // max(1, array.shape[1] * array.itemsize))
    return (slice(start, start + rows) for start in range(0, len(array), rows))
