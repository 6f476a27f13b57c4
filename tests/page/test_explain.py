"""Contributors against dense matrices."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.config import DiffusionConfig, RunConfig, TrainConfig
from gpn_scale.errors import StoreError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.inference.evidence import FeatureEvidence, evaluating
from gpn_scale.page import explain as explain_module
from gpn_scale.page.explain import diffusion_rows, evidence_summary, explain
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
    rows = diffusion_rows(graph, diffusion, np.array(nodes, np.int64))
    np.testing.assert_allclose(rows, exact_rows(graph, diffusion)[nodes], atol=1e-9)


@pytest.mark.parametrize("diffusion", DIFFUSIONS, ids=lambda d: f"{d.normalisation}-{d.steps}")
def test_sources_are_the_largest_terms_of_the_sum(trained, small_graph, diffusion):
    classifier = GPNClassifier(
        replace(trained.config, diffusion=diffusion), device="cpu", dtype=torch.float64
    )
    classifier._model = trained.model
    nodes = np.array([0, 17, *small_graph.marks["isolated"][:1]])
    explanation = explain(classifier, small_graph, nodes, count=5)
    evidence = dense_evidence(trained, small_graph)
    given_by = exact_rows(small_graph, diffusion)[nodes] * evidence.sum(1)
    np.testing.assert_allclose(explanation.evidence, given_by.sum(1), rtol=1e-9)
    np.testing.assert_allclose(explanation.own_evidence, evidence.sum(1)[nodes], rtol=1e-9)
    by = explanation.contributors
    for place, row in enumerate(given_by):
        largest = np.sort(row)[::-1][:5] / row.sum()
        np.testing.assert_allclose(by.share[place], largest, rtol=1e-6, atol=1e-12)
        assert by.share[place].sum() <= 1 + 1e-12
        named = by.node[place][by.node[place] >= 0]
        np.testing.assert_allclose(by.share[place][: len(named)], row[named] / row.sum())
        np.testing.assert_array_equal(
            by.leading_class[place][: len(named)], evidence[named].argmax(1)
        )


def test_evidence_that_is_handed_in_is_not_computed_again(trained, small_graph, monkeypatch):
    nodes = np.array([5, 9])
    expected = explain(trained, small_graph, nodes)
    evidence = evidence_summary(trained, small_graph)
    monkeypatch.setattr(explain_module, "node_evidence", None)
    explanation = explain(trained, small_graph, nodes, evidence=evidence)
    np.testing.assert_array_equal(explanation.evidence, expected.evidence)
    np.testing.assert_array_equal(explanation.contributors.node, expected.contributors.node)
    assert explanation.source == "exact"


def test_large_graphs_read_rows_or_say_why_not(trained, small_graph, tmp_path, monkeypatch):
    nodes = np.array([5, 9])
    exact = explain(trained, small_graph, nodes)
    monkeypatch.setattr(explain_module, "MOST_NODES", 299)
    with pytest.raises(StoreError, match=r"300 nodes .* none were given: pass rows="):
        explain(trained, small_graph, nodes)
    diffusion = trained.config.diffusion
    kinds = {"parameters": diffusion.store_parameters, "clusters": 2}
    whole = write_store(str(tmp_path / "whole"), small_graph, diffusion, k=300, **kinds)
    stored = explain(trained, small_graph, nodes, rows=whole)
    assert stored.source == "stored"
    np.testing.assert_allclose(stored.evidence, exact.evidence, rtol=1e-3)
    few = write_store(str(tmp_path / "few"), small_graph, diffusion, k=8, roots=[0, 1], **kinds)
    with pytest.raises(StoreError, match="not among the 2 roots"):
        explain(trained, small_graph, nodes, rows=few)
