"""The frame of a page: one file that opens offline and runs no script but its own."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpn_scale import __version__
from gpn_scale.files import make_folder, write_bytes, write_text
from gpn_scale.page.palette import colour_style
from gpn_scale.page.section import Section
from gpn_scale.page.templates import rendered, resource


def document(
    title: str,
    kicker: str,
    sections: Sequence[Section],
    *,
    heading: str,
    subject: str = "",
    scripts: Sequence[str] = (),
    data: Mapping[str, str] | None = None,
) -> str:
    """Return a whole page, which loads nothing from outside.

    Args:
        title: Title of the window.
        kicker: Text above the heading.
        sections: The sections, in their order.
        heading: The heading.
        subject: A name from the data that ends the heading.
        scripts: JavaScript that the page runs after its own.
        data: JSON that scripts read, by the id of its element; `json_text` makes it.
    """
    own = [resource("page.js"), *scripts]
    allowed = " ".join(f"'sha256-{_digest(script)}'" for script in own)
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}"
    page = rendered(
        "document.html",
        title=title,
        kicker=kicker,
        heading=heading,
        subject=subject,
        sections=sections,
        style=colour_style() + resource("page.css"),
        policy=policy,
        scripts=own,
        data=data or {},
        version=__version__,
    )
    return f"{page}\n"


def write_charts(folder: Path, sections: Sequence[Section], *, png: bool = False) -> None:
    """Write every chart of the sections as an SVG file, and as a PNG file if asked to."""
    make_folder(folder)
    for section in sections:
        for chart in section.charts:
            write_text(folder / f"{chart.name}.svg", chart.svg_file())
            if png:
                write_bytes(folder / f"{chart.name}.png", chart.png_file())


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
