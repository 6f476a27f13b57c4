"""The matrix S of patched graphs, against the dense matrix of the rebuilt graph."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.diffusion import patched_transition
from gpn_scale.diffusion.edge_patch import EdgePatch, grown, rewired
from gpn_scale.diffusion.growth import grown_graph, new_nodes
from gpn_scale.diffusion.patched_transition import (
    GraphTransition,
    PatchedTransition,
    in_weights,
)
from tests.diffusion.test_edge_patch import rebuilt, rewirings
from tests.diffusion.test_growth import NORMALISATIONS, TRIANGLE, growths
from tests.diffusion.test_growth import grown as joined
from tests.oracles import dense_adjacency, dense_transition
from tests.strategies import graphs


@st.composite
def patches(draw):
    """A graph, a patch of new nodes or of what-if edges, and the rebuilt graph."""
    if draw(st.booleans()):
        case = draw(growths())
        new = joined(*case)
        return case[0], grown(new), grown_graph(case[0], new)
    case = draw(rewirings())
    return case.graph, case.patch, rebuilt(case)


def rows_of(transition, nodes):
    """Rows of S, one step from each node at a time."""
    matrix = np.zeros((len(nodes), transition.num_nodes))
    for place, node in enumerate(nodes):
        reached, mass = transition.step(np.array([node]), np.ones(1))
        assert (np.diff(reached) > 0).all()
        matrix[place, reached] = mass
    return matrix


@given(patches(), NORMALISATIONS, st.booleans())
def test_steps_are_those_of_the_rebuilt_graph(case, normalisation, self_loops):
    graph, patch, changed = case
    transition = PatchedTransition(GraphTransition(graph, normalisation, self_loops), patch)
    oracle = dense_transition(changed, normalisation, self_loops)
    every = np.arange(changed.num_nodes)
    np.testing.assert_allclose(rows_of(transition, every), oracle, atol=1e-9)


@given(patches(), NORMALISATIONS, st.booleans(), st.sampled_from([0.0, 2.0]), st.integers(0, 99))
def test_steps_of_all_nodes_are_the_same_by_sweep_and_by_selection(
    case, normalisation, self_loops, fraction, rng_seed
):
    graph, patch, changed = case
    transition = PatchedTransition(GraphTransition(graph, normalisation, self_loops), patch)
    rng = np.random.default_rng(rng_seed)
    mass = rng.random(changed.num_nodes) * rng.integers(0, 2, changed.num_nodes)
    given_mass = mass.copy()
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(patched_transition, "SWEEP_FRACTION", fraction)
        got = transition.step_all(mass)
    oracle = mass @ dense_transition(changed, normalisation, self_loops)
    np.testing.assert_allclose(got, oracle, atol=1e-9)
    assert (got >= 0.0).all()
    np.testing.assert_array_equal(mass, given_mass)


@given(patches(), st.booleans(), st.integers(1, 6))
def test_the_bound_holds_for_every_power(case, self_loops, power):
    graph, patch, changed = case
    transition = PatchedTransition(GraphTransition(graph, "sym", self_loops), patch)
    dense = dense_transition(changed, "sym", self_loops)
    sums = np.linalg.matrix_power(dense, power).sum(1)
    for node, total in enumerate(sums):
        assert total <= transition.largest_sum(np.array([node]), np.ones(1)) * (1 + 1e-9)


def test_the_bound_of_a_regular_graph_is_the_mass_itself():
    new = new_nodes(TRIANGLE, np.eye(3), [[4], [5], [3]])  # another triangle
    transition = PatchedTransition(GraphTransition(TRIANGLE, "sym", True), grown(new))
    for node in new.ids:
        assert transition.largest_sum(np.array([node]), np.ones(1)) == pytest.approx(1.0)


def test_existing_nodes_of_a_directed_graph_point_to_no_new_one():
    graph = build_graph([0], [1], num_nodes=2, directed=True)
    new = new_nodes(graph, np.empty((1, 0)), [[0]])
    transition = PatchedTransition(GraphTransition(graph, "rw", False), grown(new))
    assert rows_of(transition, np.arange(3)).tolist() == [[0, 1, 0], [0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize("normalisation", ["sym", "rw"])
@pytest.mark.parametrize("self_loops", [True, False])
def test_a_node_that_loses_all_edges_keeps_its_mass(normalisation, self_loops):
    path = build_graph([0, 1], [1, 2], edge_weight=[0.1, 0.3])
    base = GraphTransition(path, normalisation, self_loops)
    transition = PatchedTransition(base, rewired(path, 1, remove=[0, 2]))
    expected = np.eye(3)  # no edge is left
    np.testing.assert_array_equal(rows_of(transition, np.arange(3)), expected)
    np.testing.assert_allclose(transition.step_all(np.arange(3.0)), np.arange(3.0))


def test_too_many_edges_are_never_kept_as_a_matrix(monkeypatch):
    monkeypatch.setattr(patched_transition, "SWEEP_EDGES", 5)
    base = GraphTransition(TRIANGLE, "sym", True)
    assert base.matrix is None
    nothing = np.empty(0, np.int64)
    patch = EdgePatch(num_new=0, source=nothing, target=nothing, weight=np.empty(0))
    mass = np.array([0.5, 0.25, 0.0])
    expected = mass @ dense_transition(TRIANGLE, "sym", True)
    np.testing.assert_allclose(PatchedTransition(base, patch).step_all(mass), expected)


@given(graphs(), NORMALISATIONS, st.booleans())
def test_weights_and_factors_are_sums_of_the_adjacency_in_any_chunks(
    graph, normalisation, self_loops
):
    matrix = dense_adjacency(graph)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(patched_transition, "_BLOCK_ENTRIES", 2)
        base = GraphTransition(graph, normalisation, self_loops)
        np.testing.assert_allclose(in_weights(graph), matrix.sum(0))
    np.testing.assert_allclose(base.out_weight_N, matrix.sum(1))
    matrix += np.diag(base.loop_N)
    dense = base.row_N[:, None] * matrix * base.column_N
    np.testing.assert_allclose(dense, dense_transition(graph, normalisation, self_loops))


def test_only_the_edges_of_nodes_with_mass_are_read():
    path = build_graph(np.arange(9), np.arange(1, 10))
    broken = path.indices.copy()
    broken[path.indptr[5] :] = 10**6  # would fail if a row from 5 on were used
    base = GraphTransition(replace(path, indices=broken), "sym", self_loops=True)
    transition = PatchedTransition(base, rewired(path, 2, remove=[1]))
    assert transition.step(np.array([2, 4]), np.ones(2))[0].tolist() == [2, 3, 4, 5]
