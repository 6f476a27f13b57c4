"""Edges join numbered nodes by each rule for unknown ids."""

from functools import partial
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpn_scale.data import linked_edges
from gpn_scale.data.column_roles import ColumnRoles
from gpn_scale.data.fault_collector import FaultCollector
from gpn_scale.data.faults import TableFaults
from gpn_scale.data.linked_edges import read_edges
from gpn_scale.data.node_tables import read_nodes
from gpn_scale.data.table_inputs import input_table
from gpn_scale.scratch import GrowingArray

EDGES = {"from": ["a", "z", "b", "c"], "to": ["b", "a", "y", "z"], "sum": [1.0, 2.0, 3.0, 4.0]}
ROLES = ColumnRoles(id="id", source="from", target="to", weight="sum")


def read(rule, edges=EDGES, nodes=("a", "b", "c"), roles=ROLES, **options):
    faults = FaultCollector()
    listed = nodes and read_nodes(input_table({"id": list(nodes)}, "nodes"), roles, faults)
    table = input_table(edges, "edges")
    return read_edges(table, roles, listed or None, rule, faults, **options), faults


def reported(faults):
    try:
        faults.report()
    except TableFaults as error:
        return error.faults, error.arguments
    return (), ()


def test_added_ids_are_sorted_and_follow_the_listed_ones():
    edges, faults = read("add")
    faults.report()
    assert edges.added.to_pylist() == ["y", "z"]
    assert edges.source.tolist() == [0, 4, 1, 2]
    assert edges.target.tolist() == [1, 0, 3, 4]
    assert edges.weight.tolist() == [1, 2, 3, 4]


def test_dropped_edges_take_their_weights_along():
    edges, faults = read("drop")
    faults.report()
    assert (edges.source.tolist(), edges.target.tolist()) == ([0], [1])
    assert (edges.weight.tolist(), edges.num_listed, edges.added) == ([1], 4, None)


def test_unknown_ids_are_faults():
    _, faults = read("refuse")
    with pytest.raises(TableFaults) as error:
        faults.report()
    assert [(fault.column, fault.value) for fault in error.value.faults] == [
        ("from", "z"), ("to", "y"), ("to", "z"),
    ]  # fmt: skip


def test_most_ids_unknown_is_one_fault_per_column_with_a_reason():
    edges = {"from": ["1", "2"], "to": ["3", "4"], "payer": ["a", "b"]}
    _, faults = read("refuse", edges, roles=ColumnRoles(id="id", source="from", target="to"))
    with pytest.raises(TableFaults, match="'payer' are: were columns exchanged") as error:
        faults.report()
    assert len(error.value.faults) == 2
    assert set(error.value.arguments) == {"unknown_ids", "id", "source", "target"}


def test_without_nodes_only_weights_are_checked():
    edges, faults = read("refuse", EDGES | {"sum": [1.0, -2.0, 3.0, 4.0]}, nodes=())
    assert edges is None
    with pytest.raises(TableFaults, match=r"sum +'-2'") as error:
        faults.report()
    assert len(error.value.faults) == 1


def test_without_columns_there_is_nothing_to_read():
    edges, faults = read("refuse", roles=ColumnRoles(id="id"))
    assert edges is None
    faults.report()


ENDS = st.sampled_from(["a", "b", "7", "7.0", "8.0", "1.0", "y", "x", "", None])


@settings(deadline=None)
@given(
    rows=st.lists(st.tuples(ENDS, ENDS, st.floats(0.5, 9)), max_size=12),
    rule=st.sampled_from(["refuse", "add", "drop"]),
    ids=st.permutations(["a", "b", "7", "1.0", "8"]),
    block_rows=st.integers(1, 5),
    spilled=st.booleans(),
)
def test_blocks_give_what_the_whole_table_gives(rows, rule, ids, block_rows, spilled):
    columns = [*zip(*rows, strict=True)] if rows else [(), (), ()]
    edges = dict(zip(("from", "to", "sum"), columns, strict=True))
    whole, whole_faults = read(rule, edges, ids)
    small = partial(GrowingArray, memory_bytes=0 if spilled else 1000)
    with patch.object(linked_edges, "GrowingArray", small):
        blocks, block_faults = read(rule, edges, ids, block_rows=block_rows)
    assert isinstance(blocks.source, np.memmap) == (spilled and len(blocks.source) > 0)
    assert reported(block_faults) == reported(whole_faults)
    for name in ("source", "target", "weight"):
        assert getattr(blocks, name).tolist() == getattr(whole, name).tolist()
    assert blocks.num_listed == whole.num_listed == len(rows)
    assert (blocks.added is None) == (whole.added is None)
    if whole.added is not None:
        assert blocks.added.equals(whole.added)


@settings(deadline=None)
@given(
    rows=st.lists(st.tuples(ENDS, ENDS), min_size=1, max_size=12),
    ids=st.permutations(["a", "b", "7", "1.0", "8"]),
    block_rows=st.integers(1, 5),
)
def test_ends_are_found_as_a_dictionary_finds_them(rows, ids, block_rows):
    edges = {"from": [row[0] for row in rows], "to": [row[1] for row in rows]}
    roles = ColumnRoles(id="id", source="from", target="to")
    linked, _ = read("drop", edges, ids, roles, block_rows=block_rows)
    place = {name: number for number, name in enumerate(ids)}

    def node_of(name, column):
        texts = [text for text in column if text]
        if name and all(text.endswith(".0") for text in texts):
            return place.get(name.removesuffix(".0"))
        return place.get(name, place.get((name or "").removesuffix(".0")))

    ends = [(node_of(u, edges["from"]), node_of(v, edges["to"])) for u, v in rows]
    expected = [pair for pair in ends if None not in pair]
    assert list(zip(linked.source.tolist(), linked.target.tolist(), strict=True)) == expected


def test_edges_get_other_numbers():
    edges, _ = read("add")
    other = edges.renumbered(np.array([4, 3, 2, 1, 0]))
    assert other.source.tolist() == [4, 0, 3, 2]
    assert other.target.tolist() == [3, 4, 1, 0]
    assert (other.weight.tolist(), other.num_listed) == ([1, 2, 3, 4], 4)
    assert other.added.to_pylist() == ["y", "z"]
    assert other.num_self_loops == 0
