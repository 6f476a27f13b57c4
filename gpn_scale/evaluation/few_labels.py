"""Warnings about classes with few labels, and about the precision of the figures."""

from gpn_scale.data.class_counts import ClassCount, class_counts
from gpn_scale.data.graph import Graph
from gpn_scale.evaluation.intervals import exact_interval
from gpn_scale.evaluation.known_calibration import COARSE_NODES, LEAST_NODES
from gpn_scale.evaluation.sample_sizes import LEAST_LABELS

_EXAMPLE = 0.9
_WIDE = 0.1
_NAMED = 5


def label_warnings(graph: Graph) -> tuple[str, ...]:
    """Return warnings if a class has fewer than `LEAST_LABELS` labelled nodes, else ().

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.data.splits import stratified_split
    >>> graph = build_graph([], [], labels=[0] * 30 + [1] * 10, class_names=["no", "yes"])
    >>> for warning in label_warnings(stratified_split(graph, train=0.6, val=0.2, rng_seed=1)):
    ...     print(warning)
    Class 'yes' has 10 labelled nodes, fewer than 20.
    Expect wide intervals: from 8 test nodes, an accuracy of 90 % may truly be 50 % to 100 %.
    Expect no p-values: they need 19 validation nodes, and there are 8.

    Args:
        graph: A graph with a split.
    """
    assert graph.split is not None
    few = sorted(
        (each for each in class_counts(graph) if each.labelled < LEAST_LABELS),
        key=lambda each: each.labelled,
    )
    if not few:
        return ()
    return (
        _class_sentence(few, graph.num_classes),
        _test_sentence(len(graph.split.test)),
        *_validation_sentences(len(graph.split.val)),
    )


def _class_sentence(few: list[ClassCount], classes: int) -> str:
    if len(few) == 1:
        nodes = "one labelled node" if few[0].labelled == 1 else f"{few[0].labelled} labelled nodes"
        return f"Class {few[0].name!r} has {nodes}, fewer than {LEAST_LABELS}."
    named = [f"{each.name!r} ({each.labelled})" for each in few[:_NAMED]]
    more = ", ..." if len(few) > _NAMED else ""
    return (
        f"{len(few)} of {classes} classes have fewer than {LEAST_LABELS} labelled nodes: "
        f"{', '.join(named)}{more}."
    )


def _test_sentence(count: int) -> str:
    if count == 0:
        return "Expect no accuracy: there are no test nodes to measure it on."
    low, high = exact_interval(_EXAMPLE * count, count)
    if high - low < _WIDE:
        return "Figures over all classes are reliable; figures of a class with few labels are not."
    nodes = "one test node" if count == 1 else f"{count:,} test nodes"
    return (
        f"Expect wide intervals: from {nodes}, an accuracy of {_EXAMPLE:.0%} may truly be "
        f"{low:.0%} to {high:.0%}."
    ).replace("%", " %")


def _validation_sentences(count: int) -> list[str]:
    if count < LEAST_NODES:
        return [
            f"Expect no p-values: they need {LEAST_NODES} validation nodes, and there are {count}."
        ]
    if count < COARSE_NODES:
        smallest = f"{100 / (1 + count):.1f} %"
        return [
            f"Expect coarse p-values: with {count} validation nodes, none can be below {smallest}."
        ]
    return []
