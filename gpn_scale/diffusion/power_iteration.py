"""The diffusion of all nodes at once: the reference that every other implementation must match.

It holds S and the evidence of all nodes in memory and has gradients, so exact training, validation
and perturbations use it. Graphs that are too large for that are predicted by `blocks`.

Shapes: N nodes, C classes.
"""

from typing import Any

import torch
from torch import Tensor

from gpn_scale.config import DiffusionConfig
from gpn_scale.data.graph import Graph
from gpn_scale.diffusion.transition import steps_to_tolerance, transition_matrix
from gpn_scale.nn.sparse import SparseMatrix

_LOG_LIMIT = 80.0
_NEGLIGIBLE = 1e-20
"""Undistributed mass that changes no float64, even times the root of the largest degree."""


class PowerIteration:
    """K steps of beta_agg <- (1 - t) S beta_agg + t beta (APPNP; Klicpera et al., 2019).

    The iteration starts from beta_agg = beta. The map is linear, so its gradient is the same
    iteration with the transposed matrix: nothing is kept for the backward pass. As K grows the rows
    tend to personalised PageRank, t (I - (1 - t) S)^-1.

    >>> pair = SparseMatrix(torch.tensor([0, 1, 2]), torch.tensor([1, 0]), torch.ones(2), 2)
    >>> PowerIteration(pair, teleport=0.75, steps=1)(torch.tensor([[4.0], [0.0]]))
    tensor([[3.],
            [1.]])

    Args:
        transition: S, (N, N).
        teleport: t.
        steps: K.
        in_logs: Whether logarithms of evidence are averaged, which gives geometric means.
    """

    def __init__(
        self, transition: SparseMatrix, *, teleport: float, steps: int, in_logs: bool = False
    ) -> None:
        self.transition = transition
        self.teleport = teleport
        self.steps = steps
        self.in_logs = in_logs

    def __call__(self, evidence_NC: Tensor) -> Tensor:
        """Return the aggregated evidence, (N, C) -> (N, C); differentiable."""
        if self.in_logs:
            return from_logs(self.linear(evidence_NC.log()))
        return self.linear(evidence_NC)

    def linear(self, values_NC: Tensor) -> Tensor:
        """Return the linear map of any values, (N, C) -> (N, C); differentiable."""
        aggregated_NC: Tensor = _Iterate.apply(values_NC, self)  # type: ignore[no-untyped-call]
        return aggregated_NC

    def iterate(self, start_NC: Tensor, matrix: SparseMatrix) -> Tensor:
        """Return the result of K steps with `matrix` in place of S, without autograd."""
        current_NC = start_NC.clone()  # autograd allows no alias of its input, even for K = 0
        for _ in range(self.steps):
            current_NC = matrix.multiply_add(
                current_NC, start_NC, scale=1.0 - self.teleport, weight=self.teleport
            )
        return current_NC


def exact_diffusion(
    graph: Graph, config: DiffusionConfig, device: torch.device, dtype: torch.dtype
) -> PowerIteration:
    """Return the power iteration that `config` describes, on the whole graph.

    >>> from gpn_scale import build_graph
    >>> config = DiffusionConfig(teleport=0.5, normalisation="rw", steps=1, self_loops=False)
    >>> path = build_graph([0, 1], [1, 2])
    >>> diffuse = exact_diffusion(path, config, torch.device("cpu"), torch.float32)
    >>> diffuse(torch.tensor([[4.0], [0.0], [0.0]])).tolist()
    [[2.0], [1.0], [0.0]]
    """
    matrix = transition_matrix(graph, config.normalisation, config.self_loops)
    transition = SparseMatrix(
        torch.from_numpy(matrix.indptr).to(device),
        torch.from_numpy(matrix.indices).to(device),
        torch.from_numpy(matrix.weight).to(device, dtype),
        matrix.num_nodes,
        symmetric=matrix.symmetric,
    )
    return PowerIteration(
        transition,
        teleport=config.teleport,
        steps=config_steps(config),
        in_logs=config.of == "log_evidence",
    )


def config_steps(config: DiffusionConfig) -> int:
    """Return K; for `inf`, the fewest steps that distribute all but `tolerance` of the mass.

    Steps after which (1 - t)^K is too small to change a float64 are left out, so that a number in a
    model file cannot make a prediction run for hours.

    >>> config_steps(DiffusionConfig(steps="inf", teleport=0.5, tolerance=0.01))
    7
    >>> config_steps(DiffusionConfig(steps=100_000, teleport=0.5))
    67
    """
    if config.steps == "inf":
        return steps_to_tolerance(config.teleport, config.tolerance)
    return min(config.steps, steps_to_tolerance(config.teleport, _NEGLIGIBLE))


def from_logs(values_NC: Tensor) -> Tensor:
    """Return the evidence of diffused logarithms; its sums over classes are finite in float32.

    Rows of `sym` can sum to more than 1, so that a mean of logarithms can exceed all of them.

    >>> from_logs(torch.tensor([[0.0, 1000.0]])).isfinite()
    tensor([[True, True]])
    """
    return values_NC.clamp(-_LOG_LIMIT, _LOG_LIMIT).exp()


class _Iterate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, evidence_NC: Tensor, diffusion: PowerIteration) -> Tensor:
        ctx.diffusion = diffusion
        return diffusion.iterate(evidence_NC, diffusion.transition)

    @staticmethod
    def backward(ctx: Any, gradient_NC: Tensor) -> tuple[Tensor, None]:
        diffusion = ctx.diffusion
        transposed = diffusion.transition.transposed()
        return diffusion.iterate(gradient_NC.contiguous(), transposed), None
