import math
from collections import deque
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.baselines import kernel
from gpn_scale.baselines.kernel import KernelDirichlet, KernelOptions, kernel_evidence
from gpn_scale.baselines.model import counted_answer
from gpn_scale.baselines.propagation import LabelPropagation, PropagationOptions
from gpn_scale.config import RunConfig
from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import Split
from gpn_scale.errors import ConfigError, GraphError
from tests.baselines.graphs import small_graph
from tests.oracles import dense_diffusion, dense_transition
from tests.strategies import graphs


def distances(graph, source):
    """Hops from every node to `source` along edges, by a search over reversed ones."""
    towards = [[] for _ in range(graph.num_nodes)]
    for node in range(graph.num_nodes):
        for other in graph.indices[graph.indptr[node] : graph.indptr[node + 1]]:
            towards[other].append(node)
    found, queue = {source: 0}, deque([source])
    while queue:
        node = queue.popleft()
        for other in towards[node]:
            if other not in found:
                found[other] = found[node] + 1
                queue.append(other)
    return found


def slow_evidence(graph, nodes, labels, num_classes, sigma, cutoff):
    evidence = np.zeros((graph.num_nodes, num_classes))
    for node, label in zip(nodes, labels, strict=True):
        for other, hops in distances(graph, node).items():
            if hops <= cutoff:
                share = math.exp(-(hops**2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))
                evidence[other, label] += share
    return evidence


@given(graphs(), st.data())
def test_kernel_evidence_is_that_of_one_search_per_source(graph, data):
    nodes = np.array(sorted(data.draw(st.sets(st.integers(0, graph.num_nodes - 1)))), np.int64)
    drawn = st.lists(st.integers(0, 1), min_size=len(nodes), max_size=len(nodes))
    labels = np.array(data.draw(drawn), np.int64)
    cutoff = data.draw(st.integers(0, 4))
    found = kernel_evidence(graph, nodes, labels, 2, sigma=1.5, cutoff=cutoff)
    np.testing.assert_allclose(found, slow_evidence(graph, nodes, labels, 2, 1.5, cutoff))


def test_many_sources_in_small_blocks_give_the_same_evidence(monkeypatch):
    graph = small_graph(nodes=200)
    nodes, labels = np.arange(0, 200), np.arange(0, 200) % 2
    whole = kernel_evidence(graph, nodes, labels, 2, sigma=1.0, cutoff=6)
    np.testing.assert_allclose(whole, slow_evidence(graph, nodes, labels, 2, 1.0, 6))
    # Some nodes have more edges than a block has room for, others share one.
    for name, size in (("_BLOCK_BYTES", 1), ("_BLOCK_EDGES", 1), ("_BLOCK_EDGES", 7)):
        monkeypatch.setattr(kernel, name, size)
        small = kernel_evidence(graph, nodes, labels, 2, sigma=1.0, cutoff=6)
        np.testing.assert_allclose(small, whole, rtol=1e-13)


def test_gkde_is_a_dirichlet_of_its_evidence():
    graph = small_graph()
    found = KernelDirichlet().fit(graph).predict(graph)
    train = graph.split.train
    alpha = 1 + slow_evidence(graph, train, graph.labels[train], 3, 1.0, 10)
    np.testing.assert_allclose(found.epistemic, 3.0 - alpha.sum(1), rtol=1e-6)
    expected = alpha / alpha.sum(1, keepdims=True)
    np.testing.assert_allclose(found.probabilities, expected, rtol=1e-6)


@pytest.mark.parametrize("model", [LabelPropagation, KernelDirichlet])
def test_where_no_label_reaches_the_commonest_class_is_predicted_and_nothing_is_known(model):
    source = np.array([0, 1, 2])
    labels = np.array([0, 1, 1, 0, 1])
    graph = build_graph(source, source + 1, num_nodes=6, labels=np.append(labels, 0))
    split = Split(train=np.array([0, 1, 2]), val=np.array([3]), test=np.array([4, 5]))
    found = model(RunConfig()).fit(replace(graph, split=split)).predict(graph)
    assert found.predicted_class[[4, 5]].tolist() == [1, 1]
    assert (found.aleatoric[[4, 5]] > found.aleatoric[:4].max()).all()
    np.testing.assert_array_equal(found.epistemic[[4, 5]], 0.0)
    assert (found.epistemic[:4] < 0.0).all()


def test_the_least_evidence_decides_and_is_not_lost_in_single_precision():
    source = np.arange(7)
    graph = build_graph(source, source + 1, num_nodes=9, labels=np.array([1, *[0] * 8]))
    split = Split(train=np.array([0, 8]), val=np.array([1]), test=source[2:])
    found = KernelDirichlet(RunConfig()).fit(replace(graph, split=split)).predict(graph)
    assert found.predicted_class[:8].tolist() == [1] * 8  # the last is 7 hops away
    assert (np.diff(found.epistemic[:8]) > 0.0).all()


@given(st.integers(0, 2), st.floats(1e-12, 10.0), st.floats(1e-6, 1e-3))
def test_the_class_of_most_evidence_is_predicted_however_small_it_is(winner, common, lead):
    evidence = torch.full((1, 3), common, dtype=torch.float64)
    evidence[0, winner] *= 1.0 + lead
    found = counted_answer(LabelPropagation(), evidence, torch.tensor([0, 1, 2]))
    assert found.predicted_class.tolist() == [winner]
    assert abs(found.probabilities - 1.0 / 3.0).max() < 1e-6 + lead


@given(st.integers(1, 2), st.floats(1e-12, 10.0))
def test_round_off_does_not_decide(later, common):
    evidence = torch.full((1, 3), float(np.float32(common)), dtype=torch.float64)
    evidence[0, later] *= 1.0 + 1e-15
    found = counted_answer(LabelPropagation(), evidence, torch.tensor([0, 1, 2]))
    assert found.predicted_class.tolist() == [0]


@pytest.mark.parametrize("class_prior", [True, False])
def test_lp_diffuses_densities_of_labelled_nodes(class_prior):
    graph, config = small_graph(), RunConfig()
    model = LabelPropagation(config, PropagationOptions(class_prior=class_prior)).fit(graph)
    found = model.predict(graph)
    train = graph.split.train
    start = np.zeros((graph.num_nodes, 3))
    for node in train:
        label = graph.labels[node]
        same = np.count_nonzero(graph.labels[train] == label)
        start[node, label] = 1 / len(train) if class_prior else 1 / same
    diffusion = dense_diffusion(dense_transition(graph, "sym", True), 0.1, 10)
    alpha = 1 + diffusion @ start
    np.testing.assert_allclose(found.epistemic, 3.0 - alpha.sum(1), rtol=1e-6)
    expected = alpha / alpha.sum(1, keepdims=True)
    np.testing.assert_allclose(found.probabilities, expected, rtol=1e-6)


def test_nothing_is_kept_of_models_without_parameters(tmp_path):
    graph = small_graph()
    model = LabelPropagation().fit(graph)
    assert model.state() == {}
    again = LabelPropagation()
    again.load(graph, {}, tmp_path)
    np.testing.assert_array_equal(again.predict(graph).epistemic, model.predict(graph).epistemic)


def test_refusals():
    with pytest.raises(ConfigError, match=r"model\.sigma is 0"):
        KernelOptions(sigma=0.0)
    with pytest.raises(ConfigError, match=r"model\.cutoff is -1"):
        KernelOptions(cutoff=-1)
    with pytest.raises(GraphError, match="has 1 class"):
        LabelPropagation().fit(replace(small_graph(), num_classes=1, class_names=None))
