"""Columns that a model diffuses: computed on demand, from a table, and as a prediction."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale.config import DiffusionConfig
from gpn_scale.diffusion.push import PushedRow
from gpn_scale.errors import ConfigError
from gpn_scale.inference import node_values
from gpn_scale.inference.all_nodes import predict_all
from gpn_scale.inference.node_values import (
    EncodedValues,
    OwnValues,
    StoredValues,
    node_values_into,
    num_columns,
    prediction_of,
)
from gpn_scale.inference.opinion_values import is_training_node
from tests.inference.models import plus_model, trained_model
from tests.ppr.stored import exact_rows

MODELS = {"GPN": trained_model, "GPN+": plus_model}
ROWS = [
    PushedRow(np.array([0, 7, 299]), np.array([0.5, 0.25, 1.5]), 0.0),
    PushedRow(np.array([7]), np.array([2.0]), 0.0),
    PushedRow(None, np.linspace(0.0, 1.0, 300), 0.0),
    PushedRow(np.empty(0, np.int64), np.empty(0), 0.0),
]


def table_of(trained, graph):
    table = np.empty((graph.num_nodes, num_columns(trained)), np.float32)
    node_values_into(trained, graph, table)
    return table


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("has_split", [True, False])
def test_products_are_sums_over_the_rows(small_graph, name, has_split, monkeypatch):
    monkeypatch.setattr(node_values, "CHUNK_ROWS", 77)
    graph = small_graph if has_split else replace(small_graph, split=None)
    trained = MODELS[name](graph)
    table = table_of(trained, graph)
    dense = np.zeros((4, 300))
    for place, row in enumerate(ROWS):
        nodes, weight = row.listed()
        dense[place, nodes] = weight
    evidence = trained.evidence(graph.features, np.arange(300)).numpy()
    columns = evidence
    if trained.opinion is not None:
        logits = trained.opinion.values_of(graph.features, np.arange(300)).numpy()
        is_training = np.isin(np.arange(300), graph.split.train if has_split else [])
        columns = np.column_stack([logits, is_training, evidence.sum(1)])
    np.testing.assert_allclose(table, columns, rtol=1e-6)
    for values in (EncodedValues(trained, graph), StoredValues(trained, graph, table)):
        assert values.has_labels == has_split
        got = values.product(ROWS)
        assert got.dtype == torch.float64
        np.testing.assert_allclose(got, dense @ columns, rtol=2e-5, atol=1e-5)
    assert EncodedValues(trained, graph).largest_evidence is None
    largest = StoredValues(trained, graph, table).largest_evidence
    assert largest == pytest.approx(evidence.sum(1).max(), rel=1e-6)
    given = StoredValues(trained, graph, table, largest_evidence=5.0)
    assert given.largest_evidence == 5.0


@pytest.mark.parametrize("name", MODELS)
def test_diffused_columns_give_the_prediction_of_all_nodes(small_graph, name):
    trained = MODELS[name](small_graph, diffusion=DiffusionConfig(steps=3))
    every = np.arange(300)
    own = OwnValues.of(trained, small_graph.features, every, is_training_node(small_graph))
    rows = torch.from_numpy(exact_rows(small_graph, trained.diffusion))
    got = prediction_of(trained, own, rows @ own.columns_BW, has_labels=True)
    expected = predict_all(trained, small_graph)
    names = ["probabilities", "probabilities_no_network", "alpha_0", "alpha_0_no_network"]
    names += ["energy", "label_evidence"] if trained.opinion is not None else []
    for array in names:
        np.testing.assert_allclose(
            getattr(got, array), getattr(expected, array), rtol=1e-4, atol=1e-6, err_msg=array
        )
    without = prediction_of(trained, own, rows @ own.columns_BW, has_labels=False)
    assert without.label_evidence is None


@pytest.mark.parametrize("table", [np.empty((300, 2), np.float32), np.empty((300, 5))])
def test_a_table_that_does_not_fit_is_refused(small_graph, table):
    trained = plus_model(small_graph)
    for use in (node_values_into, StoredValues):
        with pytest.raises(ConfigError, match=r"expected float32 of shape \(300, 5\)"):
            use(trained, small_graph, table)
