"""What a built site would load from other hosts: scripts, styles, fonts, pictures, frames."""

import re
from html.parser import HTMLParser
from pathlib import Path

LOADING = {
    "audio": ("src",),
    "embed": ("src",),
    "iframe": ("src",),
    "image": ("href", "xlink:href"),
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
_TAG = re.compile(rf"<(?:{'|'.join(LOADING)})\b[^>]*>", re.IGNORECASE)
_STYLE = re.compile(r"<style\b[^>]*>(.*?)</style>|\bstyle=(?:\"([^\"]*)\"|'([^']*)')", re.DOTALL)
_FOREIGN = re.compile(r"^\s*(?:https?:)?//", re.IGNORECASE)
_CSS_ADDRESS = re.compile(r"(?:url\(|@import)\s*['\"]?((?:https?:)?//[^'\")\s]+)", re.IGNORECASE)


def foreign_sources(site: Path) -> list[str]:
    """Return a line for every address of another host that a page or style sheet would load."""
    lines = []
    for path in sorted(site.rglob("*")):
        name = path.relative_to(site).as_posix()
        if path.suffix in (".html", ".svg"):
            addresses = foreign_addresses(path.read_text(encoding="utf-8"))
            lines += [f"{name}: {address}" for address in addresses]
        elif path.suffix == ".css":
            text = path.read_text(encoding="utf-8")
            lines += [f"{name}: {address}" for address in _CSS_ADDRESS.findall(text)]
    return lines


def foreign_addresses(page: str) -> list[str]:
    """Return the addresses of other hosts that a page would load."""
    parser = _Sources()
    parser.feed("\n".join(_TAG.findall(page)))
    styles = "\n".join("".join(parts) for parts in _STYLE.findall(page))
    return parser.addresses + _CSS_ADDRESS.findall(styles)


class _Sources(HTMLParser):
    """Collects the foreign addresses of elements that load something."""

    CDATA_CONTENT_ELEMENTS = ()  # the elements come without their contents

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Look at the addresses of an element."""
        values = {name: value or "" for name, value in attrs}
        if tag == "link" and values.get("rel", "") in _INERT_LINKS:
            return
        addresses = (values.get(name, "") for name in LOADING.get(tag, ()))
        self.addresses += [each for each in addresses if _FOREIGN.match(each)]
