import sys
import time

import numpy as np
import pytest

from gpn_scale.experiments.training_cost import measured_cost


def test_waiting_takes_time_but_no_processor():
    cost = measured_cost(lambda: time.sleep(0.05))
    assert cost.seconds >= 0.05
    assert cost.cpu_seconds < cost.seconds


@pytest.mark.skipif(sys.platform != "linux", reason="the peak begins anew on Linux only")
def test_memory_is_that_of_one_training_and_not_of_earlier_ones():
    large = measured_cost(lambda: np.ones(16 << 20))
    small = measured_cost(lambda: np.ones(1 << 20))
    assert large.added_bytes >= 0.9 * (128 << 20)
    assert small.added_bytes < 64 << 20
