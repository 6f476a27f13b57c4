"""Single kernels against plain Python; `test_row_engine` tests them together."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from precompute.padded_row_kernels import (
    copy_rows_into,
    find_whole_rows_into,
    finish_rows_into,
    pack_rows_into,
    subtract_clusters_into,
    sum_rows_into,
)
from precompute.row_kernels import PaddedRows
from precompute.scratch_memory import new_rows
from tests.precompute.engines import padded
from tests.strategies import graphs


def pairs_of(rows):
    return [
        list(zip(ids[:size].tolist(), weights[:size].tolist(), strict=True))
        for ids, weights, size in zip(rows.ids, rows.weights, rows.sizes, strict=True)
    ]


weights = st.floats(2**-10, 1, width=32)
rows_of_pairs = st.lists(
    st.dictionaries(st.integers(0, 9), weights, max_size=6).map(lambda row: list(row.items())),
    max_size=5,
)


@given(lists=rows_of_pairs, first=st.integers(0, 2))
def test_copied_rows_replace_those_from_the_first(lists, first):
    source, target = padded(lists, 6), new_rows(8, 6)
    copy_rows_into(first, *source, *target)
    copied = PaddedRows(*(array[first : first + len(lists)] for array in target))
    assert pairs_of(copied) == pairs_of(source)
    assert target.sizes.sum() == source.sizes.sum()


@given(lists=rows_of_pairs, k=st.integers(1, 4))
def test_finished_rows_are_the_sorted_top_k(lists, k):
    rows = padded(lists, 6)
    before = pairs_of(rows)
    finish_rows_into(k, *rows)
    expected = [sorted(row, key=lambda pair: (-pair[1], pair[0]))[:k] for row in before]
    assert pairs_of(rows) == expected


@given(lists=rows_of_pairs)
def test_sums_and_packed_rows(lists):
    rows = padded(lists, 6)
    sums = np.empty(len(lists))
    sum_rows_into(rows.weights, rows.sizes, sums)
    np.testing.assert_allclose(sums, [sum(w for _, w in row) for row in pairs_of(rows)])
    row_ptr = np.append(0, np.cumsum(rows.sizes)).astype(np.int64)
    ids, packed = np.empty(row_ptr[-1], np.int32), np.empty(row_ptr[-1], np.float32)
    pack_rows_into(*rows, row_ptr, ids, packed)
    flat = [pair for row in pairs_of(rows) for pair in row]
    assert list(zip(ids.tolist(), packed.tolist(), strict=True)) == flat


def test_kept_mass_is_taken_out_of_its_cluster_but_not_below_zero():
    rows = padded([[(0, 0.5), (3, 0.25)], []], 2)
    masses = np.array([[0.75, 0.125], [0.5, 0.5]], np.float32)
    subtract_clusters_into(*rows, np.array([0, 0, 0, 1], np.int32), masses)
    assert masses.tolist() == [[0.25, 0.0], [0.5, 0.5]]


@given(graph=graphs(), steps=st.integers(0, 4), data=st.data())
def test_whole_rows_keep_every_node_within_reach(graph, steps, data):
    nodes = np.arange(graph.num_nodes)
    drawn = st.lists(st.sampled_from(nodes.tolist()), unique=True)
    lists = [[(node, 0.5) for node in data.draw(drawn)] for _ in nodes]
    rows, state = padded(lists, graph.num_nodes), np.zeros(graph.num_nodes, np.int8)
    whole = np.empty(graph.num_nodes, np.bool_)
    matrix = np.asarray(graph.indptr), np.asarray(graph.indices)
    find_whole_rows_into(nodes, steps, *matrix, rows.ids, rows.sizes, state, whole)
    assert not state.any()
    for root, pairs in enumerate(lists):
        reached = {root}
        for _ in range(steps):
            reached |= {
                int(other)
                for node in reached
                for other in graph.indices[graph.indptr[node] : graph.indptr[node + 1]]
            }
        assert whole[root] == (reached <= {node for node, _ in pairs})
