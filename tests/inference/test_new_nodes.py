"""Predictions of nodes that join later, against the exact model on the rebuilt graph."""

import doctest
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gpn_scale.config import DiffusionConfig, EncoderConfig, RunConfig
from gpn_scale.data.building import build_graph
from gpn_scale.diffusion.growth import grown_graph, new_nodes
from gpn_scale.diffusion.patched_transition import GraphTransition
from gpn_scale.diffusion.power_iteration import exact_diffusion
from gpn_scale.errors import ConfigError, GraphError
from gpn_scale.inference import new_nodes as module
from gpn_scale.inference import trained_model
from gpn_scale.inference.encoder_inputs import model_inputs
from gpn_scale.inference.new_nodes import GraphFacts, predict_new
from gpn_scale.inference.node_values import EncodedValues
from gpn_scale.inference.trained_model import TrainedModel
from gpn_scale.nn.model import GPN
from tests.diffusion.test_growth import growths

CPU = torch.device("cpu")
NUM_FEATURES = 3
DIFFUSIONS = st.builds(
    DiffusionConfig,
    teleport=st.sampled_from([0.1, 0.3]),
    normalisation=st.sampled_from(["sym", "rw"]),
    steps=st.sampled_from([10, "inf"]),
    self_loops=st.booleans(),
)


def a_model(**encoder) -> GPN:
    config = RunConfig(model="GPN", encoder=EncoderConfig(hidden=8, latent=2, **encoder))
    prior_C = torch.tensor([0.2, 0.3, 0.5])
    generator = torch.Generator().manual_seed(3)
    model = GPN(config, num_features=NUM_FEATURES, class_prior_C=prior_C, generator=generator)
    return model.double().eval()


MODEL = a_model()


def joined(case, scaling="none"):
    """The drawn graph and new nodes with features of their own."""
    graph, neighbours, weights = case
    rng = np.random.default_rng(5)
    x = rng.normal(size=(graph.num_nodes + len(neighbours), NUM_FEATURES)).astype(np.float32)
    x = x if scaling == "none" else np.abs(x)
    graph = replace(graph, features=x[: graph.num_nodes])
    return graph, new_nodes(graph, x[graph.num_nodes :], neighbours, weights)


def predict(graph, new, diffusion, model=MODEL, scaling="none", facts=None, **options):
    trained = TrainedModel(model, scaling, diffusion, CPU, torch.float64)
    return predict_new(trained, graph, new, facts=GraphFacts(**facts or {}), **options)


@torch.no_grad()
def exact_output(graph, new, diffusion, scaling="none"):
    rebuilt = grown_graph(graph, new)
    inputs = model_inputs(rebuilt, scaling, CPU, torch.float64)
    return MODEL(inputs, exact_diffusion(rebuilt, diffusion, CPU, torch.float64))


def path_of(num_nodes):
    features = np.linspace(-1, 1, NUM_FEATURES * num_nodes).reshape(num_nodes, NUM_FEATURES)
    return build_graph(np.arange(num_nodes - 1), np.arange(1, num_nodes), features=features)


@settings(max_examples=150)
@given(case=growths(), config=DIFFUSIONS, scaling=st.sampled_from(["none", "row_sum"]))
def test_without_tolerance_it_is_the_exact_model(case, config, scaling):
    graph, new = joined(case, scaling)
    got = predict(graph, new, config, tolerance=0.0, scaling=scaling, block_size=2)
    exact = exact_output(graph, new, config, scaling)
    total = exact.with_network.alpha_0_N.numpy()[new.ids]
    np.testing.assert_allclose(got.alpha_0_lower, total, rtol=1e-9)
    np.testing.assert_array_equal(got.alpha_0_lower, got.alpha_0_upper)
    for field, posterior in (("", exact.with_network), ("_no_network", exact.without_network)):
        mean, alpha_0 = posterior.mean_NC.numpy()[new.ids], posterior.alpha_0_N.numpy()[new.ids]
        values = getattr(got.prediction, f"probabilities{field}")
        np.testing.assert_allclose(values, mean, rtol=1e-6)
        np.testing.assert_allclose(getattr(got.prediction, f"alpha_0{field}"), alpha_0, rtol=1e-6)


@settings(max_examples=150)
@given(case=growths(), config=DIFFUSIONS, tolerance=st.floats(1e-6, 1.0), sharp=st.booleans())
def test_the_exact_alpha_0_lies_in_the_interval(case, config, tolerance, sharp):
    graph, new = joined(case)
    exact = exact_output(graph, new, config)
    # Of the existing nodes alone: what new nodes hold must be seen to by the function.
    evidence = exact.without_network.alpha_0_N[: graph.num_nodes] - 3.0
    largest = float(evidence.max()) if sharp else None
    got = predict(graph, new, config, tolerance=tolerance, facts={"largest_evidence": largest})
    total = exact.with_network.alpha_0_N.numpy()[new.ids]
    assert (got.alpha_0_lower <= total * (1 + 1e-12)).all()
    assert (total <= got.alpha_0_upper * (1 + 1e-12)).all()
    np.testing.assert_allclose(got.prediction.alpha_0, got.alpha_0_lower, rtol=1e-6)


def test_the_bound_counts_the_evidence_of_new_nodes_too():
    graph = path_of(2)
    # All that is dropped would have come from new nodes; existing ones may have no evidence.
    new = new_nodes(graph, np.zeros((2, NUM_FEATURES)), [[3], []])
    config = DiffusionConfig(normalisation="rw")
    got = predict(graph, new, config, tolerance=2.0, facts={"largest_evidence": 0.0})
    exact = exact_output(graph, new, config).with_network.alpha_0_N.numpy()[new.ids]
    assert (got.alpha_0_lower < exact).all()
    assert (exact <= got.alpha_0_upper * (1 + 1e-12)).all()


def test_without_a_bound_of_evidence_the_clamp_is_one():
    graph = path_of(4)
    new = new_nodes(graph, np.zeros((1, NUM_FEATURES)), [[0]])
    got = predict(graph, new, DiffusionConfig(normalisation="rw", teleport=0.25), tolerance=2.0)
    width = got.alpha_0_upper - got.alpha_0_lower
    np.testing.assert_allclose(width, 0.75 * 3 * math.exp(30.0))


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_only_nodes_within_k_hops_are_asked_for_evidence(steps):
    graph = path_of(1000)
    new = new_nodes(graph, np.zeros((2, NUM_FEATURES)), [[500], [1000]])
    asked = []

    class Asked(EncodedValues):
        def product(self, rows):
            asked.extend(np.unique(np.concatenate([row.listed()[0] for row in rows])).tolist())
            return super().product(rows)

    config = DiffusionConfig(steps=steps, normalisation="rw")
    trained = TrainedModel(MODEL, "none", config, CPU, torch.float64)
    got = predict_new(trained, graph, new, facts=GraphFacts(values=Asked(trained, graph)))
    reach = range(500 - steps + 1, 500 + steps)
    assert sorted(asked) == list(reach)
    assert np.isfinite(got.alpha_0_upper).all()


def test_features_out_of_reach_are_not_read():
    graph = path_of(1000)
    new = new_nodes(graph, np.zeros((1, NUM_FEATURES)), [[500]])
    poisoned = graph.features.copy()
    poisoned[:490] = poisoned[511:] = np.nan
    config = DiffusionConfig(steps=10)
    got = predict(replace(graph, features=poisoned), new, config, tolerance=0.0)
    expected = exact_output(graph, new, config).with_network.alpha_0_N.numpy()[new.ids]
    np.testing.assert_allclose(got.alpha_0_lower, expected, rtol=1e-9)


@pytest.mark.parametrize("normalisation", ["sym", "rw"])
def test_given_values_and_weights_give_the_same_answer(small_graph, monkeypatch, normalisation):
    monkeypatch.setattr(trained_model, "CHUNK_ROWS", 7)
    graph = replace(small_graph, features=small_graph.features[:, :NUM_FEATURES])
    new = new_nodes(graph, graph.features[:5] + 1, [[0, 1], [300], [], [7], [8, 9]])
    config = DiffusionConfig(normalisation=normalisation)
    trained = TrainedModel(MODEL, "none", config, CPU, torch.float64)
    facts = {
        "values": EncodedValues(trained, graph),
        "transition": GraphTransition(graph, normalisation, config.self_loops),
    }
    got = predict(graph, new, config, tolerance=0.0, facts=facts)
    exact = exact_output(graph, new, config).with_network.alpha_0_N.numpy()[new.ids]
    np.testing.assert_allclose(got.alpha_0_lower, exact, rtol=1e-9)
    computed = predict(graph, new, config, tolerance=0.0)
    np.testing.assert_array_equal(computed.alpha_0_lower, got.alpha_0_lower)


def test_no_new_nodes_have_an_empty_prediction():
    graph = path_of(3)
    got = predict(graph, new_nodes(graph, [], []), DiffusionConfig())
    assert got.prediction.probabilities.shape == got.prediction.probabilities_no_network.shape
    assert got.prediction.probabilities.shape == (0, 3)
    assert got.alpha_0_lower.shape == got.alpha_0_upper.shape == (0,)


@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_frozen_and_left_as_it_was(training):
    graph = path_of(5)
    new = new_nodes(graph, np.ones((1, NUM_FEATURES)), [[4]])
    model = a_model(batch_norm=True)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    expected = predict(graph, new, DiffusionConfig(), model)
    model.train(training)
    got = predict(graph, new, DiffusionConfig(), model)
    np.testing.assert_array_equal(got.alpha_0_lower, expected.alpha_0_lower)
    assert model.training == training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_wrong_requests_are_refused():
    graph, config = path_of(3), DiffusionConfig()
    new = new_nodes(graph, np.ones((1, NUM_FEATURES)), [[0]])
    narrow = replace(graph, features=graph.features[:, :2])
    with pytest.raises(GraphError, match=r"have 2 feature columns, but the model was trained on 3"):
        predict(narrow, new_nodes(narrow, np.ones((1, 2)), [[0]]), config)
    with pytest.raises(GraphError, match=r"has no features, expected at least one"):
        predict(replace(graph, features=None), new, config)
    with pytest.raises(
        GraphError, match=r"has 4 nodes, but the new nodes were created for a graph of 3"
    ):
        predict(path_of(4), new, config)
    with pytest.raises(ConfigError, match=r"tolerance is -1.0, expected at least 0"):
        predict(graph, new, config, tolerance=-1.0)
    with pytest.raises(ConfigError, match=r"largest_evidence is nan, expected at least 0"):
        predict(graph, new, config, facts={"largest_evidence": float("nan")})
    with pytest.raises(ConfigError, match=r"block_size is 0, expected at least 1"):
        predict(graph, new, config, block_size=0)


def test_examples_in_the_documentation():
    results = doctest.testmod(module)
    assert results.attempted
    assert not results.failed
