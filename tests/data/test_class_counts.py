"""Counts of classes against loops over nodes."""

from hypothesis import given

from gpn_scale.data.class_counts import class_counts, class_name
from tests.strategies import graphs


@given(graphs())
def test_counts_are_those_of_a_loop(graph):
    counts = class_counts(graph)
    assert len(counts) == graph.num_classes
    for label, count in enumerate(counts):
        assert count.name == class_name(graph, label)
        assert count.labelled == sum(int(each == label) for each in graph.labels)
        for subset in ("train", "val", "test"):
            nodes = [] if graph.split is None else getattr(graph.split, subset)
            assert getattr(count, subset) == sum(int(graph.labels[v] == label) for v in nodes)


@given(graphs())
def test_names_are_those_of_the_graph(graph):
    names = [class_name(graph, label) for label in range(graph.num_classes)]
    if graph.class_names is None:
        assert names == [f"class {label}" for label in range(graph.num_classes)]
    else:
        assert names == graph.class_names.tolist()
