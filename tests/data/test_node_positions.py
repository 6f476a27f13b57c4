import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.data.node_positions import node_positions
from gpn_scale.errors import GraphError

NAMED = build_graph([0], [1], num_nodes=4, node_names=["shop", "bank", "17", "0"])
PLAIN = build_graph([0], [1], num_nodes=4)


@pytest.mark.parametrize(
    ("nodes", "positions"),
    [
        (2, [2]),
        ([3, 0, 3], [3, 0, 3]),
        ("17", [2]),
        ("0", [3]),
        (["bank", "shop", "bank"], [1, 0, 1]),
        (np.array(["bank"], object), [1]),
        ([], []),
    ],
)
def test_integers_are_positions_and_texts_are_names(nodes, positions):
    got = node_positions(NAMED, nodes)
    assert got.tolist() == positions
    assert got.dtype == np.int64


@pytest.mark.parametrize(
    ("graph", "nodes", "message"),
    [
        (NAMED, 17, r"nodes holds 17, expected ids in \[0, 4\): .* as a text, such as '17'"),
        (PLAIN, 4, r"nodes holds 4, expected ids in \[0, 4\)$"),
        (PLAIN, -1, "nodes holds -1"),
        (NAMED, "shp", "holds 'shp', expected names of nodes .*; similar names are 'shop'"),
        (NAMED, ["bank", "zzz"], "holds 'zzz', expected names of nodes of graph 'graph'$"),
        (PLAIN, "a", "'a', but the nodes of graph 'graph' have no names: expected positions in"),
        (NAMED, [True, False], "must be a vector of integer node ids, got bool"),
        (NAMED, [["bank"]], "must be a vector of integer node ids"),
        (NAMED, 1.5, "must be a vector of integer node ids, got float64"),
    ],
)
def test_other_nodes_are_refused(graph, nodes, message):
    with pytest.raises(GraphError, match=message) as error:
        node_positions(graph, nodes)
    assert error.value.arguments in (("nodes",), ())


@given(st.lists(st.text("abc", min_size=1), min_size=1, unique=True), st.data())
def test_names_are_those_at_their_positions(names, data):
    graph = build_graph([], [], num_nodes=len(names), node_names=names)
    wanted = data.draw(st.lists(st.sampled_from(names)))
    assert [names[at] for at in node_positions(graph, np.array(wanted, object))] == wanted
