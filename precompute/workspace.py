"""Scratch memory of the kernels: how much it takes, and how many threads fit."""

from dataclasses import dataclass

import numpy as np

from gpn_scale.errors import ConfigError
from precompute.kernels import Rows, Work

SWEEP_BYTES = 16
"""Per node and slot: mass, touched, candidate, candidate mass."""
PUSH_BYTES = 24
"""Per node and slot: the same, residual and queue."""


@dataclass(frozen=True, slots=True)
class SlotPlan:
    """How many threads work, and what they take."""

    slots: int
    bytes_per_slot: int

    @property
    def bytes(self) -> int:
        """Of all slots."""
        return self.slots * self.bytes_per_slot


def plan_slots(num_nodes: int, threads: int, budget_bytes: int, *, push: bool) -> SlotPlan:
    """As many slots as threads, or as fit into the budget.

    Raises:
        ConfigError: not even one fits.
    """
    per_slot = num_nodes * (PUSH_BYTES if push else SWEEP_BYTES)
    fitting = min(threads, budget_bytes // max(per_slot, 1))
    if fitting < 1:
        raise ConfigError(
            f"--memory-budget leaves {budget_bytes >> 20} MiB for scratch, expected at least "
            f"{(per_slot >> 20) + 1} MiB for one thread: raise it or use a smaller graph"
        )
    return SlotPlan(int(fitting), per_slot)


def new_work(num_nodes: int, slots: int, *, push: bool) -> Work:
    """Zeroed scratch of `slots` slots."""
    push_nodes = num_nodes if push else 0
    return Work(
        mass=np.zeros((slots, num_nodes), np.float32),
        residual=np.zeros((slots, push_nodes), np.float32),
        touched=np.zeros((slots, num_nodes), np.int32),
        queue=np.zeros((slots, push_nodes), np.int32),
        candidate=np.zeros((slots, num_nodes), np.int32),
        candidate_mass=np.zeros((slots, num_nodes), np.float32),
    )


def new_rows(count: int, entries: int) -> Rows:
    """Empty rows with room for so many entries."""
    return Rows(
        ids=np.zeros((count, entries), np.int32),
        weights=np.zeros((count, entries), np.float32),
        sizes=np.zeros(count, np.int32),
    )
