"""Aligned tables for the terminal; control characters in texts from data are escaped."""

from collections.abc import Sequence
from typing import Any

WIDTH = 40
"""Number of characters of a cell; longer texts are cut."""


def table_lines(rows: Sequence[Sequence[Any]], width: int = WIDTH) -> list[str]:
    """Return rows, the first of them the header, as aligned lines.

    Args:
        rows: Texts or numbers.
        width: Largest number of characters of a cell.
    """
    texts = [[cell(value, width) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    return [
        ("  " + "  ".join(text.ljust(w) for text, w in zip(row, widths, strict=True))).rstrip()
        for row in texts
    ]


def cell(value: object, width: int = WIDTH) -> str:
    """Return a value for the terminal; control and direction marks are shown as escapes."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}"
    text = "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(value)
    )
    return text if len(text) <= width else f"{text[: width - 1]}…"
