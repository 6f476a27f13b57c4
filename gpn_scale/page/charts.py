"""Facts -> plots over axes: histograms, curves, the reliability diagram, points.

Colours are classes of the style sheet: `k0` to `k6` for groups and classes of nodes, `q0` to `q6`
for a scale. Groups always differ in dashes, hatching, shape or letter as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpn_scale.evaluation.metrics import Reliability
from gpn_scale.page.facts import Histogram, LatentPoints, data_range
from gpn_scale.page.markup import class_letter, coordinate, escaped, figures, percent, tag
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
COLOURS = 7
SCALE_STEPS = 7
_LEGEND_ROW = 17
_LABEL_ROWS = (32, 48)
_LEAST_HEIGHT = 220
_RARE_PLACE, _RARE_EVIDENCE = 0.02, 0.06
"""Shares of points that a frame and a scale of colours need not reach."""
_SHAPES = (  # about a point, four pixels wide: disc, square, triangles, diamond, bar
    "m-2 0a2 2 0 1 0 4 0a2 2 0 1 0 -4 0",
    "m-1.7 -1.7h3.4v3.4h-3.4z",
    "m0 -2.3l2.2 3.9h-4.4z",
    "m0 -2.5l2.2 2.5l-2.2 2.5l-2.2 -2.5z",
    "m0 2.3l2.2 -3.9h-4.4z",
    "m-2.6 -.8h5.2v1.6h-5.2z",
)
_CROSS = "m-2.6 -2.6l5.2 5.2m0 -5.2l-5.2 5.2"


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A curve and what it is called; `error` is half the height of a band about it."""

    x: NDArray[np.floating]
    y: NDArray[np.floating]
    label: str = ""
    error: NDArray[np.floating] | None = None

    @property
    def ends(self) -> NDArray[np.float64]:
        """Values that the vertical axis must show."""
        if self.error is None:
            return np.asarray(self.y, np.float64)
        half = np.nan_to_num(self.error)
        return np.concatenate([self.y - half, self.y + half])


def histogram(
    name: str, title: str, found: Histogram, x_title: str, *, label: Label = plain_label
) -> Plot:
    """Densities as outlined areas, the second one dashed and hatched, each with its name."""
    x = axis(found.edges, x_title, label=label)
    top = max((float(d.max(initial=0.0)) for d in found.densities.values()), default=0.0)
    panel = Panel(WIDTH, HEIGHT, x, axis([0.0, top or 1.0], "density", count=4), above=38)
    parts = [hatching(f"{name}-hatch", "hatch k3"), panel.axes()]
    peaks = []
    for place, (group, density) in enumerate(found.densities.items()):
        kind = "k0" if place == 0 else "k3"
        across = panel.across(np.repeat(found.edges, 2))
        up = panel.up(np.concatenate([[0.0], np.repeat(density, 2), [0.0]]))
        outline = line_path(across, up)
        if place:
            parts.append(tag("path", d=outline, fill=f"url(#{name}-hatch)"))
        else:
            parts.append(tag("path", d=outline, class_=f"area {kind}"))
        parts.append(tag("path", d=outline, class_=f"line s{place} {kind}"))
        peak = int(density.argmax())
        middle = panel.across([(found.edges[peak] + found.edges[peak + 1]) / 2])[0]
        words = f"{group} ({found.counts[group]:,})"
        peaks.append(_Peak(float(middle), float(panel.up([density[peak]])[0]), words))
    parts.append(_peak_labels(panel, peaks))
    return Plot(
        name=name,
        title=title,
        description=f"Histogram of {x_title}: "
        + ", ".join(f"{group}, {count:,} nodes" for group, count in found.counts.items()),
        width=WIDTH,
        height=HEIGHT,
        body="".join(parts),
    )


@dataclass(frozen=True, slots=True)
class _Peak:
    x: float
    y: float
    words: str


def _peak_labels(panel: Panel, peaks: Sequence[_Peak]) -> str:
    """Names of one or two groups above the area, each with a thread to its peak.

    The left one stands left of its thread and the right one right of it, where there is room. They
    have a row each; if the right one had to go left it has the upper, out of the other's way.
    """
    ordered = sorted(peaks, key=lambda peak: peak.x)
    to_left = []
    for place, peak in enumerate(ordered):
        width = CHARACTER * len(peak.words) + 5
        left, right = peak.x - width > 0, peak.x + width < WIDTH
        to_left.append(left and (not right or (place == 0 and len(ordered) > 1)))
    rows = _LABEL_ROWS[::-1] if to_left[-1:] == [True] else _LABEL_ROWS
    threads, names = [], []
    for peak, left, row in zip(ordered, to_left, rows, strict=False):
        thread = line_path([peak.x, peak.x], [row - 8, peak.y])
        threads.append(tag("path", d=thread, class_="thread"))
        anchor = "end" if left else "start"
        names.append(text(peak.x + (-5 if left else 5), row, peak.words, "label", anchor))
    return "".join(threads + names)


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
    """Lines that differ in dashes, named below the axes; `marked` is a named place on x.

    Args:
        name: Of the plot.
        title: Of the plot.
        lines: At most as many as there are kinds of dashes.
        across: What goes across, or an axis for it.
        y_title: What goes up.
        x_label: Texts of ticks across.
        y_label: Texts of ticks up.
        include: Values that the vertical axis shows in any case.
        marked: Value and name.
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
        thread = line_path([at, at], [panel.top - 16, panel.bottom])
        parts.append(tag("path", d=thread, class_="line s1 mark"))
        place = at - 5 if left else at + 5
        parts.append(text(place, panel.top - 8, marked[1], "label", "end" if left else "start"))
    named = [line.label for line in lines if line.label]
    parts += [_band(panel, line, place) for place, line in enumerate(lines)]
    for place, line in enumerate(lines):
        path = line_path(panel.across(line.x), panel.up(line.y))
        parts.append(tag("path", d=path, class_=f"line s{place} k{_LINE_COLOURS[place]}"))
        if line.label:
            parts.append(_legend_row(place, line.label))
    return Plot(
        name=name,
        title=title,
        description=f"{y_title} over {across.title}. {'; '.join(named)}",
        width=WIDTH,
        height=HEIGHT + _LEGEND_ROW * len(named) + (8 if named else 0),
        body="".join(parts),
    )


_LINE_COLOURS = (0, 3, 2, 4)
MOST_LINES = len(_LINE_COLOURS)
"""Curves that one plot can tell apart."""


def _band(panel: Panel, line: Line, place: int) -> str:
    if line.error is None or not np.isfinite(line.error).any():
        return ""
    half = np.nan_to_num(line.error)
    around = np.concatenate([line.y + half, (line.y - half)[::-1]])
    outline = line_path(panel.across(np.concatenate([line.x, line.x[::-1]])), panel.up(around))
    return tag("path", d=outline + "Z", class_=f"area k{_LINE_COLOURS[place]}")


def _legend_row(place: int, label: str) -> str:
    y = HEIGHT + 14 + _LEGEND_ROW * place
    swatch = line_path([12, 48], [y - 4, y - 4])
    return tag("path", d=swatch, class_=f"line s{place} k{_LINE_COLOURS[place]}") + text(
        56, y, label, "label"
    )


def reliability_diagram(name: str, title: str, found: Reliability) -> Plot:
    """Accuracy by confidence: bars, a disc at each bin's mean confidence, the ideal dashed."""
    whole = Axis(_FIFTHS, tuple(percent_label(tick, 0.2) for tick in _FIFTHS), "confidence")
    panel = Panel(WIDTH, HEIGHT, whole, Axis(whole.ticks, whole.labels, "accuracy"))
    parts = [panel.axes()]
    edges = np.linspace(0.0, 1.0, len(found.count_B) + 1)
    base = float(panel.up([0.0])[0])
    for place in np.flatnonzero(found.count_B):
        accuracy, confidence = found.accuracy_B[place], found.confidence_B[place]
        left, right = panel.across(edges[place : place + 2])
        top = float(panel.up([accuracy])[0])
        size = 2 + 5 * float(np.sqrt(found.count_B[place] / found.count_B.sum()))
        told = (
            f"{found.count_B[place]:,} nodes with confidence {percent(confidence)} on average: "
            f"{percent(accuracy)} right"
        )
        bar = {"x": left + 1, "y": top, "width": right - left - 2, "height": base - top}
        parts.append(tag("rect", tag("title", escaped(told)), class_="bar k0", **bar))
        at = {"cx": float(panel.across([confidence])[0]), "cy": top, "r": size}
        parts.append(tag("circle", tag("title", escaped(told)), class_="disc k3", **at))
    ideal = line_path(panel.across([0.0, 1.0]), panel.up([0.0, 1.0]))
    parts.append(tag("path", d=ideal, class_="line s1 mark"))
    words = [("bar k0", "accuracy of a bin"), ("disc k3", "its mean confidence; size: nodes")]
    for row, (kind, label) in enumerate(words):
        y = HEIGHT + 14 + _LEGEND_ROW * row
        bar = {"x": 24.0, "y": y - 9.0, "width": 12.0, "height": 10.0}
        disc = {"cx": 30.0, "cy": y - 4.0, "r": 5.0}
        parts.append(tag("circle" if row else "rect", class_=kind, **(disc if row else bar)))
        parts.append(text(56, y, label, "label"))
    y = HEIGHT + 14 + _LEGEND_ROW * 2
    parts.append(tag("path", d=line_path([12, 48], [y - 4, y - 4]), class_="line s1 mark"))
    parts.append(text(56, y, "ideal: as often right as confident", "label"))
    return Plot(
        name=name,
        title=title,
        description="Accuracy of nodes by confidence, in ten bins, against the ideal diagonal",
        width=WIDTH,
        height=y + 13,
        body="".join(parts),
    )


_FIFTHS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def points_by_class(name: str, title: str, found: LatentPoints) -> Plot:
    """Latent positions; a class has a colour, a shape, and its letter at its middle."""
    view = _View.of(found)
    across, up = view.across, view.up
    parts = [view.frame()]
    known = ~found.marked & np.isfinite(across + up)
    labels = np.unique(found.label[known])
    for label in labels:
        nodes = known & (found.label == label)
        shape = _SHAPES[label % len(_SHAPES)] if label >= 0 else _SHAPES[0]
        kind = f"points k{label % COLOURS}" if label >= 0 else "points unnamed"
        parts.append(tag("path", d=_markers(across[nodes], up[nodes], shape), class_=kind))
    crosses = _markers(across[found.marked], up[found.marked], _CROSS)
    parts.append(tag("path", d=crosses, class_="cross ink"))
    parts.append(_class_letters(found.label[known], across[known], up[known]))
    parts.append(text(12, view.height + 18, "letters stand at the middle of classes", "label"))
    return _points_plot(name, title, found, view, parts)


def _class_letters(
    label_L: NDArray[np.int64], across: NDArray[np.float64], up: NDArray[np.float64]
) -> str:
    """Letters at the medians of the classes, largest first; one that would hide another is left."""
    counts = np.bincount(label_L[label_L >= 0])
    parts: list[str] = []
    taken: list[tuple[float, float, float]] = []
    for label in np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]:
        x, y = (float(np.median(values[label_L == label])) for values in (across, up))
        letter = class_letter(int(label))
        half = 7.0 * len(letter)
        if all(abs(x - a) >= half + b or abs(y - c) >= 17 for a, b, c in taken):
            taken.append((x, half, y))
            parts.append(text(x, y + 6, letter, "letter", "middle"))
    return "".join(parts)


def points_by_evidence(name: str, title: str, found: LatentPoints) -> Plot:
    """Latent positions, from yellow where there is little evidence to blue where there is much."""
    view = _View.of(found)
    low, high = _usual_range(found.log_evidence, _RARE_EVIDENCE)
    edges = np.linspace(low, high, SCALE_STEPS + 1)
    step_L = np.clip(np.searchsorted(edges, found.log_evidence) - 1, 0, SCALE_STEPS - 1)
    parts = [view.frame()]
    for marked, shape, kind in ((False, _SHAPES[0], "points"), (True, _CROSS, "cross")):
        for step in range(SCALE_STEPS):
            nodes = (step_L == step) & (found.marked == marked)
            path = _markers(view.across[nodes], view.up[nodes], shape)
            parts.append(tag("path", d=path, class_=f"{kind} q{step}"))
    least, most = (figures(10.0 ** float(np.clip(end, -300, 300)), 2) for end in (low, high))
    y = view.height + 18
    begin = 12 + CHARACTER * len(least) + 24
    parts.append(text(12, y, f"≤ {least}", "label"))
    for step in range(SCALE_STEPS):
        swatch = {"x": begin + 16.0 * step, "y": y - 9, "width": 15.0, "height": 10.0}
        parts.append(tag("rect", class_=f"swatch q{step}", **swatch))
    words = f"≥ {most} pseudo-counts"
    parts.append(text(begin + 16 * SCALE_STEPS + 8, y, words, "label"))
    return _points_plot(name, title, found, view, parts)


@dataclass(frozen=True, slots=True, eq=False)
class _View:
    """Positions in a frame of one scale for both directions; what lies far out is at its edge."""

    across: NDArray[np.float64]
    up: NDArray[np.float64]
    height: float

    @classmethod
    def of(cls, found: LatentPoints) -> "_View":
        ends = [_usual_range(found.position[:, column], _RARE_PLACE) for column in (0, 1)]
        spans = [high - low for low, high in ends]
        scale = min((WIDTH - 40) / spans[0], (WIDTH - 40) / spans[1])
        height = max(spans[1] * scale + 40, _LEAST_HEIGHT)
        placed = []
        for column, size in ((0, WIDTH), (1, height)):
            middle = sum(ends[column]) / 2
            offset = (found.position[:, column] - middle) * (scale if column == 0 else -scale)
            placed.append(np.clip(size / 2 + offset, 12, size - 12))
        return cls(placed[0], placed[1], height)

    def frame(self) -> str:
        return tag("rect", class_="frame", x=6, y=6, width=WIDTH - 12, height=self.height - 12)


def _usual_range(values: NDArray[np.float64], rare: float) -> tuple[float, float]:
    """Where all but the share `rare` lie."""
    finite = values[np.isfinite(values)]
    if len(finite) == 0:
        return data_range(finite)
    return data_range(np.quantile(finite, [rare / 2, 1 - rare / 2]))


def _points_plot(name: str, title: str, found: LatentPoints, view: _View, parts: list[str]) -> Plot:
    how = found.method
    if found.explained is not None:
        first, second = (percent(share, 0) for share in found.explained)
        how += f", the first two, which have {first} and {second} of the variance"
    y = view.height + 18 + _LEGEND_ROW
    if found.marked.any():
        cross = f"M18 {coordinate(y - 4)}{_CROSS}"
        words = f"unknown (marked) nodes: {int(found.marked.sum()):,}"
        parts = [*parts, tag("path", d=cross, class_="cross ink"), text(30, y, words, "label")]
    return Plot(
        name=name,
        title=title,
        description=f"{len(found.label):,} nodes by {how}",
        width=WIDTH,
        height=y + 12,
        body="".join(parts),
    )


def _markers(across: NDArray[np.floating], up: NDArray[np.floating], shape: str) -> str:
    """One path that draws `shape` at every finite point."""
    finite = np.isfinite(across) & np.isfinite(up)
    return "".join(
        f"M{coordinate(x)} {coordinate(y)}{shape}"
        for x, y in zip(across[finite].tolist(), up[finite].tolist(), strict=True)
    )
