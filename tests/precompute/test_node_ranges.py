from itertools import pairwise

import numpy as np
import pytest

from precompute.node_ranges import split_by_cost, sweep_blocks


@pytest.mark.parametrize("num_nodes", [1, 1023, 5000, 10**6])
def test_sweep_blocks_cover_all_nodes(num_nodes):
    blocks = sweep_blocks(num_nodes)
    assert blocks[0][0] == 0
    assert blocks[-1][1] == num_nodes
    assert all(a[1] == b[0] for a, b in pairwise(blocks))


@pytest.mark.parametrize("num_ranges", [1, 2, 5])
def test_costs_are_split_evenly(num_ranges):
    degree = np.random.default_rng(0).integers(0, 50, size=1000)
    indptr = np.concatenate([[0], np.cumsum(degree)])
    ranges = split_by_cost(100, 900, indptr, num_ranges)
    assert ranges[0][0] == 100
    assert ranges[-1][1] == 900
    costs = [indptr[b] - indptr[a] + b - a for a, b in ranges]
    assert max(costs) - min(costs) <= 110
    assert split_by_cost(3, 3, indptr, num_ranges) == [(3, 3)] * num_ranges
