"""Single kernels against plain Python; `test_row_engine` tests them together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precompute.row_kernels import (
    add_row_into,
    keep_top_into,
    push_node_into,
    sweep_block_into,
    walk_node_into,
)
from precompute.scratch_memory import new_rows, new_work
from tests.precompute.engines import (
    config_of,
    engine_of,
    hub_graph,
    padded,
    random_graph,
    truth_of,
)

weights = st.floats(2**-10, 1, width=32)


@given(mass=st.dictionaries(st.integers(0, 9), weights), floor=weights, keep=st.integers(1, 5))
def test_the_largest_entries_above_the_floor_are_kept(mass, floor, keep):
    work = new_work(10, 2, push=False)
    for place, (node, value) in enumerate(mass.items()):
        work.mass[1, node], work.touched[1, place] = value, node
    ids, kept = np.zeros(keep, np.int32), np.zeros(keep, np.float32)
    count = keep_top_into(len(mass), np.float32(floor), keep, 1, work, ids, kept)
    expected = sorted((-value, node) for node, value in mass.items() if value >= floor)[:keep]
    assert sorted(zip(-kept[:count], ids[:count], strict=True)) == expected
    assert not work.mass.any()


def test_rows_are_added_and_touched_nodes_listed_once():
    rows = padded([[(3, 0.5), (1, 0.25)], [(1, 0.5)]], 3)
    mass, touched = np.zeros(5, np.float32), np.zeros(5, np.int32)
    count = add_row_into(0, np.float32(2.0), rows, 0, mass, touched)
    count = add_row_into(1, np.float32(1.0), rows, count, mass, touched)
    assert mass.tolist() == [0.0, 1.0, 0.0, 1.0, 0.0]
    assert touched[:count].tolist() == [3, 1]


@pytest.mark.parametrize("slots", [1, 2, 5])
def test_equal_bytes_for_any_number_of_slots(hub_nodes, slots):
    graph = hub_graph(hub_nodes)
    engine = engine_of(graph, config_of("sym", teleport=0.1, k=8, sweeps=2))
    rows = engine.sweep(lambda *_: None)
    blocks = []
    for count in (1, slots):
        block = new_rows(graph.num_nodes, 16)
        work = new_work(graph.num_nodes, count, push=False)
        arrays = (engine.indptr, engine.indices, engine.weight)
        sweep_block_into(0, graph.num_nodes, *arrays, 0.1, False, rows, work, *block)
        assert not work.mass.any()
        blocks.append([array.tobytes() for array in block])
    assert blocks[0] == blocks[1]


@pytest.mark.parametrize("root", [0, 7])
def test_a_push_is_a_lower_bound_within_its_tolerance(root):
    graph, config = random_graph(40), config_of("rw")
    engine, work = engine_of(graph, config), new_work(40, 1, push=True)
    matrix = (engine.indptr, engine.indices, engine.weight)
    count = push_node_into(root, *matrix, 0.2, 1e-4, 0, work)
    truth, mass = truth_of(graph, config)[root], work.mass[0].astype(np.float64)
    assert (mass <= truth + 1e-6).all()
    # Residuals below the tolerance times the out-edges are all that is left to distribute.
    assert 1.0 - mass.sum() <= 1e-4 * len(engine.indices)
    assert set(np.flatnonzero(mass)) <= set(work.touched[0, :count].tolist())
    assert not work.residual.any()


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_k_steps_without_a_tolerance_are_exact(steps):
    graph, config = random_graph(40), config_of("sym", steps)
    engine, work = engine_of(graph, config), new_work(40, 1, push=True)
    matrix = (engine.indptr, engine.indices, engine.weight)
    walk_node_into(5, *matrix, 0.2, steps, 0.0, 0, work)
    np.testing.assert_allclose(work.mass[0], truth_of(graph, config)[5], atol=1e-6)
    assert not work.residual.any()
    assert not work.candidate_mass.any()
