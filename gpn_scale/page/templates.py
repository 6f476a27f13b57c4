"""HTML and SVG from Jinja2 templates, which escape every text that is not markup.

Marks of direction in a text appear as visible codes, because they would reorder what follows; only
names in an element of their own (`<bdi>`) keep them.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from gpn_scale.page.palette import CLASS_COLOURS
from gpn_scale.page.texts import class_letter, clean, figures, part_of_whole, percent, shortened
from gpn_scale.table_text import without_direction


def isolated(text: str) -> Markup:
    """Return a text for an element that confines its marks of direction."""
    return text if isinstance(text, Markup) else escape(clean(text))


_FILTERS: Mapping[str, Any] = {
    "figures": figures,
    "isolated": isolated,
    "letter": class_letter,
    "part_of_whole": part_of_whole,
    "percent": percent,
    "shortened": shortened,
}


def rendered(template: str, **values: Any) -> Markup:
    """Return the markup of a template; texts among `values` are escaped."""
    return Markup(_environment().get_template(template).render(**values).strip())


def resource(name: str) -> str:
    """Return the content of a file of this package, such as a style sheet."""
    return (files("gpn_scale.page") / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("gpn_scale.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters.update(_FILTERS)
    environment.globals["class_colours"] = CLASS_COLOURS
    return environment


def _shown(value: Any) -> Any:
    """Return a text without characters that HTML forbids and without marks of direction."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return without_direction(clean(value))
