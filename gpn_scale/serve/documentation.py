"""`/docs`: the OpenAPI description as a self-contained page."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from gpn_scale.page.templates import rendered


def documentation_page(description: Mapping[str, Any]) -> bytes:
    """Return the page of an OpenAPI description."""
    schemas = description.get("components", {}).get("schemas", {})
    operations = [
        _operation(method, path, facts)
        for path, methods in description["paths"].items()
        for method, facts in methods.items()
    ]
    page = rendered(
        "service.html",
        title=description["info"]["title"],
        version=description["info"]["version"],
        summary=description["info"].get("description", ""),
        operations=operations,
        schemas=[_schema(name, facts) for name, facts in sorted(schemas.items())],
    )
    return f"<!doctype html>\n{page}\n".encode()


def style_sheet() -> bytes:
    """Return the style of the page."""
    return (files("gpn_scale.serve") / "docs.css").read_bytes()


def _operation(method: str, path: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    body = facts.get("requestBody", {}).get("content", {}).get("application/json", {})
    return {
        "method": method.upper(),
        "path": path,
        "summary": facts.get("summary", ""),
        "text": facts.get("description", ""),
        "parameters": [_parameter(each) for each in facts.get("parameters", [])],
        "body": _type(body["schema"]) if body else "",
        "responses": [_response(status, each) for status, each in facts["responses"].items()],
    }


def _parameter(facts: Mapping[str, Any]) -> dict[str, Any]:
    schema = facts["schema"]
    bounds = [f"{word} {schema[key]}" for key, word in _BOUNDS.items() if key in schema]
    return {
        "name": facts["name"],
        "place": facts["in"],
        "type": _type(schema),
        "bounds": ", ".join(bounds),
        "default": schema.get("default"),
        "required": facts.get("required", False),
        "text": facts.get("description", ""),
    }


_BOUNDS = {"minimum": "at least", "maximum": "at most"}


def _response(status: str, facts: Mapping[str, Any]) -> dict[str, str]:
    content = facts.get("content", {})
    kinds = [_type(each.get("schema", {})) or kind for kind, each in content.items()]
    return {"status": status, "text": facts.get("description", ""), "type": ", ".join(kinds)}


def _schema(name: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    required = facts.get("required", [])
    return {
        "name": name,
        "text": facts.get("description", ""),
        "fields": [
            {
                "name": field,
                "type": _type(each),
                "required": field in required,
                "text": each.get("description", ""),
            }
            for field, each in facts.get("properties", {}).items()
        ],
    }


def _type(schema: Mapping[str, Any]) -> str:
    """Return a description of a schema's type."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(each) for each in schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(f'"{value}"' for value in schema["enum"])
    if "const" in schema:
        return f'"{schema["const"]}"'
    kind = str(schema.get("type", ""))
    if kind == "array":
        return f"list of {_type(schema.get('items', {})) or 'values'}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return f"object of {_type(schema['additionalProperties'])}"
    return kind
