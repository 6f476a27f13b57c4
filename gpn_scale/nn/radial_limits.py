"""Limits of the fused radial flows: parameters, scratch memory, nodes per chunk.

Shapes: C classes, R radial layers; P and s as in `nn/radial.py`.
"""

import math

import torch
from torch import Tensor

CACHE_ELEMENTS = 30720
"""Number of nodes x classes in a chunk; measured in benchmarks/results/flow_2cores_202611.md."""

_GAP_BYTES = 256 << 20
"""Largest memory of the differences between all centres, which grows with the layers squared."""
_MAX_ROWS = 4096
"""Largest number of nodes of a chunk: with few classes, float64 start distances dominate."""


def is_representable(radial_scale_RC: Tensor, radial_strength_RC: Tensor) -> bool:
    """Return whether P and 1 / P cannot overflow and 1 + s stays away from 0, for all positions.

    1 + s lies between 1 (far away) and 1 + b / a (at the centre), so the parameters alone decide.

    >>> scale_RC = torch.ones(10, 3)
    >>> is_representable(scale_RC, 2.0 * scale_RC), is_representable(scale_RC, -1.0 * scale_RC)
    (True, False)
    """
    limits = torch.finfo(radial_scale_RC.dtype)
    at_centre_RC = 1.0 + radial_strength_RC.detach() / radial_scale_RC.detach()
    spread = at_centre_RC.log().abs().sum(0).amax()
    # One comparison, because each transfer from a device waits for it. NaN compares as False.
    fits = (spread <= 0.5 * math.log(limits.max)) & (at_centre_RC.amin() >= 16 * limits.eps)
    return bool(fits)


def has_few_layers(num_classes: int, latent: int, layers: int) -> bool:
    """Return whether the differences between all centres, which the fused computation needs, fit.

    >>> has_few_layers(num_classes=7, latent=16, layers=10)
    True
    >>> has_few_layers(num_classes=7, latent=16, layers=10_000)
    False
    """
    return 8 * num_classes * latent * (layers + 1) ** 2 <= _GAP_BYTES


def scratch_bytes_per_row(num_classes: int, latent: int, layers: int, itemsize: int) -> int:
    """Return the scratch bytes per node of a chunk in the backward pass.

    >>> scratch_bytes_per_row(num_classes=7, latent=16, layers=10, itemsize=4)
    3292
    """
    per_class = itemsize * (6 * (layers + 1) + 9) + 8 * (layers + 1)
    return num_classes * per_class + 8 * 4 * (latent + 2)


def whole_bytes_per_row(num_classes: int, latent: int, layers: int, itemsize: int) -> int:
    """Return the bytes per node of both passes where all nodes are computed at once.

    That is what `nn/radial_whole.py` keeps of the forward pass, and what its backward pass adds.

    >>> whole_bytes_per_row(num_classes=7, latent=16, layers=10, itemsize=4)
    4204
    """
    kept = 6 * layers + 4
    added = 7 * layers + 7
    return num_classes * itemsize * (kept + added) + 16 * latent


def chunk_rows(num_classes: int) -> int:
    """Return the nodes per chunk: a layer stays in cache, and threads rarely wait.

    Between two operations a thread needs the interpreter lock, so threads with shorter operations
    wait for each other more often.

    >>> chunk_rows(num_classes=30)
    1024
    """
    return max(1, min(_MAX_ROWS, CACHE_ELEMENTS // num_classes))


def refuse_second_derivatives() -> None:
    """Refuse a backward pass that is itself to be differentiated; it would be silently wrong.

    >>> with torch.no_grad():
    ...     refuse_second_derivatives()

    Raises:
        NotImplementedError: `create_graph=True` was requested.
    """
    if torch.is_grad_enabled():
        raise NotImplementedError(
            "second derivatives of RadialFlow.forward were requested (create_graph=True), but "
            "it has only first ones: use RadialFlow.log_density, which has both"
        )
