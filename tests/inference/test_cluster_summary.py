"""Summaries of clusters, against a plain loop over nodes."""

from dataclasses import replace
from itertools import pairwise
from tempfile import TemporaryDirectory
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gpn_scale.config import DiffusionConfig, MinibatchConfig
from gpn_scale.data.building import build_graph
from gpn_scale.inference.cluster_summary import (
    ClusterSummary,
    CollectedClusters,
    OpinionSummary,
    clusters_fingerprint,
    num_tracked_clusters,
    summarise_model,
)
from gpn_scale.inference.evidence import node_values
from gpn_scale.ppr.tails import make_tail
from tests.inference.models import plus_model, trained_model
from tests.ppr.stored import write_store
from tests.strategies import graphs

CPU = torch.device("cpu")


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk():
    with mock.patch("os.fsync"):
        yield


def tail_of(folder, graph, kind, normalisation="sym", clusters=3):
    diffusion = DiffusionConfig(normalisation=normalisation, steps=2)
    store = write_store(str(folder), graph, diffusion, k=2, clusters=clusters)
    return make_tail(MinibatchConfig(tail=kind), store, graph, diffusion)


def summarised(tail, evidence_NC, pieces):
    summary = ClusterSummary(tail, evidence_NC.shape[1], CPU)
    for start, stop in pieces:
        summary.observe(start, stop, evidence_NC[start:stop])
    return summary.result(torch.float64)


@settings(max_examples=25)
@given(
    graph=graphs(),
    kind=st.sampled_from(["clustered", "stationary", "truncated"]),
    normalisation=st.sampled_from(["sym", "rw"]),
    cuts=st.sets(st.integers(1, 7)),
)
def test_any_chunking_gives_what_a_loop_gives(graph, kind, normalisation, cuts):
    num_nodes = graph.num_nodes
    with TemporaryDirectory() as folder:
        tail = tail_of(folder, graph, kind, normalisation)
        nodes = np.arange(num_nodes)
        weight, cluster_of = tail.weight_of(nodes).tolist(), tail.cluster_of(nodes).tolist()
        evidence = np.random.default_rng(num_nodes).lognormal(sigma=4, size=(num_nodes, 2))
        ends = [0, *sorted(cut for cut in cuts if cut < num_nodes), num_nodes]
        pieces = pairwise(ends)
        clusters = summarised(tail, torch.from_numpy(evidence), pieces)
    assert cluster_of == [node % 3 if kind == "clustered" else 0 for node in nodes]
    assert clusters.num_clusters == (3 if kind == "clustered" else 1)
    for cluster in range(clusters.num_clusters):
        total, sums, largest = 0.0, [0.0, 0.0], 0.0
        for node in range(num_nodes):
            if cluster_of[node] == cluster:
                total += weight[node]
                sums = [s + weight[node] * e for s, e in zip(sums, evidence[node], strict=True)]
                largest = max(largest, sum(evidence[node]))
        mean = [s / total if total else 0.0 for s in sums]
        assert clusters.mean_PC[cluster].tolist() == pytest.approx(mean, rel=1e-12)
        assert clusters.largest_total_P[cluster].item() == pytest.approx(largest, rel=1e-12)


@pytest.mark.parametrize("kind", ["truncated", "renormalised"])
def test_a_tail_without_clusters_counts_as_one(tmp_path, kind):
    graph = build_graph([0, 1], [1, 2])
    tail = tail_of(tmp_path, graph, kind, "rw", clusters=0)
    assert tail.num_clusters == 0
    assert num_tracked_clusters(tail) == 1
    clusters = summarised(tail, torch.tensor([[1.0], [2.0], [6.0]]), [(0, 3)])
    # Out-weights with their loops: 2, 3, 2.
    assert clusters.mean_PC.tolist() == [[pytest.approx(20 / 7)]]
    assert clusters.largest_total_P.tolist() == [6.0]


def test_sums_run_in_float64(tmp_path):
    """In float32, 1e8 + 2 would be 1e8."""
    graph = build_graph([], [], num_nodes=3)
    evidence_NC = torch.tensor([[1e8], [1.0], [1.0]])
    clusters = summarised(tail_of(tmp_path, graph, "stationary"), evidence_NC, [(0, 1), (1, 3)])
    assert clusters.mean_PC.item() == pytest.approx((1e8 + 2) / 3, rel=1e-12)


def test_a_graph_is_summarised_chunk_by_chunk(tmp_path, small_graph):
    trained = trained_model(small_graph)
    tail = tail_of(tmp_path, small_graph, "clustered")
    summarise_model(trained, small_graph, tail)
    clusters = trained.network.clusters
    ((_, _, evidence_NC),) = node_values(trained, small_graph, chunk=1000)
    expected = summarised(tail, evidence_NC, [(0, 300)])
    assert clusters.mean_PC.dtype == trained.dtype
    torch.testing.assert_close(clusters.mean_PC, expected.mean_PC)
    torch.testing.assert_close(clusters.largest_total_P, expected.largest_total_P)


def test_the_fingerprint_tells_graphs_and_clusters_apart(tmp_path, small_graph):
    diffusion = DiffusionConfig(steps=2)
    stores = [
        write_store(str(tmp_path / str(count)), small_graph, diffusion, k=2, clusters=count)
        for count in (2, 3)
    ]
    other = replace(small_graph, features=small_graph.features + 1)

    def fingerprint(graph, store, kind):
        tail = make_tail(MinibatchConfig(tail=kind), store, graph, diffusion)
        return clusters_fingerprint(graph, store, tail)

    keys = {
        fingerprint(graph, store, "clustered") for graph in (small_graph, other) for store in stores
    }
    assert len(keys) == 4
    whole = {fingerprint(small_graph, store, "stationary") for store in stores}
    assert len(whole) == 1
    assert all(key.startswith(small_graph.fingerprint()) for key in whole)


def test_means_of_logits_and_fractions_of_training_nodes_are_those_of_a_loop(tmp_path, small_graph):
    trained = plus_model(small_graph)
    tail = tail_of(tmp_path, small_graph, "clustered")
    summarise_model(trained, small_graph, tail)
    means = trained.opinion.network.cluster_PS
    assert means.shape == (3, 3 + 1)
    logits = trained.opinion.values_of(small_graph.features, np.arange(300)).numpy()
    is_training = np.isin(np.arange(300), small_graph.split.train)
    weight = tail.weight_of(np.arange(300)).astype(np.float64)
    for cluster in range(3):
        members = slice(cluster, None, 3)
        expected = np.average(logits[members], axis=0, weights=weight[members])
        labelled = np.average(is_training[members], weights=weight[members])
        assert means[cluster].tolist() == pytest.approx([*expected, labelled], rel=1e-9)
    evidence = trained.evidence(small_graph.features, np.arange(300))
    expected_PC = summarised(tail, evidence, [(0, 300)]).mean_PC
    torch.testing.assert_close(trained.network.clusters.mean_PC, expected_PC)


def test_without_a_split_there_are_no_training_nodes(tmp_path, small_graph):
    tail = tail_of(tmp_path, small_graph, "stationary")
    summary = OpinionSummary(tail, replace(small_graph, split=None), num_classes=2, device=CPU)
    summary.observe(0, 200, torch.ones(200, 2))
    summary.observe(200, 300, torch.ones(100, 2))
    assert summary.result(torch.float64).tolist() == [[pytest.approx(1.0), pytest.approx(1.0), 0.0]]


def test_a_gpn_has_no_means_of_logits(tmp_path, small_graph):
    trained = trained_model(small_graph)
    tail = tail_of(tmp_path, small_graph, "clustered")
    assert CollectedClusters(trained, small_graph, tail).opinion_observers == []
    summarise_model(trained, small_graph, tail)
    assert trained.network.clusters.num_clusters == 3
