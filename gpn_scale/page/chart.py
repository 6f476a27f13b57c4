"""Charts as specifications of Vega-Lite, drawn by vl-convert without a browser.

Drawings use the light colours of `palette`; a style sheet in the drawing, or in the page, replaces
them on dark screens.
"""

import json
import mmap
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import vl_convert

from gpn_scale.errors import MachineError
from gpn_scale.files import make_folder, write_text
from gpn_scale.page.palette import LIGHT, colour_style
from gpn_scale.page.templates import rendered
from gpn_scale.page.texts import clean
from gpn_scale.table_text import without_direction

WIDTH, HEIGHT = 330, 190
"""Size of the area between the axes, in pixels."""
PNG_SCALE = 3
"""Number of pixels of a PNG file per pixel of the drawing."""
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
"""The first font comes with vl-convert, so that texts have the same width on every machine."""

ADDRESS_BYTES = 80 << 30
"""Address space that the JavaScript engine of vl-convert reserves; it ends the process without."""

Specification = dict[str, Any]

_RESERVED, _PROT_NONE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 0
_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_ROOT = re.compile(r'^<svg [^>]*viewBox="0 0 ([0-9.]+) ([0-9.]+)"[^>]*>')
_PART = re.compile(r'\bid="([^"]*)"')
_REFERENCE = re.compile(r'(\bid="|url\(#)([^")]*)')
THEME: Mapping[str, Any] = {
    "font": FONT,
    "background": None,
    "view": {"stroke": None},
    "axis": {
        "domainColor": LIGHT["muted"],
        "tickColor": LIGHT["muted"],
        "gridColor": LIGHT["grid"],
        "labelColor": LIGHT["muted"],
        "titleColor": LIGHT["muted"],
        "labelFontSize": 11,
        "titleFontSize": 11,
        "labelLimit": 220,
        "labelOverlap": "greedy",
    },
    "axisX": {"grid": False},
    "legend": {
        "orient": "bottom",
        "direction": "vertical",
        "title": None,
        "labelColor": LIGHT["ink"],
        "labelFontSize": 11,
        "labelLimit": 320,
        "symbolOpacity": 1,
        "symbolSize": 400,
        "symbolStrokeWidth": 2,
        "symbolType": "stroke",
    },
    "text": {"fill": LIGHT["ink"], "fontSize": 11},
    "title": {"color": LIGHT["ink"], "fontSize": 12, "anchor": "start"},
}
"""The look of all charts."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chart:
    """A chart, its title, and its description for those who do not see it."""

    name: str
    """Letters, digits and hyphens; the name of its file."""
    title: str
    description: str
    specification: Specification
    """A specification of Vega-Lite, without schema and theme."""

    def svg(self) -> str:
        """Return the drawing as an SVG element for a page, whose style sheet colours it."""
        return self._drawn(style="")

    def svg_file(self) -> str:
        """Return the drawing as the content of an SVG file."""
        return self._drawn(style=colour_style())

    def _repr_svg_(self) -> str:
        """Return the drawing that notebooks show: with its title, on a white ground of its own."""
        whole = _whole(self.specification) | {"background": LIGHT["paper"], "title": self.title}
        return str(vl_convert.vegalite_to_svg(_json(whole)))

    def write(self, path: Path | str) -> Path:
        """Write the drawing to an SVG file, whose folder is made if it is missing."""
        file = Path(path)
        make_folder(file.parent)
        write_text(file, self.svg_file())
        return file

    def png_file(self) -> bytes:
        """Return the drawing as the content of a PNG file, on a white ground."""
        _check_address_space()
        whole = _whole(self.specification) | {"background": LIGHT["paper"]}
        return bytes(vl_convert.vegalite_to_png(_json(whole), scale=PNG_SCALE))

    def _drawn(self, style: str) -> str:
        body, width, height = _drawing(self)
        return str(
            rendered("drawing.svg", chart=self, body=body, width=width, height=height, style=style)
        )


@lru_cache(maxsize=256)
def _drawing(chart: Chart) -> tuple[str, str, str]:
    """Return the content of the drawing, its width and its height."""
    _check_address_space()
    text = vl_convert.vegalite_to_svg(_json(_whole(chart.specification)))
    root = _ROOT.match(text)
    assert root is not None
    body = text[root.end() :].removesuffix("</svg>")
    # Several drawings share a page, so each names its parts after itself. Vega counts parts over
    # all drawings of a process; counted again, a chart is always the same text.
    places = {part: place for place, part in enumerate(dict.fromkeys(_PART.findall(body)))}
    name = f"{chart.name}-part"
    body = _REFERENCE.sub(lambda part: f"{part[1]}{name}-{places[part[2]]}", body)
    return body, root[1], root[2]


def for_browser(specification: Specification) -> Specification:
    """Return a specification of Vega-Lite, with the theme, as one of Vega."""
    _check_address_space()
    compiled: Specification = vl_convert.vegalite_to_vega(_json(_whole(specification)))
    return compiled


@cache
def library_script() -> str:
    """Return the JavaScript of Vega, which comes with vl-convert; it defines `vegaEmbed`."""
    _check_address_space()
    script = str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
    assert "</script" not in script.lower()
    return script


@cache
def _check_address_space() -> None:
    """Refuse to draw under a limit of virtual memory that would end the process.

    Raises:
        MachineError: the limit is too low.
    """
    try:
        mmap.mmap(-1, ADDRESS_BYTES, flags=_RESERVED, prot=_PROT_NONE).close()
    except OSError as error:
        raise MachineError(
            f"charts cannot be drawn, because this takes {ADDRESS_BYTES >> 30} GiB of virtual "
            "memory, of which little is used: raise its limit (ulimit -v), and write the report "
            "again"
        ) from error


def ordered_scale(domain: Sequence[Any], values: Sequence[Any]) -> Specification:
    """Return a scale that gives each element of the domain its value, and repeats the values."""
    repeated = [values[place % len(values)] for place in range(len(domain))]
    return {"domain": list(domain), "range": repeated}


def percent_axis(title: str) -> Specification:
    """Return an axis of fractions that is labelled in percent."""
    return {
        "title": title,
        "labelExpr": "format(100 * datum.value, '.4~g') + ' %'",
        "tickCount": 5,
    }


def cleaned(value: Any) -> Any:
    """Return a JSON value whose texts hold no character that XML forbids."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {name: cleaned(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned(each) for each in value]
    return value


def _whole(specification: Specification) -> Specification:
    return {"$schema": _SCHEMA, "config": dict(THEME), **specification}


def _json(specification: Specification) -> str:
    text = json.dumps(cleaned(specification), allow_nan=False, ensure_ascii=False)
    return without_direction(text)
