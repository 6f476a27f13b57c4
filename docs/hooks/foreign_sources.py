"""What a built site would load from other hosts: scripts, styles, fonts, pictures, frames."""

import re
from html.parser import HTMLParser
from pathlib import Path

_LOADING = {
    "audio": ("src",),
    "embed": ("src",),
    "iframe": ("src",),
    "img": ("src", "srcset"),
    "input": ("src",),
    "link": ("href",),
    "object": ("data",),
    "script": ("src",),
    "source": ("src", "srcset"),
    "track": ("src",),
    "use": ("href", "xlink:href"),
    "video": ("src", "poster"),
}
"""Attributes of elements whose address a browser loads by itself."""
_INERT_LINKS = {"canonical", "next", "prev", "alternate", "author", "license"}
"""Relations of `link` elements that load nothing."""
_FOREIGN = re.compile(r"^\s*(?:https?:)?//", re.IGNORECASE)
_CSS_ADDRESS = re.compile(r"(?:url\(|@import)\s*['\"]?((?:https?:)?//[^'\")\s]+)", re.IGNORECASE)


def foreign_sources(site: Path) -> list[str]:
    """Return a line for every address of another host that a page or style sheet would load."""
    lines = []
    for path in sorted(site.rglob("*")):
        name = path.relative_to(site).as_posix()
        if path.suffix in (".html", ".svg"):
            lines += [f"{name}: {address}" for address in _of_page(path)]
        elif path.suffix == ".css":
            text = path.read_text(encoding="utf-8")
            lines += [f"{name}: {address}" for address in _CSS_ADDRESS.findall(text)]
    return lines


def _of_page(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    parser = _Sources()
    parser.feed(text)
    return parser.addresses


class _Sources(HTMLParser):
    """Collects the foreign addresses that a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Look at the addresses of an element."""
        values = {name: value or "" for name, value in attrs}
        self._in_style = tag == "style"
        self.addresses += _CSS_ADDRESS.findall(values.get("style", ""))
        if tag == "link" and values.get("rel", "") in _INERT_LINKS:
            return
        for name in _LOADING.get(tag, ()):
            if _FOREIGN.match(values.get(name, "")):
                self.addresses.append(values[name])

    def handle_data(self, data: str) -> None:
        """Look at the addresses of a style sheet within the page."""
        if self._in_style:
            self.addresses += _CSS_ADDRESS.findall(data)
