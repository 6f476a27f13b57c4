"""Counts of changed edges and differences of transition matrices, against dense matrices."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.diffusion.transition import transition_matrix
from precompute.graph_changes import EdgeCounts, edge_counts, transition_difference
from tests.oracles import dense_adjacency, dense_transition
from tests.precompute.changed_graphs import changed_graphs


@given(pair=changed_graphs())
def test_changes_are_counted(pair):
    old, new = pair
    before = np.zeros((new.num_nodes, new.num_nodes))
    before[: old.num_nodes, : old.num_nodes] = dense_adjacency(old)
    after = dense_adjacency(new)
    divisor = 1 if new.directed else 2
    assert edge_counts(old, new) == EdgeCounts(
        nodes_added=new.num_nodes - old.num_nodes,
        added=((before == 0) & (after != 0)).sum() // divisor,
        removed=((before != 0) & (after == 0)).sum() // divisor,
        reweighted=((before != after) & (before != 0) & (after != 0)).sum() // divisor,
        before=(before != 0).sum() // divisor,
    )


@given(
    pair=changed_graphs(), normalisation=st.sampled_from(["sym", "rw"]), self_loops=st.booleans()
)
def test_differences_are_those_of_dense_matrices(pair, normalisation, self_loops):
    old, new = pair
    before = np.eye(new.num_nodes)
    before[: old.num_nodes, : old.num_nodes] = dense_transition(old, normalisation, self_loops)
    after = dense_transition(new, normalisation, self_loops)
    matrices = (transition_matrix(graph, normalisation, self_loops) for graph in pair)
    got = transition_difference(*matrices).toarray()
    assert np.allclose(got, np.abs(after - before), rtol=1e-9, atol=1e-14)
    assert (got >= np.abs(after - before) - 1e-15).all()


def test_a_summary_names_what_changed():
    counts = {"nodes_added": 0, "added": 0, "removed": 0, "reweighted": 0}
    assert EdgeCounts(**counts).summary == "nothing changed"
    assert EdgeCounts(**counts | {"nodes_added": 1200}).summary == "1,200 nodes added"
    some = EdgeCounts(**counts | {"nodes_added": 2, "removed": 3, "reweighted": 4})
    assert some.summary == "2 nodes added, 3 edges removed, 4 edges reweighted"
    assert some.any


def test_nodes_may_be_renumbered_if_most_edges_are_gone():
    counts = {"nodes_added": 0, "added": 9, "reweighted": 0}
    assert not EdgeCounts(**counts, removed=5, before=10).may_be_renumbered
    assert EdgeCounts(**counts, removed=6, before=10).may_be_renumbered
    assert not EdgeCounts(**counts, removed=0, before=0).may_be_renumbered
