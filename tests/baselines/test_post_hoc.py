import numpy as np
import pytest
import torch

from gpn_scale.baselines.appnp import APPNP
from gpn_scale.baselines.gcn import VGCN, energy
from gpn_scale.baselines.layers import no_mixing
from gpn_scale.baselines.post_hoc import GraphEnergyOptions, SafeOptions, on_top_of
from gpn_scale.errors import ConfigError
from tests.baselines.graphs import CONFIG, small_graph
from tests.oracles import dense_diffusion, dense_transition


def fitted(method, base=VGCN, **options):
    kind = on_top_of(base, method)
    model = kind(CONFIG, kind.Options(**options), dtype=torch.float64)
    graph = small_graph()
    return model.fit(graph), graph, model.base_logits(model.view(graph))


def test_the_temperature_is_the_best_of_many():
    model, graph, logits = fitted("temperature")
    nodes = graph.split.val
    labels = torch.from_numpy(graph.labels[nodes].astype(np.int64))

    def loss(temperature):
        return float(torch.nn.functional.cross_entropy(logits[nodes] / temperature, labels))

    tried = np.exp(np.linspace(-4, 4, 400))
    assert loss(model.temperature) <= min(loss(one) for one in tried) + 1e-6
    prediction = model.predict(graph)
    np.testing.assert_array_equal(prediction.predicted_class, logits.argmax(1))
    assert prediction.epistemic_score is None


def test_gnnsafe_averages_energies_of_neighbours():
    model, graph, logits = fitted("GNNSafe")
    step = 0.5 * np.eye(graph.num_nodes) + 0.5 * dense_transition(graph, "rw", False)
    expected = step @ step @ energy(logits).numpy()
    np.testing.assert_allclose(model.predict(graph).epistemic, expected, rtol=1e-6)
    unmoved, graph, logits = fitted("GNNSafe", steps=0)
    np.testing.assert_allclose(unmoved.predict(graph).epistemic, energy(logits), rtol=1e-6)


@pytest.mark.parametrize("base", [VGCN, APPNP])
def test_gebm_joins_three_energies_of_logits_without_edges(base):
    model, graph, logits = fitted("GEBM", base, regulariser=0.0)
    diffusion = dense_diffusion(dense_transition(graph, "sym", True), 0.5, 10)
    layers, view = model.base.layers, model.view(graph)
    with torch.no_grad():
        values = layers(view, no_mixing).numpy()
    assert not np.allclose(values, logits)
    independent = -np.log(np.exp(values).sum(1))
    local = -np.log(np.exp(diffusion @ values).sum(1))
    parts = np.stack([independent, local, diffusion @ independent])
    expected = np.log(np.exp(parts).sum(0))
    prediction = model.predict(graph)
    np.testing.assert_allclose(prediction.epistemic, expected, rtol=1e-6)
    np.testing.assert_allclose(prediction.probabilities, logits.softmax(1), rtol=1e-6)


def test_gebm_judges_training_nodes_by_gaussians_of_their_own():
    model, graph, _ = fitted("GEBM", regulariser=1.0)
    nodes, labels = model.view(graph).training
    plain = model._logits_without_edges(model.view(graph))[nodes].double()
    own = (plain - model._regularised(plain)).gather(1, labels.unsqueeze(1))
    assert float(own.mean()) == pytest.approx(0.5)  # half of the mean squared distance, over C


def test_gebm_knows_logits_that_no_training_node_has():
    model, graph, _ = fitted("GEBM")
    view = model.view(graph)
    node = graph.split.test[:1]
    far = view.with_features(node, lambda part: 1e4 * graph.features[node][part])
    assert model.predict_view(far).epistemic[node] > model.predict(graph).epistemic.max()
    plain, graph, _ = fitted("GEBM", regulariser=0.0)
    assert plain.predict_view(far).epistemic[node] < plain.predict(graph).epistemic.min()


@pytest.mark.parametrize("method", ["temperature", "GNNSafe", "GEBM"])
def test_methods_are_restored_with_their_network(method, tmp_path):
    model, graph, _ = fitted(method)
    again = on_top_of(VGCN, method)(CONFIG, dtype=torch.float64)
    again.load_state(graph, model.state(), tmp_path)
    prediction, expected = again.predict(graph), model.predict(graph)
    np.testing.assert_array_equal(prediction.probabilities, expected.probabilities)
    if method != "temperature":
        np.testing.assert_array_equal(prediction.epistemic, expected.epistemic)


def test_refusals():
    with pytest.raises(ConfigError, match=r"model\.steps and model\.own_fraction are -1 and 0\.5"):
        SafeOptions(steps=-1)
    with pytest.raises(ConfigError, match=r"model\.teleport.* are 1\.0"):
        GraphEnergyOptions(teleport=1.0)
