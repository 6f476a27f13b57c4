"""Escapes text from data for CSV and Markdown.

Names of graphs, models and classes may contain anything: formulas, tags, bars, or marks that
reverse the direction of writing.
"""

import csv
import io
from collections.abc import Iterable, Sequence

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_DIRECTION = {
    code: f"[U+{code:04X}]"
    for code in (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
}
"""Direction marks, which would reorder the rest of a line, with their visible replacements."""
_MARKDOWN = _DIRECTION | {
    ord("&"): "&amp;",
    ord("<"): "&lt;",
    ord(">"): "&gt;",
    ord("|"): "\\|",
    ord("\n"): " ",
    ord("\r"): " ",
}


def without_direction(text: str) -> str:
    """Return a text whose marks of direction are replaced by their visible codes.

    >>> without_direction("a\u202eb")
    'a[U+202E]b'
    """
    return text.translate(_DIRECTION)


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    r"""Return rows as CSV; text that a spreadsheet would read as a formula gets an apostrophe.

    >>> csv_text([["name", "difference"], ["=1+1", "-0.5"]])
    "name,difference\n'=1+1,-0.5\n"
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue()


def from_csv_cell(text: str) -> str:
    """Return the text of a cell that `csv_text` wrote.

    >>> from_csv_cell("'=1+1"), from_csv_cell("'tis")
    ('=1+1', "'tis")
    """
    return text[1:] if text.startswith("'") and text[1:].startswith(_FORMULA) else text


def markdown_text(text: str) -> str:
    r"""Escape a text for one line of Markdown, so that it contains no tags, cells or links.

    >>> markdown_text("<script>|a"), markdown_text("[a](b)")
    ('&lt;script&gt;\\|a', '[a]\\(b)')
    """
    return text.replace("\\", "\\\\").translate(_MARKDOWN).replace("](", "]\\(")


def markdown_row(cells: Iterable[str]) -> str:
    r"""Return a row of a Markdown table with escaped cells.

    >>> markdown_row(["a|b", "1.0"])
    '| a\\|b | 1.0 |'
    """
    return f"| {' | '.join(map(markdown_text, cells))} |"


def _cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = value.replace("\r\n", "\n").replace("\r", "\n")  # csv would not quote a lone \r
    return f"'{text}" if text.startswith(_FORMULA) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text == text.strip()
