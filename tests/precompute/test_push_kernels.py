"""Kernels of single roots against dense rows; `test_row_engine` tests them with others."""

import numpy as np
import pytest

from precompute.push_kernels import keep_pushed_into, push_node_into, walk_node_into
from precompute.scratch_memory import new_rows, new_work
from tests.precompute.engines import config_of, engine_of, random_graph, truth_of


def test_kept_entries_are_the_largest_and_the_slot_is_clear():
    work, rows = new_work(4, 2, push=True), new_rows(1, entries=2)
    work.mass[1], work.touched[1] = [0.25, 0.0, 0.5, 0.125], [2, 0, 3, 1]
    assert keep_pushed_into(4, 2, 1, work, rows.ids[0], rows.weights[0]) == 2
    assert sorted(rows.ids[0].tolist()) == [0, 2]
    assert not any(array.any() for array in (work.mass, work.value, work.place))


@pytest.mark.parametrize("teleport", [1e-300, 1e-30])
@pytest.mark.parametrize("steps", [3, -1])
def test_products_that_underflow_list_no_node_twice(teleport, steps):
    """The configuration refuses such numbers; the kernels stay in their arrays nevertheless."""
    graph = random_graph(40)
    engine, work = engine_of(graph, config_of("rw")), new_work(40, 1, push=True)
    matrix = (engine.indptr, engine.indices, engine.weight)
    if steps < 0:
        count = push_node_into(0, *matrix, teleport, 0.5, 0, work)
    else:
        count = walk_node_into(0, *matrix, teleport, steps, 0.0, 0, work)
    touched = work.touched[0, :count].tolist()
    assert len(set(touched)) == count <= 40


@pytest.mark.parametrize("root", [0, 7])
def test_a_push_is_a_lower_bound_within_its_tolerance(root):
    graph, config = random_graph(40), config_of("rw")
    engine, work = engine_of(graph, config), new_work(40, 1, push=True)
    matrix = (engine.indptr, engine.indices, engine.weight)
    count = push_node_into(root, *matrix, 0.2, 1e-4, 0, work)
    truth, mass = truth_of(graph, config)[root], work.mass[0].astype(np.float64)
    assert (mass <= truth * (1 + 1e-12)).all()
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
    assert not work.value.any()
    assert not work.place.any()
