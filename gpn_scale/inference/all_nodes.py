"""Prediction of all nodes of a graph of any size: no truncation, memory within a budget.

Shapes: N nodes, C classes.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpn_scale.config import DiffusionConfig, FeatureScaling
from gpn_scale.data.features import scale_features
from gpn_scale.data.graph import CSRFeatures, Features, Graph
from gpn_scale.diffusion.blocks import AdjacencyBlocks, BlockDiffusion
from gpn_scale.diffusion.power_iteration import from_logs
from gpn_scale.distributed import World
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.inference.encoder_inputs import as_inputs, required_features
from gpn_scale.inference.evidence import evaluating
from gpn_scale.inference.memory_plan import InferencePlan, plan
from gpn_scale.nn.model import GPN
from gpn_scale.nn.posterior import DirichletPosterior
from gpn_scale.scratch import release_pages, scratch_array

DEFAULT_MEMORY_BYTES = 4 << 30
_COPY_BYTES = 4 << 20
"""Row blocks of results are copied and divided in pieces of this size."""

Observe = Callable[[int, int, Tensor], None]
"""(start, stop, feature evidence (stop - start, C)), once per chunk of nodes, in order."""
Progress = Callable[[int, str], object]
"""(nodes done, what is done to them); the `update` of a `ProgressMeter` with N as its total."""


def predict_all(
    model: GPN,
    graph: Graph,
    *,
    scaling: FeatureScaling,
    diffusion: DiffusionConfig,
    device: torch.device,
    dtype: torch.dtype,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
    scratch: Path | None = None,
    progress: Progress | None = None,
    observe: Observe | None = None,
    way: InferencePlan | None = None,
    world: World | None = None,
) -> Prediction:
    """What the model says of every node, by the exact diffusion.

    Evidence goes in chunks of nodes, then the diffusion in blocks of classes and of rows. What does
    not fit the budget lies on disk, and the result's arrays are memory maps then. Between the two,
    evidence is float32 whatever `dtype`, as the result is.

    Args:
        model: Lives on `device`; it is used as in evaluation and left as it was.
        graph: With features; may be a memory map.
        scaling: Of the features, as in training.
        diffusion: As in training.
        device: Where to compute.
        dtype: Of the model's real numbers.
        memory_bytes: The budget, beside the graph and the model, for main and device memory alike.
        scratch: Directory for what does not fit; None for the system's.
        progress: Told how far the work has come: half of it is evidence, half diffusion.
        observe: Sees the feature evidence go by.
        way: How to cut the work; None for the cheapest way within the budget.
        world: The processes that share the work: each encodes some of the nodes and diffuses some
            of the classes, and all get the whole result.

    Raises:
        ConfigError: the budget is too small (the message says which would do), or the disk.
        GraphError: the graph has no features, or features that cannot be scaled so.
    """
    num_nodes, num_classes = graph.num_nodes, model.flow.num_classes
    way = way or plan(
        num_nodes,
        graph.num_edges,
        num_classes,
        memory_bytes,
        max_degree=int(graph.out_degree.max(initial=0)),
        itemsize=dtype.itemsize,
    )
    tell = progress or (lambda done, note: None)
    with_network, without_network = (
        scratch_array((num_nodes, num_classes), scratch)
        if way.results_on_disk
        else np.empty((num_nodes, num_classes), np.float32)
        for _ in range(2)
    )
    alpha_0_no_network = np.empty(num_nodes, np.float32)
    chunk = chunk_rows(model, required_features(graph), dtype, way.chunk_bytes)
    world = world or World()
    own = world.part.slice_of(num_nodes)

    def settle(start: int, stop: int, evidence_NC: Tensor) -> None:
        if observe is not None:
            observe(start, stop, evidence_NC)
        posterior = DirichletPosterior.from_evidence(evidence_NC)
        without_network[start:stop] = posterior.mean_NC.cpu().numpy()
        alpha_0_no_network[start:stop] = posterior.total_N.cpu().numpy()
        release_pages(with_network, without_network)

    if world.size > 1:
        with_network[:] = 0.0
    for start, stop, evidence_NC in node_evidence(
        model, graph, scaling, device=device, dtype=dtype, chunk=chunk, nodes=own
    ):
        with_network[start:stop] = evidence_NC.cpu().numpy()
        if world.size == 1:
            settle(start, stop, evidence_NC)
        tell((stop - own.start) * world.size // 2, "evidence")
    if world.size > 1:
        world.total_into(with_network)
        for rows in _row_pieces(with_network):
            stop = min(rows.stop, num_nodes)
            settle(rows.start, stop, torch.from_numpy(with_network[rows]).to(device, dtype))
    blocks = AdjacencyBlocks(
        graph,
        entries=way.block_entries,
        keep=way.keep_adjacency,
        device=device,
        dtype=dtype,
    )
    power = BlockDiffusion(graph, diffusion, blocks, device, dtype)
    alpha_0 = _diffuse_into(power, way.columns, device, dtype, tell, with_network, world)
    return Prediction(
        probabilities=with_network,
        probabilities_no_network=without_network,
        alpha_0=alpha_0,
        alpha_0_no_network=alpha_0_no_network,
    )


def node_evidence(
    model: GPN,
    graph: Graph,
    scaling: FeatureScaling,
    *,
    device: torch.device,
    dtype: torch.dtype,
    chunk: int,
    nodes: slice | None = None,
) -> Iterator[tuple[int, int, Tensor]]:
    """Feature evidence of all nodes, or a run, in order: (start, stop, evidence (stop - start, C)).

    Features are read and scaled chunk by chunk. Batch-norm uses its running moments; the model is
    back in the mode it was in whenever a chunk is handed out.
    """
    features = required_features(graph)
    nodes = nodes or slice(0, graph.num_nodes)
    for start in range(nodes.start, nodes.stop, chunk):
        stop = min(start + chunk, nodes.stop)
        inputs = as_inputs(scale_features(_rows(features, start, stop), scaling), device, dtype)
        with torch.no_grad(), evaluating(model):
            evidence_NC = model.feature_evidence(inputs)
        del inputs
        release_pages(*_arrays(features))
        yield start, stop, evidence_NC


def chunk_rows(model: GPN, features: Features, dtype: torch.dtype, memory_bytes: int) -> int:
    """How many nodes can be taken through the model at once within `memory_bytes`; at least 1."""
    encoder, classes = model.encoder, model.flow.num_classes
    widths = [len(layer.get_parameter("bias")) for layer in (encoder.first, *encoder.further)]
    hidden, latent = max(widths), widths[-1]
    # Upper bounds: a linear map, its norm, ReLU and the next map; positions and offsets of a flow.
    per_row = dtype.itemsize * (4 * hidden + 6 * classes * latent + 8 * classes)
    num_nodes = int(features.shape[0])
    if not isinstance(features, CSRFeatures):
        # As stored, as a copy, scaled twice (word counts, shares), and as a tensor.
        per_row += int(features.shape[1]) * (2 * features.itemsize + 8 + dtype.itemsize)
        return max(1, min(memory_bytes // per_row, num_nodes))
    per_entry = 32 + dtype.itemsize  # column, value, row, and both scalings
    rows = max(1, min(memory_bytes // per_row, num_nodes))
    while rows > 1:
        offsets = np.append(features.indptr[::rows], features.indptr[-1])
        if rows * per_row + int(np.diff(offsets).max()) * per_entry <= memory_bytes:
            break
        rows //= 2
    return rows


def _diffuse_into(
    power: BlockDiffusion,
    columns: int,
    device: torch.device,
    dtype: torch.dtype,
    tell: Progress,
    evidence: NDArray[np.float32],
    world: World,
) -> NDArray[np.float32]:
    """Feature evidence (N, C) becomes expected class probabilities, in place; returns alpha_0."""
    num_nodes, num_classes = evidence.shape
    alpha_0 = np.zeros(num_nodes)
    own = world.part.slice_of(num_classes)
    columns = min(columns, max(own.stop - own.start, 1))
    passes = -(-(own.stop - own.start) // columns)
    steps_done = 0

    def stepped() -> None:
        nonlocal steps_done
        steps_done += 1
        share = steps_done / (passes * power.steps)
        tell(num_nodes // 2 + int(share * (num_nodes - num_nodes // 2)), "diffusion")

    for first in range(own.start, own.stop, columns):
        block = slice(first, min(first + columns, own.stop))
        state_NB = torch.empty(num_nodes, block.stop - first, dtype=dtype, device=device)
        for rows in _row_pieces(evidence):
            piece = torch.from_numpy(evidence[rows, block]).to(device, dtype)
            state_NB[rows] = piece.log() if power.in_logs else piece
            release_pages(evidence)
        state_NB = power.spend(state_NB, stepped)
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
    tell(num_nodes, "done")
    return alpha_0.astype(np.float32)


def _row_pieces(array: NDArray[Any]) -> Iterator[slice]:
    rows = max(1, _COPY_BYTES // max(1, array.shape[1] * array.itemsize))
    return (slice(start, start + rows) for start in range(0, len(array), rows))


def _rows(features: Features, start: int, stop: int) -> Features:
    if isinstance(features, CSRFeatures):
        return features.rows(start, stop)
    return features[start:stop]


def _arrays(features: Features) -> tuple[NDArray[Any], ...]:
    if isinstance(features, CSRFeatures):
        return features.indices, features.values
    return (features,)
