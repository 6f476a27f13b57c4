from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.data.building import build_graph
from gpn_scale.drift.columns import NEIGHBOURS, check_graph, column_drifts, graph_fits
from gpn_scale.drift.reference import ComparedNodes
from gpn_scale.errors import GraphError
from tests.drift.samples import raw_graph, scored


def drifts(a, b):
    table_a, table_b = scored(a.num_nodes), scored(b.num_nodes)
    return column_drifts(a, b, table_a, table_b, ComparedNodes.of(table_a, table_b))


def test_equal_graphs_have_not_moved():
    drift = drifts(raw_graph(), raw_graph())
    assert drift.moved == ()
    assert drift.compared == 5
    assert drift.left_out == ()
    assert {each.name: each.kind for each in drift.columns} == {
        "age": "number",
        "country": "category",
        "is_company": "boolean",
        "opened": "date",
        "note": "text",
        NEIGHBOURS: "network",
    }
    assert all(each.movement.distance == 0 for each in drift.columns)


def test_two_draws_of_the_same_rule_have_not_moved():
    assert drifts(raw_graph(rng_seed=1), raw_graph(rng_seed=2)).moved == ()


SHIFTS = {
    "age": lambda rng: rng.normal(55, 10, 600).round(),
    "country": lambda rng: rng.choice(["DE", "FR", "XK"], 600, p=[0.5, 0.3, 0.2]),
    "is_company": lambda rng: rng.choice(["yes", "no"], 600, p=[0.8, 0.2]),
    "opened": lambda rng: [f"20{year:02d}-03-01" for year in rng.integers(20, 26, 600)],
    "note": lambda rng: [f"token swap {each}" for each in rng.integers(0, 10**6, 600)],
}


@pytest.mark.parametrize("name", SHIFTS)
def test_a_planted_shift_of_one_column_is_first_and_alone(name):
    values = SHIFTS[name](np.random.default_rng(8))
    drift = drifts(raw_graph(), raw_graph(**{name: values}))
    assert [each.name for each in drift.moved] == [name]
    assert drift.columns[0].name == name
    assert drift.to_dict()["columns"][0]["moved"]


def test_a_moved_network_is_found():
    graph = raw_graph()
    lone = replace(
        build_graph([], [], num_nodes=600, node_names=graph.node_names),
        features=graph.features,
        feature_names=graph.feature_names,
        preparation=graph.preparation,
        raw_columns=graph.raw_columns,
    )
    assert [each.name for each in drifts(graph, lone).moved] == [NEIGHBOURS]


def test_columns_that_one_side_has_are_named():
    graph = raw_graph(height=np.arange(600))
    assert drifts(raw_graph(), graph).left_out == (
        "Columns that A does not have are left out: 'height'.",
    )
    assert drifts(graph, raw_graph()).left_out == (
        "Columns that B does not have are left out: 'height'.",
    )


def test_features_stand_in_for_raw_columns():
    bare = replace(raw_graph(), raw_columns=None)
    drift = drifts(bare, bare)
    assert drift.compared == bare.num_features
    assert "features, the 50 that moved most are listed" in drift.left_out[0]
    other = replace(raw_graph(age=np.arange(600)), raw_columns=None)
    assert "were prepared by different rules" in drifts(bare, other).left_out[0]
    plain = build_graph([0], [1], num_nodes=600, node_names=bare.node_names)
    assert drifts(plain, plain).left_out == (
        "Features are not compared: the graphs have none of the same name.",
    )


def test_a_graph_must_be_the_one_that_was_predicted():
    graph, table = raw_graph(60), scored(60)
    assert graph_fits(table, graph)
    check_graph(table, graph, "graph_a")
    for wrong in (raw_graph(50), replace(graph, node_names=None)):
        assert not graph_fits(table, wrong)
        with pytest.raises(GraphError, match="is not the graph of the table") as caught:
            check_graph(table, wrong, "graph_b")
        assert caught.value.arguments == ("graph_b",)
    turned = replace(graph, node_names=graph.node_names[::-1])
    assert not graph_fits(table, turned)
    some = scored(10, node=np.arange(10) * 6, node_name=[f"n{6 * place}" for place in range(10)])
    assert graph_fits(some, graph)
    assert graph_fits(scored(60, node_name=None), replace(graph, node_names=None))
