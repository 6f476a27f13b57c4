"""Which device to compute on."""

import torch

from gpn_scale.errors import ConfigError


def pick_device(name: str) -> torch.device:
    """`auto` is CUDA where there is one, else the CPU; other names are torch's.

    Raises:
        ConfigError: there is no such device.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(
            f"device {name!r} cannot be used ({reason}), expected auto, cpu or cuda"
        ) from error
