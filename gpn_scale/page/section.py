"""A section of a page."""

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from gpn_scale.page.chart import Chart
from gpn_scale.page.templates import rendered


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """A section of a page, and the charts in it, which are also written as files."""

    name: str
    """Anchor of the section in the page."""
    heading: str
    body: Markup
    charts: tuple[Chart, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """A chart with its caption."""

    chart: Chart
    caption: str


def section(
    name: str, heading: str, template: str, *, figures: tuple[Figure, ...] = (), **values: Any
) -> Section:
    """Return a section whose body is a template, which gets the figures and `values`."""
    body = rendered(template, figures=figures, **values)
    return Section(name, heading, body, tuple(figure.chart for figure in figures))
