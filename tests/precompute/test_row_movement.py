"""The bound on how far rows moved, against dense rows before and after."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.config import DiffusionConfig
from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import Graph
from gpn_scale.diffusion.transition import transition_matrix
from precompute.row_movement import row_movement
from tests.oracles import dense_diffusion, dense_ppr, dense_transition
from tests.precompute.changed_graphs import changed_graphs


def true_movement(old: Graph, new: Graph, diffusion: DiffusionConfig) -> np.ndarray:
    """L1 distances of dense rows; nodes that the old graph does not have are isolated in it."""
    grown = build_graph(
        np.repeat(np.arange(old.num_nodes), old.out_degree),
        old.indices,
        num_nodes=new.num_nodes,
        edge_weight=old.edge_weight,
        directed=True,
    )
    rows = []
    for graph in (grown, new):
        transition = dense_transition(graph, diffusion.normalisation, diffusion.self_loops)
        if diffusion.steps == "inf":
            rows.append(dense_ppr(transition, diffusion.teleport))
        else:
            rows.append(dense_diffusion(transition, diffusion.teleport, diffusion.steps))
    return np.abs(rows[1] - rows[0]).sum(1)


def bound(old: Graph, new: Graph, diffusion: DiffusionConfig) -> np.ndarray:
    matrices = (
        transition_matrix(graph, diffusion.normalisation, diffusion.self_loops)
        for graph in (old, new)
    )
    return row_movement(*matrices, diffusion)


@pytest.mark.parametrize("normalisation", ["sym", "rw"])
@pytest.mark.parametrize("steps", [1, 4, "inf"])
@given(
    pair=changed_graphs(),
    teleport=st.sampled_from([0.05, 0.2, 0.8]),
    self_loops=st.booleans(),
)
def test_no_row_moves_further_than_its_bound(normalisation, steps, pair, teleport, self_loops):
    diffusion = DiffusionConfig(
        teleport=teleport, normalisation=normalisation, steps=steps, self_loops=self_loops
    )
    moved, most = true_movement(*pair, diffusion), bound(*pair, diffusion)
    assert (moved <= most + 1e-12).all()
    unreached = most == 0.0
    assert np.allclose(moved[unreached], 0.0, atol=1e-12)


def test_the_bound_is_tight_for_one_step_of_rw():
    old, new = build_graph([0, 1], [1, 2], num_nodes=4), build_graph([0, 1, 0], [1, 2, 3])
    diffusion = DiffusionConfig(teleport=0.5, normalisation="rw", steps=1)
    moved = true_movement(old, new, diffusion)
    assert np.allclose(bound(old, new, diffusion), moved, rtol=1e-5)
    assert moved[0] > 0.1


def test_the_same_graph_moves_nothing():
    graph = build_graph([0, 1, 2], [1, 2, 3])
    for steps in (3, "inf"):
        assert not bound(graph, graph, DiffusionConfig(steps=steps)).any()
