"""Edges that are sorted in buckets become the rows that `build_graph` makes in memory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.data.compressed_edges import compressed_edges, edge_list_blocks

EDGE = st.tuples(st.integers(0, 6), st.integers(0, 6), st.floats(0.125, 100, width=32))


@given(
    edges=st.lists(EDGE, max_size=40),
    weighted=st.booleans(),
    directed=st.booleans(),
    block_edges=st.integers(1, 9),
    bucket_entries=st.integers(1, 12),
    memory_bytes=st.sampled_from([0, 40, 1 << 20]),
)
def test_any_blocks_and_buckets_give_the_rows_of_build_graph(
    edges, weighted, directed, block_edges, bucket_entries, memory_bytes
):
    source = np.array([edge[0] for edge in edges], np.int64)
    target = np.array([edge[1] for edge in edges], np.int64)
    weight = np.array([edge[2] for edge in edges], np.float32) if weighted else None
    whole = build_graph(source, target, num_nodes=7, edge_weight=weight, directed=directed)
    rows = compressed_edges(
        edge_list_blocks(source, target, weight, block_edges),
        7,
        weighted=weighted,
        directed=directed,
        bucket_entries=bucket_entries,
        memory_bytes=memory_bytes,
    )
    assert rows.indptr.dtype == whole.indptr.dtype
    assert rows.indptr.tobytes() == whole.indptr.tobytes()
    assert rows.indices.dtype == whole.indices.dtype
    assert rows.indices.tobytes() == whole.indices.tobytes()
    if weighted:
        assert rows.weight.dtype == np.float32
        assert rows.weight.tobytes() == whole.edge_weight.tobytes()
    else:
        assert rows.weight is None


@pytest.mark.parametrize("directed", [False, True])
def test_sums_of_many_repeated_weights_have_the_same_bytes(directed):
    rng = np.random.default_rng(0)
    source, target = rng.integers(0, 5, (2, 4000))
    weight = rng.exponential(size=4000).astype(np.float32)
    whole = build_graph(source, target, edge_weight=weight, directed=directed)
    blocks = edge_list_blocks(source, target, weight, 100)
    rows = compressed_edges(blocks, 5, weighted=True, directed=directed, bucket_entries=500)
    assert rows.weight.tobytes() == whole.edge_weight.tobytes()


def test_large_results_are_mapped_and_leave_no_file(tmp_path):
    blocks = edge_list_blocks(np.arange(100), np.arange(1, 101))
    rows = compressed_edges(
        blocks, 101, weighted=False, directed=False, directory=tmp_path, memory_bytes=10
    )
    assert isinstance(rows.indices, np.memmap)
    assert not list(tmp_path.iterdir())
    assert rows.indices.tolist() == build_graph(np.arange(100), np.arange(1, 101)).indices.tolist()
