import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.drift.reference import ComparedNodes
from gpn_scale.drift.scored_table import ScoredTable
from gpn_scale.errors import ConfigError
from tests.drift.samples import columns_of, scored

NODES = st.dictionaries(
    st.integers(0, 12), st.sampled_from(["train", "val", "test", None]), min_size=1
)


def table_of(subsets):
    names = [f"n{node}" for node in subsets]
    split = pa.array(list(subsets.values()), pa.string())
    return ScoredTable.of(pa.table(columns_of(len(subsets), node_name=names, split=split)))


@given(NODES, NODES)
def test_compared_are_the_nodes_that_neither_side_has_used(a, b):
    used = {node for side in (a, b) for node, subset in side.items() if subset in ("train", "val")}
    left_a, left_b = ([node for node in side if node not in used] for side in (a, b))
    if not left_a or not left_b:
        with pytest.raises(ConfigError, match="has no nodes to compare"):
            ComparedNodes.of(table_of(a), table_of(b))
        return
    nodes = ComparedNodes.of(table_of(a), table_of(b))
    order_a, order_b = list(a), list(b)
    assert [order_a[row] for row in nodes.a] == left_a
    assert [order_b[row] for row in nodes.b] == left_b
    both = [order_b[row] for row in nodes.in_both_b]
    assert both == [node for node in left_b if node in a]
    assert [order_a[row] for row in nodes.in_both_a] == both


def test_marked_nodes_are_left_out_of_both():
    a = scored(30, mark_isolated=[True] + [False] * 29)
    nodes = ComparedNodes.of(a, scored(30))
    assert nodes.a.tolist() == nodes.b.tolist() == list(range(1, 30))
    assert any("marked as unknown are left out" in each for each in nodes.sentences)


def test_ids_and_positions_do_not_match():
    a, b = scored(30, split=["train"] * 5 + ["test"] * 25), scored(40, node_name=None)
    nodes = ComparedNodes.of(a, b)
    assert (len(nodes.a), len(nodes.b), len(nodes.in_both_a)) == (25, 40, 0)
    assert "nodes are not compared one by one" in nodes.sentences[-1]
    positions = ComparedNodes.of(scored(30, node_name=None), b)
    assert len(positions.in_both_a) == 30
    assert "at the same position" in positions.sentences[-1]


def test_no_common_ids():
    nodes = ComparedNodes.of(scored(30), scored(30, node_name=[f"m{i}" for i in range(30)]))
    assert len(nodes.in_both_a) == len(nodes.in_both_b) == 0
    assert nodes.a.dtype == nodes.in_both_a.dtype == np.int64


def test_sentences_say_what_is_compared():
    a = scored(30, name="run", split=["train"] * 5 + ["test"] * 25)
    sentences = ComparedNodes.of(a, scored(40, name="november.csv")).sentences
    assert sentences[0] == "A is run (30 nodes), B is november.csv (40 nodes)."
    assert sentences[1] == "Compared are 25 nodes of A and 35 nodes of B."
    assert "left out of both, by their ids" in sentences[2]
    unsaid = ComparedNodes.of(scored(30), scored(30)).sentences
    assert "Neither table says which nodes training has used" in unsaid[2]
