"""Scratch memory of the kernels: its size, the number of threads that fit, and its arrays."""

from dataclasses import dataclass

import numpy as np

from gpn_scale.errors import ConfigError
from precompute.row_kernels import PaddedRows, Work

SWEEP_BYTES = 16
"""Bytes per node and slot: touched nodes, their values and places."""
PUSH_BYTES = 36
"""Bytes per node and slot: those of a sweep, plus mass, residual and queue."""


@dataclass(frozen=True, slots=True)
class SlotPlan:
    """Number of scratch slots (one per thread), and their size.

    >>> SlotPlan(slots=2, bytes_per_slot=1000).bytes
    2000
    """

    slots: int
    bytes_per_slot: int

    @property
    def bytes(self) -> int:
        """Size of all slots."""
        return self.slots * self.bytes_per_slot


def plan_slots(num_nodes: int, threads: int, budget_bytes: int, *, push: bool) -> SlotPlan:
    """Return one slot per thread, or as many as fit into the budget.

    >>> plan_slots(1000, threads=8, budget_bytes=50_000, push=False)
    SlotPlan(slots=3, bytes_per_slot=16000)

    Raises:
        ConfigError: not even one slot fits.
    """
    per_slot = num_nodes * (PUSH_BYTES if push else SWEEP_BYTES)
    fitting = min(threads, budget_bytes // max(per_slot, 1))
    if fitting < 1:
        raise ConfigError(
            f"memory_bytes leaves {budget_bytes >> 20} MiB for scratch memory, expected at least "
            f"{(per_slot >> 20) + 1} MiB for one thread: allow more memory, or use a smaller graph",
            arguments=("memory_bytes",),
        )
    return SlotPlan(int(fitting), per_slot)


def new_work(num_nodes: int, slots: int, *, push: bool) -> Work:
    """Return zeroed scratch memory of `slots` slots.

    >>> work = new_work(num_nodes=5, slots=2, push=False)
    >>> work.place.shape, work.queue.shape
    ((2, 5), (2, 0))
    """
    push_nodes = num_nodes if push else 0
    return Work(
        touched=np.zeros((slots, num_nodes), np.int32),
        value=np.zeros((slots, num_nodes), np.float64),
        place=np.zeros((slots, num_nodes), np.int32),
        mass=np.zeros((slots, push_nodes), np.float64),
        residual=np.zeros((slots, push_nodes), np.float64),
        queue=np.zeros((slots, push_nodes), np.int32),
    )


def new_rows(count: int, entries: int) -> PaddedRows:
    """Return `count` empty rows with room for `entries` entries each.

    >>> new_rows(count=3, entries=2).sizes.tolist()
    [0, 0, 0]
    """
    return PaddedRows(
        ids=np.zeros((count, entries), np.int32),
        weights=np.zeros((count, entries), np.float32),
        sizes=np.zeros(count, np.int32),
    )
