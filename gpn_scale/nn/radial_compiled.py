"""Log-density of radial flows as one function of single operations, for `torch.compile`.

The mathematics is that of `nn/radial.py`; torch fuses the element-wise operations of all layers and
derives the backward pass. That needs a C++ compiler, and the first step waits for it (docs/gpu.md).

Shapes: N nodes, M nodes at a time, C classes, D latent dimensions, R radial layers, J = R + 1
centres with the origin last.
"""

import math
import os
import shutil
import warnings
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import pad

LayerFunction = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, int], Tensor]
"""Maps start distances, gaps, scales, strengths, floors and D to the log-density, (C, M)."""


def has_compiler() -> bool:
    """Return whether a C++ compiler is present: that of `CXX`, g++, clang++ or c++.

    >>> has_compiler() in (True, False)
    True
    """
    names = (os.environ.get("CXX"), "g++", "clang++", "c++")
    return any(name is not None and shutil.which(name) is not None for name in names)


def compiled_layers(device: torch.device) -> LayerFunction:
    """Return `layer_by_layer`, compiled for the device; nothing is compiled before its first call.

    On a CPU, it is compiled for each number of nodes, so that loops have fixed lengths; on others,
    for any number.

    >>> callable(compiled_layers(torch.device("cpu")))
    True
    """
    with warnings.catch_warnings():
        # torch's own modules use deprecated decorators of torch; users cannot change that.
        warnings.filterwarnings("ignore", message="`torch.jit.*` is deprecated")
        return torch.compile(layer_by_layer, dynamic=device.type != "cpu")


def layer_by_layer(
    start_JCM: Tensor,
    gap_CJJ: Tensor,
    scale_RC: Tensor,
    strength_RC: Tensor,
    floor_RC: Tensor,
    latent: int,
) -> Tensor:
    """Return the log-density of some nodes, (C, M), from their distances to all centres.

    >>> start_JCM, gap_CJJ = torch.zeros(2, 1, 1), torch.zeros(1, 2, 2)
    >>> scale_RC, none_RC = torch.ones(1, 1), torch.zeros(1, 1)
    >>> layer_by_layer(start_JCM, gap_CJJ, scale_RC, none_RC, none_RC, 3)  # -1.5 log(2 pi)
    tensor([[-2.7568]])

    Args:
        start_JCM: Squared distances of the positions to the centres.
        gap_CJJ: Squared distances between centres.
        scale_RC: Radial scales a.
        strength_RC: Strengths b.
        floor_RC: Radii below this have no direction, see `nn/radial.py`.
        latent: D, the latent dimension.
    """
    growth_CM, radial_CM = torch.ones_like(start_JCM[0]), torch.ones_like(start_JCM[0])
    shift_CM = torch.zeros_like(growth_CM)
    ratios: list[Tensor] = []
    for layer in range(len(scale_RC)):
        distance_CM = _distance(start_JCM, gap_CJJ, shift_CM, ratios)
        scale_C1 = scale_RC[layer].unsqueeze(1)
        least_CM = floor_RC[layer].unsqueeze(1) * (1.0 + growth_CM.detach())
        radius_CM = torch.maximum(distance_CM * growth_CM, least_CM.square()).sqrt()
        decay_CM = 1.0 / (scale_C1 + radius_CM)
        pull_CM = strength_RC[layer].unsqueeze(1) * decay_CM
        radial_CM = radial_CM * (1.0 + scale_C1 * pull_CM * decay_CM)
        growth_CM = growth_CM * (1.0 + pull_CM)
        shift_CM = shift_CM + pull_CM * distance_CM
        ratios.append(pull_CM / growth_CM)
    square_CM = (_distance(start_JCM, gap_CJJ, shift_CM, ratios) * growth_CM).clamp_min(0.0)
    base_CM = -0.5 * (square_CM + latent * math.log(2.0 * math.pi))
    return base_CM + (latent - 1) * growth_CM.log() + radial_CM.log()


def _distance(start_JCM: Tensor, gap_CJJ: Tensor, shift_CM: Tensor, ratios: list[Tensor]) -> Tensor:
    """Return e of the centre after all layers so far."""
    centre = len(ratios)
    distance_CM = start_JCM[centre] + shift_CM
    for layer, ratio_CM in enumerate(ratios):
        distance_CM = distance_CM - ratio_CM * gap_CJJ[:, layer, centre].unsqueeze(1)
    return distance_CM


def compiled_log_density(
    z_ND: Tensor,
    centre_RCD: Tensor,
    scale_RC: Tensor,
    strength_RC: Tensor,
    rows: int,
    layers: LayerFunction,
) -> Tensor:
    """Return log p(z | c), (N, D) -> (N, C), `rows` nodes at a time; the last part is padded.

    >>> centre_RCD, scale_RC = torch.zeros(1, 2, 3), torch.ones(1, 2)
    >>> none_RC = torch.zeros(1, 2)  # no strength: a standard normal, -1.5 log(2 pi) at 0
    >>> compiled_log_density(torch.zeros(1, 3), centre_RCD, scale_RC, none_RC, 8, layer_by_layer)
    tensor([[-2.7568, -2.7568]])

    Args:
        z_ND: Positions.
        centre_RCD: Centres.
        scale_RC: Radial scales.
        strength_RC: Strengths.
        rows: Nodes at a time.
        layers: `layer_by_layer`, compiled or not.
    """
    dtype, (count, latent) = scale_RC.dtype, z_ND.shape
    # Float64, because |z|^2 - 2 z c + |c|^2 cancels if a position lies close to a centre.
    centre_JCD = pad(centre_RCD.double(), (0, 0, 0, 0, 0, 1))
    flat_KD, centre_CJD = centre_JCD.flatten(0, 1), centre_JCD.transpose(0, 1)
    wide_CJJ = (centre_CJD.unsqueeze(2) - centre_CJD.unsqueeze(1)).square().sum(-1)
    noise_CJ = torch.finfo(dtype).eps * wide_CJJ.detach().tril().amax(-1)
    noise_CJ += torch.finfo(torch.float64).eps * centre_CJD.detach().square().sum(-1)
    floor_RC = (4.0 * noise_CJ[:, :-1] + 1e-24).sqrt().T.to(dtype)
    square_K1 = flat_KD.square().sum(1, keepdim=True)
    parts = []
    for part_MD in torch.split(pad(z_ND, (0, 0, 0, -count % rows)).double(), rows):
        start_KM = part_MD.square().sum(1) - 2.0 * flat_KD @ part_MD.T + square_K1
        start_JCM = start_KM.view(*centre_JCD.shape[:2], -1).to(dtype)
        gap_CJJ = wide_CJJ.to(dtype)
        parts.append(layers(start_JCM, gap_CJJ, scale_RC, strength_RC, floor_RC, latent))
    if not parts:
        return scale_RC.new_zeros(0, scale_RC.shape[1])
    return torch.cat(parts, dim=1).T[:count]
