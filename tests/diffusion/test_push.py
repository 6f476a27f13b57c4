"""Pushed rows of new nodes against the dense diffusion of the rebuilt graph."""

import doctest
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.diffusion import push
from gpn_scale.diffusion.edge_patch import grown as patch_of
from gpn_scale.diffusion.growth import grown_graph, new_nodes
from gpn_scale.diffusion.patched_transition import GraphTransition, PatchedTransition
from gpn_scale.diffusion.push import push_rows
from gpn_scale.errors import ConfigError
from tests.diffusion.test_growth import NORMALISATIONS, TRIANGLE, grown, growths
from tests.oracles import dense_diffusion, dense_transition


def grown_transition(graph, new, normalisation, self_loops):
    return PatchedTransition(GraphTransition(graph, normalisation, self_loops), patch_of(new))


@given(
    growths(),
    NORMALISATIONS,
    st.booleans(),
    st.sampled_from([0.1, 0.5]),
    st.sampled_from([0, 1, 2, 3, 10]),
)
def test_rows_without_tolerance_are_exact(case, normalisation, self_loops, teleport, steps):
    new = grown(*case)
    transition = grown_transition(case[0], new, normalisation, self_loops)
    pushed = push_rows(transition, new.ids, teleport=teleport, steps=steps, tolerance=0.0)
    dense = dense_transition(grown_graph(case[0], new), normalisation, self_loops)
    oracle = dense_diffusion(dense, teleport, steps)[new.ids]
    np.testing.assert_allclose(pushed.weight.toarray(), oracle, atol=1e-9)
    assert not pushed.dropped.any()


@given(
    growths(),
    NORMALISATIONS,
    st.booleans(),
    st.sampled_from([1, 2, 5, 30]),
    st.floats(0.0, 1.5),
)
def test_what_is_dropped_is_bounded(case, normalisation, self_loops, steps, tolerance):
    new = grown(*case)
    transition = grown_transition(case[0], new, normalisation, self_loops)
    pushed = push_rows(transition, new.ids, teleport=0.2, steps=steps, tolerance=tolerance)
    dense = dense_transition(grown_graph(case[0], new), normalisation, self_loops)
    gap = dense_diffusion(dense, 0.2, steps)[new.ids] - pushed.weight.toarray()
    assert (gap >= -1e-12).all()
    assert (gap.sum(1) <= pushed.dropped * (1 + 1e-12) + 1e-12).all()
    if normalisation == "rw":
        np.testing.assert_allclose(gap.sum(1), pushed.dropped, atol=1e-12)


def test_a_high_tolerance_drops_something_and_saves_work():
    path = build_graph(np.arange(99), np.arange(1, 100))
    new = new_nodes(path, np.empty((1, 0)), [[50]])
    transition = grown_transition(path, new, "rw", self_loops=True)
    exact, cut = (
        push_rows(transition, new.ids, teleport=0.2, steps=40, tolerance=tolerance)
        for tolerance in (0.0, 1e-2)
    )
    assert cut.weight.nnz < exact.weight.nnz
    assert 0.0 < cut.dropped[0] < 0.5


def test_only_the_edges_of_the_asked_rows_are_read():
    path = build_graph(np.arange(9), np.arange(1, 10))
    broken = path.indices.copy()
    broken[path.indptr[5] :] = 10**6  # would fail if a row from 5 on were used
    new = new_nodes(path, np.empty((1, 0)), [[2]])
    transition = grown_transition(replace(path, indices=broken), new, "sym", self_loops=True)
    pushed = push_rows(transition, new.ids, teleport=0.1, steps=3, tolerance=0.0)
    assert np.unique(pushed.weight.indices).tolist() == [0, 1, 2, 3, 4, 10]


@pytest.mark.parametrize("tolerance", [-1e-9, float("nan")])
def test_a_wrong_tolerance_is_refused(tolerance):
    transition = grown_transition(TRIANGLE, new_nodes(TRIANGLE, [], []), "rw", True)
    with pytest.raises(ConfigError, match=r"tolerance is .*, expected at least 0"):
        push_rows(transition, np.arange(1), teleport=0.1, steps=1, tolerance=tolerance)


def test_examples_in_the_documentation():
    results = doctest.testmod(push)
    assert results.attempted
    assert not results.failed
