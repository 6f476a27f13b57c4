from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale.baselines.appnp import APPNP
from gpn_scale.baselines.evidential_probe import (
    EvidentialProbe,
    LabelledNodes,
    ProbeOptions,
    positive_confidence_loss,
    probe_loss,
    probed_evidence,
)
from gpn_scale.baselines.gcn import VGCN
from gpn_scale.baselines.network import AbstractSoftmaxNetwork
from gpn_scale.baselines.post_hoc import on_top_of
from gpn_scale.errors import ConfigError, RunError
from gpn_scale.nn.encoder import Encoder
from tests.baselines.graphs import CONFIG, LONGER, small_graph

EVIDENCE = torch.tensor([[4.0, 0.5, 0.1], [0.2, 0.3, 2.0]], dtype=torch.float64)
NODES = LabelledNodes(
    torch.zeros(2, 1),
    torch.tensor([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]], dtype=torch.float64),
    torch.tensor([0, 2]),
)


def sampled_surprise(alpha):
    """The mean of -log p_y over samples of Dirichlets."""
    torch.manual_seed(0)
    drawn = torch.distributions.Dirichlet(alpha).sample((200_000,))
    return -drawn[:, torch.arange(2), NODES.label_B].log().mean()


def loss_of(intra_class, confidence, entropy_weight=0.0):
    options = ProbeOptions(intra_class_weight=intra_class, confidence_weight=confidence)
    return probe_loss(EVIDENCE, NODES, options, entropy_weight)


def test_the_loss_without_regularisers_is_that_of_scaled_probabilities():
    alpha = 1.0 + EVIDENCE.sum(1, keepdim=True) * NODES.probability_BC
    expected = sampled_surprise(alpha)
    torch.testing.assert_close(loss_of(0.0, 0.0), expected, rtol=0.02, atol=0.0)
    entropy = torch.distributions.Dirichlet(alpha).entropy().mean()
    torch.testing.assert_close(loss_of(0.0, 0.0) - loss_of(0.0, 0.0, 0.5), 0.5 * entropy)


def test_the_intra_class_term_is_that_of_the_evidence_per_class():
    added = loss_of(2.0, 0.0) - loss_of(0.0, 0.0)
    expected = 2.0 * sampled_surprise(1.0 + EVIDENCE)
    torch.testing.assert_close(added, expected, rtol=0.02, atol=0.0)


def test_the_confidence_term_is_the_risk_of_positive_data():
    vacuity = 3.0 / (3.0 + EVIDENCE.sum(1).numpy())
    confidence = np.array([0.7, 0.4])
    risk = -np.log(1.0 - vacuity) - (1.0 - confidence) / confidence * np.log(vacuity)
    added = loss_of(0.0, 3.0) - loss_of(0.0, 0.0)
    np.testing.assert_allclose(added, 3.0 * risk.mean())


@pytest.mark.parametrize("confidence", [0.3, 0.8, 0.99])
def test_the_confidence_term_is_smallest_where_vacuity_is_the_doubt(confidence):
    vacuity = torch.linspace(0.001, 0.999, 999, dtype=torch.float64)
    total = 4.0 * (1.0 / vacuity - 1.0)
    loss = positive_confidence_loss(total, torch.full_like(total, confidence), 4)
    assert float(vacuity[loss.argmin()]) == pytest.approx(1.0 - confidence, abs=1e-9)


def test_evidence_is_the_exponential_of_clamped_outputs():
    probe = Encoder(
        num_features=1,
        hidden=1,
        layers=1,
        latent=2,
        dropout=0.0,
        batch_norm=False,
        generator=torch.Generator(),
    ).double()
    with torch.no_grad():
        probe.first.weight.copy_(torch.tensor([[1.0], [-1.0]]))
        probe.first.bias.zero_()
        evidence = probed_evidence(probe, torch.tensor([[2.0], [99.0]], dtype=torch.float64))
    np.testing.assert_allclose(evidence.log(), [[2.0, -2.0], [30.0, -30.0]])


@pytest.mark.parametrize("base", [VGCN, APPNP])
def test_the_network_stays_as_it_is_and_the_score_is_vacuity(base):
    graph = small_graph()
    model = on_top_of(base, "EPN")(CONFIG, dtype=torch.float64).fit(graph)
    prediction = model.predict(graph)
    alone = base(CONFIG, dtype=torch.float64).fit(graph)
    np.testing.assert_array_equal(prediction.probabilities, alone.predict(graph).probabilities)
    with torch.no_grad():
        values = model._probe(alone.representation(alone.view(graph))).numpy()
    np.testing.assert_allclose(prediction.epistemic, 3 / (3 + np.exp(values).sum(1)), rtol=1e-6)


def test_the_probe_learns_the_classes_and_what_is_far_from_them():
    graph = small_graph()
    model = on_top_of(VGCN, "EPN")(LONGER).fit(graph)
    view, test = model.view(graph), graph.split.test
    with torch.no_grad():
        evidence = probed_evidence(model._probe, model.base.representation(view)).numpy()
    assert (evidence.argmax(1)[test] == graph.labels[test]).mean() > 0.6
    nothing = view.with_features(test, lambda part: np.zeros_like(graph.features[test][part]))
    before, after = model.predict(graph), model.predict_view(nothing)
    assert after.epistemic[test].mean() > before.epistemic[test].mean()


def test_a_saved_probe_is_restored(tmp_path):
    graph, kind = small_graph(), on_top_of(VGCN, "EPN")
    model = kind(CONFIG).fit(graph)
    again = kind(CONFIG)
    again.load_state(graph, model.state(), tmp_path)
    prediction, expected = again.predict(graph), model.predict(graph)
    np.testing.assert_array_equal(prediction.epistemic, expected.epistemic)
    with pytest.raises(RunError, match=r"it belongs to another model"):
        kind(CONFIG, ProbeOptions(hidden=7)).load_state(graph, model.state(), tmp_path)


def test_networks_without_hidden_layers_are_refused():
    single = replace(CONFIG, encoder=replace(CONFIG.encoder, layers=1))
    with pytest.raises(ConfigError, match=r"VGCN\+EPN reads the last hidden layer of VGCN, and"):
        on_top_of(VGCN, "EPN")(single).fit(small_graph())

    class Plain(AbstractSoftmaxNetwork):
        name = "plain"

    plain = type("plain+EPN", (EvidentialProbe,), {"Base": Plain, "name": "plain+EPN"})
    with pytest.raises(ConfigError, match=r"reads the last hidden layer of plain, and there is no"):
        plain(CONFIG).fit(small_graph())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden": 0}, r"model\.hidden is 0, expected at least 1 hidden unit"),
        ({"intra_class_weight": -1.0}, r"model\.intra_class_weight is -1, expected at least 0"),
        ({"confidence_weight": -1.0}, r"model\.confidence_weight is -1, expected at least 0"),
    ],
)
def test_options_out_of_range_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        ProbeOptions(**changes)
