"""The cost of a training: time and memory."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from gpn_scale.memory import forget_peak, give_back_freed_memory, resident_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingCost:
    """Time and memory of one training."""

    seconds: float
    """Time by the clock."""
    cpu_seconds: float
    """Processor time of all threads, which other programs on the machine hardly change."""
    added_bytes: int
    """Peak of resident memory, minus the resident memory before training.

    Memory in use before training is the same for all models: libraries and the graph.
    """

    def after(self, earlier: "TrainingCost") -> "TrainingCost":
        """Return the cost of a training in two steps, of which this was the second."""
        return TrainingCost(
            seconds=earlier.seconds + self.seconds,
            cpu_seconds=earlier.cpu_seconds + self.cpu_seconds,
            added_bytes=max(earlier.added_bytes, self.added_bytes),
        )


def measured_cost(train: Callable[[], object]) -> TrainingCost:
    """Call `train` and return what it took."""
    give_back_freed_memory()
    forget_peak()
    before, _ = resident_bytes()
    clock, processor = time.perf_counter(), time.process_time()
    train()
    seconds, cpu_seconds = time.perf_counter() - clock, time.process_time() - processor
    _, peak = resident_bytes()
    return TrainingCost(seconds=seconds, cpu_seconds=cpu_seconds, added_bytes=max(peak - before, 0))
