"""Text that training prints before it starts: the graph, labels per subset, and warnings."""

from collections.abc import Sequence

from gpn_scale.config import SplitConfig
from gpn_scale.data.class_counts import ClassCount, class_counts
from gpn_scale.data.graph import Graph
from gpn_scale.data.summary import GraphSummary
from gpn_scale.evaluation.few_labels import label_warnings
from gpn_scale.messages import say

_MOST_CLASSES = 12
_NAME_LENGTH = 24
_SUBSETS = ("train", "val", "test")


def print_opening(graph: Graph, split: SplitConfig, summary: GraphSummary | None) -> None:
    """Print the summary, if given, and the label counts; print warnings to standard error.

    Args:
        graph: The graph with its split.
        split: Where the split comes from.
        summary: Summary of the user's own graph; None for a known dataset.
    """
    if summary is not None:
        text = summary.short_text()
        say("graph", text.splitlines()[0], text=text, result=True, **summary.to_dict())
    counts = class_counts(graph)
    lines = count_lines(counts, split)
    by_class = {count.name: [count.train, count.val, count.test] for count in counts}
    say("labels", lines[0], text="\n".join(lines), result=True, labels=by_class)
    for sentence in label_warnings(graph):
        say("warning", sentence, level="warning")


def count_lines(counts: Sequence[ClassCount], split: SplitConfig) -> list[str]:
    """Return a table of labelled nodes by class and subset.

    If there are many classes, only those with the fewest training nodes are shown.
    """
    shown = list(counts)
    if len(counts) > _MOST_CLASSES:
        shown = sorted(counts, key=lambda each: each.train)[: _MOST_CLASSES - 1]
    rows = [(_shortened(each.name), each.train, each.val, each.test) for each in shown]
    totals = [sum(getattr(each, subset) for each in counts) for subset in _SUBSETS]
    width = max([len(row[0]) for row in rows] + [len("all classes")])
    lines = [f"labelled nodes by class, {_split_text(split)}:"]
    lines.append(f"  {'':<{width}}{'train':>9}{'val':>9}{'test':>9}")
    lines += [f"  {name:<{width}}{a:>9,}{b:>9,}{c:>9,}" for name, a, b, c in rows]
    if hidden := len(counts) - len(shown):
        least = sorted(each.train for each in counts)[len(shown)]
        lines.append(f"  ... and {hidden} more with at least {least:,} training nodes each")
    name, (a, b, c) = "all classes", totals
    return [*lines, f"  {name:<{width}}{a:>9,}{b:>9,}{c:>9,}"]


def _split_text(split: SplitConfig) -> str:
    if split.kind == "public":
        return "in the split that came with the graph"
    fractions = (split.train, split.val, 1.0 - split.train - split.val)
    parts = " / ".join(f"{100 * fraction:.0f}" for fraction in fractions)
    return f"split at random {parts} % (seed {split.rng_seed})"


def _shortened(name: str) -> str:
    return name if len(name) <= _NAME_LENGTH else f"{name[: _NAME_LENGTH - 3]}..."
