"""Plots with axes: histograms, curves, the reliability diagram.

Colours are classes of the style sheet, `k0` to `k6`. Groups always differ in dashes or hatching as
well.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpn_scale.evaluation.metrics import Reliability
from gpn_scale.page.histograms import Histogram
from gpn_scale.page.markup import escaped, percent, tag
from gpn_scale.page.svg import (
    CHARACTER,
    Axis,
    Label,
    Panel,
    Plot,
    axis,
    hatching,
    line_path,
    percent_label,
    plain_label,
    text,
)

WIDTH = 380
HEIGHT = 250
LEGEND_ROW = 17
"""Height of a row of the legend."""
_LABEL_ROWS = (32, 48)
_FIFTHS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A curve, its name in the legend, and half the height of the band around it."""

    x: NDArray[np.floating]
    y: NDArray[np.floating]
    label: str = ""
    error: NDArray[np.floating] | None = None

    @property
    def ends(self) -> NDArray[np.float64]:
        """Values that the vertical axis must cover."""
        if self.error is None:
            return np.asarray(self.y, np.float64)
        half = np.nan_to_num(self.error)
        return np.concatenate([self.y - half, self.y + half])


def histogram(
    name: str, title: str, values: Histogram, x_title: str, *, label: Label = plain_label
) -> Plot:
    """Draw densities as outlined areas, the second one dashed and hatched, each with its name."""
    x = axis(values.edges, x_title, label=label)
    top = max((float(d.max(initial=0.0)) for d in values.densities.values()), default=0.0)
    panel = Panel(WIDTH, HEIGHT, x, axis([0.0, top or 1.0], "density", count=4), above=38)
    parts = [hatching(f"{name}-hatch", "hatch k3"), panel.axes()]
    peaks = []
    for place, (group, density) in enumerate(values.densities.items()):
        kind = "k0" if place == 0 else "k3"
        across = panel.across(np.repeat(values.edges, 2))
        up = panel.up(np.concatenate([[0.0], np.repeat(density, 2), [0.0]]))
        outline = line_path(across, up)
        if place:
            parts.append(tag("path", d=outline, fill=f"url(#{name}-hatch)"))
        else:
            parts.append(tag("path", d=outline, class_=f"area {kind}"))
        parts.append(tag("path", d=outline, class_=f"line s{place} {kind}"))
        peak = int(density.argmax())
        middle = panel.across([(values.edges[peak] + values.edges[peak + 1]) / 2])[0]
        label_text = f"{group} ({values.counts[group]:,})"
        peaks.append(_Peak(float(middle), float(panel.up([density[peak]])[0]), label_text))
    parts.append(_peak_labels(panel, peaks))
    return Plot(
        name=name,
        title=title,
        description=f"Histogram of {x_title}: "
        + ", ".join(f"{group}, {count:,} nodes" for group, count in values.counts.items()),
        width=WIDTH,
        height=HEIGHT,
        body="".join(parts),
    )


@dataclass(frozen=True, slots=True)
class _Peak:
    x: float
    y: float
    label: str


def _peak_labels(panel: Panel, peaks: Sequence[_Peak]) -> str:
    """Return the names of one or two groups above the area, each joined to its peak by a line.

    The left name is placed left of its line and the right name right of it, if there is room. Each
    name has a row of its own; a right name that had to move left takes the upper row, so that its
    line does not cross the other name.
    """
    ordered = sorted(peaks, key=lambda peak: peak.x)
    to_left = []
    for place, peak in enumerate(ordered):
        width = CHARACTER * len(peak.label) + 5
        left, right = peak.x - width > 0, peak.x + width < WIDTH
        to_left.append(left and (not right or (place == 0 and len(ordered) > 1)))
    rows = _LABEL_ROWS[::-1] if to_left[-1:] == [True] else _LABEL_ROWS
    leaders, names = [], []
    for peak, left, row in zip(ordered, to_left, rows, strict=False):
        leader = line_path([peak.x, peak.x], [row - 8, peak.y])
        leaders.append(tag("path", d=leader, class_="thread"))
        anchor = "end" if left else "start"
        names.append(text(peak.x + (-5 if left else 5), row, peak.label, "label", anchor))
    return "".join(leaders + names)


def curves(
    name: str,
    title: str,
    lines: Sequence[Line],
    across: str | Axis,
    y_title: str,
    *,
    x_label: Label = plain_label,
    y_label: Label = plain_label,
    include: Sequence[float] = (),
    marked: tuple[float, str] | None = None,
) -> Plot:
    """Draw lines that differ in dashes, named below the axes.

    Args:
        name: Name of the plot.
        title: Title of the plot.
        lines: At most `MOST_LINES` lines.
        across: Title of the horizontal axis, or the axis itself.
        y_title: Title of the vertical axis.
        x_label: Formats the ticks of the horizontal axis.
        y_label: Formats the ticks of the vertical axis.
        include: Values that the vertical axis covers in any case.
        marked: A value on the horizontal axis to mark, and its name.
    """
    if isinstance(across, str):
        values = np.concatenate([np.empty(0), *(line.x for line in lines)])
        across = axis(values, across, label=x_label)
    y_values = np.concatenate([np.asarray(include, np.float64), *(line.ends for line in lines)])
    y = axis(y_values, y_title, label=y_label)
    panel = Panel(WIDTH, HEIGHT, across, y, above=26 if marked else 8)
    parts = [panel.axes()]
    if marked:
        at = float(panel.across([marked[0]])[0])
        left = at > (panel.left + panel.right) / 2
        leader = line_path([at, at], [panel.top - 16, panel.bottom])
        parts.append(tag("path", d=leader, class_="line s1 mark"))
        place = at - 5 if left else at + 5
        parts.append(text(place, panel.top - 8, marked[1], "label", "end" if left else "start"))
    named = [line.label for line in lines if line.label]
    parts += [_band(panel, line, place) for place, line in enumerate(lines)]
    for place, line in enumerate(lines):
        path = line_path(panel.across(line.x), panel.up(line.y))
        parts.append(tag("path", d=path, class_=f"line s{place} k{_line_colour(place)}"))
        if line.label:
            parts.append(_legend_row(place, line.label))
    return Plot(
        name=name,
        title=title,
        description=f"{y_title} over {across.title}. {'; '.join(named)}".rstrip(),
        width=WIDTH,
        height=HEIGHT + LEGEND_ROW * len(named) + (8 if named else 0),
        body="".join(parts),
    )


_LINE_COLOURS = (0, 3, 2, 4)
MOST_LINES = len(_LINE_COLOURS)
"""Number of curves that can be told apart in one plot."""


def _line_colour(place: int) -> int:
    return _LINE_COLOURS[place % MOST_LINES]


def _band(panel: Panel, line: Line, place: int) -> str:
    if line.error is None or not np.isfinite(line.error).any():
        return ""
    half = np.nan_to_num(line.error)
    around = np.concatenate([line.y + half, (line.y - half)[::-1]])
    outline = line_path(panel.across(np.concatenate([line.x, line.x[::-1]])), panel.up(around))
    return tag("path", d=outline + "Z", class_=f"area k{_line_colour(place)}")


def _legend_row(place: int, label: str) -> str:
    y = HEIGHT + 14 + LEGEND_ROW * place
    swatch = line_path([12, 48], [y - 4, y - 4])
    return tag("path", d=swatch, class_=f"line s{place} k{_line_colour(place)}") + text(
        56, y, label, "label"
    )


def reliability_diagram(name: str, title: str, bins: Reliability) -> Plot:
    """Draw accuracy by confidence: bars, a disc at each bin's mean confidence, a dashed ideal."""
    whole = Axis(_FIFTHS, tuple(percent_label(tick, 0.2) for tick in _FIFTHS), "confidence")
    panel = Panel(WIDTH, HEIGHT, whole, Axis(whole.ticks, whole.labels, "accuracy"))
    parts = [panel.axes()]
    edges = np.linspace(0.0, 1.0, len(bins.count_B) + 1)
    base = float(panel.up([0.0])[0])
    for place in np.flatnonzero(bins.count_B):
        accuracy, confidence = bins.accuracy_B[place], bins.confidence_B[place]
        left, right = panel.across(edges[place : place + 2])
        top = float(panel.up([accuracy])[0])
        size = 2 + 5 * float(np.sqrt(bins.count_B[place] / bins.count_B.sum()))
        tooltip = (
            f"{bins.count_B[place]:,} nodes with a mean confidence of {percent(confidence)}: "
            f"{percent(accuracy)} correct"
        )
        bar = {"x": left + 1, "y": top, "width": right - left - 2, "height": base - top}
        parts.append(tag("rect", tag("title", escaped(tooltip)), class_="bar k0", **bar))
        at = {"cx": float(panel.across([confidence])[0]), "cy": top, "r": size}
        parts.append(tag("circle", tag("title", escaped(tooltip)), class_="disc k3", **at))
    ideal = line_path(panel.across([0.0, 1.0]), panel.up([0.0, 1.0]))
    parts.append(tag("path", d=ideal, class_="line s1 mark"))
    legend = [
        ("bar k0", "accuracy of a bin"),
        ("disc k3", "its mean confidence; size: number of nodes"),
    ]
    for row, (kind, label) in enumerate(legend):
        y = HEIGHT + 14 + LEGEND_ROW * row
        bar = {"x": 24.0, "y": y - 9.0, "width": 12.0, "height": 10.0}
        disc = {"cx": 30.0, "cy": y - 4.0, "r": 5.0}
        parts.append(tag("circle" if row else "rect", class_=kind, **(disc if row else bar)))
        parts.append(text(56, y, label, "label"))
    y = HEIGHT + 14 + LEGEND_ROW * 2
    parts.append(tag("path", d=line_path([12, 48], [y - 4, y - 4]), class_="line s1 mark"))
    parts.append(text(56, y, "ideal: accuracy equals confidence", "label"))
    return Plot(
        name=name,
        title=title,
        description="Accuracy of nodes by confidence, in ten bins, against the ideal diagonal",
        width=WIDTH,
        height=y + 13,
        body="".join(parts),
    )
