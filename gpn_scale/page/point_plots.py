"""Plots of latent positions, by class and by evidence.

Colours are classes of the style sheet: `k0` to `k6` for classes of nodes, `q0` to `q6` for a scale.
Classes always differ in shape and letter as well.

Shapes: L nodes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpn_scale.page.charts import LEGEND_ROW, WIDTH
from gpn_scale.page.facts import LatentPoints
from gpn_scale.page.histograms import data_range
from gpn_scale.page.markup import COLOURS, class_letter, coordinate, figures, percent, tag
from gpn_scale.page.svg import CHARACTER, Plot, text

SCALE_STEPS = 7
"""Number of colours of the scale of evidence."""
_LEAST_HEIGHT = 220
_RARE_POSITION, _RARE_EVIDENCE = 0.02, 0.06
"""Fraction of points that the frame, and the scale of colours, need not cover."""
_SHAPES = (  # relative to a point, four pixels wide: disc, square, triangles, diamond, bar
    "m-2 0a2 2 0 1 0 4 0a2 2 0 1 0 -4 0",
    "m-1.7 -1.7h3.4v3.4h-3.4z",
    "m0 -2.3l2.2 3.9h-4.4z",
    "m0 -2.5l2.2 2.5l-2.2 2.5l-2.2 -2.5z",
    "m0 2.3l2.2 -3.9h-4.4z",
    "m-2.6 -.8h5.2v1.6h-5.2z",
)
_CROSS = "m-2.6 -2.6l5.2 5.2m0 -5.2l-5.2 5.2"


def points_by_class(name: str, title: str, points: LatentPoints) -> Plot:
    """Draw latent positions; a class has a colour, a shape, and a letter at its centre."""
    view = _View.of(points)
    across, up = view.across, view.up
    parts = [view.frame()]
    known = ~points.unknown & np.isfinite(across + up)
    labels = np.unique(points.label[known])
    for label in labels:
        nodes = known & (points.label == label)
        shape = _SHAPES[label % len(_SHAPES)] if label >= 0 else _SHAPES[0]
        kind = f"points k{label % COLOURS}" if label >= 0 else "points unnamed"
        parts.append(tag("path", d=_markers(across[nodes], up[nodes], shape), class_=kind))
    crosses = _markers(across[points.unknown], up[points.unknown], _CROSS)
    parts.append(tag("path", d=crosses, class_="cross ink"))
    parts.append(_class_letters(points.label[known], across[known], up[known]))
    parts.append(text(12, view.height + 18, "letters mark the centres of the classes", "label"))
    return _points_plot(name, title, points, view, parts)


def _class_letters(
    label_L: NDArray[np.int64], across: NDArray[np.float64], up: NDArray[np.float64]
) -> str:
    """Return letters at the medians of the classes, largest first.

    A letter that would overlap one already placed is left out.
    """
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


def points_by_evidence(name: str, title: str, points: LatentPoints) -> Plot:
    """Draw latent positions, from yellow for little evidence to blue for much evidence."""
    view = _View.of(points)
    low, high = _usual_range(points.log_evidence, _RARE_EVIDENCE)
    edges = np.linspace(low, high, SCALE_STEPS + 1)
    step_L = np.clip(np.searchsorted(edges, points.log_evidence) - 1, 0, SCALE_STEPS - 1)
    parts = [view.frame()]
    for unknown, shape, kind in ((False, _SHAPES[0], "points"), (True, _CROSS, "cross")):
        for step in range(SCALE_STEPS):
            nodes = (step_L == step) & (points.unknown == unknown)
            path = _markers(view.across[nodes], view.up[nodes], shape)
            parts.append(tag("path", d=path, class_=f"{kind} q{step}"))
    least, most = (figures(10.0 ** float(np.clip(end, -300, 300)), 2) for end in (low, high))
    y = view.height + 18
    begin = 12 + CHARACTER * len(least) + 24
    parts.append(text(12, y, f"≤ {least}", "label"))
    for step in range(SCALE_STEPS):
        swatch = {"x": begin + 16.0 * step, "y": y - 9, "width": 15.0, "height": 10.0}
        parts.append(tag("rect", class_=f"swatch q{step}", **swatch))
    parts.append(text(begin + 16 * SCALE_STEPS + 8, y, f"≥ {most} pseudo-counts", "label"))
    return _points_plot(name, title, points, view, parts)


@dataclass(frozen=True, slots=True, eq=False)
class _View:
    """Positions in a frame with the same scale in both directions; far points are at its edge."""

    across: NDArray[np.float64]
    up: NDArray[np.float64]
    height: float

    @classmethod
    def of(cls, points: LatentPoints) -> "_View":
        ends = [_usual_range(points.position[:, column], _RARE_POSITION) for column in (0, 1)]
        spans = [high - low for low, high in ends]
        scale = min((WIDTH - 40) / spans[0], (WIDTH - 40) / spans[1])
        height = max(spans[1] * scale + 40, _LEAST_HEIGHT)
        placed = []
        for column, size in ((0, WIDTH), (1, height)):
            middle = sum(ends[column]) / 2
            offset = (points.position[:, column] - middle) * (scale if column == 0 else -scale)
            placed.append(np.clip(size / 2 + offset, 12, size - 12))
        return cls(placed[0], placed[1], height)

    def frame(self) -> str:
        return tag("rect", class_="frame", x=6, y=6, width=WIDTH - 12, height=self.height - 12)


def _usual_range(values: NDArray[np.float64], rare: float) -> tuple[float, float]:
    """Return the range that covers all values but the fraction `rare`."""
    finite = values[np.isfinite(values)]
    if len(finite) == 0:
        return data_range(finite)
    return data_range(np.quantile(finite, [rare / 2, 1 - rare / 2]))


def _points_plot(
    name: str, title: str, points: LatentPoints, view: _View, parts: list[str]
) -> Plot:
    method = points.method
    if points.explained_variance is not None:
        first, second = (percent(fraction, 0) for fraction in points.explained_variance)
        method = f"the first two {method}, which have {first} and {second} of the variance"
    y = view.height + 18 + LEGEND_ROW
    if points.unknown.any():
        cross = f"M18 {coordinate(y - 4)}{_CROSS}"
        label = f"unknown nodes: {int(points.unknown.sum()):,}"
        parts = [*parts, tag("path", d=cross, class_="cross ink"), text(30, y, label, "label")]
    return Plot(
        name=name,
        title=title,
        description=f"{len(points.label):,} nodes, placed by {method}",
        width=WIDTH,
        height=y + 12,
        body="".join(parts),
    )


def _markers(across: NDArray[np.floating], up: NDArray[np.floating], shape: str) -> str:
    """Return the path that draws `shape` at every finite point."""
    finite = np.isfinite(across) & np.isfinite(up)
    return "".join(
        f"M{coordinate(x)} {coordinate(y)}{shape}"
        for x, y in zip(across[finite].tolist(), up[finite].tolist(), strict=True)
    )
