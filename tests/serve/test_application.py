"""Errors of all kinds have one form; tracebacks stay in the log."""

import threading

import pytest

from gpn_scale.errors import StoreError
from gpn_scale.serve import application as module
from gpn_scale.serve import node_routes
from gpn_scale.serve.application import application
from tests.serve.conftest import Client


def test_every_error_is_one_sentence(client):
    for method, path, status in (
        ("GET", "/unknown", 404),
        ("GET", "/nodes/nobody", 404),
        ("DELETE", "/nodes/..", 405),
        ("POST", "/graph", 405),
        ("GET", "/static/../server.py", 404),
        ("GET", "/static/nothing.js", 404),
        ("GET", "/graph/", 404),
    ):
        answer = client.request(method, path)
        assert answer.status_code == status, path
        assert isinstance(answer.json()["error"], str)
        assert "Traceback" not in answer.text
    assert client.request("POST", "/graph").headers["allow"] == "GET"


def test_a_fault_is_500_with_an_id_and_its_traceback_is_in_the_log(client, monkeypatch, capsys):
    def broken(model, node):
        raise ZeroDivisionError("secret of the code")

    monkeypatch.setattr(node_routes, "node_answer", broken)
    answer = client.get("/nodes/acc-011")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "ZeroDivisionError" not in answer.text
    request_id = answer.json()["request"]
    errors = capsys.readouterr().err
    assert f"request {request_id} failed: ZeroDivisionError" in errors
    assert "secret of the code" in errors
    assert "acc-011" not in errors


def test_errors_of_the_library_are_422_in_one_line(client, monkeypatch):
    def refused(*_):
        raise StoreError("the graph is too large:\n  build a store")

    monkeypatch.setattr(node_routes, "contributors_of", refused)
    answer = client.get("/contributors?id=..")
    assert answer.status_code == 422
    assert answer.json() == {"error": "the graph is too large: build a store"}


@pytest.fixture
def blocked(client_with, monkeypatch):
    """A client whose slow work waits until the test lets it go."""
    go = threading.Event()
    monkeypatch.setattr(node_routes, "similar_to", lambda *_: {"waited": go.wait(30)})
    yield lambda **settings: client_with(**settings)
    go.set()


def test_a_busy_service_says_503_and_still_answers_known_nodes(blocked):
    client = blocked(slow_threads=1, slow_queue=0, request_seconds=0.5)
    first, second, known = client.together(
        ("GET", "/similar?id=..", {}),
        ("GET", "/similar?id=..", {}),
        ("GET", "/nodes/acc-011", {}),
    )
    assert sorted([first.status_code, second.status_code]) == [503, 504]
    assert known.status_code == 200
    busy = first if first.status_code == 503 else second
    assert busy.headers["retry-after"] == "1"
    assert "busy" in busy.json()["error"]


def test_slow_work_is_504(blocked):
    answer = blocked(request_seconds=0.05).get("/similar?id=..")
    assert answer.status_code == 504
    assert "longer than 0.05 seconds" in answer.json()["error"]


def test_the_lifespan_ends_slow_work(service):
    app = application(service)
    client = Client(app)

    async def lifespan():
        messages = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])
        sent = []

        async def receive():
            return next(messages)

        async def send(message):
            sent.append(message["type"])

        await app({"type": "lifespan", "app": app, "state": {}}, receive, send)
        return sent

    sent = client._loop.run_until_complete(lifespan())
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert client.get("/similar?id=..").status_code == 503
    client.close()


def test_several_faults_of_a_request_are_counted(client):
    answer = client.post("/predict", {"ids": [None, 2.5]})
    assert "more)" in answer.json()["error"]
    assert module._SENTENCES[404]
