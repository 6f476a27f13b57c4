"""Predictions for nodes that joined after training: the model is frozen, the graph not rebuilt.

Shapes: M new nodes, B new nodes of a block, T nodes that a block's rows touch, C classes.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpn_scale.config import DiffusionConfig, FeatureScaling
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.diffusion.exact import config_steps
from gpn_scale.diffusion.growth import GrownTransition, NewNodes, SparseRows, push_rows
from gpn_scale.errors import ConfigError, GraphError
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.inference.encoder_inputs import required_features
from gpn_scale.inference.evidence import FeatureEvidence, evaluating
from gpn_scale.nn.model import GPN, GPNOutput
from gpn_scale.nn.posterior import DirichletPosterior
from gpn_scale.nn.sparse import SparseMatrix

EvidenceOf = Callable[[NodeIds], Tensor]
"""Node ids -> their feature evidence, one row of C classes each."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NewPrediction:
    """What the model says of the new nodes, and how far alpha_0 may be from the exact one."""

    prediction: Prediction
    """From the kept part of the rows."""
    alpha_0_lower: NDArray[np.float64]
    """The kept alpha_0, (M,); the exact one is not below it, up to the round-off of the dtype."""
    alpha_0_upper: NDArray[np.float64]
    """Nor above this, (M,)."""


@torch.no_grad()
def predict_new(
    model: GPN,
    graph: Graph,
    new: NewNodes,
    *,
    scaling: FeatureScaling,
    diffusion: DiffusionConfig,
    device: torch.device,
    dtype: torch.dtype,
    tolerance: float = 1e-6,
    known_evidence: EvidenceOf | None = None,
    largest_evidence: float | None = None,
    in_weights: NDArray[np.float64] | None = None,
    block_size: int = 64,
) -> NewPrediction:
    """Classes and uncertainty of new nodes, as exact diffusion on the grown graph gives them.

    Work grows with the nodes that the rows touch, not with the graph: `sym` alone reads all edges
    of a weighted or directed graph once, unless `in_weights` is given. Memory grows with
    `block_size` times the touched nodes.

    >>> from gpn_scale.config import RunConfig
    >>> from gpn_scale.data.building import build_graph
    >>> from gpn_scale.diffusion.growth import new_nodes
    >>> path = build_graph([0, 1], [1, 2], features=[[0.0], [1.0], [2.0]])
    >>> prior, source = torch.tensor([0.5, 0.5]), torch.Generator().manual_seed(1)
    >>> model = GPN(RunConfig(), num_features=1, class_prior_C=prior, generator=source)
    >>> joined = predict_new(
    ...     model,
    ...     path,
    ...     new_nodes(path, [[1.0], [3.0]], [[0, 2], [3]]),
    ...     scaling="none",
    ...     diffusion=DiffusionConfig(),
    ...     device=torch.device("cpu"),
    ...     dtype=torch.float32,
    ... )
    >>> joined.prediction.probabilities.shape
    (2, 2)

    Args:
        model: A trained network.
        graph: The known nodes.
        new: From `new_nodes(graph, ...)`.
        scaling: As in training.
        diffusion: As in training.
        device: Of the model.
        dtype: Of the model.
        tolerance: What arrives at a node with less than this is not pushed on; 0 is exact.
        known_evidence: Evidence of known nodes where the caller has it (sorted ids); by
            default the model computes it from the features of those that are touched.
        largest_evidence: A bound of any known node's evidence, summed over classes, for the upper
            ends; by default what the model's clamp lets through, which is far too much unless
            `tolerance` is 0.
        in_weights: `growth.in_weights(graph)` where the caller has kept it.
        block_size: Number of new nodes whose rows are computed together.

    Raises:
        GraphError: the nodes or their features do not fit the graph or the model.
        ConfigError: `tolerance`, `largest_evidence` or `block_size` is out of range.
    """
    _check(model, graph, new, largest_evidence, block_size)
    transition = GrownTransition(
        graph, new, diffusion.normalisation, diffusion.self_loops, in_weights
    )
    aggregated_MC = torch.empty(new.num_new, model.flow.num_classes, device=device, dtype=dtype)
    dropped_M = np.zeros(new.num_new)
    with evaluating(model):
        own = FeatureEvidence(model, new.features, scaling, device, dtype)
        own_MC = own(np.arange(new.num_new))
        if known_evidence is None:
            features = required_features(graph)
            known_evidence = FeatureEvidence(model, features, scaling, device, dtype)
        for start in range(0, new.num_new, block_size):
            block = slice(start, start + block_size)
            pushed = push_rows(
                transition,
                new.ids[block],
                teleport=diffusion.teleport,
                steps=config_steps(diffusion),
                tolerance=tolerance,
            )
            dropped_M[block] = pushed.dropped
            aggregated_MC[block] = _aggregated(pushed.weight, known_evidence, own_MC, new)
    output = GPNOutput(
        with_network=DirichletPosterior.from_evidence(aggregated_MC),
        without_network=DirichletPosterior.from_evidence(own_MC),
    )
    lower_M = output.with_network.total_N.double().cpu().numpy()
    bound = _evidence_bound(model, own_MC, largest_evidence)
    # Not 0 times a bound that may be infinite.
    lost_M = np.multiply(dropped_M, bound, out=np.zeros(new.num_new), where=dropped_M > 0)
    return NewPrediction(
        prediction=Prediction.from_output(output),
        alpha_0_lower=lower_M,
        alpha_0_upper=lower_M + lost_M,
    )


def _aggregated(
    rows: SparseRows, known_evidence: EvidenceOf, own_MC: Tensor, new: NewNodes
) -> Tensor:
    """Rows (B, N + M) times the evidence of the nodes they touch, (B, C)."""
    touched_T, column = np.unique(rows.indices, return_inverse=True)
    known, joined = np.split(touched_T, [np.searchsorted(touched_T, new.num_known)])
    known_TC = known_evidence(known.astype(np.int64)).to(own_MC)
    joined_TC = own_MC[torch.from_numpy(joined.astype(np.int64) - new.num_known).to(own_MC.device)]
    matrix = SparseMatrix(
        torch.from_numpy(rows.indptr).to(own_MC.device),
        torch.from_numpy(column).to(own_MC.device),
        torch.from_numpy(rows.data).to(own_MC),
        len(touched_T),
    )
    return matrix.multiply(torch.cat([known_TC, joined_TC]))


def _evidence_bound(model: GPN, own_MC: Tensor, largest_known: float | None) -> float:
    """What no node's total evidence exceeds; new nodes may hold more than any known one."""
    if largest_known is None:
        with np.errstate(over="ignore"):
            return float(model.flow.num_classes * np.exp(model.evidence.log_limit))
    return float(max([largest_known, *own_MC.double().sum(1).tolist()]))


def _check(
    model: GPN, graph: Graph, new: NewNodes, largest_evidence: float | None, block_size: int
) -> None:
    expected = model.encoder.first.shift_F.shape[0]
    if new.features.shape[1] != expected:
        raise GraphError(
            f"the new nodes of graph {graph.name!r} have {new.features.shape[1]} feature columns, "
            f"the model was trained on {expected}"
        )
    if largest_evidence is not None and not largest_evidence >= 0.0:
        raise ConfigError(
            f"largest_evidence is {largest_evidence!r}, expected at least 0: give the largest sum "
            "of evidence over classes, or leave it out"
        )
    if block_size < 1:
        raise ConfigError(f"block_size is {block_size!r}, expected at least 1")
