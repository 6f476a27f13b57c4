"""Lists, neighbours, contributors and similar nodes, against slow and obvious versions."""

import numpy as np
import pytest

from gpn_scale.inference.similar import similar_nodes
from gpn_scale.serve.answers import briefs
from gpn_scale.serve.queries import (
    NodeFilter,
    contributors_of,
    listed_nodes,
    neighbourhood_of,
    neighbours_of,
    similar_to,
)

EVERYONE = 10_000


def ids_of(answer, key="nodes"):
    return [each["id"] for each in answer[key]]


@pytest.fixture(scope="module")
def everyone(model):
    return briefs(model, range(model.graph.num_nodes))


@pytest.mark.parametrize("sort", ["trust", "p_known", "probability", "degree", "id"])
@pytest.mark.parametrize("descending", [False, True])
def test_nodes_are_sorted(model, everyone, sort, descending):
    wanted = NodeFilter(sort=sort, descending=descending)
    page = listed_nodes(model, wanted, 0, EVERYONE)
    values = [each[sort] for each in page["nodes"]]
    assert values == sorted(values, reverse=descending)
    assert sorted(ids_of(page)) == sorted(each["id"] for each in everyone)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("predicted_class", "bad"),
        ("split", "val"),
        ("reason", "nothing unusual"),
        ("reason", "torn between classes"),
        ("predicted_class", "nobody"),
        ("reason", "unheard of"),
    ],
)
def test_nodes_are_filtered(model, everyone, name, value):
    start = "torn between " if value == "torn between classes" else value
    expected = {each["id"] for each in everyone if (each[name] or "").startswith(start)}
    page = listed_nodes(model, NodeFilter(**{name: value}), 0, EVERYONE)
    assert set(ids_of(page)) == expected
    assert page["total"] == len(expected)


def test_a_search_keeps_its_order_unless_it_is_sorted(model):
    page = listed_nodes(model, NodeFilter(search="acc-0"), 2, 5)
    assert page["total"] == sum(1 for name in model.graph.node_names if name.startswith("acc-0"))
    assert ids_of(page) == [f"acc-{node:03d}" for node in range(11, 16)]
    by_degree = listed_nodes(model, NodeFilter(search="acc", sort="degree"), 0, EVERYONE)
    degrees = [each["degree"] for each in by_degree["nodes"]]
    assert degrees == sorted(degrees)
    both = NodeFilter(search="acc", split="train", descending=True, sort="id")
    assert all(each["split"] == "train" for each in listed_nodes(model, both, 0, 9)["nodes"])
    assert listed_nodes(model, NodeFilter(search="<script>"), 0, 5)["total"] == 1
    assert listed_nodes(model, NodeFilter(), EVERYONE, 5)["nodes"] == []


def test_neighbours_are_those_of_the_graph(model):
    graph, node = model.graph, int(model.graph.out_degree.argmax())
    page = neighbours_of(model, node, 1, 3)
    row = graph.indices[graph.indptr[node] : graph.indptr[node + 1]]
    assert ids_of(page, "neighbours") == [model.ids.text(other) for other in row[1:4]]
    assert page["degree"] == len(row)
    assert {each["weight"] for each in page["neighbours"]} == {1.0}
    alone = graph.num_nodes - 1
    assert neighbours_of(model, alone, 0, 5)["neighbours"] == []
    assert neighbours_of(model, node, 500, 5)["neighbours"] == []


def test_a_neighbourhood_has_its_edges(model):
    graph = model.graph
    around = neighbourhood_of(model, 20, 2, 15)
    nodes = [model.ids.position(each["id"]) for each in around["nodes"]]
    assert nodes[0] == 20
    assert around["truncated"]
    expected = set()
    for i, u in enumerate(nodes):
        row = set(graph.indices[graph.indptr[u] : graph.indptr[u + 1]].tolist())
        expected |= {(i, j, 1.0) for j, v in enumerate(nodes) if v in row and i < j}
    assert {tuple(edge) for edge in around["edges"]} == expected
    assert [each["hop"] for each in around["nodes"]][:2] == [0, 1]


def test_contributors_are_those_of_the_classifier(model):
    answer = contributors_of(model, 20, 4)
    explained = model.classifier.explain(model.graph, 20, count=4)
    assert ids_of(answer, "contributors") == [
        model.ids.text(node) for node in explained.contributors.node[0]
    ]
    shares = [each["share"] for each in answer["contributors"]]
    np.testing.assert_allclose(shares, explained.contributors.share[0], rtol=1e-6)
    row = model.graph.indices[model.graph.indptr[20] : model.graph.indptr[21]]
    for each in answer["contributors"]:
        assert each["adjacent"] == (model.ids.position(each["id"]) in row)
        assert each["leading_class"] in model.classes
    assert answer["source"] == "exact"


def test_similar_nodes_have_the_smallest_distances(model):
    answer = similar_to(model, 7, 5)
    expected = similar_nodes(np.asarray(model.latent), 7, 5)
    assert ids_of(answer) == [model.ids.text(node) for node in expected.nodes]
    assert [each["distance"] for each in answer["nodes"]] == expected.distance.tolist()
