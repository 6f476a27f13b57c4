"""The page of an OpenAPI description escapes its texts and names all types."""

from gpn_scale.serve.documentation import documentation_page, style_sheet

SCHEMA = {
    "description": "A <thing>.",
    "required": ["a"],
    "properties": {
        "a": {"type": "array", "items": {"$ref": "#/components/schemas/Other"}},
        "b": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "b & c"},
        "c": {"enum": ["x", "y"]},
        "d": {"const": "z"},
        "e": {"type": "object", "additionalProperties": {"type": "number"}},
    },
}
OPERATION = {
    "summary": "Ask <b>.",
    "parameters": [
        {
            "name": "limit",
            "in": "query",
            "schema": {"type": "integer", "minimum": 1, "maximum": 9, "default": 5},
        },
        {"name": "id", "in": "query", "required": True, "schema": {"type": "string"}},
    ],
    "requestBody": {
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}
    },
    "responses": {
        "200": {
            "description": "Fine.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}},
        },
        "404": {"description": "Nobody."},
        "201": {"content": {"text/plain": {}}},
    },
}
DESCRIPTION = {
    "info": {"title": "Test", "version": "1"},
    "paths": {"/x/{id}": {"post": OPERATION}},
    "components": {"schemas": {"Thing": SCHEMA, "Empty": {}}},
}


def test_all_parts_are_shown_and_escaped():
    page = documentation_page(DESCRIPTION).decode()
    assert page.startswith("<!doctype html>\n<html")
    for text in (
        "POST</span> <code>/x/{id}</code>",
        "Ask &lt;b&gt;.",
        "integer, at least 1, at most 9",
        "<td>required</td>",
        "Body: Thing",
        "<td>text/plain</td>",
        "A &lt;thing&gt;.",
        "list of Other",
        "string or null",
        "b &amp; c",
        "&#34;x&#34; or &#34;y&#34;",
        "&#34;z&#34;",
        "object of number",
    ):
        assert text in page, text


def test_the_style_loads_nothing():
    assert b"url(" not in style_sheet()
    assert b"@import" not in style_sheet()
