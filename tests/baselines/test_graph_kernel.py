import math
from collections import deque
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.baselines import graph_kernel
from gpn_scale.baselines.graph_kernel import KernelDirichlet, KernelOptions, kernel_evidence
from gpn_scale.config import RunConfig
from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import Split
from gpn_scale.errors import ConfigError
from tests.baselines.graphs import small_graph
from tests.strategies import graphs


def distances(graph, source):
    """Hops from every node to `source` along edges, by a search over reversed ones."""
    towards = [[] for _ in range(graph.num_nodes)]
    for node in range(graph.num_nodes):
        for other in graph.indices[graph.indptr[node] : graph.indptr[node + 1]]:
            towards[other].append(node)
    hops, queue = {source: 0}, deque([source])
    while queue:
        node = queue.popleft()
        for other in towards[node]:
            if other not in hops:
                hops[other] = hops[node] + 1
                queue.append(other)
    return hops


def slow_evidence(graph, nodes, labels, num_classes, sigma, cutoff):
    evidence = np.zeros((graph.num_nodes, num_classes))
    for node, label in zip(nodes, labels, strict=True):
        for other, hops in distances(graph, node).items():
            if hops <= cutoff:
                density = math.exp(-(hops**2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))
                evidence[other, label] += density
    return evidence


@given(graphs(), st.data())
def test_kernel_evidence_is_that_of_one_search_per_source(graph, data):
    nodes = np.array(sorted(data.draw(st.sets(st.integers(0, graph.num_nodes - 1)))), np.int64)
    drawn = st.lists(st.integers(0, 1), min_size=len(nodes), max_size=len(nodes))
    labels = np.array(data.draw(drawn), np.int64)
    cutoff = data.draw(st.integers(0, 4))
    evidence = kernel_evidence(graph, nodes, labels, 2, sigma=1.5, cutoff=cutoff)
    np.testing.assert_allclose(evidence, slow_evidence(graph, nodes, labels, 2, 1.5, cutoff))


def test_many_sources_in_small_blocks_give_the_same_evidence(monkeypatch):
    graph = small_graph(nodes=200)
    nodes, labels = np.arange(0, 200), np.arange(0, 200) % 2
    whole = kernel_evidence(graph, nodes, labels, 2, sigma=1.0, cutoff=6)
    np.testing.assert_allclose(whole, slow_evidence(graph, nodes, labels, 2, 1.0, 6))
    # Some nodes have more edges than a block has room for, others share one.
    for name, size in (("_BLOCK_BYTES", 1), ("_BLOCK_EDGES", 1), ("_BLOCK_EDGES", 7)):
        monkeypatch.setattr(graph_kernel, name, size)
        small = kernel_evidence(graph, nodes, labels, 2, sigma=1.0, cutoff=6)
        np.testing.assert_allclose(small, whole, rtol=1e-13)


def test_gkde_is_a_dirichlet_of_its_evidence():
    graph = small_graph()
    prediction = KernelDirichlet().fit(graph).predict(graph)
    train = graph.split.train
    alpha = 1 + slow_evidence(graph, train, graph.labels[train], 3, 1.0, 10)
    np.testing.assert_allclose(prediction.epistemic, 3.0 - alpha.sum(1), rtol=1e-6)
    expected = alpha / alpha.sum(1, keepdims=True)
    np.testing.assert_allclose(prediction.probabilities, expected, rtol=1e-6)


def test_the_least_evidence_decides_and_is_not_lost_in_single_precision():
    source = np.arange(7)
    graph = build_graph(source, source + 1, num_nodes=9, labels=np.array([1, *[0] * 8]))
    split = Split(train=np.array([0, 8]), val=np.array([1]), test=source[2:])
    prediction = (
        KernelDirichlet(RunConfig(model="GPN")).fit(replace(graph, split=split)).predict(graph)
    )
    assert prediction.predicted_class[:8].tolist() == [1] * 8  # the last is 7 hops away
    assert (np.diff(prediction.epistemic[:8]) > 0.0).all()


def test_options_out_of_range_are_refused():
    with pytest.raises(ConfigError, match=r"model\.sigma is 0"):
        KernelOptions(sigma=0.0)
    with pytest.raises(ConfigError, match=r"model\.cutoff is -1"):
        KernelOptions(cutoff=-1)
