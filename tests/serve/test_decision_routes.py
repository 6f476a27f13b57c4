"""Addresses of lists and decisions."""

import pytest


def test_a_decision_is_stored_and_listed(client, model):
    node_id = "<script>alert(1)</script>"
    body = {"id": node_id, "decision": "relabel", "label": "bad", "note": 'a "note"\n'}
    answer = client.post("/decisions", body)
    assert answer.status_code == 201
    stored = answer.json()
    assert stored.items() >= body.items()
    assert stored["model"] == model.fingerprint
    assert client.post("/decisions", {"id": "..", "decision": "accept"}).status_code == 201
    assert client.post("/decisions", {"id": "..", "decision": "skip"}).json()["label"] is None
    page = client.get("/decisions?limit=2").json()
    assert page["total"] == 3
    assert [each["decision"] for each in page["decisions"]] == ["skip", "accept"]
    assert client.get("/decisions?offset=2").json()["decisions"] == [stored]


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({"id": "..", "decision": "relabel"}, 422, "label is missing"),
        ({"id": "..", "decision": "relabel", "label": "x"}, 422, "one of the classes bad, good"),
        ({"id": "..", "decision": "accept", "label": "bad"}, 422, "to relabel only"),
        ({"id": "..", "decision": "maybe"}, 422, "decision: "),
        ({"id": "nobody", "decision": "skip"}, 404, "there is no node"),
        ({"id": "..", "decision": "skip", "note": "x" * 3000}, 422, "note"),
    ],
)
def test_decisions_that_make_no_sense_are_refused(client, body, status, sentence):
    answer = client.post("/decisions", body)
    assert answer.status_code == status
    assert sentence in answer.json()["error"]
    assert client.get("/decisions").json()["total"] == 0


def test_lists_have_pages(client):
    page = client.get("/triage?limit=3&offset=1").json()
    assert page["list"] == "review"
    assert len(page["rows"]) == 3
    chosen = client.get("/triage?list=label_next").json()
    assert chosen["list"] == "label_next"
    assert client.get("/triage?list=other").status_code == 422
