"""What a run prints before it starts."""

from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.cli.opening import count_lines, print_opening
from gpn_scale.config import SplitConfig
from gpn_scale.data.building import build_graph
from gpn_scale.data.class_counts import ClassCount
from gpn_scale.data.splits import stratified_split
from gpn_scale.data.summary import GraphSummary


@pytest.fixture
def bank():
    """A graph with 40 labels in 100 nodes."""
    labels = np.repeat([0, 1, -1], [30, 10, 60])
    names = ["legit", "fraud"]
    graph = build_graph([0], [1], name="bank", num_nodes=100, labels=labels, class_names=names)
    return stratified_split(graph, train=0.6, val=0.2, rng_seed=1)


def test_counts_and_warnings_are_printed(bank, capsys):
    print_opening(bank, SplitConfig(train=0.6, val=0.2), None)
    output = capsys.readouterr()
    lines = output.out.splitlines()
    assert lines[0] == "labelled nodes by class, split at random 60 / 20 / 20 % (seed 1):"
    assert [line.split() for line in lines[1:]] == [
        ["train", "val", "test"],
        ["legit", "18", "6", "6"],
        ["fraud", "6", "2", "2"],
        ["all", "classes", "24", "8", "8"],
    ]
    assert len({len(line) for line in lines[1:]}) == 1, "columns are aligned"
    assert output.err.startswith("warning: Class 'fraud' has 10 labelled nodes, fewer than 20.\n")


def test_an_own_graph_has_its_summary_first(bank, capsys):
    print_opening(bank, SplitConfig(kind="public"), GraphSummary.of(bank))
    text = capsys.readouterr().out
    assert text.startswith("bank: 100 nodes, 1 edge, 0 features\n")
    assert "in the split that came with the graph:" in text


def test_enough_labels_give_no_warning(bank, capsys):
    labels = np.arange(100, dtype=np.int32) % 2
    graph = replace(bank, labels=labels, split=None)
    print_opening(stratified_split(graph, rng_seed=1), SplitConfig(), None)
    assert capsys.readouterr().err == ""


def test_of_many_classes_the_smallest_are_shown():
    counts = [
        ClassCount(name="long name " * 9 if i == 0 else f"c{i}", labelled=99, train=40 - i, test=1)
        for i in range(30)
    ]
    lines = count_lines(counts, SplitConfig())
    assert len(lines) == 2 + 11 + 2
    assert lines[2].split() == ["c29", "11", "0", "1"]
    assert lines[-2] == "  ... and 19 more with at least 22 training nodes each"
    assert lines[-1].split() == ["all", "classes", f"{sum(c.train for c in counts):,}", "0", "30"]
    named = count_lines(counts[:2], SplitConfig())
    assert max(map(len, named[1:])) < 60
