"""Features that are made block by block are those of the whole table."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import CSRFeatures
from gpn_scale.data.preparation import Preparation
from gpn_scale.data.prepared_blocks import features_by_block

TEXTS = st.none() | st.sampled_from(["red house", "blue", "red", "house and garden", "x1"])


@settings(max_examples=50, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.none() | st.floats(-9, 9), TEXTS, TEXTS), min_size=2, max_size=12
    ).filter(lambda rows: any(row[0] is not None for row in rows)),
    kind=st.sampled_from(["category", "text"]),
    structural=st.booleans(),
    block_nodes=st.integers(1, 13),
    memory_bytes=st.sampled_from([0, 1 << 20]),
)
def test_blocks_give_the_features_of_the_whole(rows, kind, structural, block_nodes, memory_bytes):
    numbers, texts, notes = zip(*rows, strict=True)
    table = pa.table({"n": pa.array(numbers), "t": pa.array(texts, pa.string()), "k": notes})
    table = table.set_column(2, "k", pa.array(notes, pa.string()))
    graph = build_graph([0], [1], num_nodes=len(rows))
    preparation = Preparation.fit(
        table, kinds={"n": "number", "t": kind, "k": "category"}, structural=structural
    ).fitted_to(graph)
    whole = preparation.apply(table, graph=graph).features
    blocks = features_by_block(
        preparation, table, graph, block_nodes=block_nodes, memory_bytes=memory_bytes
    )
    assert type(blocks) in (type(whole), np.memmap)
    assert blocks.shape == whole.shape
    if isinstance(whole, CSRFeatures):
        for name in ("indptr", "indices", "values"):
            assert getattr(blocks, name).dtype == getattr(whole, name).dtype
            assert getattr(blocks, name).tobytes() == getattr(whole, name).tobytes()
    else:
        assert blocks.dtype == whole.dtype
        assert blocks.tobytes() == whole.tobytes()


@pytest.mark.parametrize("memory_bytes", [0, 1 << 20])
def test_rows_without_values_follow_the_rule(memory_bytes):
    preparation = Preparation.fit(pa.table({"age": [1.0, 3.0]}))
    table, graph = pa.table({"age": [1.0, 3.0, None]}), build_graph([], [], num_nodes=3)
    features = features_by_block(preparation, table, graph, memory_bytes=memory_bytes)
    assert features.ravel().tolist() == [-1, 1, 0]
