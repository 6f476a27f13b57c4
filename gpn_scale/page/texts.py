"""Texts for people: numbers, fractions, letters of classes."""

import math
import re

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_PLAIN_DIGITS = 4
COLOURS = 7
"""Number of colours of classes in the style sheet, `k0` to `k6`."""


def clean(text: str) -> str:
    """Return `text` with characters that XML forbids replaced."""
    return _NOT_XML.sub("\ufffd", text)


def shortened(text: str, length: int) -> str:
    """Return `text`, cut to `length` characters with an ellipsis if it is longer."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def percent(fraction: float | None, decimals: int = 1) -> str:
    """Return a fraction as a percentage; `n.a.` if it is not defined."""
    if fraction is None or not math.isfinite(fraction):
        return "n.a."
    return f"{100 * fraction:.{decimals}f} %"


def part_of_whole(fraction: float, decimals: int = 1) -> str:
    """Return a fraction as a percentage; small ones are `< 0.1 %`, not `0.0 %`."""
    least = 10.0 ** -(decimals + 2)
    if 0 < fraction < least:
        return f"< {percent(least, decimals)}"
    return percent(fraction, decimals)


def figures(value: float | None, digits: int = 3) -> str:
    """Return a number with `digits` significant digits.

    Numbers of 100,000 and more or below 0.001 get a power of ten; undefined ones are `n.a.`.

    >>> figures(0.012345), figures(0.000012345)
    ('0.0123', '1.23·10⁻⁵')
    """
    if value is None or not math.isfinite(value):
        return "n.a."
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)))
    if -_PLAIN_DIGITS < exponent <= _PLAIN_DIGITS:
        return f"{value:,.{max(digits - 1 - exponent, 0)}f}"
    return f"{value / 10.0**exponent:.{digits - 1}f}·{power_of_ten(exponent)}"


def power_of_ten(exponent: int) -> str:
    """Return 0.001 to 1,000 as they are, and other powers of ten with an exponent."""
    if abs(exponent) < _PLAIN_DIGITS:
        return f"{10**exponent:,}" if exponent >= 0 else f"{10.0**exponent:.{-exponent}f}"
    return f"10{str(exponent).translate(_SUPERSCRIPT)}"


def class_letter(label: int) -> str:
    """Return A, B, ..., Z, AA, AB, ... for classes 0, 1, ...; ? for -1."""
    if label < 0:
        return "?"
    letters = ""
    label += 1
    while label:
        label, rest = divmod(label - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def anchor(name: str) -> str:
    """Return `name` with hyphens for all characters but letters and digits, for ids and files."""
    return "".join(letter if letter.isalnum() else "-" for letter in name)
