"""Requests are checked, and answers are what the OpenAPI description says."""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from gpn_scale.serve.schemas import whole_text
from tests.serve.conftest import HOSTILE

CHECKS = (
    not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)


def test_half_a_surrogate_pair_is_no_text():
    assert whole_text("日") == "日"
    with pytest.raises(ValueError, match="half of a surrogate pair"):
        whole_text("\ud800")


def operations():
    """Methods and paths of the description, which a test compares with the service's own."""
    posts = ("/predict", "/predict_new", "/what_if", "/decisions")
    gets = ("/health", "/graph", "/metrics", "/nodes", "/nodes/{id}", "/neighbours", "/triage")
    gets += ("/neighbourhood", "/contributors", "/similar", "/features", "/decisions")
    return [("POST", path) for path in posts] + [("GET", path) for path in gets]


@pytest.fixture(scope="module")
def description(running_service):
    return schemathesis.openapi.from_url(f"{running_service[1]}/openapi.json")


def test_every_operation_is_tried(description):
    tried = {
        (each.ok().method.upper(), each.ok().path) for each in description.get_all_operations()
    }
    assert tried == set(operations())


NEW = {"id": "x", "columns": {"size": 1e30, "country": "DE"}}
ASKED = [
    *[("GET", path, {}) for path in ("/health", "/graph", "/metrics", "/triage", "/decisions")],
    ("GET", "/triage", {"query": {"list": "label_next"}}),
    ("GET", "/nodes", {"query": {"search": "a", "sort": "id"}}),
    ("GET", "/nodes/{id}", {"path_parameters": {"id": HOSTILE[0]}}),
    *[
        ("GET", path, {"query": {"id": HOSTILE[0]}})
        for path in ("/neighbours", "/neighbourhood", "/contributors", "/similar", "/features")
    ],
    ("POST", "/predict", {"body": {"ids": list(HOSTILE)}}),
    ("POST", "/predict_new", {"body": {"nodes": [NEW], "edges": []}}),
    ("POST", "/what_if", {"body": {"id": "..", "columns": {"size": None}}}),
    ("POST", "/decisions", {"body": {"id": "..", "decision": "relabel", "label": "bad"}}),
]


@pytest.mark.parametrize(("method", "path", "parts"), ASKED)
def test_answers_to_good_questions_are_what_the_description_says(description, method, path, parts):
    more = {"media_type": "application/json"} if "body" in parts else {}
    answer = description[path][method].Case(**parts, **more).call_and_validate(checks=CHECKS)
    assert answer.status_code in (200, 201)


@pytest.mark.parametrize(("method", "path"), operations())
def test_answers_are_what_the_description_says(description, method, path):
    operation = description[path][method]

    @settings(
        max_examples=12,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate],
    )
    @given(case=operation.as_strategy())
    def ask(case):
        case.call_and_validate(checks=CHECKS)

    ask()
