"""Write table and plot of the measurements of bench_minibatch_scaling.py."""

import math
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

Record = dict[str, Any]
Records = dict[tuple[int, str], Record]
"""The newest record of each size and stage."""

RESULT = "minibatch_scaling_2cores_202611"
PACKAGES = ("torch", "numpy", "numba", "pymetis", "pyarrow")


class Part(NamedTuple):
    """A row of the table: a phase of a stage; for `epochs`, one epoch."""

    title: str
    stage: str
    phase: str
    colour: str = ""
    """Colour in the plot; empty for parts that are not plotted."""


PARTS = (
    Part("graph: draw", "graph", "draw"),
    Part("graph: save", "graph", "save"),
    Part("precompute", "precompute", "all", "#0072b2"),
    Part("- plan", "precompute", "plan"),
    Part("- partition (METIS)", "precompute", "partition"),
    Part("- cluster masses, pushes", "precompute", "rows"),
    Part("train: set up", "train", "set up", "#e69f00"),
    Part("train: an epoch", "train", "epochs", "#d55e00"),
    Part("predict all nodes", "predict", "predict", "#009e73"),
    Part("write Parquet", "predict", "write"),
)


class Measured(NamedTuple):
    """One part at one size."""

    nodes: int
    labelled: int
    seconds: float
    anonymous_gb: float
    file_gb: float
    total_gb: float

    @property
    def per_labelled(self) -> float:
        """Microseconds per labelled node."""
        return 1e6 * self.seconds / self.labelled

    @property
    def per_node(self) -> float:
        """Microseconds per node."""
        return 1e6 * self.seconds / self.nodes


def measured(records: Records, part: Part) -> list[Measured]:
    """Return the measurements of a part, by increasing size."""
    measurements = []
    for (nodes, stage), record in sorted(records.items()):
        facts = record["phases"].get(part.phase)
        if stage == part.stage and facts is not None and (nodes, "graph") in records:
            graph = records[nodes, "graph"]
            seconds = facts["seconds"]
            if part.phase == "epochs":
                seconds = median(record["epoch_seconds"])
            memory = (facts[name] for name in ("anonymous_gb", "file_gb", "total_gb"))
            measurements.append(Measured(nodes, graph["train"] + graph["val"], seconds, *memory))
    return measurements


def whole_runs(records: Records) -> dict[int, float]:
    """Return the seconds of all stages together, by size, where every stage was measured."""
    stages = {part.stage for part in PARTS}
    sizes = sorted({nodes for nodes, _ in records})
    return {
        nodes: sum(records[nodes, stage]["seconds"] for stage in stages)
        for nodes in sizes
        if all((nodes, stage) in records for stage in stages)
    }


def write_report(records: Records, directory: Path) -> None:
    """Write `RESULT`.md and `RESULT`.svg of all sizes and stages so far."""
    rows = {part: measured(records, part) for part in PARTS}
    rows = {part: row for part, row in rows.items() if row}
    if not any(part.colour for part in rows):
        raise SystemExit("only graphs have been made so far: run without --report first")
    directory.mkdir(parents=True, exist_ok=True)
    sections = [_head(records), _table(rows), _growth(rows), _training(records)]
    text = "\n\n".join(sections) + "\n"
    (directory / f"{RESULT}.md").write_text(text, encoding="utf-8")
    (directory / f"{RESULT}.svg").write_text(plot(rows), encoding="utf-8")
    print(directory / f"{RESULT}.md")


def short(count: float) -> str:
    """Return a short form of a number: 1M for 1,000,000."""
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if count >= unit:
            return f"{count / unit:.3g}{letter}"
    return f"{count:.3g}"


def _head(records: Records) -> str:
    sizes = ",".join(str(nodes) for nodes in sorted({nodes for nodes, _ in records}))
    settings = next(iter(records.values()))["settings"]
    call = f"--sizes {sizes} --threads {settings['threads']} --epochs {settings['epochs']}"
    commits = ", ".join(sorted({record["commit"] for record in records.values()}))
    loads = [record["load"] for record in records.values()]
    load = f"{min(loads):.1f} to {max(loads):.1f}"
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    whole = [f"{_digits(t)} s for {nodes:,} nodes" for nodes, t in whole_runs(records).items()]
    claim = (
        f"From drawing the graph to predictions of all nodes: {', '.join(whole)}." if whole else ""
    )
    return f"""# Minibatch GPN over graph size, 2 cores, 24 GB, November 2026

{claim}

Command: `python benchmarks/bench_minibatch_scaling.py --work DIR {call}`,
then `python benchmarks/bench_minibatch_scaling.py --work DIR --report`.
Versions: {versions}; commit {commits}.
Load of the machine at the start of a stage, which includes earlier stages: {load}.

Synthetic graphs: mean degree 10, 64 float32 features, 16 classes, rng_seed 1; 5 % of the nodes
labelled (4 % training, 1 % validation). Rows of the labelled nodes:
sym, 10 steps, teleport 0.2, k 32, 32 clusters, push to 1e-4. Training: hidden 64, latent 16, 10
radial layers, standardised features, batches of 1,024 random roots, tail `clustered`. Prediction by
exact diffusion within 4 GB. Files were in the page cache where they fit.

![time and memory over size]({RESULT}.svg)"""


def _table(rows: dict[Part, list[Measured]]) -> str:
    lines = [
        "## Time and memory",
        "",
        "Seconds of an epoch are the median, with validation. Peaks are those within the part and",
        "are sampled every 50 ms. Mapped files count while in memory; the system may evict them.",
        "",
        "| nodes | part | seconds | µs per labelled node | µs per node | anonymous GB "
        "| with mapped files GB |",
        "|---|---|---|---|---|---|---|",
    ]
    for nodes in sorted({each.nodes for row in rows.values() for each in row}):
        for part, row in rows.items():
            lines += [
                f"| {nodes:,} | {part.title} | {_digits(each.seconds)} "
                f"| {_digits(each.per_labelled)} | {_digits(each.per_node)} "
                f"| {each.anonymous_gb:.2f} | {each.total_gb:.2f} |"
                for each in row
                if each.nodes == nodes
            ]
    return "\n".join(lines)


def _growth(rows: dict[Part, list[Measured]]) -> str:
    sizes = sorted({each.nodes for row in rows.values() for each in row})
    lines = [
        f"## Growth from {short(sizes[0])} to {short(sizes[-1])} nodes",
        "",
        f"The graph grows by a factor of {sizes[-1] / sizes[0]:.3g}. Factors of time are per node,",
        "those of memory are of the whole.",
        "",
        "| part | time per node | anonymous memory | with mapped files |",
        "|---|---|---|---|",
    ]
    for part, row in rows.items():
        first, last = row[0], row[-1]
        if (first.nodes, last.nodes) == (sizes[0], sizes[-1]):
            time = last.per_node / first.per_node
            anonymous = last.anonymous_gb / max(first.anonymous_gb, 1e-9)
            total = last.total_gb / max(first.total_gb, 1e-9)
            lines.append(f"| {part.title} | {time:.2f} | {anonymous:.2f} | {total:.2f} |")
    return "\n".join(lines)


def _training(records: Records) -> str:
    lines = [
        "## Training and accuracy",
        "",
        "Most of an epoch's time goes into encodings. The last column is the accuracy on nodes",
        "without label: after so few epochs, it only shows that the model learns.",
        "",
        "| nodes | epochs s | encodings per training node | missing mass | val accuracy "
        "| accuracy |",
        "|---|---|---|---|---|---|",
    ]
    for (nodes, stage), record in sorted(records.items()):
        if stage == "train" and (nodes, "graph") in records:
            seconds = ", ".join(_digits(each) for each in record["epoch_seconds"])
            encodings = record["encodings_per_epoch"] / records[nodes, "graph"]["train"]
            predicted = records.get((nodes, "predict"))
            accuracy = "" if predicted is None else f"{predicted['accuracy']:.3f}"
            lines.append(
                f"| {nodes:,} | {seconds} | {encodings:.1f} "
                f"| {record['mean_missing_mass']:.3f} | {record['val_accuracy']:.3f} | {accuracy} |"
            )
    return "\n".join(lines)


def _digits(value: float) -> str:
    """Return three significant digits without exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


class Line(NamedTuple):
    """One curve of the plot."""

    title: str
    colour: str
    dashed: bool
    points: Sequence[tuple[float, float]]


WIDTH, HEIGHT, LEFT, TOP, ROW = 380, 280, 64, 44, 18


def plot(rows: dict[Part, list[Measured]]) -> str:
    """Return two log-log panels as SVG: time per labelled node and peak memory over graph size."""
    shown = {part: row for part, row in rows.items() if part.colour}
    times = [
        Line(part.title, part.colour, False, [(each.nodes, each.per_labelled) for each in row])
        for part, row in shown.items()
    ]
    memory = []
    for part, row in shown.items():
        anonymous = [(each.nodes, each.anonymous_gb) for each in row]
        total = [(each.nodes, each.total_gb) for each in row]
        memory.append(Line(f"{part.title}, anonymous", part.colour, False, anonymous))
        memory.append(Line(f"{part.title}, with mapped files", part.colour, True, total))
    panel = WIDTH + LEFT + 40
    height = TOP + HEIGHT + 60 + ROW * len(memory)
    body = _panel(times, "Time", "µs per labelled node", LEFT)
    body += _panel(memory, "Peak memory", "GB", panel + LEFT)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * panel} {height}" '
    head += f'width="{2 * panel}" height="{height}" font-family="sans-serif" font-size="12">'
    white = f'<rect width="{2 * panel}" height="{height}" fill="white"/>'
    return "\n".join([head, white, *body, "</svg>"]) + "\n"


def _panel(lines: list[Line], title: str, unit: str, left: float) -> list[str]:
    sizes = sorted({x for line in lines for x, _ in line.points})
    values = [y for line in lines for _, y in line.points]
    bottom = TOP + HEIGHT
    x_low, x_high = sizes[0] / 1.2, sizes[-1] * 1.2
    y_low, y_high = min(values) / 1.3, max(values) * 1.3

    def x_of(size: float) -> float:
        return left + WIDTH * math.log(size / x_low) / math.log(x_high / x_low)

    def y_of(value: float) -> float:
        return bottom - HEIGHT * math.log(value / y_low) / math.log(y_high / y_low)

    parts = [_text(left + WIDTH / 2, TOP - 24, f"{title}, {unit}", "middle", bold=True)]
    parts.append(_text(left + WIDTH / 2, bottom + 36, "nodes (log)", "middle"))
    middle = TOP + HEIGHT / 2
    turn = f' transform="rotate(-90 {left - 46} {middle})"'
    parts.append(_text(left - 46, middle, f"{unit} (log)", "middle", turn))
    for size in sizes:
        parts.append(_stroke([(x_of(size), TOP), (x_of(size), bottom)], "#ddd", 1))
        parts.append(_text(x_of(size), bottom + 17, short(size), "middle"))
    for value in _ticks(y_low, y_high):
        at = y_of(value)
        parts.append(_stroke([(left, at), (left + WIDTH, at)], "#ddd", 1))
        parts.append(_text(left - 6, at + 4, f"{value:,.4g}", "end"))
    parts.append(_stroke([(left, TOP), (left, bottom), (left + WIDTH, bottom)], "#333", 1))
    for number, line in enumerate(lines):
        points = [(x_of(x), y_of(y)) for x, y in line.points]
        parts.append(_stroke(points, line.colour, 2, line.dashed))
        circles = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in points)
        parts.append(f'<g fill="{line.colour}">{circles}</g>')
        at = bottom + 60 + ROW * number
        key = [(left, at - 4), (left + 28, at - 4)]
        parts += [_stroke(key, line.colour, 2, line.dashed), _text(left + 36, at, line.title)]
    return parts


def _ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten; only the powers over a wide range."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    digits = (1, 2, 5) if high / low < 1e3 else (1,)
    ticks = [digit * 10.0**power for power in powers for digit in digits]
    return [tick for tick in ticks if low <= tick <= high]


def _text(
    x: float, y: float, text: str, anchor: str = "start", more: str = "", *, bold: bool = False
) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{weight}{more}>{text}</text>'


def _stroke(
    points: Sequence[tuple[float, float]], colour: str, width: int, dashed: bool = False
) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"{dash}/>'
