"""Health, graph, figures, documentation and explorer."""

from dataclasses import replace

import pytest

from gpn_scale import __version__
from gpn_scale.serve.about_routes import graph_facts, static_files
from gpn_scale.triage.promise import PROMISE_CONDITION, Promise


def test_health_names_model_and_graph(client, service, model):
    answer = client.get("/health").json()
    assert answer == {
        "status": "ok",
        "model": model.fingerprint,
        "graph": "bank",
        "num_nodes": 240,
        "version": __version__,
    }
    service.reload_error = "a model is broken"
    assert client.get("/health").json()["reload_error"] == "a model is broken"


def test_the_graph_is_described(client, model):
    answer = client.get("/graph").json()
    assert answer["classes"] == ["bad", "good"]
    assert (answer["num_nodes"], answer["num_edges"]) == (240, model.graph.num_edges)
    assert answer["columns"] == [
        {"name": "size", "kind": "number"},
        {"name": "country", "kind": "category"},
    ]
    assert answer["parts"] == ["features", "neighbourhood", "opinion", "labels"]
    assert "exchangeable" in answer["condition"]
    assert answer["promise"] is None
    assert answer["store"] is False
    assert "nothing unusual" in answer["reasons"]


def test_a_promise_has_its_condition(model):
    counts = {"held_out_nodes": 200, "answered_nodes": 150, "answered_errors": 3}
    promise = Promise(error=0.05, confidence=0.9, threshold=0.4, **counts)
    facts = graph_facts(replace(model, promise=promise))
    assert facts["promise"]["answered"] == 0.75
    assert facts["promise"]["condition"] == PROMISE_CONDITION


def test_metrics_have_routes_and_no_ids(client):
    client.get("/nodes/acc-011")
    client.get("/nodes/nobody")
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    line = 'gpn_requests_total{method="GET",route="/nodes/{id}",status="200"} 1.0'
    assert line in answer.text
    assert "acc-011" not in answer.text
    assert 'graph="bank"' in answer.text


def test_documentation_is_a_page_without_anything_from_elsewhere(client):
    page = client.get("/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "/predict_new" in page.text
    assert "http" not in page.text.replace("http://127.0.0.1", "")
    assert "<script" not in page.text
    assert "style=" not in page.text
    assert client.get("/docs.css").headers["content-type"] == "text/css; charset=utf-8"


def test_the_description_names_every_address(client):
    paths = client.get("/openapi.json").json()["paths"]
    assert set(paths) == {
        *("/health", "/graph", "/metrics", "/nodes", "/nodes/{id}", "/predict", "/predict_new"),
        *("/neighbours", "/neighbourhood", "/contributors", "/similar", "/features", "/what_if"),
        *("/triage", "/decisions"),
    }
    for methods in paths.values():
        for operation in methods.values():
            assert "HTTPValidationError" not in str(operation)


@pytest.mark.parametrize("path", ["/", "/static/index.html"])
def test_the_explorer_is_served_once_per_version(client, path):
    answer = client.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    again = client.get(path, headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.text) == (304, "")


def test_only_files_of_the_explorer_are_served(client):
    assert "index.html" in static_files()
    for name in ("..%2Fserver.py", "%2e%2e/server.py", "server.py", "", "__init__.py"):
        assert client.get(f"/static/{name}").status_code == 404
