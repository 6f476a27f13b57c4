"""Fused log-density of radial flows from distances alone, in chunks that stay in cache.

A radial layer moves z on the line through its centre, z <- (1 + s) z - s c. By Stewart's identity
the squared distance d_j = |z - c_j|^2 to any other centre then becomes

    d_j <- (1 + s) d_j + s (1 + s) d_l - s |c_l - c_j|^2        (after layer l),

so positions are never needed: there are R centres, plus the origin for the base density. With
P = prod (1 + s) and e_j = d_j / P the step is a sum whose second term all centres share,

    e_j <- e_j + s_l e_l - q_l |c_l - c_j|^2,    q_l = s_l / P   (P after layer l),

and one small matrix product per layer gathers it: e_m = e_m(0) + E - sum_{l < m} q_l |c_l - c_m|^2
with E = sum s_l e_l. The log-determinants are two logarithms per node and class, not two per layer:

    log p = -(d_origin + D log 2 pi) / 2 + (D - 1) log P + log prod (1 + a b g^2),

where r = sqrt(d_l), g = 1 / (a + r), s = b g, since b g - b g^2 r = a b g^2.

Shapes: N nodes, M nodes per chunk, C classes, D latent dimensions, R radial layers, J = R + 1
centres with the origin last. Scratch is (layer or centre, C, M): a layer is contiguous, constants
of a class broadcast over long rows, and matrix products see M in unit stride.
"""

import math
from typing import Any

import torch
from torch import Tensor

from gpn_scale.nn.radial_limits import refuse_second_derivatives
from gpn_scale.nn.threads import run_in_order


class _Flow:
    """The parameters, in the shapes that chunks need; shared by all of them."""

    def __init__(self, centre_RCD: Tensor, scale_RC: Tensor, strength_RC: Tensor) -> None:
        self.layers, self.classes, self.latent = centre_RCD.shape
        origin_1CD = centre_RCD.new_zeros(1, self.classes, self.latent)
        # Float64: |z|^2 - 2 z c + |c|^2 cancels in float32 if a position lies close to a centre.
        self.centre_JCD = torch.cat([centre_RCD, origin_1CD]).double()
        flat_KD = self.centre_JCD.flatten(0, 1)
        ones_K1 = flat_KD.new_ones(len(flat_KD), 1)
        square_K1 = flat_KD.square().sum(1, keepdim=True)
        self.to_distance_KD = torch.cat([-2.0 * flat_KD, square_K1, ones_K1], dim=1)
        self.to_latent_KD = torch.cat([flat_KD, ones_K1], dim=1)
        centre_CJD = self.centre_JCD.transpose(0, 1)
        gap_CJJ = (centre_CJD.unsqueeze(2) - centre_CJD.unsqueeze(1)).square().sum(-1)
        dtype = scale_RC.dtype
        # Columns: E, q_0, ..., q_{R-1}. Row m uses the first m + 1 of them.
        weight_CJJ = torch.cat([torch.ones_like(gap_CJJ[..., :1]), -gap_CJJ[..., :-1]], dim=2)
        self.weight_CJJ = weight_CJJ.to(dtype)
        self.scale = scale_RC.unsqueeze(-1).unbind()
        self.strength = strength_RC.unsqueeze(-1).unbind()
        self.product = (scale_RC * strength_RC).unsqueeze(-1).unbind()
        self.twice_scale = (2.0 * scale_RC).unsqueeze(-1).unbind()
        # Radii below the round-off of their squares have no direction, see `_backward_layer`.
        noise_CJ = torch.finfo(dtype).eps * gap_CJJ.tril().amax(-1)
        noise_CJ += torch.finfo(torch.float64).eps * centre_CJD.square().sum(-1)
        self.floor = (4.0 * noise_CJ + 1e-24).sqrt().T.unsqueeze(-1).to(dtype).unbind()
        self.log_normaliser = 0.5 * self.latent * math.log(2.0 * math.pi)

    def zero_sums(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return float64 zeros for the sums of `_Chunk.backward` and `_Chunk.centre_sums`."""
        zeros = self.to_latent_KD.new_zeros
        return (
            zeros(3, self.layers, self.classes),
            zeros(self.to_latent_KD.shape),
            zeros(self.classes, self.layers, self.layers + 1),
        )


class _Chunk:
    """Reusable scratch memory for `rows` nodes; nothing is allocated per layer.

    With `keep`, every layer has its own arrays, as the backward pass needs; otherwise layers share
    one.
    """

    def __init__(self, flow: _Flow, rows: int, *, keep: bool) -> None:
        self.flow, self.keep = flow, keep
        layers, centres = flow.layers, flow.layers + 1
        device, dtype = flow.weight_CJJ.device, flow.weight_CJJ.dtype

        def scratch(count: int, *, of: torch.dtype = dtype) -> Tensor:
            return torch.empty(count, flow.classes, rows, device=device, dtype=of)

        self.z_M = torch.empty(rows, flow.latent + 2, device=device, dtype=torch.float64)
        self.z_M[:, flow.latent] = 1.0
        self.distance_JCM = scratch(centres)
        wide = dtype == torch.float64
        self.wide_JCM = self.distance_JCM if wide else scratch(centres, of=torch.float64)
        self.distance = self.distance_JCM.unbind()
        # E comes before q_0, ..., q_{R-1}, in the order of the columns of the weights.
        self.sum_JCM = scratch(centres)
        self.shift, *self.ratio = self.sum_JCM.unbind()
        kept = layers if keep else 1
        radius, decay, growth = scratch(kept), scratch(kept), scratch(kept + 1 if keep else 1)
        self.radius = [radius[layer % kept] for layer in range(layers)]
        self.decay = [decay[layer % kept] for layer in range(layers)]
        self.growth = [growth[layer % len(growth)] for layer in range(centres)]
        self.pull, self.radial, self.work, self.out = scratch(4).unbind()
        summed_CJM, distance_CJM = self.sum_JCM.transpose(0, 1), self.distance_JCM.transpose(0, 1)
        self.gather = [
            (
                distance_CJM[:, centre : centre + 1],
                flow.weight_CJJ[:, centre : centre + 1, : centre + 1],
                summed_CJM[:, : centre + 1],
            )
            for centre in range(centres)
        ]
        if keep:
            self._allocate_backward(scratch)

    def _allocate_backward(self, scratch: Any) -> None:
        flow, centres = self.flow, self.flow.layers + 1
        self.grad_JCM = scratch(centres)
        self.grad = self.grad_JCM.unbind()
        # In float64 there is no separate wide scratch; gradients need none either.
        if self.wide_JCM is self.distance_JCM:
            self.wide_JCM = self.grad_JCM
        self.wide_grad_KM = self.wide_JCM.flatten(0, 1)
        self.grad_CJM = self.grad_JCM.transpose(0, 1)
        self.ratio_CRM = self.sum_JCM[1:].transpose(0, 1)
        self.grad_out, self.grad_log_growth, self.grad_shift, self.grad_pull = scratch(4).unbind()
        self.grad_radius = scratch(1)[0]
        weight_CJJ = flow.weight_CJJ.transpose(1, 2)
        self.scatter = [
            (
                weight_CJJ[:, layer + 1 : layer + 2, layer + 1 :],
                self.grad_CJM[:, layer + 1 :],
            )
            for layer in range(flow.layers)
        ]

    def of(self, rows: int) -> "_Chunk":
        """Return this scratch, or a smaller one for a last chunk with fewer nodes."""
        return self if rows == len(self.z_M) else _Chunk(self.flow, rows, keep=self.keep)

    def forward(self, z_MD: Tensor) -> Tensor:
        """Return the log-density of the chunk's nodes, (C, M), in scratch memory."""
        flow, latent = self.flow, self.flow.latent
        self.z_M[:, :latent].copy_(z_MD)
        torch.sum(self.z_M[:, :latent].square(), dim=1, out=self.z_M[:, latent + 1])
        start = self.distance_JCM if self.distance_JCM.dtype == torch.float64 else self.wide_JCM
        torch.mm(flow.to_distance_KD, self.z_M.T, out=start.view(-1, len(z_MD)))
        if start is not self.distance_JCM:
            self.distance_JCM.copy_(start)
        self.shift.zero_()
        self.growth[0].fill_(1.0)
        self.radial.fill_(1.0)
        for layer in range(flow.layers):
            self._forward_layer(layer)
        self._gather(flow.layers)
        square = torch.mul(self.distance[-1], self.growth[-1], out=self.out).clamp_min_(0.0)
        log_growth = torch.log(self.growth[-1], out=self.work)
        out = square.mul_(-0.5).sub_(flow.log_normaliser).add_(log_growth, alpha=latent - 1)
        return out.add_(torch.log(self.radial, out=self.work))

    def _gather(self, centre: int) -> None:
        """Update e_m from its start value and all layers before m."""
        if centre:
            target_C1M, weight_C1J, summed_CJM = self.gather[centre]
            target_C1M.baddbmm_(weight_C1J, summed_CJM)

    def _forward_layer(self, layer: int) -> None:
        flow, pull, work = self.flow, self.pull, self.work
        distance, radius, decay = self.distance[layer], self.radius[layer], self.decay[layer]
        growth, grown = self.growth[layer], self.growth[layer + 1]
        self._gather(layer)
        # Round-off may make a square negative.
        torch.mul(distance, growth, out=radius).clamp_min_(0.0).sqrt_()
        torch.add(radius, flow.scale[layer], out=decay).reciprocal_()
        torch.mul(decay, flow.strength[layer], out=pull)
        torch.mul(decay, pull, out=work).mul_(flow.scale[layer])
        self.radial.addcmul_(self.radial, work)
        torch.addcmul(growth, growth, pull, out=grown)
        self.shift.addcmul_(pull, distance)
        torch.div(pull, grown, out=self.ratio[layer])

    def backward(self, grad_MC: Tensor) -> Tensor:
        """Write the gradients of the chunk's start distances into scratch; needs `keep`.

        In the notation of the module, ^ for adjoints, L for log P and G for the incoming gradient:

            q^  = -sum_{j > m} e_j^ |c_m - c_j|^2,   L^ -= q^ q
            s^  = (q^ + L^ P_m) / P_{m+1} + E^ e
            w   = G g^2 / (1 + a b g^2),   y = s^ g,   u = s (y + 2 a w) = -r^
            a^  = b sum w - sum u,   b^ = sum y + a sum w
            e^  = E^ s - u P_m / (2 r),   L^ -= u r / 2,   E^ += e^

        Args:
            grad_MC: The incoming gradient G of the chunk's nodes.

        Returns:
            Sums of w, y, u over nodes, (3, R, C).
        """
        flow, work = self.flow, self.work
        sums_3RC = work.new_empty(3, flow.layers, flow.classes)
        self.grad_out.copy_(grad_MC.T)
        grown = self.growth[-1]
        torch.mul(self.grad_out, grown, out=self.grad[-1]).mul_(-0.5)
        torch.mul(self.distance[-1], grown, out=work).clamp_min_(0.0).mul_(-0.5)
        torch.mul(work.add_(flow.latent - 1), self.grad_out, out=self.grad_log_growth)
        self.grad_shift.copy_(self.grad[-1])
        for layer in reversed(range(flow.layers)):
            self._backward_layer(layer, sums_3RC[:, layer])
        if self.wide_JCM is not self.grad_JCM:
            self.wide_JCM.copy_(self.grad_JCM)
        return sums_3RC

    def _backward_layer(self, layer: int, sums_3C: Tensor) -> None:
        flow, pull, work, weighted = self.flow, self.pull, self.work, self.out
        decay, radius, growth = self.decay[layer], self.radius[layer], self.growth[layer]
        grad_pull, grad_radius, grad = self.grad_pull, self.grad_radius, self.grad[layer]
        torch.bmm(*self.scatter[layer], out=grad_pull.unsqueeze(1))
        self.grad_log_growth.addcmul_(grad_pull, self.ratio[layer], value=-1.0)
        grad_pull.addcmul_(self.grad_log_growth, growth).div_(self.growth[layer + 1])
        grad_pull.addcmul_(self.grad_shift, self.distance[layer])

        torch.mul(decay, decay, out=weighted)
        torch.mul(weighted, flow.product[layer], out=work).add_(1.0)
        weighted.div_(work).mul_(self.grad_out)
        torch.sum(weighted, -1, out=sums_3C[0])
        torch.mul(grad_pull, decay, out=grad_radius)
        torch.sum(grad_radius, -1, out=sums_3C[1])
        torch.mul(decay, flow.strength[layer], out=pull)
        grad_radius.addcmul_(weighted, flow.twice_scale[layer]).mul_(pull)
        torch.sum(grad_radius, -1, out=sums_3C[2])

        self.grad_log_growth.addcmul_(grad_radius, radius, value=-0.5)
        # The direction (z - c) / r is a unit vector, but a radius that is only round-off would
        # stretch it without bound; at 0 the gradient is 0, like that of a norm. Round-off grows
        # with the map.
        torch.add(growth, 1.0, out=work).mul_(flow.floor[layer])
        grad_radius.div_(torch.maximum(radius, work, out=work)).mul_(growth)
        torch.mul(self.grad_shift, pull, out=grad).add_(grad_radius, alpha=-0.5)
        self.grad_shift.add_(grad)

    def latent_gradient(self) -> Tensor:
        """Return sum_j 2 e_j^ (z - c_j) after `backward`, float64, (M, D)."""
        sum_MD = self.wide_grad_KM.T @ self.flow.to_latent_KD
        own_MD = self.z_M[:, : self.flow.latent] * sum_MD[:, -1:]
        return own_MD.sub_(sum_MD[:, :-1]).mul_(2.0)

    def centre_sums(self) -> tuple[Tensor, Tensor]:
        """Return sum_n e_j^ [z, 1] and sum_n q_l e_j^ after `backward`; (J C, D + 1), (C, R, J)."""
        start_KD = self.wide_grad_KM @ self.z_M[:, : self.flow.latent + 1]
        return start_KD, self.ratio_CRM @ self.grad_CJM.transpose(1, 2)


def _parts(nodes: int, rows: int) -> list[slice]:
    return [slice(first, min(first + rows, nodes)) for first in range(0, nodes, rows)]


class RadialLogDensity(torch.autograd.Function):
    """Maps z_ND, centre_RCD, scale_RC, strength_RC to log p(z | c)_NC; R must be at least 1.

    Computes in the floating-point type of the parameters, which must be at least as wide as that
    of z. Only the inputs are saved: the backward pass recomputes each chunk and cannot itself be
    differentiated. For second derivatives, use `RadialFlow.log_density`.

    Chunks of `rows` nodes run on as many threads as torch has in the calling thread, at most
    `workers`, each with its own scratch. Their sums are added in the order of the chunks, so
    values and gradients are bitwise equal for any number of threads.

    >>> centre_RCD, scale_RC = torch.zeros(1, 2, 3), torch.ones(1, 2)
    >>> none_RC = torch.zeros(1, 2)  # no strength: a standard normal, -1.5 log(2 pi) at 0
    >>> RadialLogDensity.apply(torch.zeros(1, 3), centre_RCD, scale_RC, none_RC, 8, 1)
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
        workers: int,
    ) -> Tensor:
        """Return log p(z | c), (N, D) -> (N, C), computed `rows` nodes at a time."""
        ctx.save_for_backward(z_ND, centre_RCD, scale_RC, strength_RC)
        ctx.rows, ctx.workers = rows, workers
        flow = _Flow(centre_RCD, scale_RC, strength_RC)
        out_NC = scale_RC.new_empty(len(z_ND), flow.classes)

        def fill(chunk: _Chunk, part: slice) -> None:
            z_MD = z_ND[part]
            out_NC[part] = chunk.of(len(z_MD)).forward(z_MD).T

        run_in_order(
            fill,
            _parts(len(z_ND), rows),
            lambda _: None,
            scratch=lambda: _Chunk(flow, min(rows, len(z_ND)), keep=False),
            device=z_ND.device,
            workers=workers,
        )
        return out_NC

    @staticmethod
    def backward(ctx: Any, grad_NC: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of z, centres, scales and strengths.

        Raises:
            NotImplementedError: `create_graph=True` was requested, which would be silently wrong.
        """
        refuse_second_derivatives()
        z_ND, centre_RCD, scale_RC, strength_RC = ctx.saved_tensors
        needs_z, *needs_parameter, _, _ = ctx.needs_input_grad
        flow = _Flow(centre_RCD, scale_RC, strength_RC)
        grad_z_ND = torch.empty_like(z_ND) if needs_z else None

        def differentiate(chunk: _Chunk, part: slice) -> tuple[Tensor, ...]:
            z_MD = z_ND[part]
            chunk = chunk.of(len(z_MD))
            chunk.forward(z_MD)
            sums_3RC = chunk.backward(grad_NC[part])
            if grad_z_ND is not None:
                grad_z_ND[part] = chunk.latent_gradient()
            return (sums_3RC, *chunk.centre_sums()) if any(needs_parameter) else ()

        totals = flow.zero_sums()

        def add(sums: tuple[Tensor, ...]) -> None:
            for total, own in zip(totals, sums, strict=False):
                total += own

        run_in_order(
            differentiate,
            _parts(len(z_ND), ctx.rows),
            add,
            scratch=lambda: _Chunk(flow, min(ctx.rows, len(z_ND)), keep=True),
            device=z_ND.device,
            workers=ctx.workers,
        )
        if not any(needs_parameter):
            return grad_z_ND, None, None, None, None, None
        (weighted_RC, grad_pull_RC, grad_radius_RC), start_KD, pairs_CRJ = totals
        return (
            grad_z_ND,
            _centre_gradient(flow, start_KD, pairs_CRJ).to(centre_RCD.dtype),
            (strength_RC * weighted_RC - grad_radius_RC).to(scale_RC.dtype),
            (scale_RC * weighted_RC + grad_pull_RC).to(scale_RC.dtype),
            None,
            None,
        )


def _centre_gradient(flow: _Flow, start_KD: Tensor, pairs_CRJ: Tensor) -> Tensor:
    """Return the gradient of the centres, (R, C, D), from sum_n e_j^ [z, 1] and sum_n q_l e_j^.

    Centres act through the start distances, 2 sum e_j^ (c_j - z), and through the squared distances
    of pairs l < j, whose adjoint is -sum_n q_l e_j^.
    """
    start_JCD = start_KD.view(flow.layers + 1, flow.classes, -1)
    direct_JCD = flow.centre_JCD * start_JCD[..., -1:] - start_JCD[..., :-1]
    pair_CJJ = torch.nn.functional.pad(-pairs_CRJ.triu(1), (0, 0, 0, 1))
    pair_CJJ = pair_CJJ + pair_CJJ.transpose(1, 2)
    centre_CJD = flow.centre_JCD.transpose(0, 1)
    mutual_CJD = pair_CJJ.sum(-1, keepdim=True) * centre_CJD - pair_CJJ @ centre_CJD
    return 2.0 * (direct_JCD + mutual_CJD.transpose(0, 1))[:-1]
