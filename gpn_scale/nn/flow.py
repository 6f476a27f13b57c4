"""Radial flows: the log-density of a latent position under every class.

Shapes: N nodes, C classes, D latent dimensions, R radial layers.
"""

import math
import warnings

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus
from torch.utils.checkpoint import checkpoint

from gpn_scale.device import device_rule, scratch_bytes
from gpn_scale.nn.radial import RadialLogDensity
from gpn_scale.nn.radial_compiled import (
    LayerFunction,
    compiled_layers,
    compiled_log_density,
    has_compiler,
)
from gpn_scale.nn.radial_limits import (
    chunk_rows,
    has_few_layers,
    is_representable,
    scratch_bytes_per_row,
    whole_bytes_per_row,
)
from gpn_scale.nn.radial_whole import WholeRadialLogDensity

_FUSED_FROM = 3
"""Smallest latent dimension for which the fused computation is precise enough in float32.

In one dimension, positions often come so close to a centre that the squared distance cancels. With
wide random flows, 1 in 4 missed the tolerance of the tests at D = 1, 1 in 100 at D = 2, none at 3.
"""
_CHECKED_EVERY = 16
"""Training steps per check of the parameters' range where the host must not wait for the device.

Adam moves a raw parameter by about the learning rate per step, and the check leaves half of the
range of exponents (44 in float32), so that 10 layers stay within it for rates of up to 0.1."""
_SAVED_PER_LAYER = 4
"""(N, C, D) arrays that autograd keeps per radial layer: offset, its norm's input, product, sum."""


class RadialLayer(nn.Module):
    """One radial map per class (Rezende & Mohamed, 2015): z_NCD -> (y_NCD, log_det_NC).

    y = z + b g (z - c), g = 1 / (a + |z - c|), a = softplus(a') and b = softplus(b') - a, so that
    b > -a and the map is invertible.

    >>> layer = RadialLayer(num_classes=2, latent=3, generator=torch.Generator().manual_seed(1))
    >>> y_NCD, log_det_NC = layer(torch.zeros(5, 2, 3))
    >>> y_NCD.shape, log_det_NC.shape
    (torch.Size([5, 2, 3]), torch.Size([5, 2]))
    """

    def __init__(self, num_classes: int, latent: int, generator: torch.Generator) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(latent)

        def uniform(*shape: int) -> nn.Parameter:
            return nn.Parameter(
                nn.init.uniform_(torch.empty(shape), -bound, bound, generator=generator)
            )

        self.centre_CD = uniform(num_classes, latent)
        self.raw_scale_C = uniform(num_classes)
        self.raw_strength_C = uniform(num_classes)

    def constrained(self) -> tuple[Tensor, Tensor]:
        """Return the radial scale a > 0 and the strength b > -a; (C,), (C,)."""
        radial_scale_C = softplus(self.raw_scale_C)
        return radial_scale_C, softplus(self.raw_strength_C) - radial_scale_C

    def forward(self, z_NCD: Tensor) -> tuple[Tensor, Tensor]:
        """Return the image (N, C, D) and log |det J| (N, C)."""
        radial_scale_C, radial_strength_C = self.constrained()
        offset_NCD = z_NCD - self.centre_CD
        radius_NC = offset_NCD.norm(dim=-1)
        decay_NC = 1.0 / (radial_scale_C + radius_NC)
        pull_NC = radial_strength_C * decay_NC
        tangential_NC = torch.log1p(pull_NC)
        radial_NC = torch.log1p(pull_NC - pull_NC * decay_NC * radius_NC)
        log_det_NC = (z_NCD.shape[-1] - 1) * tangential_NC + radial_NC
        return z_NCD + pull_NC.unsqueeze(-1) * offset_NCD, log_det_NC


class RadialFlow(nn.Module):
    """Density of a latent position under each class: z_ND -> log p(z | c)_NC.

    R radial layers per class map the data to a standard normal. `forward` works on distances to
    the centres, in small chunks of nodes that the backward pass recomputes (`nn/radial.py`), so
    memory does not grow with N x C x R; each thread takes whole chunks. It can be differentiated
    once. On a GPU, it takes all nodes at once instead (`nn/radial_whole.py`), as far as memory
    allows. `log_density` computes the same from positions, without fusing: it can be differentiated
    twice. `forward` falls back to it, in chunks, if the latent space has fewer than 3 dimensions,
    if parameters are so extreme that products over layers could overflow, or if there are so many
    layers that differences between all centres would take more than 256 MiB.

    >>> sizes, source = {"num_classes": 3, "latent": 2}, torch.Generator().manual_seed(1)
    >>> normal = RadialFlow(**sizes, radial_layers=0, memory_mib=1, generator=source)
    >>> normal(torch.zeros(1, 2))  # without layers, a standard normal: -log(2 pi) at 0
    tensor([[-1.8379, -1.8379, -1.8379]])

    Args:
        num_classes: C, the number of classes.
        latent: D, the latent dimension.
        radial_layers: R, the number of radial layers.
        memory_mib: Scratch memory that all active chunks may take together on a CPU. Each thread
            has a chunk of about 10 MiB; fewer threads run if their chunks do not fit.
        generator: Source of the initial values.
        compiled: Whether `torch.compile` fuses the layers in training mode; without a C++ compiler,
            a warning says that it does not. Evaluation mode never compiles, so that validation and
            prediction, whose number of nodes differs, do not wait for it.
    """

    def __init__(
        self,
        *,
        num_classes: int,
        latent: int,
        radial_layers: int,
        memory_mib: int,
        generator: torch.Generator,
        compiled: bool = False,
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            RadialLayer(num_classes, latent, generator) for _ in range(radial_layers)
        )
        self.num_classes = num_classes
        self.latent = latent
        self.memory_bytes = memory_mib << 20
        self.compiled = compiled and _can_compile()
        self._compiled_layers: LayerFunction | None = None
        self._steps_checked = 0
        self._was_representable = False

    def train(self, mode: bool = True) -> "RadialFlow":
        """Set training or evaluation mode; the next step checks the range of the parameters."""
        self._steps_checked = 0
        super().train(mode)
        return self

    def forward(self, z_ND: Tensor) -> Tensor:
        """Return log p(z | c), (N, D) -> (N, C)."""
        if not self.layers:
            return self.log_density(z_ND)
        few = has_few_layers(self.num_classes, self.latent, len(self.layers))
        if self.latent < _FUSED_FROM or not few:
            return self.chunked_log_density(z_ND)
        layers = [layer for layer in self.layers if isinstance(layer, RadialLayer)]
        dtype = torch.promote_types(z_ND.dtype, layers[0].centre_CD.dtype)
        wide = torch.promote_types(dtype, torch.float32)  # products over layers need the range
        centre_RCD = torch.stack([layer.centre_CD for layer in layers]).to(wide)
        radial_scale_RC = softplus(torch.stack([layer.raw_scale_C for layer in layers]).to(wide))
        raw_strength_RC = torch.stack([layer.raw_strength_C for layer in layers]).to(wide)
        radial_strength_RC = softplus(raw_strength_RC) - radial_scale_RC
        has_float64 = z_ND.device.type != "mps"
        if not (has_float64 and self._is_representable(radial_scale_RC, radial_strength_RC)):
            return self.chunked_log_density(z_ND)
        parameters = centre_RCD, radial_scale_RC, radial_strength_RC
        log_density_NC: Tensor
        if self.compiled and self.training:  # compiling takes longer than predicting
            log_density_NC = self._compiled_log_density(z_ND, *parameters)
        elif device_rule(z_ND.device).whole_rows:
            log_density_NC = WholeRadialLogDensity.apply(  # type: ignore[no-untyped-call]
                z_ND, *parameters, self.whole_rows(z_ND.device, wide)
            )
        else:
            log_density_NC = RadialLogDensity.apply(  # type: ignore[no-untyped-call]
                z_ND, *parameters, self.fused_rows(wide), self.fused_workers(wide)
            )
        return log_density_NC.to(dtype)

    def _is_representable(self, radial_scale_RC: Tensor, radial_strength_RC: Tensor) -> bool:
        """Return whether the fused computation can be used; training on a GPU asks now and then.

        The answer is a number on the device, and asking for it waits until the device is done.
        """
        ahead = self.training and device_rule(radial_scale_RC.device).runs_ahead
        if not ahead or self._steps_checked % _CHECKED_EVERY == 0:
            self._was_representable = is_representable(radial_scale_RC, radial_strength_RC)
        self._steps_checked += 1
        return self._was_representable

    def _compiled_log_density(
        self, z_ND: Tensor, centre_RCD: Tensor, scale_RC: Tensor, strength_RC: Tensor
    ) -> Tensor:
        if self._compiled_layers is None:
            self._compiled_layers = compiled_layers(z_ND.device)
        rows, layers = self.fused_rows(scale_RC.dtype), self._compiled_layers
        if device_rule(z_ND.device).whole_rows:  # compiled for any number of nodes
            rows = min(max(1, len(z_ND)), self.whole_rows(z_ND.device, scale_RC.dtype))
        return compiled_log_density(z_ND, centre_RCD, scale_RC, strength_RC, rows, layers)

    def whole_rows(self, device: torch.device, dtype: torch.dtype) -> int:
        """Return the nodes that the device's share of memory holds at once, at least 1."""
        row = whole_bytes_per_row(self.num_classes, self.latent, len(self.layers), dtype.itemsize)
        return max(1, scratch_bytes(device) // row)

    def fused_rows(self, dtype: torch.dtype) -> int:
        """Return the nodes per chunk of the fused computation: what the cache holds, at least 1."""
        fit = self.memory_bytes // self._fused_row_bytes(dtype)
        return max(1, min(chunk_rows(self.num_classes), fit))

    def fused_workers(self, dtype: torch.dtype) -> int:
        """Return how many threads may have a chunk each, at least 1.

        The chunk size does not depend on the number of threads, and so neither do the results.
        """
        chunk = self.fused_rows(dtype) * self._fused_row_bytes(dtype)
        return max(1, self.memory_bytes // chunk)

    def _fused_row_bytes(self, dtype: torch.dtype) -> int:
        return scratch_bytes_per_row(
            self.num_classes, self.latent, len(self.layers), dtype.itemsize
        )

    def chunk_rows(self, z_ND: Tensor) -> int:
        """Return the nodes per chunk of the plain computation that fit the memory, at least 1."""
        row = self.num_classes * z_ND.shape[1] * z_ND.element_size()
        return max(1, self.memory_bytes // (row * (1 + _SAVED_PER_LAYER * len(self.layers))))

    def chunked_log_density(self, z_ND: Tensor) -> Tensor:
        """Return `log_density`, computed in chunks that the backward pass recomputes."""
        chunks = torch.split(z_ND, self.chunk_rows(z_ND))
        if not torch.is_grad_enabled():
            return torch.cat([self.log_density(chunk) for chunk in chunks])
        # The chunks draw no random numbers, so there is no state to preserve for recomputation.
        return torch.cat(
            [
                checkpoint(self.log_density, chunk, use_reentrant=False, preserve_rng_state=False)
                for chunk in chunks
            ]
        )

    def log_density(self, z_ND: Tensor) -> Tensor:
        """Return log p(z | c) from positions, all nodes at once, (N, D) -> (N, C)."""
        z_NCD = z_ND.unsqueeze(1).expand(-1, self.num_classes, -1)
        log_det_NC = z_ND.new_zeros(len(z_ND), self.num_classes)
        for layer in self.layers:
            z_NCD, layer_log_det_NC = layer(z_NCD)
            log_det_NC = log_det_NC + layer_log_det_NC
        base_NC = -0.5 * (z_NCD.square().sum(-1) + z_ND.shape[1] * math.log(2.0 * math.pi))
        return base_NC + log_det_NC


def _can_compile() -> bool:
    """Return whether a C++ compiler is present; warn if not."""
    if has_compiler():
        return True
    warnings.warn(
        "flow.compiled is set, but there is no C++ compiler: the flows are computed without it; "
        "install g++, or unset flow.compiled",
        RuntimeWarning,
        stacklevel=3,
    )
    return False
