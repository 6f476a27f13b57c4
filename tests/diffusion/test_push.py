"""Pushed rows of patched graphs against the dense diffusion of the rebuilt graph."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.diffusion import patched_transition, push
from gpn_scale.diffusion.edge_patch import grown, rewired
from gpn_scale.diffusion.growth import new_nodes
from gpn_scale.diffusion.patched_transition import GraphTransition, PatchedTransition
from gpn_scale.diffusion.push import PushedRow, push_row
from gpn_scale.errors import ConfigError
from tests.diffusion.test_growth import NORMALISATIONS, TRIANGLE
from tests.diffusion.test_patched_transition import patches
from tests.oracles import dense_diffusion, dense_transition

LIMITS = st.sampled_from([(1 << 13, 1 << 25), (0, 1 << 25), (0, 0)])
"""Edges from which on mass is an array, and up to which whole steps are taken: lists alone, whole
steps, selections out of arrays."""


def pushed_rows(case, normalisation, self_loops, limits, **options):
    """Rows of all nodes, (R, N + M), what was dropped, and the matrix S of the rebuilt graph."""
    graph, patch, changed = case
    transition = PatchedTransition(GraphTransition(graph, normalisation, self_loops), patch)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(push, "DENSE_EDGES", limits[0])
        monkeypatch.setattr(push, "DENSE_FRACTION", 0.0)
        monkeypatch.setattr(patched_transition, "SWEEP_EDGES", limits[1])
        rows = [push_row(transition, root, **options) for root in range(changed.num_nodes)]
    dense = np.zeros((changed.num_nodes, changed.num_nodes))
    for place, row in enumerate(rows):
        nodes, weight = row.listed()
        dense[place, nodes] = weight
    matrix = dense_transition(changed, normalisation, self_loops)
    return dense, np.array([row.dropped for row in rows]), matrix


@given(
    patches(),
    NORMALISATIONS,
    st.booleans(),
    LIMITS,
    st.sampled_from([0.1, 0.5]),
    st.sampled_from([0, 1, 2, 3, 10]),
)
def test_rows_without_tolerance_are_exact(case, normalisation, self_loops, limits, teleport, steps):
    options = {"teleport": teleport, "steps": steps, "tolerance": 0.0}
    rows, dropped, matrix = pushed_rows(case, normalisation, self_loops, limits, **options)
    np.testing.assert_allclose(rows, dense_diffusion(matrix, teleport, steps), atol=1e-9)
    assert not dropped.any()


@given(
    patches(),
    NORMALISATIONS,
    st.booleans(),
    LIMITS,
    st.sampled_from([1, 2, 5, 30]),
    st.floats(0.0, 1.5),
)
def test_what_is_dropped_is_bounded(case, normalisation, self_loops, limits, steps, tolerance):
    options = {"teleport": 0.2, "steps": steps, "tolerance": tolerance}
    rows, dropped, matrix = pushed_rows(case, normalisation, self_loops, limits, **options)
    gap = dense_diffusion(matrix, 0.2, steps) - rows
    assert (gap >= -1e-9).all()
    assert (gap.sum(1) <= dropped * (1 + 1e-9) + 1e-9).all()
    if normalisation == "rw":
        np.testing.assert_allclose(gap.sum(1), dropped, atol=1e-9)


@pytest.mark.parametrize("sweep_edges", [0, 1 << 25])
def test_a_high_tolerance_drops_something_and_saves_work(monkeypatch, sweep_edges):
    monkeypatch.setattr(patched_transition, "SWEEP_EDGES", sweep_edges)
    path = build_graph(np.arange(99), np.arange(1, 100))
    new = new_nodes(path, np.empty((1, 0)), [[50]])
    transition = PatchedTransition(GraphTransition(path, "rw", True), grown(new))
    exact, cut = (
        push_row(transition, 100, teleport=0.2, steps=40, tolerance=tolerance)
        for tolerance in (0.0, 1e-2)
    )
    assert len(cut.nodes) < len(exact.nodes)
    assert 0.0 < cut.dropped < 0.5


def test_only_the_edges_of_reached_nodes_are_read():
    path = build_graph(np.arange(9), np.arange(1, 10))
    broken = path.indices.copy()
    broken[path.indptr[5] :] = 10**6  # would fail if a row from 5 on were used
    new = new_nodes(path, np.empty((1, 0)), [[2]])
    base = GraphTransition(replace(path, indices=broken), "sym", self_loops=True)
    row = push_row(PatchedTransition(base, grown(new)), 10, teleport=0.1, steps=3, tolerance=0.0)
    assert row.nodes.tolist() == [0, 1, 2, 3, 4, 10]


@pytest.mark.parametrize("tolerance", [-1e-9, float("nan")])
def test_a_wrong_tolerance_is_refused(tolerance):
    transition = PatchedTransition(GraphTransition(TRIANGLE, "rw", True), rewired(TRIANGLE, 0))
    with pytest.raises(ConfigError, match=r"tolerance is .*, expected at least 0"):
        push_row(transition, 0, teleport=0.1, steps=1, tolerance=tolerance)


@given(
    st.lists(st.sampled_from([0.0, 0.5, 1.5, 2.0]), min_size=4, max_size=4),
    st.sets(st.integers(0, 5)).map(sorted),
    st.integers(1, 4),
)
def test_parts_of_a_row_are_the_same_as_a_list_and_as_an_array(weights, ids, num_nodes):
    everyone = np.array([*weights, 0.25, 0.75])
    chosen = np.array(ids, np.int64)
    as_list = PushedRow(np.flatnonzero(everyone), everyone[everyone > 0], 0.0)
    as_array = PushedRow(None, everyone, 0.0)
    values = np.arange(1.0, num_nodes + 1)
    others = everyone[:num_nodes].copy()
    others[chosen[chosen < num_nodes]] = 0.0
    for row in (as_list, as_array):
        assert row.of(chosen).tolist() == everyone[chosen].tolist()
        left = row.without(chosen, num_nodes)
        assert left.sum_of(values) == pytest.approx(others @ values)
        nodes, weight = left.listed()
        kept = others > 0
        assert nodes[weight > 0].tolist() == np.flatnonzero(kept).tolist()
        assert weight[weight > 0].tolist() == others[kept].tolist()
