"""Single kernels against plain Python; `test_row_engine` tests them together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from precompute.row_kernels import add_row_into, keep_top_into, sweep_block_into
from precompute.scratch_memory import new_rows, new_work
from tests.precompute.engines import config_of, engine_of, hub_graph, padded, swept

weights = st.floats(2**-10, 1, width=32)


@given(mass=st.dictionaries(st.integers(0, 9), weights), floor=weights, keep=st.integers(1, 5))
def test_the_largest_entries_above_the_floor_are_kept(mass, floor, keep):
    work = new_work(10, 2, push=False)
    for place, (node, value) in enumerate(mass.items()):
        work.value[1, place], work.touched[1, place], work.place[1, node] = value, node, place + 1
    ids, kept = np.zeros(keep, np.int32), np.zeros(keep, np.float32)
    count = keep_top_into(len(mass), np.float32(floor), keep, 1, work, ids, kept)
    expected = sorted((-value, node) for node, value in mass.items() if value >= floor)[:keep]
    assert sorted(zip(-kept[:count], ids[:count], strict=True)) == expected
    assert not work.place.any()


def test_rows_are_added_and_touched_nodes_listed_once():
    rows = padded([[(3, 0.5), (1, 0.25)], [(1, 0.5)]], 3)
    touched, value, place = np.zeros(5, np.int32), np.zeros(5), np.zeros(5, np.int32)
    count = add_row_into(0, 2.0, rows, 0, touched, value, place)
    count = add_row_into(1, 1.0, rows, count, touched, value, place)
    assert touched[:count].tolist() == [3, 1]
    assert value[:count].tolist() == [1.0, 1.0]
    assert place.tolist() == [0, 2, 0, 1, 0]


@pytest.mark.parametrize("slots", [1, 2, 5])
def test_equal_bytes_for_any_number_of_slots(hub_nodes, slots):
    graph = hub_graph(hub_nodes)
    engine = engine_of(graph, config_of("sym", teleport=0.1, k=8, sweeps=2))
    rows = swept(engine)
    blocks = []
    for count in (1, slots):
        block = new_rows(graph.num_nodes, 16)
        work = new_work(graph.num_nodes, count, push=False)
        arrays = (engine.indptr, engine.indices, engine.weight)
        sweep_block_into(0, graph.num_nodes, *arrays, 0.1, False, rows, work, *block)
        assert not work.place.any()
        blocks.append([array.tobytes() for array in block])
    assert blocks[0] == blocks[1]
