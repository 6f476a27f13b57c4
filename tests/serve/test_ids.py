"""Ids are found by bisection as a dictionary would find them, and unknown ones get similar ids."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.serve import ids as module
from gpn_scale.serve.ids import NamedIds, PositionIds, id_order, ids_of

# NumPy drops NUL at the end of a text, and surrogates are no characters.
TEXTS = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), min_size=1)
NAMES = st.lists(TEXTS, min_size=1, max_size=30, unique=True)


def named(names):
    graph = build_graph([], [], num_nodes=len(names), node_names=names)
    return ids_of(graph, id_order(graph))


@given(NAMES, TEXTS)
def test_names_are_found_as_in_a_dictionary(names, other):
    ids, truth = named(names), {name: node for node, name in enumerate(names)}
    assert [ids.position(name) for name in names] == list(range(len(names)))
    assert ids.position(other) == truth.get(other)
    assert ids.positions([other, *names]).tolist() == [
        truth.get(other, -1),
        *range(len(names)),
    ]
    assert [ids.text(node) for node in range(len(names))] == names


@given(NAMES, TEXTS)
def test_a_search_has_ids_that_start_with_the_text_first(names, text):
    nodes = named(names).matching(text).tolist()
    starting = sorted(name for name in names if name.startswith(text))
    inside = {name for name in names if text in name} - set(starting)
    assert [names[node] for node in nodes[: len(starting)]] == starting
    assert {names[node] for node in nodes[len(starting) :]} == inside
    assert len(nodes) == len(starting) + len(inside)


@pytest.mark.parametrize("size", [1, 2, 7, 1234])
@pytest.mark.parametrize("most", [0, 10_000])
def test_positions_are_ids_of_a_graph_without_names(size, most, monkeypatch):
    monkeypatch.setattr(module, "_MOST_SCANNED", most)
    ids = ids_of(build_graph([], [], num_nodes=size), None)
    assert isinstance(ids, PositionIds)
    for text in ("0", "1", "12", "007", "-1", "1.0", "", "x", "٣", "9" * 5000):
        expected = next((node for node in range(size) if str(node) == text), None)
        assert ids.position(text) == expected
    texts = [str(node) for node in range(size)]
    for text in ("0", "1", "12", "x"):
        nodes = [texts[node] for node in ids.matching(text)]
        starting = [each for each in texts if each.startswith(text)]
        assert nodes[: len(starting)] == starting
        if most == 0:
            assert nodes == starting


def test_unknown_ids_get_similar_ones():
    ids = named(["acc-001", "acc-002", "shop-7", "Shop-8"])
    assert ids.nearest("acc-003")[0] in ("acc-001", "acc-002")
    assert "shop-7" in ids.nearest("SHOP-7")
    assert len(ids.nearest("x" * 100_000)) == module.MOST_NEAREST
    assert PositionIds(5).nearest("node 99") == ["3", "2", "4"]
    assert PositionIds(1).nearest("x") == ["0"]


def test_only_neighbours_in_the_order_are_compared():
    names = [f"{number:06d}" for number in range(50_000)]
    assert named(names).nearest("012345x")[0] == "012345"


def test_the_order_is_that_of_texts():
    graph = build_graph([], [], num_nodes=3, node_names=["b", "a", "c"])
    order = id_order(graph)
    assert order.tolist() == NamedIds(graph.node_names, order).in_order().tolist() == [1, 0, 2]
    assert id_order(build_graph([], [], num_nodes=3)) is None
    assert PositionIds(3).in_order().tolist() == [0, 1, 2]
    assert order.dtype == np.int32
