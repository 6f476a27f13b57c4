"""Contributors against dense matrices."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.config import DiffusionConfig, RunConfig, TrainConfig
from gpn_scale.estimator import GPNClassifier
from gpn_scale.inference.evidence import FeatureEvidence, evaluating
from gpn_scale.page import explain
from gpn_scale.page.explain import diffusion_rows, exact_sources, explain_extremes
from tests.ppr.stored import exact_rows, write_store
from tests.strategies import graphs

DIFFUSIONS = [
    DiffusionConfig(normalisation=normalisation, steps=steps, tolerance=1e-12)
    for normalisation in ("sym", "rw")
    for steps in (0, 1, 10, "inf")
]


@pytest.fixture(scope="module")
def trained(small_graph):
    """A classifier of the small graph, in float64."""
    config = RunConfig(train=TrainConfig(epochs=5))
    return GPNClassifier(config, device="cpu", dtype=torch.float64).fit(small_graph)


def dense_evidence(classifier, graph):
    evidence_of = FeatureEvidence(
        classifier.model, graph.features, "none", classifier.device, classifier.dtype
    )
    with torch.no_grad(), evaluating(classifier.model):
        return evidence_of(np.arange(graph.num_nodes)).numpy()


@pytest.mark.parametrize("diffusion", DIFFUSIONS, ids=lambda d: f"{d.normalisation}-{d.steps}")
@given(graph=graphs(), data=st.data())
def test_rows_are_those_of_the_dense_matrix(diffusion, graph, data):
    nodes = data.draw(st.lists(st.integers(0, graph.num_nodes - 1), max_size=3))
    found = diffusion_rows(graph, diffusion, np.array(nodes, np.int64))
    np.testing.assert_allclose(found, exact_rows(graph, diffusion)[nodes], atol=1e-9)


@pytest.mark.parametrize("diffusion", DIFFUSIONS, ids=lambda d: f"{d.normalisation}-{d.steps}")
def test_sources_are_the_largest_terms_of_the_sum(trained, small_graph, diffusion):
    classifier = GPNClassifier(
        replace(trained.config, diffusion=diffusion), device="cpu", dtype=torch.float64
    )
    classifier._model = trained.model
    nodes = np.array([0, 17, *small_graph.marks["isolated"][:1]])
    found = exact_sources(classifier, small_graph, nodes, 5)
    evidence = dense_evidence(trained, small_graph)
    given_by = exact_rows(small_graph, diffusion)[nodes] * evidence.sum(1)
    np.testing.assert_allclose(found.evidence_B, given_by.sum(1), rtol=1e-9)
    np.testing.assert_allclose(found.own_evidence_B, evidence.sum(1)[nodes], rtol=1e-9)
    by = found.contributors
    for place, row in enumerate(given_by):
        largest = np.sort(row)[::-1][:5] / row.sum()
        np.testing.assert_allclose(by.share[place], largest, rtol=1e-6, atol=1e-12)
        assert by.share[place].sum() <= 1 + 1e-12
        named = by.node[place][by.node[place] >= 0]
        np.testing.assert_allclose(by.share[place][: len(named)], row[named] / row.sum())
        np.testing.assert_array_equal(
            by.leading_class[place][: len(named)], evidence[named].argmax(1)
        )


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
    classifier = GPNClassifier(replace(trained.config, diffusion=logs), dtype=torch.float64)
    classifier._model = trained.model
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
    monkeypatch.setattr(explain, "MOST_NODES", 299)
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
