"""Choice of the device to compute on."""

import torch

from gpn_scale.errors import ConfigError


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
