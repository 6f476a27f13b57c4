"""The frame of a page: one file that opens offline and runs no script but its own."""

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from gpn_scale import __version__
from gpn_scale.files import write_text
from gpn_scale.page.components import Section
from gpn_scale.page.markup import escaped, tag


def document(title: str, kicker: str, heading: str, sections: Sequence[Section]) -> str:
    """Return a whole page, which loads nothing from outside.

    Args:
        title: Title of the window.
        kicker: Text above the heading.
        heading: The heading, as markup.
        sections: The sections, in their order.
    """
    script = _resource("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    links = (tag("li", tag("a", escaped(s.heading), href=f"#{s.name}")) for s in sections)
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", escaped(title)),
        tag("style", _resource("plot.css"), _resource("page.css")),
    )
    body = tag(
        "body",
        tag("header", tag("p", escaped(kicker), class_="kicker"), heading),
        tag("nav", tag("ol", *links), aria_label="sections"),
        tag("main", *(section.markup() for section in sections)),
        tag("footer", tag("p", f"Written by gpn_scale {escaped(__version__)}.")),
        tag("script", script),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def write_plots(folder: Path, sections: Sequence[Section]) -> None:
    """Write every plot of the sections as an SVG file of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    style = _resource("plot.css")
    for section in sections:
        for plot in section.plots:
            write_text(folder / f"{plot.name}.svg", plot.standalone(style))


def _resource(name: str) -> str:
    return (files("gpn_scale.page") / name).read_text(encoding="utf-8")
