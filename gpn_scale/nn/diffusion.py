"""Evidence of single nodes -> evidence aggregated over soft neighbourhoods, exactly.

Shapes: N nodes, C classes, E edges.
"""

import math
from typing import Any, Literal

import torch
from torch import Tensor

from gpn_scale.nn.sparse import Backend, SparseMatrix


def transition_matrix(
    indptr: Tensor,
    indices: Tensor,
    weight_E: Tensor,
    *,
    normalisation: Literal["sym", "rw"],
    self_loops: bool,
    symmetric: bool,
    backend: Backend | None = None,
) -> SparseMatrix:
    """Normalised adjacency: D^-1/2 A D^-1/2 (`sym`) or D^-1 A (`rw`).

    A node without out-edges keeps its walk: it gets a loop even when the others do not. For a
    directed graph `sym` divides by the roots of the row's out-weight and the column's in-weight.

    Args:
        indptr: Row offsets, (N + 1,).
        indices: Columns, (E,).
        weight_E: Positive edge weights; its type is the result's.
        normalisation: `sym` or `rw`.
        self_loops: Whether every node gets a loop of weight 1.
        symmetric: Promise that the adjacency is symmetric.
        backend: Kernels of the result.
    """
    num_nodes = len(indptr) - 1
    nodes = torch.arange(num_nodes, device=indptr.device)
    looped = nodes if self_loops else nodes[indptr.diff() == 0]
    row = torch.cat([torch.repeat_interleave(nodes, indptr.diff()), looped])
    column = torch.cat([indices.long(), looped])
    weight = torch.cat([weight_E, weight_E.new_ones(len(looped))])
    order = torch.argsort(row * num_nodes + column)
    row, column, weight = row[order], column[order], weight[order]
    out_weight_N = weight.new_zeros(num_nodes).index_add_(0, row, weight)
    if normalisation == "rw":
        weight = weight / out_weight_N[row]
    else:
        in_weight_N = weight.new_zeros(num_nodes).index_add_(0, column, weight)
        weight = weight * (out_weight_N[row] * in_weight_N[column]).rsqrt()
    counts = torch.bincount(row, minlength=num_nodes)
    return SparseMatrix(
        torch.cat([counts.new_zeros(1), counts.cumsum(0)]),
        column,
        weight,
        num_nodes,
        symmetric=symmetric and normalisation == "sym",
        backend=backend,
    )


def steps_to_tolerance(teleport: float, tolerance: float) -> int:
    """Fewest steps K that leave at most `tolerance` of the mass, (1 - teleport)^K, on its way."""
    return math.ceil(math.log(tolerance) / math.log1p(-teleport))


class PowerIteration:
    """K steps of B <- (1 - t) S B + t beta from B = beta (APPNP; Klicpera et al., 2019).

    The map is linear, so its gradient is the same iteration with the transposed matrix: nothing is
    kept for the backward pass. As K grows the rows tend to personalised PageRank,
    t (I - (1 - t) S)^-1.

    Args:
        transition: S, from `transition_matrix`.
        teleport: t.
        steps: K.
    """

    def __init__(self, transition: SparseMatrix, *, teleport: float, steps: int) -> None:
        self.transition = transition
        self.teleport = teleport
        self.steps = steps

    def __call__(self, evidence_NC: Tensor) -> Tensor:
        """Aggregated evidence, (N, C) -> (N, C); differentiable."""
        aggregated_NC: Tensor = _Iterate.apply(evidence_NC, self)  # type: ignore[no-untyped-call]
        return aggregated_NC

    def iterate(self, start_NC: Tensor, matrix: SparseMatrix) -> Tensor:
        """The K steps with `matrix`, outside of autograd."""
        current_NC = start_NC.clone()  # autograd wants no alias of its input, even for K = 0
        for _ in range(self.steps):
            current_NC = matrix.multiply_add(
                current_NC, start_NC, scale=1.0 - self.teleport, weight=self.teleport
            )
        return current_NC


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
