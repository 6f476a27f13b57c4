import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.diffusion import transition
from gpn_scale.diffusion.transition import (
    row_blocks,
    steps_to_tolerance,
    transition_factors,
    transition_matrix,
)
from tests import oracles
from tests.strategies import graphs


@given(graph=graphs(), self_loops=st.booleans(), normalisation=st.sampled_from(["sym", "rw"]))
def test_factors_multiply_to_the_transition_matrix(graph, self_loops, normalisation):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transition, "_BLOCK_ENTRIES", 2)
        factors = transition_factors(graph, normalisation, self_loops)
    adjacency = oracles.dense_adjacency(graph) + np.diag(factors.loop_N)
    product = factors.row_N[:, None] * adjacency * factors.column_N
    expected = oracles.dense_transition(graph, normalisation, self_loops)
    np.testing.assert_allclose(product, expected, rtol=1e-12)


@given(lengths=st.lists(st.integers(0, 6), max_size=12), entries=st.integers(1, 10))
def test_row_blocks_hold_at_most_so_many_entries(lengths, entries):
    indptr = np.append(0, np.cumsum(lengths)).astype(np.int64)
    blocks = list(row_blocks(indptr, entries))
    assert [row for block in blocks for row in range(*block)] == list(range(len(lengths)))
    for start, stop in blocks:
        assert stop == start + 1 or indptr[stop] - indptr[start] <= entries
        if stop < len(lengths):  # no block could have taken one row more
            assert indptr[stop + 1] - indptr[start] > entries


@given(graph=graphs(), normalisation=st.sampled_from(["sym", "rw"]), self_loops=st.booleans())
def test_rows_of_the_transition_matrix_are_sorted(graph, normalisation, self_loops):
    matrix = transition_matrix(graph, normalisation, self_loops)
    for start, stop in zip(matrix.indptr, matrix.indptr[1:], strict=False):
        assert (np.diff(matrix.indices[start:stop]) > 0).all()


@given(teleport=st.floats(0.01, 0.99), tolerance=st.floats(1e-12, 0.5))
def test_the_step_count_is_the_fewest_within_tolerance(teleport, tolerance):
    steps = steps_to_tolerance(teleport, tolerance)
    assert (1 - teleport) ** steps <= tolerance * (1 + 1e-9)
    assert (1 - teleport) ** (steps - 1) > tolerance * (1 - 1e-9)


def test_the_module_loads_no_torch():
    code = "import sys, gpn_scale.diffusion.transition; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
