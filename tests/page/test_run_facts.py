"""From a trained model to facts, and from these to a page."""

from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.config import RunConfig
from gpn_scale.data.graph import Split
from gpn_scale.evaluation.metric_intervals import out_of_distribution_intervals
from gpn_scale.evaluation.prediction_metrics import (
    classification_metrics,
    out_of_distribution_metrics,
)
from gpn_scale.evaluation.sample_sizes import SampleSizes
from gpn_scale.page.facts import TrainingCurves
from gpn_scale.page.node_data import node_data
from gpn_scale.page.run_facts import prediction_facts, run_facts, unfinished_facts
from gpn_scale.page.run_page import page_sections
from gpn_scale.page.run_record import RunRecord
from gpn_scale.train.run_directory import RunDirectory
from tests.page.samples import run_facts as run_sample
from tests.page.samples import training_curves


def with_test_nodes(graph, count, marks):
    split = graph.split
    some = Split(train=split.train, val=split.val, test=split.test[:count])
    return replace(graph, split=some, marks=graph.marks if marks else {})


def record(mode="exact", **parts):
    config = replace(RunConfig(model="GPN"), mode=mode)
    return RunRecord(config=config, training=training_curves(), report=None, **parts)


def test_facts_are_the_numbers_of_the_report(trained, prediction, small_graph):
    facts = prediction_facts(trained, small_graph, prediction, None)
    expected = out_of_distribution_metrics(prediction, small_graph)
    for score in ("aleatoric", "epistemic", "epistemic_no_network"):
        assert facts.detection.together[f"auroc_{score}"] == expected[f"auroc_{score}"]
        for mark, values in expected["marks"].items():
            assert facts.detection.marks[mark][f"auroc_{score}"] == values[f"auroc_{score}"]
    assert "auroc_aleatoric_no_network" in facts.detection.together
    test = classification_metrics(prediction, small_graph, small_graph.split.test)
    for curve in facts.risk:
        assert curve.risk[-1] == pytest.approx(1 - test["accuracy"])
    counts = {"known test nodes": expected["id_nodes"], "unknown nodes": expected["ood_nodes"]}
    assert facts.alpha_0.counts == facts.alpha_0_no_network.counts == counts
    assert facts.vacuity.counts == counts
    assert (facts.known_nodes, facts.unknown_nodes) == tuple(counts.values())
    assert facts.reliability.count_B.sum() == len(small_graph.split.test)
    assert facts.nodes.near.method == "t-SNE"
    intervals = out_of_distribution_intervals(prediction, small_graph)
    for name, interval in facts.detection_intervals.items():
        if name in intervals and name != "marks":
            assert interval == intervals[name]
    assert "auroc_aleatoric_no_network" in facts.detection_intervals
    assert facts.classes.confusion.sum() == len(small_graph.split.test)
    assert [curve.auroc for curve in facts.unknown] == [
        facts.detection.together[f"auroc_{curve.score}"] for curve in facts.unknown
    ]


def test_few_test_nodes_are_told(trained, prediction, small_graph):
    few = with_test_nodes(small_graph, 40, marks=False)
    facts = prediction_facts(trained, few, prediction, None)
    assert facts.left_out == SampleSizes.of(prediction, few).left_out
    assert facts.reliability is None
    assert facts.detection_intervals == {}
    assert "trust" not in [
        section.name for section in page_sections(replace(run_sample(), prediction=facts))
    ]


@pytest.mark.parametrize("marks", [False, True])
@pytest.mark.parametrize("count", [0, 1, 2, 40])
def test_any_number_of_test_nodes_has_a_page(trained, prediction, small_graph, count, marks):
    graph = with_test_nodes(small_graph, count, marks)
    facts = run_facts(record(), trained, graph, prediction, None)
    assert (facts.prediction is None) == (count == 0 and not marks)
    names = [section.name for section in page_sections(facts)]
    assert ("nodes" in names) == (facts.prediction is not None)
    if facts.prediction is None:
        assert "no test nodes" in facts.missing[0]


def test_a_page_is_the_same_every_time(trained, prediction, small_graph):
    first, second = (prediction_facts(trained, small_graph, prediction, None) for _ in range(2))
    assert node_data(first.nodes, ("a",)) == node_data(second.nodes, ("a",))
    assert first.conformal == second.conformal


def test_rows_that_are_not_available_are_named(trained, prediction, small_graph):
    few = with_test_nodes(small_graph, 2, marks=False)
    facts = run_facts(record(mode="minibatch"), trained, few, prediction, None)
    assert "gpn-report with --ppr STORE" in facts.missing[0]
    assert facts.prediction.missing_mass is None


def test_class_names_are_those_of_the_data(trained, prediction, small_graph):
    few = with_test_nodes(small_graph, 2, marks=False)
    facts = prediction_facts(trained, few, prediction, None)
    assert facts.class_names == ("class 0", "class 1", "class 2")
    named = replace(few, class_names=np.array(["a", "b", "c"]))
    assert prediction_facts(trained, named, prediction, None).class_names == ("a", "b", "c")


def test_an_unfinished_run_says_how_to_continue(tmp_path):
    facts = unfinished_facts(record(), RunDirectory(tmp_path))
    assert facts.prediction is None
    assert len(facts.missing) == 1
    assert "Run the same command with --resume" in facts.missing[0]
    empty = np.empty(0)
    nothing = TrainingCurves(
        epoch=empty, loss=empty, val_cross_entropy=empty, val_accuracy=empty, best_epoch=0
    )
    unstarted = RunRecord(config=RunConfig(model="GPN"), training=nothing, report=None)
    assert (
        "No epoch is recorded in metrics.jsonl"
        in (unfinished_facts(unstarted, RunDirectory(tmp_path)).missing[1])
    )
