"""Pieces of a page that several sections use: figures, tables, tiles, names of classes."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpn_scale.page.charts import COLOURS
from gpn_scale.page.markup import class_letter, escaped, shortened, tag
from gpn_scale.page.svg import Plot

_NAME_LENGTH = 60


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page, with the plots that are also files of their own."""

    name: str
    """Its anchor."""
    heading: str
    body: str
    plots: tuple[Plot, ...] = ()

    def markup(self) -> str:
        """The section."""
        heading = tag("h2", escaped(self.heading), id=f"{self.name}-heading")
        return tag(
            "section", heading, self.body, id=self.name, aria_labelledby=f"{self.name}-heading"
        )


def paragraph(words: str, kind: str | None = None) -> str:
    """A paragraph of plain text."""
    return tag("p", escaped(words), class_=kind)


def figure(plot: Plot, caption: str) -> str:
    """A plot under its title, with a caption of plain text."""
    words = tag("figcaption", escaped(caption))
    return tag("figure", tag("h3", escaped(plot.title)), plot.inline(), words)


def columns(*items: str) -> str:
    """Side by side where there is room."""
    return tag("div", *items, class_="columns")


def tiles(values: Sequence[tuple[str, str, str]]) -> str:
    """(what, value, what it means), the value large."""
    cells = [
        tag(
            "div",
            tag("dt", escaped(what)),
            tag("dd", escaped(value), class_="value"),
            tag("dd", escaped(meaning), class_="meaning"),
        )
        for what, value, meaning in values
    ]
    return tag("dl", *cells, class_="tiles")


def table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """Cells are markup; the first column is text, the others are set as numbers."""
    head = tag("tr", *(tag("th", escaped(name), scope="col") for name in header))
    body = "".join(
        tag("tr", tag("th", row[0], scope="row"), *(tag("td", cell) for cell in row[1:]))
        for row in rows
    )
    whole = tag("table", tag("caption", escaped(caption)), tag("thead", head), tag("tbody", body))
    return tag("div", whole, class_="wide", tabindex="0", role="region", aria_label=caption)


def name_of(text: str) -> str:
    """A name from the data: cut if long, and without influence on the text around it."""
    short = shortened(text, _NAME_LENGTH)
    return tag("bdi", escaped(short), title=text if short != text else None)


def class_badge(label: int) -> str:
    """A class' letter in its colour."""
    kind = f"badge k{label % COLOURS}" if label >= 0 else "badge unnamed"
    return tag("span", class_letter(label), class_=kind)


def class_list(names: Sequence[str]) -> str:
    """Which letter is which class."""
    items = [tag("li", class_badge(c), " ", name_of(name)) for c, name in enumerate(names)]
    return tag("ul", *items, class_="classes", aria_label="letters of the classes")
