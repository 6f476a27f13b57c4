"""Inputs, evidence and latent positions of a model, chunk by chunk."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale.errors import GraphError
from gpn_scale.inference import trained_model as module
from gpn_scale.inference.encoder_inputs import model_inputs
from tests.data.test_features import sparse
from tests.inference.models import CPU, trained_model


@pytest.mark.parametrize("chunk", [2, 1000])
def test_evidence_and_positions_come_in_the_order_of_the_nodes(small_graph, monkeypatch, chunk):
    monkeypatch.setattr(module, "CHUNK_ROWS", chunk)
    trained = trained_model(small_graph)
    nodes = np.array([7, 0, 299, 7, 12])
    with torch.no_grad(), trained.evaluating():
        inputs = model_inputs(small_graph, "none", CPU, torch.float64)
        latent_ND = trained.network.encoder(inputs)
        evidence_NC = trained.network.feature_evidence(inputs)
    features = small_graph.features
    torch.testing.assert_close(trained.latent(features, nodes), latent_ND[nodes])
    torch.testing.assert_close(trained.evidence(features, nodes), evidence_NC[nodes])
    assert not trained.evidence(features, nodes).requires_grad


def test_no_nodes_have_no_evidence(small_graph):
    trained, nobody = trained_model(small_graph), np.empty(0, np.int64)
    assert trained.evidence(small_graph.features, nobody).shape == (0, 3)
    assert trained.latent(small_graph.features, nobody).shape == (0, 2)


def test_sizes_are_those_of_the_network(small_graph):
    trained = trained_model(small_graph, num_classes=4)
    assert (trained.num_classes, trained.num_features) == (4, small_graph.num_features)


def test_rows_are_scaled_as_in_training(small_graph):
    counts = np.array([[1.0, 3.0], [0.0, 2.0]], np.float32)
    trained = trained_model(small_graph, scaling="row_sum", dtype=torch.float32)
    assert trained.inputs(counts).tolist() == [[0.25, 0.75], [0.0, 1.0]]
    rows = trained.inputs(sparse(counts)).multiply(torch.eye(2))
    assert rows.tolist() == [[0.25, 0.75], [0.0, 1.0]]


@pytest.mark.parametrize("training", [True, False])
def test_the_network_returns_to_its_mode_even_after_an_error(small_graph, training):
    trained = trained_model(small_graph)
    trained.network.train(training)
    with trained.evaluating():
        assert not trained.network.training
    assert trained.network.training == training
    with pytest.raises(ValueError, match="planted"), trained.evaluating():
        raise ValueError("planted")
    assert trained.network.training == training


def test_other_feature_columns_are_refused(small_graph):
    trained = trained_model(small_graph)
    trained.check_features(small_graph)
    narrow = replace(small_graph, features=small_graph.features[:, :2])
    with pytest.raises(GraphError, match="has 2 feature columns, but the model was trained on 8"):
        trained.check_features(narrow)
