"""Complete rows of a few nodes against the dense matrix."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.config import DiffusionConfig
from gpn_scale.diffusion.exact_rows import diffusion_rows
from tests.ppr.stored import exact_rows
from tests.strategies import graphs

DIFFUSIONS = [
    DiffusionConfig(normalisation=normalisation, steps=steps, tolerance=1e-12)
    for normalisation in ("sym", "rw")
    for steps in (0, 1, 10, "inf")
]


@pytest.mark.parametrize("diffusion", DIFFUSIONS, ids=lambda d: f"{d.normalisation}-{d.steps}")
@given(graph=graphs(), data=st.data())
def test_rows_are_those_of_the_dense_matrix(diffusion, graph, data):
    nodes = data.draw(st.lists(st.integers(0, graph.num_nodes - 1), max_size=3))
    rows = diffusion_rows(graph, diffusion, np.array(nodes, np.int64))
    np.testing.assert_allclose(rows, exact_rows(graph, diffusion)[nodes], atol=1e-9)
