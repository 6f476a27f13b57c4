"""Addresses of known nodes: hostile ids, pages, limits, streams."""

import json
from urllib.parse import quote

import pytest

from gpn_scale.serve.answers import node_answer
from gpn_scale.serve.node_routes import COMMON, documented
from gpn_scale.serve.queries import NodeFilter, listed_nodes
from tests.serve.conftest import HOSTILE


@pytest.mark.parametrize("node", range(len(HOSTILE)))
def test_hostile_ids_are_ids_like_others(client, model, node):
    name = HOSTILE[node]
    if name != "..":  # which clients take out of an address before they send it
        answer = client.get(f"/nodes/{quote(name, safe='')}")
        assert (answer.status_code, answer.json()) == (200, node_answer(model, node))
        assert answer.headers["content-type"] == "application/json"
    for path in ("neighbours", "neighbourhood", "contributors", "similar", "features"):
        answer = client.get(f"/{path}", params={"id": name})
        assert (answer.status_code, answer.json()["id"]) == (200, name)
    answer = client.post("/predict", {"ids": [name]})
    assert answer.json() == {"predictions": [node_answer(model, node)]}


@pytest.mark.parametrize(
    "path", ["/nodes/a/b/../c", "/nodes//leading", "/nodes/acc-011%00", "/nodes/%ff%fe", "/nodes/"]
)
def test_odd_addresses_are_answered_with_sentences(client, path):
    answer = client.get(path)
    assert answer.status_code in (200, 404)
    if answer.status_code == 404:
        assert answer.json()["error"]


def test_an_unknown_id_gets_similar_ones(client):
    answer = client.get("/nodes/acc-9999")
    assert answer.status_code == 404
    assert "there is no node 'acc-9999'" in answer.json()["error"]
    assert all(name.startswith("acc-") for name in answer.json()["nearest"])
    for path in ("neighbours", "neighbourhood", "contributors", "similar", "features"):
        answer = client.get(f"/{path}", params={"id": "<b>nobody"})
        assert answer.status_code == 404
        assert answer.json()["nearest"]


def test_unknown_ids_of_a_batch_are_listed(client):
    ids = ["acc-011", *(f"nobody-{number}" for number in range(12))]
    answer = client.post("/predict", {"ids": ids})
    assert answer.status_code == 404
    assert answer.json()["unknown"] == ids[1:11]
    assert answer.json()["nearest"]


def test_a_batch_is_a_stream_in_the_order_of_the_request(client, model):
    nodes = [5, 200, 5, *range(150)]
    ids = [model.ids.text(node) for node in nodes]
    expected = [node_answer(model, node) for node in nodes]
    assert client.post("/predict", {"ids": ids}).json() == {"predictions": expected}
    lines = client.post("/predict", {"ids": ids}, headers={"accept": "application/x-ndjson"})
    assert lines.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line) for line in lines.text.splitlines()] == expected
    assert client.post("/predict", {"ids": []}).json() == {"predictions": []}


def test_numbers_are_ids_too(client):
    answer = client.post("/predict", {"ids": [11]})
    assert answer.status_code == 404
    assert "'11'" in answer.json()["error"]


def test_more_nodes_than_allowed_are_refused(client_with):
    client = client_with(max_nodes=2)
    answer = client.post("/predict", {"ids": ["acc-011"] * 3})
    assert answer.status_code == 413
    assert "ids holds 3, expected at most 2" in answer.json()["error"]
    assert client.post("/predict", {"ids": ["acc-011"] * 2}).status_code == 200


def test_a_list_is_filtered_by_the_parameters(client, model):
    asked = {"search": "acc", "split": "test", "sort": "degree", "descending": "true", "limit": 7}
    wanted = NodeFilter(search="acc", split="test", sort="degree", descending=True)
    answer = client.get("/nodes", params={**asked, "offset": 2}).json()
    assert answer == listed_nodes(model, wanted, 2, 7)
    asked = {"predicted_class": "bad", "reason": "nothing unusual"}
    answer = client.get("/nodes", params=asked).json()
    assert answer["total"] > 0
    assert {each["predicted_class"] for each in answer["nodes"]} == {"bad"}


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/nodes?limit=501", "limit"),
        ("/nodes?limit=x", "limit"),
        ("/nodes?offset=-1", "offset"),
        ("/nodes?sort=colour", "sort"),
        ("/neighbourhood?id=..&hops=3", "hops"),
        ("/neighbours", "id"),
        ("/contributors?id=..&count=0", "count"),
    ],
)
def test_wrong_parameters_are_named(client, path, place):
    answer = client.get(path)
    assert answer.status_code == 422
    assert answer.json()["error"].startswith(f"{place}: ")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b'{"ids": ', "the body is not JSON"),
        (b"", "the body: Field required"),
        (b"[]", "the body"),
        (b'{"ids": "a"}', "ids: "),
        (b'{"ids": [1.5]}', "ids"),
        (b'{"ids": [NaN]}', "ids"),
        (b'{"ids": [true]}', "ids"),
        (b'{"ids": [null]}', "ids"),
        (b'{"ids": ["\\ud800"]}', "ids"),
        (b'{"ids": [], "more": 1}', "more: "),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"ids": [' + b"9" * 10_000 + b"]}", "a number too long"),
        (b"\xff\xfe", "the body is not JSON"),
        (b'{"ids": ["\x80"]}', "the body cannot be read"),
    ],
)
def test_broken_bodies_get_a_sentence(client, body, sentence):
    headers = {"content-type": "application/json"}
    answer = client.post("/predict", content=body, headers=headers)
    assert answer.status_code == 422
    assert sentence in answer.json()["error"]


def test_a_body_that_says_it_is_no_json_is_refused(client):
    answer = client.post("/predict", content=b'{"ids": []}', headers={"content-type": "text/plain"})
    assert answer.status_code == 422
    assert "add the header Content-Type: application/json" in answer.json()["error"]


def test_errors_are_described():
    assert set(documented(404, 413)) == {404, 413}
    assert 500 in COMMON
