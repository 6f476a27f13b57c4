import sys

import numpy as np
import pytest

from gpn_scale.experiments import training_cost
from gpn_scale.experiments.training_cost import measured_cost


class Clocks:
    """Stand in for the module `time`, with clocks that a test moves by hand."""

    def __init__(self):
        self.clock = 100.0
        self.processor = 7.0

    def perf_counter(self):
        return self.clock

    def process_time(self):
        return self.processor

    def work(self):
        self.clock += 3.0
        self.processor += 5.0


def test_both_clocks_are_read_before_and_after_training(monkeypatch):
    clocks = Clocks()
    monkeypatch.setattr(training_cost, "time", clocks)
    cost = measured_cost(clocks.work)
    assert (cost.seconds, cost.cpu_seconds) == (3.0, 5.0)


@pytest.mark.skipif(sys.platform != "linux", reason="the peak begins anew on Linux only")
def test_memory_is_that_of_one_training_and_not_of_earlier_ones():
    large = measured_cost(lambda: np.ones(16 << 20))
    small = measured_cost(lambda: np.ones(1 << 20))
    assert large.added_bytes >= 0.9 * (128 << 20)
    assert small.added_bytes < 64 << 20
