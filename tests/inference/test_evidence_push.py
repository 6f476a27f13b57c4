"""Followed evidence against dense matrices: exact without a tolerance, lower bounds with one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.config import DiffusionConfig
from gpn_scale.inference import evidence_push as module
from gpn_scale.inference.evidence import EvidenceSummary
from gpn_scale.inference.evidence_push import EvidencePush
from tests.diffusion.test_exact_rows import DIFFUSIONS
from tests.ppr.stored import exact_rows
from tests.strategies import graphs


def drawn_evidence(num_nodes, seed=0):
    rng = np.random.default_rng(seed)
    total = 10.0 ** rng.uniform(-6, 3, num_nodes)
    return EvidenceSummary(total, rng.integers(0, 3, num_nodes))


def dense_shares(graph, diffusion, evidence):
    supplied = exact_rows(graph, diffusion) * evidence.total
    return supplied / supplied.sum(1, keepdims=True)


@pytest.mark.parametrize("diffusion", DIFFUSIONS, ids=lambda d: f"{d.normalisation}-{d.steps}")
def test_without_a_tolerance_shares_are_exact(small_graph, diffusion):
    evidence, nodes = drawn_evidence(300), np.arange(300)[::-7]
    push = EvidencePush(small_graph, diffusion, evidence)
    exact = exact_rows(small_graph, diffusion)
    np.testing.assert_allclose(push.evidence, exact @ evidence.total, rtol=1e-5)
    result = push.contributors(nodes, count=4, tolerance=0.0).contributors
    share = dense_shares(small_graph, diffusion, evidence)[nodes]
    largest = -np.sort(-share, axis=1)[:, :4]
    np.testing.assert_allclose(result.share, largest, rtol=1e-4, atol=1e-9)
    np.testing.assert_allclose(result.tail_share, 0.0, atol=1e-5)
    weight = np.where(result.node >= 0, np.take_along_axis(exact[nodes], result.node, 1), 0.0)
    np.testing.assert_allclose(result.weight, weight, rtol=1e-4, atol=1e-9)
    leading = np.where(result.node >= 0, evidence.leading_class[result.node], -1)
    np.testing.assert_array_equal(result.leading_class, leading)


@given(graphs(), st.floats(1e-4, 0.5), st.sampled_from(["sym", "rw"]), st.integers(0, 4))
def test_shares_are_lower_bounds_and_the_rest_is_said(graph, tolerance, normalisation, steps):
    diffusion = DiffusionConfig(teleport=0.3, normalisation=normalisation, steps=steps)
    evidence = drawn_evidence(graph.num_nodes, seed=steps)
    nodes = np.arange(graph.num_nodes)
    push = EvidencePush(graph, diffusion, evidence)
    result = push.contributors(nodes, count=graph.num_nodes, tolerance=tolerance).contributors
    share = dense_shares(graph, diffusion, evidence)
    there = result.node >= 0
    exact = np.take_along_axis(share, np.where(there, result.node, 0), 1)
    assert (result.share[there] <= exact[there] * (1 + 1e-6) + 1e-12).all()
    np.testing.assert_allclose(result.share.sum(1) + result.tail_share, 1.0, atol=1e-9)
    assert (np.diff(result.share, axis=1) <= 0).all()
    # What is missing at a contributor is part of what was not traced.
    assert (
        exact[there] - result.share[there] <= (result.tail_share[:, None] + 0 * exact)[there] + 1e-6
    ).all()


def test_a_smaller_tolerance_traces_more_and_takes_more_work(small_graph):
    push = EvidencePush(small_graph, DiffusionConfig(), drawn_evidence(300))
    rough, fine = (push.contributors(np.arange(300), count=3, tolerance=t) for t in (0.05, 0.001))
    assert (fine.contributors.tail_share <= rough.contributors.tail_share + 1e-12).all()
    assert fine.contributors.tail_share.mean() < 0.5 * rough.contributors.tail_share.mean()
    assert 0 < rough.work < fine.work


def test_blocks_make_no_difference(small_graph, monkeypatch):
    push = EvidencePush(small_graph, DiffusionConfig(), drawn_evidence(300))
    nodes = np.random.default_rng(3).permutation(300)[:50]
    whole = push.contributors(nodes, count=3, tolerance=0.01).contributors
    monkeypatch.setattr(module, "_BLOCK_ENTRIES", 50)
    parts = push.contributors(nodes, count=3, tolerance=0.01).contributors
    np.testing.assert_array_equal(parts.node, whole.node)
    np.testing.assert_array_equal(parts.share, whole.share)


def test_no_nodes_have_no_contributors(small_graph):
    push = EvidencePush(small_graph, DiffusionConfig(), drawn_evidence(300))
    result = push.contributors(np.empty(0, np.int64), count=3, tolerance=0.01)
    assert result.contributors.node.shape == (0, 3)
    assert result.work == 0
