"""Who may ask, how much, and what is written down about it."""

import asyncio
import json

import pytest

from gpn_scale.messages import formatted
from gpn_scale.serve.guard import POLICY, Guard
from gpn_scale.serve.settings import ServeSettings

TOKEN = "0123456789abcdef"
BEARER = {"authorization": f"Bearer {TOKEN}"}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8000", "LOCALHOST", "[::1]:9", "[::1]"])
def test_a_loopback_takes_its_own_names(client, host):
    assert client.get("/health", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "", "127.0.0.1.evil.org"])
def test_other_names_are_refused(client, host):
    answer = client.get("/health", headers={"host": host})
    assert answer.status_code == 421
    assert "another host" in answer.json()["error"]


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "http://[broken"},
    ],
)
def test_posts_of_other_sites_are_refused(client, headers):
    body = {"id": "..", "decision": "accept"}
    answer = client.post("/decisions", body, headers=headers)
    assert answer.status_code == 403
    assert client.get("/decisions").json()["total"] == 0


def test_posts_of_the_own_page_are_taken(client):
    body = {"id": "..", "decision": "accept"}
    headers = {"origin": "http://127.0.0.1", "sec-fetch-site": "same-origin"}
    assert client.post("/decisions", body, headers=headers).status_code == 201


def test_no_answer_may_be_read_by_other_sites(client):
    answer = client.get("/graph", headers={"origin": "http://evil.example"})
    assert "access-control-allow-origin" not in answer.headers
    preflight = client.request("OPTIONS", "/decisions", headers={"origin": "http://evil.example"})
    assert preflight.status_code == 405
    assert "access-control-allow-origin" not in preflight.headers


@pytest.fixture
def guarded(client_with):
    return client_with(host="0.0.0.0", token=TOKEN)


@pytest.mark.parametrize(
    "value", ["", TOKEN, "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer é"]
)
def test_a_wrong_token_is_refused(guarded, value):
    for path in ("/graph", "/nodes/..x", "/metrics", "/decisions", "/unknown"):
        answer = guarded.get(path, headers={"authorization": value.encode()})
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert TOKEN not in answer.text


def test_the_token_opens_everything_and_any_host_is_taken(guarded):
    answer = guarded.get("/graph", headers=BEARER | {"host": "models.example:8000"})
    assert answer.status_code == 200
    assert guarded.get("/health", headers=BEARER).json()["num_nodes"] == 240


def test_pages_need_no_token_and_say_nothing_of_the_graph(guarded):
    assert guarded.get("/health").json() == {"status": "ok"}
    for path in ("/", "/docs", "/docs.css", "/openapi.json", "/static/index.html"):
        answer = guarded.get(path)
        assert answer.status_code == 200
        assert "bank" not in answer.text


def test_every_answer_has_safe_headers(client):
    for path in ("/", "/graph", "/nodes/nobody", "/unknown", "/metrics"):
        headers = client.get(path).headers
        assert headers["content-security-policy"] == POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert len(headers["x-request-id"]) == 16
    assert client.get("/graph").headers["cache-control"] == "no-store"
    assert "unsafe" not in POLICY
    assert "*" not in POLICY


def test_a_large_body_is_refused_before_it_is_read(client_with):
    client = client_with(max_body=100)
    answer = client.post("/predict", {"ids": ["x" * 200]})
    assert answer.status_code == 413
    assert "at most 100 bytes" in answer.json()["error"]


def test_a_large_body_without_a_length_is_refused_while_it_arrives(client_with):
    client, sent = client_with(max_body=10_000), []

    async def pieces():
        for _ in range(1000):
            sent.append(1)
            yield b"x" * 1000

    headers = {"content-type": "application/json"}
    answer = client.request("POST", "/predict", content=pieces(), headers=headers)
    assert answer.status_code == 413
    assert len(sent) < 20


def test_a_wrong_length_does_not_open_the_limit(client_with):
    client = client_with(max_body=100)

    async def pieces():
        yield b"x" * 1000

    headers = {"content-type": "application/json", "content-length": "5"}
    answer = client.request("POST", "/predict", content=pieces(), headers=headers)
    assert answer.status_code == 413


def test_requests_are_logged_without_ids_and_tokens(guarded, capsys):
    with formatted("json"):
        guarded.get("/nodes/acc-011?secret=1", headers=BEARER)
        guarded.post("/predict", {"ids": ["acc-012"]}, headers=BEARER)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["method"], line["route"], line["status"]) for line in lines] == [
        ("GET", "/nodes/{id}", 200),
        ("POST", "/predict", 200),
    ]
    assert all(line["event"] == "request" for line in lines)
    assert all(line["milliseconds"] > 0 and len(line["request"]) == 16 for line in lines)
    text = json.dumps(lines)
    assert not any(secret in text for secret in ("acc-01", TOKEN, "secret"))
    guarded.request("BREW", "/nodes/acc-011", headers=BEARER)
    errors = capsys.readouterr().err
    assert errors.startswith("OTHER ")
    assert "acc-011" not in errors


def test_what_is_no_request_is_passed_on():
    passed = []

    async def app(scope, receive, send):
        passed.append(scope["type"])

    guard = Guard(app, ServeSettings(), lambda *_: None)
    asyncio.run(guard({"type": "lifespan"}, None, None))
    assert passed == ["lifespan"]
