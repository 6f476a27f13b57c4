"""Prediction of all nodes of a graph of any size, without truncation and within a memory budget.

Shapes: N nodes, C classes, B classes that are diffused at a time.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
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
from gpn_scale.inference.evidence import Observer, chunk_rows, node_values
from gpn_scale.inference.memory_plan import InferencePlan, plan_inference
from gpn_scale.inference.opinion_values import energy_of, is_training_node
from gpn_scale.inference.trained_model import AbstractTrainedPart, TrainedModel, TrainedOpinion
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
    opinion_observers: Sequence[Observer] = (),
    observer_bytes: int = 0,
    plan: InferencePlan | None = None,
    world: World | None = None,
) -> Prediction:
    """Return the prediction of every node by exact diffusion; for GPN+, it is not yet calibrated.

    Evidence is computed in chunks of nodes, then diffused in blocks of classes and of rows. The
    opinion of GPN+ follows in the same way, then the indicator of the training nodes, whose
    diffusion is the label evidence. Arrays that exceed the budget are kept on disk, and the
    result's arrays are then memory maps. The results, and values between computing and diffusing,
    are float32 for any dtype of the model.

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
        scratch: Directory for arrays that exceed the budget; None for the system's default.
        progress: Called as work proceeds; half of the steps are evidence, half diffusion.
        observers: Called with the feature evidence of all nodes as it is computed.
        opinion_observers: Called with the opinion's logits of all nodes before diffusion.
        observer_bytes: Memory that the observers hold, which counts as part of the budget.
        plan: Division of the work; None for the cheapest plan within the budget.
        world: The processes that share the work: each encodes some of the nodes and diffuses some
            of the classes, and all get the whole result.

    Raises:
        ConfigError: the budget or the disk is too small; the message names a sufficient budget.
        GraphError: the graph has no features, or features that cannot be scaled.
    """
    parts = 1 if trained.opinion is None else 2
    plan = plan or _plan(trained, graph, memory_bytes, observer_bytes)
    work = _Work.prepared(trained, graph, plan, world or World(), progress, parts)
    with_network, without_network = (work.result_array(scratch) for _ in range(2))
    alpha_0_no_network = np.empty(graph.num_nodes, np.float32)

    def observe(start: int, stop: int, evidence_NC: Tensor) -> None:
        for observer in observers:
            observer(start, stop, evidence_NC)
        posterior = DirichletPosterior.from_evidence(evidence_NC)
        without_network[start:stop] = posterior.mean_NC.cpu().numpy()
        alpha_0_no_network[start:stop] = posterior.alpha_0_N.cpu().numpy()
        release_pages(with_network, without_network)

    work.compute_into(trained, observe, with_network)
    prediction = Prediction(
        alpha_0=_aggregate_evidence_into(work, with_network),
        probabilities=with_network,
        probabilities_no_network=without_network,
        alpha_0_no_network=alpha_0_no_network,
    )
    if trained.opinion is not None:
        prediction = _with_opinion(work.next_part(), trained.opinion, prediction, opinion_observers)
    if progress is not None:
        progress(graph.num_nodes, "done")
    return prediction


def diffused_logits(
    opinion: TrainedOpinion, graph: Graph, *, memory_bytes: int, world: World
) -> NDArray[np.float32]:
    """Return the logits of all nodes after exact diffusion, (N, C); arguments as `predict_all`.

    >>> from gpn_scale import GPNClassifier
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> from gpn_scale.ppr.example import example_graph
    >>> graph, config = example_graph(), RunConfig(train=TrainConfig(epochs=1))
    >>> trained = GPNClassifier(config, device="cpu").fit(graph).trained
    >>> diffused_logits(trained.opinion, graph, memory_bytes=1 << 26, world=World()).shape
    (3, 2)
    """
    work = _Work.prepared(opinion, graph, _plan(opinion, graph, memory_bytes), world)
    logits = work.result_array(None)
    work.compute_into(opinion, lambda start, stop, logits_NC: None, logits)
    work.diffuse_into(logits)
    return logits


def averaged(
    trained: AbstractTrainedPart,
    graph: Graph,
    values: NDArray[np.float32],
    *,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
    world: World | None = None,
) -> NDArray[np.float32]:
    """Return the means of values over every node's row of the diffusion, (N, M) -> (N, M).

    The weights of a row are divided by their sum, which is not 1 for the normalisation `sym`.

    >>> from gpn_scale import GPNClassifier, load_graph
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> graph = load_graph("synthetic:nodes=100,classes=2")
    >>> trained = GPNClassifier(RunConfig(train=TrainConfig(epochs=1))).fit(graph).trained
    >>> np.allclose(averaged(trained, graph, np.full((100, 1), 3.0, np.float32)), 3.0)
    True

    Args:
        trained: A part of the model, whose diffusion is used.
        graph: The graph.
        values: The values.
        memory_bytes: Memory budget.
        world: The processes that share the work.
    """
    plan = _plan(trained, graph, memory_bytes)
    work = _Work.prepared(trained, graph, plan, world or World())
    ones = np.ones((len(values), 1), np.float32)
    diffused = np.concatenate([values, ones], axis=1)
    work.diffuse_into(diffused)
    return np.asarray(diffused[:, :-1] / diffused[:, -1:])


def _with_opinion(
    work: "_Work",
    opinion: TrainedOpinion,
    prediction: Prediction,
    observers: Sequence[Observer],
) -> Prediction:
    """Return a GPN's prediction with the probabilities replaced by those of the opinion."""
    logits = prediction.probabilities  # GPN+ only needs alpha_0 of them, so reuse the array

    def observe(start: int, stop: int, logits_NC: Tensor) -> None:
        for observer in observers:
            observer(start, stop, logits_NC)

    work.compute_into(opinion, observe, logits)
    work.diffuse_into(logits)
    energy = np.empty(len(logits), np.float32)
    for rows in _row_pieces(logits):
        logits_BC = torch.from_numpy(logits[rows])
        energy[rows] = energy_of(logits_BC).numpy()
        logits[rows] = logits_BC.softmax(1).numpy()
        release_pages(logits)
    label_evidence = None
    if (is_training := is_training_node(work.graph)) is not None:
        label_evidence = is_training.astype(np.float32)[:, None]
        replace(work, progress=None).diffuse_into(label_evidence)  # one column: soon done
        label_evidence = label_evidence[:, 0]
    return replace(prediction, energy=energy, label_evidence=label_evidence)


def _aggregate_evidence_into(work: "_Work", evidence: NDArray[np.float32]) -> NDArray[np.float32]:
    """Turn feature evidence (N, C) into expected class probabilities in place; return alpha_0."""
    alpha_0 = np.zeros(len(evidence))

    def as_alpha(rows: slice, piece: Tensor) -> NDArray[Any]:
        alpha: NDArray[Any] = 1.0 + piece.cpu().numpy()
        alpha_0[rows] += alpha.sum(1)
        return alpha

    work.diffuse_into(evidence, as_alpha)
    if work.world.size > 1:
        work.world.total_into(alpha_0)
    for rows in _row_pieces(evidence):
        evidence[rows] /= alpha_0[rows, None]
        release_pages(evidence)
    return alpha_0.astype(np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class _Work:
    """Inputs of computing and diffusing the values of all nodes, shared by the model's parts."""

    graph: Graph
    plan: InferencePlan
    power: BlockDiffusion
    trained: AbstractTrainedPart
    world: World
    progress: ProgressCallback | None
    part: int
    """Number of finished parts."""
    parts: int
    """Number of parts of the model."""

    @classmethod
    def prepared(
        cls,
        trained: AbstractTrainedPart,
        graph: Graph,
        plan: InferencePlan,
        world: World,
        progress: ProgressCallback | None = None,
        parts: int = 1,
    ) -> "_Work":
        adjacency = AdjacencyBlocks(
            graph,
            entries=plan.block_entries,
            keep=plan.keep_adjacency,
            device=trained.device,
            dtype=trained.dtype,
        )
        power = BlockDiffusion(graph, trained.diffusion, adjacency, trained.device, trained.dtype)
        return cls(graph, plan, power, trained, world, progress, 0, parts)

    def next_part(self) -> "_Work":
        """Return the same work, with progress reported for the next part."""
        return replace(self, part=self.part + 1)

    def report(self, done: int, phase: str) -> None:
        """Report progress; all parts count equally."""
        if self.progress is not None:
            self.progress((self.part * self.graph.num_nodes + done) // self.parts, phase)

    def result_array(self, scratch: Path | None) -> NDArray[np.float32]:
        """Return an array for the values of all nodes, (N, C)."""
        shape = (self.graph.num_nodes, self.trained.num_classes)
        if self.plan.results_on_disk:
            return scratch_array(shape, scratch)
        return np.empty(shape, np.float32)

    def compute_into(
        self, trained: AbstractTrainedPart, observe: Observer, values: NDArray[np.float32]
    ) -> None:
        """Write the values of all nodes before diffusion, (N, C), and pass them on in order."""
        graph, world = self.graph, self.world
        chunk = chunk_rows(trained, required_features(graph), self.plan.chunk_bytes)
        own = world.part.slice_of(graph.num_nodes)
        if world.size > 1:
            values[:] = 0.0
        for start, stop, values_NC in node_values(trained, graph, chunk=chunk, nodes=own):
            values[start:stop] = values_NC.cpu().numpy()
            if world.size == 1:
                observe(start, stop, values_NC)
            self.report((stop - own.start) * world.size // 2, "evidence")
        if world.size > 1:
            world.total_into(values)
            for rows in _row_pieces(values):
                stop = min(rows.stop, graph.num_nodes)
                piece = torch.from_numpy(values[rows]).to(trained.device, trained.dtype)
                observe(rows.start, stop, piece)

    def diffuse_into(
        self,
        values: NDArray[np.float32],
        finish: Callable[[slice, Tensor], NDArray[Any]] = lambda rows, piece: piece.cpu().numpy(),
    ) -> None:
        """Diffuse values (N, C) in place, some columns at a time; `finish` makes the results."""
        num_nodes, num_columns = values.shape
        trained, power, world = self.trained, self.power, self.world
        own = world.part.slice_of(num_columns)
        columns = min(self.plan.columns, max(own.stop - own.start, 1))
        passes = -(-(own.stop - own.start) // columns)
        steps_done = 0

        def count_step() -> None:
            nonlocal steps_done
            steps_done += 1
            fraction = steps_done / (passes * power.steps)
            self.report(num_nodes // 2 + int(fraction * (num_nodes - num_nodes // 2)), "diffusion")

        for first in range(own.start, own.stop, columns):
            block = slice(first, min(first + columns, own.stop))
            state_NB = torch.empty(
                num_nodes, block.stop - first, dtype=trained.dtype, device=trained.device
            )
            for rows in _row_pieces(values):
                piece = torch.from_numpy(values[rows, block]).to(trained.device, trained.dtype)
                state_NB[rows] = piece.log() if power.in_logs else piece
                release_pages(values)
            state_NB = power.run_into(state_NB, count_step)
            for rows in _row_pieces(values):
                piece = from_logs(state_NB[rows]) if power.in_logs else state_NB[rows]
                values[rows, block] = finish(rows, piece)
                release_pages(values)
            del state_NB
        if world.size > 1:
            values[:, : own.start] = values[:, own.stop :] = 0.0
            world.total_into(values)


def _plan(
    trained: AbstractTrainedPart, graph: Graph, memory_bytes: int, observer_bytes: int = 0
) -> InferencePlan:
    """Return the cheapest plan within the budget."""
    return plan_inference(
        graph.num_nodes,
        graph.num_edges,
        trained.num_classes,
        memory_bytes,
        max_degree=int(graph.out_degree.max(initial=0)),
        itemsize=trained.dtype.itemsize,
        extra_bytes=observer_bytes,
    )


def _row_pieces(array: NDArray[Any]) -> Iterator[slice]:
    rows = max(1, _COPY_BYTES // max(1, array.shape[1] * array.itemsize))
    return (slice(start, start + rows) for start in range(0, len(array), rows))
