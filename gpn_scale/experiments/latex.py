"""Texts and numbers as LaTeX: escaped names, rounded means with errors, tables with booktabs.

A table can be pasted into a document that loads the package booktabs.
"""

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{character: f"\\{character}" for character in "{}$&#_%"},
    # An asterisk or a bracket at the start of a row would be an option of the row before it; a
    # quotation mark is a command in some languages; the others join into one sign.
    **{character: f"{{{character}}}" for character in "*[]\"'`,-?!"},
}
_WIDTH = 100
_HARMLESS_ALONE = "'`,-?!"
MISSING = "--"
"""Cell of a number that was not measured."""
NO_ERROR_DECIMALS = 1
"""Decimals of percentages in a column without any standard error."""


@dataclass(frozen=True, slots=True)
class LatexTable:
    """A table as LaTeX; all texts but the label are LaTeX already."""

    caption: str
    label: str
    header: tuple[str, ...]
    """Headings of the columns, the first of which is that of the rows' names."""
    rows: tuple[tuple[str, ...], ...]
    groups: tuple[str, ...] = ()
    """Headings above those of the columns but the first; equal ones next to each other are one."""

    def text(self) -> str:
        """Return the environment `table`, with a line per row."""
        columns = "l" + "r" * (len(self.header) - 1)
        lines = [r"\toprule", *self._group_lines(), _row(self.header), r"\midrule"]
        lines += [*map(_row, self.rows), r"\bottomrule"]
        return "\n".join(
            [
                r"\begin{table}[t]",
                r"  \centering",
                _wrapped(f"\\caption{{{self.caption}}}"),
                f"  \\label{{{self.label}}}",
                f"  \\begin{{tabular}}{{{columns}}}",
                *(f"    {line}" for line in lines),
                r"  \end{tabular}",
                r"\end{table}",
                "",
            ]
        )

    def _group_lines(self) -> list[str]:
        if not self.groups:
            return []
        cells, rules, first = [""], [], 2
        for heading, members in groupby(self.groups):
            last = first + len(list(members)) - 1
            cells.append(f"\\multicolumn{{{last - first + 1}}}{{c}}{{{heading}}}")
            rules.append(f"\\cmidrule(lr){{{first}-{last}}}")
            first = last + 1
        return [_row(cells), " ".join(rules)]


def escaped(text: str) -> str:
    r"""Return a text as LaTeX that prints it; control characters become spaces.

    >>> escaped("p_known & 5 %")
    'p\\_known \\& 5 \\%'
    """
    characters = [character if character.isprintable() else " " for character in text]
    parts = []
    for place, character in enumerate(characters):
        alone = character in _HARMLESS_ALONE and not any(
            other in _HARMLESS_ALONE for other in _around(characters, place)
        )
        parts.append(character if alone else _SPECIAL.get(character, character))
    return "".join(parts)


def latex_text(notes: Iterable[str], tables: Iterable[LatexTable]) -> str:
    r"""Return tables below notes, which are comments; line breaks within a note become spaces.

    >>> latex_text(["two\nlines"], [])
    '% two lines\n% needs \\usepackage{booktabs}\n'
    """
    lines = [*notes, r"needs \usepackage{booktabs}"]
    comments = "".join(f"% {' '.join(line.split())}\n" for line in lines)
    return "\n".join([comments, *(table.text() for table in tables)])


def label_text(*parts: str) -> str:
    """Return a label of the parts, with small letters, digits and hyphens alone.

    >>> label_text("clean", "aurc_p_known@normal")
    'tab:clean-aurc-p-known-normal'
    """
    text = "".join(c if c.isascii() and c.isalnum() else " " for c in " ".join(parts).lower())
    return f"tab:{'-'.join(text.split())}"


def column_decimals(means: Sequence[float], errors: Sequence[float], *, percent: bool) -> int:
    """Return the decimals of a column, as many as its smallest positive error needs for a digit.

    Without such an error, percentages have one decimal, and the largest of other numbers has three
    digits. Below 0, the last digits before the point are rounded to zero.

    >>> column_decimals([80.123, 79.456], [0.34, 1.2], percent=True)
    1
    """
    positive = [error for error in errors if error > 0]
    if positive:
        return max(-_exponent(error) for error in positive)
    if percent:
        return NO_ERROR_DECIMALS
    largest = max((abs(mean) for mean in means if math.isfinite(mean)), default=0.0)
    return max(2 - _exponent(largest), 0) if largest else NO_ERROR_DECIMALS


def number_texts(mean: float, error: float, decimals: int) -> tuple[str, str | None]:
    """Return a mean and its standard error as texts with the same decimals.

    A positive error gets one or two digits, even if this takes fewer decimals than the column has.

    >>> number_texts(80.123, 0.34, decimals=1), number_texts(79.456, 12.3, decimals=1)
    (('80.1', '0.3'), ('79', '12'))

    Args:
        mean: The mean.
        error: Its standard error; NaN for none.
        decimals: Decimals of the column.
    """
    if math.isnan(error):
        return _fixed(mean, decimals), None
    own = min(decimals, 1 - _exponent(error)) if error > 0 else decimals
    return _fixed(mean, own), _fixed(error, own)


def _exponent(value: float) -> int:
    """Return the power of ten of a positive number's first digit, after rounding to two digits."""
    return int(f"{value:.1e}".partition("e")[2])


def _fixed(value: float, decimals: int) -> str:
    return f"{round(value, decimals) + 0.0:.{max(decimals, 0)}f}"


def _row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _wrapped(text: str) -> str:
    """Return a text in lines; LaTeX reads the end of a line as a space."""
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _around(characters: Sequence[str], place: int) -> Sequence[str]:
    return [*characters[max(place - 1, 0) : place], *characters[place + 1 : place + 2]]
