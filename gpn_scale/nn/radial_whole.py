"""Log-density of radial flows for all nodes at once, in few operations, for GPUs.

The mathematics is that of `nn/radial.py`. What differs is the division of the work: a CPU takes
small chunks whose arrays stay in its cache, and computes the forward pass again for the backward
pass. A GPU waits for every single operation to be launched, so here an operation takes all nodes
that fit into memory, the forward pass keeps its arrays, and what does not depend on the previous
layer is computed for all layers together. A layer then takes nine operations forward and eight
backward.

In the notation of `nn/radial.py`, ^ for adjoints, L for log P, G for the incoming gradient, h for
P_m / r and v for u / s, a layer's backward step is

    L^ -= q^ q,    v = 2 a w + q^ (g / P_{m+1}) + L^ (g P_m / P_{m+1}) + E^ (e g),
    e^ = E^ s - v (s h) / 2,    L^ -= v (s r) / 2,    E^ += e^,

after which a^ = b sum w - sum s v and b^ = sum v - a sum w.

Shapes: N nodes, M nodes at a time, C classes, D latent dimensions, R radial layers, J = R + 1
centres with the origin last. Arrays are (C, layer or centre, M).
"""

import math
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from gpn_scale.nn.radial_limits import refuse_second_derivatives


class _Flow:
    """The parameters, in the shapes that the passes need."""

    def __init__(self, centre_RCD: Tensor, scale_RC: Tensor, strength_RC: Tensor) -> None:
        self.layers, self.classes, self.latent = centre_RCD.shape
        self.dtype = scale_RC.dtype
        # Float64, because |z|^2 - 2 z c + |c|^2 cancels if a position lies close to a centre.
        self.centre_CJD = pad(centre_RCD.transpose(0, 1).double(), (0, 0, 0, 1))
        self.centre_KD = self.centre_CJD.flatten(0, 1)
        self.square_K1 = self.centre_KD.square().sum(1, keepdim=True)
        apart = torch.cdist(
            self.centre_CJD, self.centre_CJD, compute_mode="donot_use_mm_for_euclid_dist"
        )
        gap_CJJ = apart.square().to(self.dtype)
        # Columns: E, q_0, ..., q_{R-1}.
        self.weight_CJJ = pad(-gap_CJJ[..., :-1], (1, 0), value=1.0)
        self.scale_CR1 = scale_RC.T.unsqueeze(-1)
        self.strength_CR1 = strength_RC.T.unsqueeze(-1)
        self.scale = self.scale_CR1.unbind(1)
        self.strength = self.strength_CR1.unbind(1)
        self.product_CR1 = self.scale_CR1 * self.strength_CR1
        # Radii below the round-off of their squares have no direction, see `nn/radial.py`.
        noise_CJ = self.square_K1.view(self.classes, -1) * (4.0 * torch.finfo(torch.float64).eps)
        largest_CJ = gap_CJJ.tril().amax(-1)
        noise_CJ.add_(largest_CJ, alpha=4.0 * torch.finfo(self.dtype).eps).add_(1e-24)
        self.floor_CR1 = noise_CJ[:, :-1].sqrt().to(self.dtype).unsqueeze(-1)
        self.log_normaliser = 0.5 * self.latent * math.log(2.0 * math.pi)


@dataclass(frozen=True, slots=True, eq=False)
class _Forward:
    """The forward pass of some nodes, with all that the backward pass needs."""

    flow: _Flow
    z_MD: Tensor
    """Positions, in float64."""
    distance_CJM: Tensor
    """e of every centre, when its layer comes."""
    sum_CJM: Tensor
    """E after all layers, then q of every layer."""
    radius_CRM: Tensor
    decay_CRM: Tensor
    """g of every layer."""
    pull_CRM: Tensor
    """s of every layer."""
    growth_CJM: Tensor
    """P before every layer, and after all."""
    square_CM: Tensor
    """Squared distance to the origin after all layers."""

    @classmethod
    def of(cls, flow: _Flow, z_MD: Tensor) -> "_Forward":
        """Run all layers on the positions, (M, D)."""
        z_MD = z_MD.double()
        square_M = z_MD.square().sum(1)
        start_KM = torch.addmm(square_M, flow.centre_KD, z_MD.T, alpha=-2.0).add_(flow.square_K1)
        distance_CJM = start_KM.view(*flow.centre_CJD.shape[:2], len(z_MD)).to(flow.dtype)
        sum_CJM = torch.zeros_like(distance_CJM)
        growth_CJM = torch.ones_like(distance_CJM)
        radius_CRM, decay_CRM, pull_CRM = (torch.empty_like(sum_CJM[:, 1:]) for _ in range(3))
        _run_layers(flow, distance_CJM, sum_CJM, growth_CJM, (radius_CRM, decay_CRM, pull_CRM))
        decay_CRM.reciprocal_()
        square_CM = (distance_CJM[:, -1] * growth_CJM[:, -1]).clamp_min_(0.0)
        arrays = distance_CJM, sum_CJM, radius_CRM, decay_CRM, pull_CRM, growth_CJM, square_CM
        return cls(flow, z_MD, *arrays)

    def log_density(self) -> Tensor:
        """Return the log-density of the nodes, (C, M)."""
        flow, decay_CRM = self.flow, self.decay_CRM
        radial_CM = (decay_CRM * decay_CRM).mul_(flow.product_CR1).log1p_().sum(1)
        log_growth_CM = self.growth_CJM[:, -1].log()
        out_CM = radial_CM.add_(log_growth_CM, alpha=flow.latent - 1)
        return out_CM.add_(self.square_CM, alpha=-0.5).sub_(flow.log_normaliser)


def _run_layers(
    flow: _Flow,
    distance_CJM: Tensor,
    sum_CJM: Tensor,
    growth_CJM: Tensor,
    layer_arrays: tuple[Tensor, Tensor, Tensor],
) -> None:
    """Write e, E and q, P, and r, 1 / g, s of every layer."""
    target_C1M, distance = distance_CJM.unsqueeze(2).unbind(1), distance_CJM.unbind(1)
    weight_C1J, growth = flow.weight_CJJ.unsqueeze(2).unbind(1), growth_CJM.unbind(1)
    shift, *ratio = sum_CJM.unbind(1)
    radius, reach, pull = (each.unbind(1) for each in layer_arrays)
    for layer in range(flow.layers):
        if layer:
            target_C1M[layer].baddbmm_(weight_C1J[layer], sum_CJM)
        # Round-off may make a square negative.
        torch.mul(distance[layer], growth[layer], out=radius[layer]).clamp_min_(0.0).sqrt_()
        torch.add(radius[layer], flow.scale[layer], out=reach[layer])
        torch.div(flow.strength[layer], reach[layer], out=pull[layer])
        torch.addcmul(growth[layer], growth[layer], pull[layer], out=growth[layer + 1])
        shift.addcmul_(pull[layer], distance[layer])
        torch.div(pull[layer], growth[layer + 1], out=ratio[layer])
    target_C1M[-1].baddbmm_(weight_C1J[-1], sum_CJM)


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    """Sums over nodes from which the gradients of the parameters follow, in float64."""

    weighted_CR: Tensor
    """Sum of w."""
    pull_CR: Tensor
    """Sum of v."""
    radius_CR: Tensor
    """Sum of u = s v."""
    start_KD: Tensor
    """Sum of e^ z."""
    start_K1: Tensor
    """Sum of e^."""
    pairs_CRJ: Tensor
    """Sum of q_l e_j^."""

    def plus(self, other: "_Sums") -> "_Sums":
        """Return the sums over the nodes of both."""
        names = [field.name for field in fields(self)]
        return _Sums(**{name: getattr(self, name) + getattr(other, name) for name in names})

    def parameter_gradients(self, flow: _Flow) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients of centres, scales and strengths: (R, C, D), (R, C), (R, C)."""
        scale_CR, strength_CR = flow.scale_CR1.squeeze(-1), flow.strength_CR1.squeeze(-1)
        grad_scale_CR = (strength_CR * self.weighted_CR).sub_(self.radius_CR)
        grad_strength_CR = torch.addcmul(self.pull_CR, scale_CR, self.weighted_CR, value=-1.0)
        direct_KD = (flow.centre_KD * self.start_K1).sub_(self.start_KD)
        pair_CJJ = pad(self.pairs_CRJ.triu(1), (0, 0, 0, 1))
        pair_CJJ = pair_CJJ + pair_CJJ.transpose(1, 2)
        # The adjoint of a squared distance between two centres is -sum q_l e_j^.
        mutual_CJD = torch.baddbmm(
            direct_KD.view_as(flow.centre_CJD), pair_CJJ, flow.centre_CJD
        ).addcmul_(pair_CJJ.sum(-1, keepdim=True), flow.centre_CJD, value=-1.0)
        grad_centre_RCD = mutual_CJD[:, :-1].transpose(0, 1).mul(2.0)
        return (
            grad_centre_RCD.to(flow.dtype, memory_format=torch.contiguous_format),
            # Contiguous, since a strided gradient would be copied once for every layer.
            grad_scale_CR.T.to(flow.dtype, memory_format=torch.contiguous_format),
            grad_strength_CR.T.to(flow.dtype, memory_format=torch.contiguous_format),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Backward:
    """The gradients of some nodes' start distances, and sums for those of the parameters."""

    forward: _Forward
    weighted_CR: Tensor
    slope_CRM: Tensor
    """v of every layer."""
    grad_CJM: Tensor
    """e^ of every centre."""

    @classmethod
    def of(cls, forward: _Forward, grad_CM: Tensor) -> "_Backward":
        """Differentiate a forward pass; `grad_CM` is the incoming gradient G."""
        flow, growth_CJM = forward.flow, forward.growth_CJM
        decay_CRM, pull_CRM = forward.decay_CRM, forward.pull_CRM
        square_CRM = decay_CRM * decay_CRM
        weighted_CRM = square_CRM / (square_CRM * flow.product_CR1).add_(1.0)
        del square_CRM
        weighted_CRM.mul_(grad_CM.unsqueeze(1))
        weighted_CR = weighted_CRM.sum(-1, dtype=torch.float64)
        slope_CRM = weighted_CRM.mul_(2.0 * flow.scale_CR1)
        by_ratio_CRM = decay_CRM / growth_CJM[:, 1:]
        by_growth_CRM = by_ratio_CRM * growth_CJM[:, :-1]
        by_shift_CRM = decay_CRM * forward.distance_CJM[:, :-1]
        # First the factor of L^, then that of e^; rows of one layer are neighbours.
        step_CR2M = decay_CRM.new_empty(*pull_CRM.shape[:2], 2, pull_CRM.shape[2])
        torch.mul(pull_CRM, forward.radius_CRM, out=step_CR2M[:, :, 0])
        least_CRM = torch.addcmul(flow.floor_CR1, growth_CJM[:, :-1], flow.floor_CR1)
        torch.maximum(least_CRM, forward.radius_CRM, out=least_CRM)
        torch.div(growth_CJM[:, :-1], least_CRM, out=least_CRM)
        torch.mul(least_CRM, pull_CRM, out=step_CR2M[:, :, 1])
        del least_CRM
        factors = by_ratio_CRM, by_growth_CRM, by_shift_CRM, step_CR2M
        grad_CJM = _run_layers_back(forward, grad_CM, slope_CRM, factors)
        return cls(forward, weighted_CR, slope_CRM, grad_CJM)

    def latent_gradient(self, wide_KM: Tensor) -> Tensor:
        """Return the gradient of the positions, (M, D), given e^ in float64, (C J, M)."""
        own_MD = self.forward.z_MD * wide_KM.sum(0).unsqueeze(1)
        return own_MD.addmm_(wide_KM.T, self.forward.flow.centre_KD, alpha=-1.0).mul_(2.0)

    def sums(self, wide_KM: Tensor) -> _Sums:
        """Return the sums over nodes, given e^ in float64, (C J, M)."""
        forward, slope_CRM = self.forward, self.slope_CRM
        pairs_CRJ = torch.bmm(forward.sum_CJM[:, 1:], self.grad_CJM.transpose(1, 2))
        return _Sums(
            weighted_CR=self.weighted_CR,
            pull_CR=slope_CRM.sum(-1, dtype=torch.float64),
            radius_CR=(slope_CRM * forward.pull_CRM).sum(-1, dtype=torch.float64),
            start_KD=wide_KM @ forward.z_MD,
            start_K1=wide_KM.sum(1, keepdim=True),
            pairs_CRJ=pairs_CRJ.double(),
        )


def _run_layers_back(
    forward: _Forward,
    grad_CM: Tensor,
    slope_CRM: Tensor,
    factors: tuple[Tensor, Tensor, Tensor, Tensor],
) -> Tensor:
    """Write v into `slope_CRM`, which holds 2 a w, and return e^ of every centre, (C, J, M)."""
    flow, growth_CM = forward.flow, forward.growth_CJM[:, -1]
    classes, centres, nodes = forward.sum_CJM.shape
    # Row m + 1 is e^ of centre m; until that is known, it holds L^, which moves down row by row.
    state_CSM = forward.sum_CJM.new_zeros(classes, centres + 1, nodes)
    row, grad_CJM = state_CSM.unbind(1), state_CSM[:, 1:]
    torch.mul(grad_CM, growth_CM, out=row[-1]).mul_(-0.5)
    left_CM = torch.rsub(forward.square_CM, flow.latent - 1, alpha=0.5)
    torch.mul(left_CM, grad_CM, out=row[-2])
    grad_shift_CM = row[-1].clone()
    column_C1J = flow.weight_CJJ.transpose(1, 2).unsqueeze(2).unbind(1)
    ratio, pull, slope = (
        each.unbind(1) for each in (forward.sum_CJM[:, 1:], forward.pull_CRM, slope_CRM)
    )
    by_ratio, by_growth, by_shift, step = (each.unbind(1) for each in factors)
    for layer in reversed(range(flow.layers)):
        # The rows of earlier centres are 0, and so is the distance of this centre to itself.
        grad_ratio = torch.bmm(column_C1J[layer + 1], grad_CJM).squeeze(1)
        torch.addcmul(row[layer + 1], grad_ratio, ratio[layer], value=-1.0, out=row[layer])
        slope[layer].addcmul_(grad_ratio, by_ratio[layer])
        slope[layer].addcmul_(row[layer], by_growth[layer])
        slope[layer].addcmul_(grad_shift_CM, by_shift[layer])
        torch.mul(grad_shift_CM, pull[layer], out=row[layer + 1])
        both_C2M = state_CSM[:, layer : layer + 2]
        both_C2M.addcmul_(slope[layer].unsqueeze(1), step[layer], value=-0.5)
        grad_shift_CM += row[layer + 1]
    return grad_CJM


class WholeRadialLogDensity(torch.autograd.Function):
    """Maps z_ND, centre_RCD, scale_RC, strength_RC to log p(z | c)_NC; R must be at least 1.

    It computes what `RadialLogDensity` does, `rows` nodes at a time. If all nodes fit, the forward
    pass keeps its arrays for the backward pass; otherwise each part is computed again.

    >>> centre_RCD, scale_RC = torch.zeros(1, 2, 3), torch.ones(1, 2)
    >>> none_RC = torch.zeros(1, 2)  # no strength: a standard normal, -1.5 log(2 pi) at 0
    >>> WholeRadialLogDensity.apply(torch.zeros(1, 3), centre_RCD, scale_RC, none_RC, 8)
    tensor([[-2.7568, -2.7568]])
    """

    @staticmethod
    def forward(
        ctx: Any,
        z_ND: Tensor,
        centre_RCD: Tensor,
        scale_RC: Tensor,
        strength_RC: Tensor,
        rows: int,
    ) -> Tensor:
        """Return log p(z | c), (N, D) -> (N, C)."""
        flow = _Flow(centre_RCD, scale_RC, strength_RC)
        ctx.flow, ctx.rows, ctx.kept = flow, rows, None
        ctx.save_for_backward(z_ND)
        if len(z_ND) > rows:
            parts = [
                _Forward.of(flow, part_MD).log_density() for part_MD in torch.split(z_ND, rows)
            ]
            return torch.cat(parts, dim=1).T
        whole = _Forward.of(flow, z_ND)
        ctx.kept = whole if any(ctx.needs_input_grad) else None
        return whole.log_density().T

    @staticmethod
    def backward(ctx: Any, grad_NC: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of z, centres, scales and strengths.

        Raises:
            NotImplementedError: `create_graph=True` was requested, which would be silently wrong.
        """
        refuse_second_derivatives()
        (z_ND,) = ctx.saved_tensors
        needs_z, *needs_parameter, _ = ctx.needs_input_grad
        flow, whole, ctx.kept = ctx.flow, ctx.kept, None
        latents: list[Tensor] = []
        total: _Sums | None = None

        def differentiate(part_MD: Tensor, grad_MC: Tensor) -> tuple[Tensor | None, _Sums | None]:
            # A function, so that the arrays of one part are freed before the next one begins.
            forward = whole or _Forward.of(flow, part_MD)
            backward = _Backward.of(forward, grad_MC.T.to(flow.dtype).contiguous())
            wide_KM = backward.grad_CJM.double().flatten(0, 1)
            latent_MD = backward.latent_gradient(wide_KM).to(z_ND.dtype) if needs_z else None
            return latent_MD, backward.sums(wide_KM) if any(needs_parameter) else None

        parts = torch.split(z_ND, ctx.rows), torch.split(grad_NC, ctx.rows)
        for part_MD, grad_MC in zip(*parts, strict=True):
            latent_MD, sums = differentiate(part_MD, grad_MC)
            if latent_MD is not None:
                latents.append(latent_MD)
            if sums is not None:
                total = sums if total is None else total.plus(sums)
        grad_z_ND = _joined(latents) if needs_z else None
        if total is None:
            return grad_z_ND, None, None, None, None
        return grad_z_ND, *total.parameter_gradients(flow), None


def _joined(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)
