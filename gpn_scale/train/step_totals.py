"""Results of a step for all processes: its loss, and whether a process was asked to stop."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from gpn_scale.distributed import World


@dataclass(frozen=True, slots=True, eq=False)
class StepTotals:
    """The loss of a step and the number of a signal to stop, summed over all processes.

    On a GPU, they are copied to the host while the next step is computed, and `read` waits for the
    copy alone.
    """

    where: str
    """Description of the step, for messages."""
    numbers_S: Tensor
    """The loss and, if there are several processes, the number of a signal, on the device."""
    number: int
    """The number of the signal in this process; 0 for none."""
    on_host_S: Tensor
    """The same numbers, once `copied` has happened."""
    copied: Any
    """The event of the copy; None if there is nothing to wait for."""

    @classmethod
    def summed(
        cls,
        loss: Tensor,
        number: int,
        where: str,
        parameters: Iterable[nn.Parameter],
        world: World,
    ) -> "StepTotals":
        """Sum the gradients of all processes and, in the same message, these numbers."""
        numbers_S = loss.detach().unsqueeze(0)
        if world.size > 1:
            numbers_S = torch.cat([numbers_S, numbers_S.new_full((1,), number)])
            numbers_S = world.sum_gradients(parameters, numbers_S)
        if numbers_S.device.type != "cuda":
            return cls(where, numbers_S, number, numbers_S, None)
        on_host_S = torch.empty_like(numbers_S, device="cpu", pin_memory=True)
        on_host_S.copy_(numbers_S, non_blocking=True)
        copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
        copied.record()
        return cls(where, numbers_S, number, on_host_S, copied)

    def read(self) -> tuple[float, int]:
        """Return the loss and the number of a signal, 0 if no process was asked to stop."""
        if self.copied is not None:
            self.copied.synchronize()
        loss, *numbers = self.on_host_S.tolist()
        return float(loss), int(numbers[0]) if numbers else self.number

    def guard(self, optimiser: Optimizer) -> None:
        """Make the optimiser skip its next step if the loss is not finite.

        The device decides this without the host. Fused optimisers support it for gradients that
        overflow in mixed precision.
        """
        loss = self.numbers_S[0]
        is_bad = (loss - loss).ne(0.0).float()  # infinity minus infinity is NaN
        optimiser.found_inf = is_bad  # type: ignore[attr-defined]
