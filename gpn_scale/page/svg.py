"""Drawing primitives: plots as SVG, axes with round ticks, and the panel between the axes."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpn_scale.page.histograms import data_range
from gpn_scale.page.markup import coordinate, escaped, figures, power_of_ten, tag

NAMESPACE = "http://www.w3.org/2000/svg"
CHARACTER = 6.6
"""Mean width of a character of a label, in pixels."""

Label = Callable[[float, float], str]
"""(tick, distance between ticks) -> text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A drawing, to be put into a page and written as a file."""

    name: str
    """Name of the file, and prefix of the ids inside."""
    title: str
    description: str
    """Text for people who cannot see the drawing."""
    width: float
    height: float
    body: str

    def inline(self) -> str:
        """Return the drawing for a page that has the plots' style sheet."""
        return self._element()

    def standalone(self, style: str) -> str:
        """Return the drawing as a whole SVG file, with `style` inside."""
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{self._element(tag("style", style))}\n'

    def _element(self, first: str = "") -> str:
        return tag(
            "svg",
            first,
            tag("title", escaped(self.title), id=f"{self.name}-title"),
            tag("desc", escaped(self.description), id=f"{self.name}-text"),
            self.body,
            xmlns=NAMESPACE,
            class_="plot",
            viewBox=f"0 0 {coordinate(self.width)} {coordinate(self.height)}",
            role="img",
            aria_labelledby=f"{self.name}-title {self.name}-text",
        )


@dataclass(frozen=True, slots=True)
class Axis:
    """Ticks that cover the data, their labels, and the title of the axis."""

    ticks: tuple[float, ...]
    labels: tuple[str, ...]
    title: str


def plain_label(tick: float, step: float) -> str:
    """Return the tick with as many decimals as are needed to tell ticks apart."""
    if tick == 0:
        return "0"
    if step >= 1e-5 and abs(tick) < 1e7:
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        return f"{tick:,.{decimals}f}"
    digits = max(0, math.ceil(math.log10(abs(tick) / step) - 1e-9)) + 1
    return f"{tick:.{digits}g}"


def percent_label(tick: float, step: float) -> str:
    """Return a tick that is a fraction as a percentage."""
    return f"{plain_label(100 * tick, 100 * step)} %"


def log_label(tick: float, step: float) -> str:
    """Return the number whose log10 is the tick."""
    whole = tick == round(tick)
    return power_of_ten(round(tick)) if whole else figures(10.0 ** min(max(tick, -300), 300), 2)


def axis(
    values: NDArray[np.floating] | Sequence[float],
    title: str,
    *,
    label: Label = plain_label,
    count: int = 5,
) -> Axis:
    """Return about `count` ticks at 1, 2 or 5 times a power of ten that cover `values`."""
    low, high = data_range(np.asarray(values, np.float64))
    step = _nice_step((high - low) / count)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(i * step for i in range(first, last + 1))
    return Axis(ticks, tuple(label(tick, step) for tick in ticks), title)


def _nice_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * nice for nice in (1, 2, 5, 10) if power * nice >= rough * (1 - 1e-9))


class Panel:
    """The area between two axes.

    Args:
        width: Width of the whole drawing.
        height: Height of the whole drawing, without the legend below the axes.
        x: Horizontal axis.
        y: Vertical axis.
        above: Space between the vertical axis' title and the area.
    """

    def __init__(self, width: float, height: float, x: Axis, y: Axis, above: float = 8) -> None:
        self.x, self.y = x, y
        widest = max(len(label) for label in y.labels)
        self.left = max(10 + CHARACTER * widest, 5 + CHARACTER * len(x.labels[0]) / 2)
        self.right = width - max(12, CHARACTER * len(x.labels[-1]) / 2 + 5)
        self.top = 18 + above
        self.bottom = height - 38

    def across(self, values: NDArray[np.floating] | Sequence[float]) -> NDArray[np.float64]:
        """Return horizontal positions of values."""
        return _placed(values, self.x, self.left, self.right)

    def up(self, values: NDArray[np.floating] | Sequence[float]) -> NDArray[np.float64]:
        """Return vertical positions of values."""
        return _placed(values, self.y, self.bottom, self.top)

    def axes(self) -> str:
        """Return the grid, ticks, labels of ticks and both titles."""
        parts = []
        for y, label in zip(self.up(self.y.ticks), self.y.labels, strict=True):
            parts.append(tag("path", class_="grid", d=line_path([self.left, self.right], [y, y])))
            parts.append(text(self.left - 6, y + 4, label, "tick", "end"))
        for x, label in zip(self.across(self.x.ticks), self.x.labels, strict=True):
            ends = [self.bottom, self.bottom + 4]
            parts.append(tag("path", class_="axis", d=line_path([x, x], ends)))
            parts.append(text(x, self.bottom + 17, label, "tick", "middle"))
        across = [self.left, self.right]
        parts.append(tag("path", class_="axis", d=line_path(across, [self.bottom] * 2)))
        parts.append(text(2, 12, self.y.title, "name"))
        middle = (self.left + self.right) / 2
        parts.append(text(middle, self.bottom + 33, self.x.title, "name", "middle"))
        return "".join(parts)


def text(x: float, y: float, content: str, kind: str, anchor: str | None = None) -> str:
    """Return a line of text; `kind` is its class in the style sheet."""
    return tag("text", escaped(content), x=x, y=y, class_=kind, text_anchor=anchor)


def line_path(
    x: NDArray[np.floating] | Sequence[float], y: NDArray[np.floating] | Sequence[float]
) -> str:
    """Return the path through all finite points; an empty string if there are none."""
    points = [
        f"{coordinate(a)} {coordinate(b)}"
        for a, b in zip(x, y, strict=True)
        if math.isfinite(a) and math.isfinite(b)
    ]
    return f"M{'L'.join(points)}" if points else ""


def hatching(name: str, kind: str) -> str:
    """Return a pattern of slanted lines, to tell areas apart without colour; use `url(#name)`."""
    lines = tag("path", d="M0 0V6", class_=kind)
    return tag(
        "defs",
        tag(
            "pattern",
            lines,
            id=name,
            width=6,
            height=6,
            patternUnits="userSpaceOnUse",
            patternTransform="rotate(45)",
        ),
    )


def _placed(
    values: NDArray[np.floating] | Sequence[float], along: Axis, start: float, stop: float
) -> NDArray[np.float64]:
    low, high = along.ticks[0], along.ticks[-1]
    fraction = (np.asarray(values, np.float64) - low) / (high - low)
    return np.asarray(start + fraction * (stop - start))
