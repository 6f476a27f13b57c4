"""Parts that several sections of a page share: figures, tables, tiles, names of classes."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpn_scale.page.markup import COLOURS, class_letter, escaped, shortened, tag
from gpn_scale.page.svg import Plot

_NAME_LENGTH = 60


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a page, and the plots in it, which are also written as files."""

    name: str
    """Anchor of the section in the page."""
    heading: str
    body: str
    plots: tuple[Plot, ...] = ()

    def markup(self) -> str:
        """Return the section as HTML."""
        heading = tag("h2", escaped(self.heading), id=f"{self.name}-heading")
        return tag(
            "section", heading, self.body, id=self.name, aria_labelledby=f"{self.name}-heading"
        )


def paragraph(content: str, kind: str | None = None) -> str:
    """Return a paragraph of plain text; `kind` is its class in the style sheet."""
    return tag("p", escaped(content), class_=kind)


def figure(plot: Plot, caption: str) -> str:
    """Return a plot under its title, with a caption of plain text."""
    title, below = tag("h3", escaped(plot.title)), tag("figcaption", escaped(caption))
    return tag("figure", title, plot.inline(), below)


def columns(*items: str) -> str:
    """Return the items side by side, as far as there is room."""
    return tag("div", *items, class_="columns")


def tiles(values: Sequence[tuple[str, str, str]]) -> str:
    """Return a tile for each (name, value, meaning), with the value in large type."""
    cells = [
        tag(
            "div",
            tag("dt", escaped(name)),
            tag("dd", escaped(value), class_="value"),
            tag("dd", escaped(meaning), class_="meaning"),
        )
        for name, value, meaning in values
    ]
    return tag("dl", *cells, class_="tiles")


def table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """Return a table; cells are markup, the first column is text, the others are numbers."""
    head = tag("tr", *(tag("th", escaped(name), scope="col") for name in header))
    body = "".join(
        tag("tr", tag("th", row[0], scope="row"), *(tag("td", cell) for cell in row[1:]))
        for row in rows
    )
    whole = tag("table", tag("caption", escaped(caption)), tag("thead", head), tag("tbody", body))
    return tag("div", whole, class_="wide", tabindex="0", role="region", aria_label=caption)


def name_of(text: str) -> str:
    """Return a name from the data, shortened if it is long and isolated from the text around it."""
    short = shortened(text, _NAME_LENGTH)
    return tag("bdi", escaped(short), title=text if short != text else None)


def class_badge(label: int) -> str:
    """Return the letter of a class in its colour."""
    kind = f"badge k{label % COLOURS}" if label >= 0 else "badge unnamed"
    return tag("span", class_letter(label), class_=kind)


def class_list(names: Sequence[str]) -> str:
    """Return the list of classes with their letters."""
    items = [tag("li", class_badge(c), " ", name_of(name)) for c, name in enumerate(names)]
    return tag("ul", *items, class_="classes", aria_label="letters of the classes")
