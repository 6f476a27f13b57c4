from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale.data.building import build_graph
from gpn_scale.errors import GraphError
from gpn_scale.inference import encoder_inputs
from gpn_scale.inference.encoder_inputs import (
    as_inputs,
    column_moments,
    model_inputs,
    required_features,
)
from tests.data.test_features import sparse as csr_of

CPU = torch.device("cpu")


@pytest.mark.parametrize("rows_at_a_time", [1, 100])
@pytest.mark.parametrize("sparse", [False, True])
def test_moments_count_the_zeros(monkeypatch, rows_at_a_time, sparse):
    monkeypatch.setattr(encoder_inputs, "_MOMENT_ROWS", rows_at_a_time)
    dense = np.array([[0.0, 2.0], [4.0, 0.0]], np.float32)
    mean, square = column_moments(csr_of(dense) if sparse else dense, "none")
    assert mean.tolist() == [2.0, 1.0]
    assert square.tolist() == [8.0, 2.0]


def test_moments_are_of_the_scaled_rows():
    counts = np.array([[1.0, 3.0], [0.0, 2.0]], np.float32)
    mean, _ = column_moments(counts, "row_sum")
    assert mean.tolist() == [0.125, 0.875]


@pytest.mark.parametrize("writable", [True, False])
def test_only_read_only_rows_are_copied(writable):
    rows = np.ones((2, 3), np.float32)
    rows.flags.writeable = writable
    inputs = as_inputs(rows, CPU, torch.float32)
    assert np.shares_memory(inputs.numpy(), rows) == writable
    assert as_inputs(rows, CPU, torch.float64).dtype == torch.float64


def test_sparse_rows_stay_sparse_and_scaled():
    dense = np.array([[0.0, 2.0, 2.0], [4.0, 0.0, 0.0]], np.float32)
    graph = replace(build_graph([0], [1]), features=csr_of(dense))
    inputs = model_inputs(graph, "row_sum", CPU, torch.float64)
    values = inputs.multiply(torch.eye(3).double())
    assert values.tolist() == [[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]]


def test_a_graph_without_features_is_refused(small_graph):
    assert required_features(small_graph) is small_graph.features
    with pytest.raises(
        GraphError, match="has no features, expected at least one column to learn from"
    ):
        required_features(replace(small_graph, features=None))
