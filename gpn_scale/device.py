"""Choice of the device, and the rules by which work is divided on it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from gpn_scale.errors import ConfigError
from gpn_scale.memory import physical_bytes

SCRATCH_SHARE = 0.25
"""Fraction of a GPU's memory that the scratch arrays of the flows may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRule:
    """Rules by which training divides its work on a kind of device.

    >>> CPU_RULE.whole_rows, GPU_RULE.whole_rows
    (False, True)
    """

    whole_rows: bool
    """Whether an operation takes all rows of a batch, as far as memory allows, instead of a block
    that stays in a CPU's cache."""
    hashed_noise: bool
    """Whether dropout draws its bits by a hash in a few operations, instead of one generator per
    block of rows."""
    runs_ahead: bool
    """Whether the host queues steps ahead of the device: losses are read one step later, and the
    optimiser itself rejects a loss that is not finite, on the device."""


CPU_RULE = DeviceRule(whole_rows=False, hashed_noise=False, runs_ahead=False)
GPU_RULE = DeviceRule(whole_rows=True, hashed_noise=True, runs_ahead=True)
_forced: list[DeviceRule] = []


def device_rule(device: torch.device) -> DeviceRule:
    """Return the rule of a device: `GPU_RULE` for any device but the CPU.

    >>> device_rule(torch.device("cpu")) == CPU_RULE
    True
    """
    if _forced:
        return _forced[-1]
    return CPU_RULE if device.type == "cpu" else GPU_RULE


@contextmanager
def forced_rule(rule: DeviceRule) -> Iterator[None]:
    """Let all devices follow `rule` within the block; for tests and comparisons.

    >>> with forced_rule(GPU_RULE):
    ...     device_rule(torch.device("cpu")).whole_rows
    True
    """
    _forced.append(rule)
    try:
        yield
    finally:
        _forced.pop()


def scratch_bytes(device: torch.device) -> int:
    """Return the memory for scratch arrays if all rows are computed at once.

    This is a quarter of the device's memory (`SCRATCH_SHARE`).

    >>> scratch_bytes(torch.device("cpu")) == physical_bytes() // 4
    True
    """
    if device.type == "cuda":
        return int(SCRATCH_SHARE * torch.cuda.get_device_properties(device).total_memory)
    return int(SCRATCH_SHARE * physical_bytes())


def pick_device(name: str) -> torch.device:
    """Return the torch device called `name`; `auto` is CUDA if available, else the CPU.

    >>> pick_device("cpu")
    device(type='cpu')

    Raises:
        ConfigError: torch does not know the device or cannot use it.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.empty(0, device=name).device
        if device.type == "meta":
            raise RuntimeError("it holds no numbers")
        return device
    except (RuntimeError, AssertionError, ImportError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(
            f"device {name!r} cannot be used ({reason}), expected auto, cpu or cuda",
            arguments=("device",),
        ) from error
