"""Text -> markup that is safe in HTML and in SVG, and numbers as people read them."""

import html
import math
import re

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_PLAIN_DIGITS = 4

Attribute = str | float | None


def escaped(text: object) -> str:
    """`text` for markup or an attribute's value; characters that XML forbids are replaced."""
    return html.escape(_NOT_XML.sub("\ufffd", str(text)))


def tag(name: str, /, *content: str, **attributes: Attribute) -> str:
    """An element; `content` is markup, attributes are plain text or numbers.

    An attribute's underscores are hyphens, a last one is dropped (`class_`), and None leaves it
    out. An element without any content, not even an empty text, closes itself.
    """
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if not content:
        return f"<{name}{pairs}/>"
    return f"<{name}{pairs}>{''.join(content)}</{name}>"


def coordinate(value: float) -> str:
    """A finite number with one decimal at most."""
    assert math.isfinite(value)
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")  # + 0.0 leaves no -0


def shortened(text: str, length: int) -> str:
    """`text`, cut to `length` characters with a sign of it."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def percent(share: float | None, decimals: int = 1) -> str:
    """A share as a percentage; `n.a.` where it is not defined."""
    if share is None or not math.isfinite(share):
        return "n.a."
    return f"{100 * share:.{decimals}f} %"


def part_of_whole(share: float, decimals: int = 1) -> str:
    """A percentage that does not call a small part none."""
    least = 10.0 ** -(decimals + 2)
    if 0 < share < least:
        return f"< {percent(least, decimals)}"
    return percent(share, decimals)


def figures(value: float | None, digits: int = 3) -> str:
    """A number with so many figures; powers of ten beyond ten thousand and below a thousandth."""
    if value is None or not math.isfinite(value):
        return "n.a."
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)))
    if -_PLAIN_DIGITS < exponent <= _PLAIN_DIGITS:
        return f"{value:,.{max(digits - 1 - exponent, 0)}f}"
    return f"{value / 10.0**exponent:.{digits - 1}f}·{power_of_ten(exponent)}"


def power_of_ten(exponent: int) -> str:
    """1, 10, 100, 1,000, and 10 with a raised number beyond."""
    if abs(exponent) < _PLAIN_DIGITS:
        return f"{10**exponent:,}" if exponent >= 0 else f"{10.0**exponent:.{-exponent}f}"
    return f"10{str(exponent).translate(_SUPERSCRIPT)}"


def class_letter(label: int) -> str:
    """A, B, ..., Z, AA, AB, ... for classes 0, 1, ...; ? for none."""
    if label < 0:
        return "?"
    letters = ""
    label += 1
    while label:
        label, rest = divmod(label - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def _value(value: str | float) -> str:
    return escaped(value) if isinstance(value, str) else coordinate(value)
