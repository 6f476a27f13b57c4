"""Addresses of new nodes and changes: limits, and bad values."""

import pytest


def test_more_new_nodes_than_allowed_are_refused(client):
    nodes = [{"id": f"x{number}", "columns": {}} for number in range(10_000)]
    answer = client.post("/predict_new", {"nodes": nodes})
    assert answer.status_code == 413
    assert "nodes holds 10,000, expected at most 1,000" in answer.json()["error"]


def test_more_edges_than_allowed_are_refused(client_with):
    edges = [{"source": "x", "target": "acc-011"}] * 1001
    answer = client_with(max_new_nodes=1).post(
        "/predict_new", {"nodes": [{"id": "x"}], "edges": edges}
    )
    assert answer.status_code == 413


def test_no_new_node_is_a_mistake(client):
    answer = client.post("/predict_new", {"nodes": []})
    assert (answer.status_code, "nodes is empty" in answer.json()["error"]) == (422, True)


def test_new_nodes_and_changes_are_answered(client):
    new = {"id": "<b>new", "columns": {"size": 1.5, "country": "DE"}}
    body = {"nodes": [new], "edges": [{"source": "<b>new", "target": ".."}]}
    answer = client.post("/predict_new", body)
    assert answer.status_code == 200
    assert answer.json()["predictions"][0]["id"] == "<b>new"
    change = {"id": "..", "columns": {"size": "9.5"}}
    answer = client.post("/what_if", change)
    assert answer.status_code == 200
    assert answer.json()["before"] != answer.json()["after"]


@pytest.mark.parametrize(
    ("path", "body", "status", "sentence"),
    [
        ("/what_if", {"id": "nobody"}, 404, "there is no node"),
        ("/what_if", {"id": "..", "add_edges": [{"id": "nobody"}]}, 404, "there is no node"),
        ("/what_if", {"id": "..", "colums": {}}, 422, "colums: "),
        ("/what_if", {"id": "..", "add_edges": [{"id": "acc-011", "weight": 0}]}, 422, "weight"),
        (
            "/predict_new",
            {"nodes": [{"id": "x", "columns": {"size": [1]}}]},
            422,
            "nodes.0.columns",
        ),
        ("/predict_new", {"nodes": [{"columns": {}}]}, 422, "nodes.0.id"),
    ],
)
def test_bad_values_get_a_sentence(client, path, body, status, sentence):
    answer = client.post(path, body)
    assert answer.status_code == status
    assert sentence in answer.json()["error"]


def test_infinite_weights_are_refused(client):
    content = b'{"id": "..", "add_edges": [{"id": "acc-011", "weight": Infinity}]}'
    answer = client.post("/what_if", content=content, headers={"content-type": "application/json"})
    assert answer.status_code == 422
