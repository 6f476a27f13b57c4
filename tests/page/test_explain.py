"""Which nodes a page explains, and what it says of them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale.config import RunConfig, TrainConfig
from gpn_scale.estimator import GPNClassifier
from gpn_scale.inference import explanation
from gpn_scale.page.explain import explain_extremes
from tests.ppr.stored import write_store


@pytest.fixture(scope="module")
def trained(small_graph):
    """A classifier of the small graph, in float64."""
    config = RunConfig(train=TrainConfig(epochs=5))
    return GPNClassifier(config, device="cpu", dtype=torch.float64).fit(small_graph)


def shown(ranked, graph):
    """The first four, of which one may be without neighbours."""
    chosen = []
    for node in ranked:
        lonely = [each for each in (*chosen, node) if graph.out_degree[each] == 0]
        if len(lonely) <= 1 or graph.out_degree[node]:
            chosen.append(node)
    return chosen[:4]


def test_extremes_are_the_ends_of_alpha_0(trained, small_graph):
    prediction = trained.predict(small_graph)
    candidates = np.union1d(small_graph.split.test, small_graph.marked)
    known = small_graph.split.test
    found = explain_extremes(trained, small_graph, prediction, candidates, known, None)
    ranked = candidates[np.argsort(prediction.alpha_0[candidates])].tolist()
    assert [int(node.name) for node in found.uncertain] == shown(ranked, small_graph)
    assert [int(node.name) for node in found.certain] == shown(ranked[::-1], small_graph)
    for node in (*found.certain, *found.uncertain):
        own = int(node.name)
        assert node.evidence == pytest.approx(prediction.alpha_0[own] - 3, rel=1e-3, abs=1e-5)
        assert sum(each.share for each in node.contributors) <= 1 + 1e-9
        neighbours = small_graph.indices[small_graph.indptr[own] : small_graph.indptr[own + 1]]
        for each in node.contributors:
            assert each.itself == (each.name == node.name)
            assert each.adjacent == (int(each.name) in neighbours)


def test_averages_of_logarithms_have_no_shares(trained, small_graph):
    logs = replace(trained.config.diffusion, of="log_evidence")
    classifier = GPNClassifier(trained.config, predicts_with=logs, dtype=torch.float64)
    classifier.load_state(small_graph, trained.state(), "trained")
    some = small_graph.split.test
    prediction = trained.predict(small_graph)
    found = explain_extremes(classifier, small_graph, prediction, some, some, None)
    assert "averages logarithms" in found.absent


@pytest.mark.parametrize("count", [0, 1, 3])
def test_few_candidates_are_never_at_both_ends(trained, small_graph, count):
    prediction = trained.predict(small_graph)
    some = np.setdiff1d(small_graph.split.test, small_graph.marked)[:count]
    found = explain_extremes(trained, small_graph, prediction, some, some, None)
    names = [node.name for node in (*found.certain, *found.uncertain)]
    assert len(set(names)) == len(names) == count


def test_large_graphs_read_rows_or_say_why_not(trained, small_graph, tmp_path, monkeypatch):
    prediction = trained.predict(small_graph)
    some = small_graph.split.test
    monkeypatch.setattr(explanation, "MAX_EXACT_NODES", 299)
    found = explain_extremes(trained, small_graph, prediction, some, some, None)
    assert "300 nodes" in found.absent
    assert not found.certain
    diffusion = trained.config.diffusion
    kinds = {"parameters": diffusion.store_parameters, "clusters": 2}
    whole = write_store(str(tmp_path / "whole"), small_graph, diffusion, k=300, **kinds)
    found = explain_extremes(trained, small_graph, prediction, some, some, whole)
    assert not found.absent
    own = int(found.certain[0].name)
    assert found.certain[0].evidence == pytest.approx(prediction.alpha_0[own] - 3, rel=1e-3)
    few = write_store(str(tmp_path / "few"), small_graph, diffusion, k=8, roots=[0, 1], **kinds)
    found = explain_extremes(trained, small_graph, prediction, some, some, few)
    assert "not among the 2 roots" in found.absent
