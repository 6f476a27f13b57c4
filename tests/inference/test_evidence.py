"""Feature evidence in chunks, and its summary."""

import numpy as np
import pytest
import torch

from gpn_scale.data.graph import CSRFeatures
from gpn_scale.inference.encoder_inputs import model_inputs
from gpn_scale.inference.evidence import (
    EvidenceSummary,
    chunk_rows,
    node_values,
    summarise_evidence,
)
from tests.inference.models import CPU, trained_model


def evidence_at_once(trained, graph):
    with torch.no_grad(), trained.evaluating():
        return trained.network.feature_evidence(
            model_inputs(graph, trained.scaling, CPU, trained.dtype)
        )


@pytest.mark.parametrize("chunk", [1, 77, 300, 1000])
def test_chunks_join_to_the_evidence_of_all_nodes(small_graph, chunk):
    trained = trained_model(small_graph)
    parts = list(node_values(trained, small_graph, chunk=chunk))
    assert [start for start, _, _ in parts] == list(range(0, 300, chunk))
    assert [stop - start for start, stop, _ in parts] == [len(part) for _, _, part in parts]
    joined = torch.cat([part for _, _, part in parts])
    torch.testing.assert_close(joined, evidence_at_once(trained, small_graph))


def test_a_range_of_nodes_has_its_own_chunks(small_graph):
    trained = trained_model(small_graph)
    parts = list(node_values(trained, small_graph, chunk=4, nodes=slice(10, 19)))
    assert [(start, stop) for start, stop, _ in parts] == [(10, 14), (14, 18), (18, 19)]
    assert list(node_values(trained, small_graph, nodes=slice(5, 5))) == []
    expected = evidence_at_once(trained, small_graph)[10:19]
    torch.testing.assert_close(torch.cat([part for _, _, part in parts]), expected)


@pytest.mark.parametrize("training", [True, False])
def test_the_network_is_left_in_its_mode(small_graph, training):
    trained = trained_model(small_graph)
    trained.network.train(training)
    for _ in node_values(trained, small_graph, chunk=100):
        assert trained.network.training == training
        assert all(norm.training == training for norm in trained.network.encoder.norms)


def test_the_summary_has_the_total_and_the_leading_class(small_graph):
    trained = trained_model(small_graph)
    summary = summarise_evidence(trained, small_graph)
    evidence = evidence_at_once(trained, small_graph).numpy()
    np.testing.assert_allclose(summary.total, evidence.sum(1))
    np.testing.assert_array_equal(summary.leading_class, evidence.argmax(1))
    assert summary.num_bytes == 16 * small_graph.num_nodes
    assert EvidenceSummary.empty(0).num_bytes == 0


def test_totals_are_sums_in_float64():
    """In float32, 1e8 + 1 would be 1e8."""
    summary = EvidenceSummary.empty(3)
    summary.observe(1, 2, torch.tensor([[1e8, 1.0]]))
    assert summary.total[1] == 1e8 + 1
    assert summary.leading_class[1] == 0


def test_chunks_shrink_where_feature_rows_are_long(small_graph):
    num_nodes, width = 300, 2000
    lengths = np.where(np.arange(num_nodes) < 100, width, 0)
    features = CSRFeatures(
        indptr=np.append(0, np.cumsum(lengths)).astype(np.int64),
        indices=np.tile(np.arange(width, dtype=np.int32), 100),
        values=np.ones(width * 100, np.float32),
        num_columns=width,
    )
    trained = trained_model(small_graph)
    rows = chunk_rows(trained, features, 1 << 20)
    assert 1 <= rows * width * 40 <= 1 << 20
    assert chunk_rows(trained, features, 1 << 40) == num_nodes
    assert chunk_rows(trained, features, 1) == 1
