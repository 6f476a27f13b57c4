"""Untrained models for tests of inference, which does not care how good a model is."""

from dataclasses import replace

import numpy as np
import torch

from gpn_scale.config import DiffusionConfig, EncoderConfig, FlowConfig, RunConfig
from gpn_scale.evaluation.known_calibration import KnownCalibration
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.inference.trained_model import TrainedModel, TrainedOpinion
from gpn_scale.nn.model import GPN
from gpn_scale.nn.opinion import Opinion
from tests.oracles import known_p_values
from tests.ppr.stored import exact_rows

CPU = torch.device("cpu")


def network_for(graph, num_classes=3, *, dtype=torch.float64, batch_norm=True, layers=2) -> GPN:
    """A small network with moments of batch normalisation that change something."""
    config = RunConfig(
        model="GPN",
        encoder=EncoderConfig(hidden=5, layers=layers, latent=2, batch_norm=batch_norm),
        flow=FlowConfig(radial_layers=2),
    )
    generator = torch.Generator().manual_seed(graph.num_nodes)
    prior_C = torch.rand(num_classes, generator=generator, dtype=torch.float64) + 0.1
    network = GPN(
        config,
        num_features=graph.num_features,
        class_prior_C=prior_C / prior_C.sum(),
        generator=generator,
    ).double()
    for norm in network.encoder.norms:
        norm.running_mean.uniform_(-1, 1, generator=generator)
        norm.running_var.uniform_(0.5, 2, generator=generator)
    return network.to(dtype)


def trained_model(
    graph, num_classes=3, *, diffusion=None, scaling="none", dtype=torch.float64, **network
) -> TrainedModel:
    """A model for the graph's features, on the CPU."""
    model = network_for(graph, num_classes, dtype=dtype, **network)
    return TrainedModel(model, scaling, diffusion or DiffusionConfig(), CPU, dtype)


def opinion_for(graph, num_classes=3, *, dtype=torch.float64) -> Opinion:
    """A small opinion whose logits are large enough to tell classes apart."""
    config = RunConfig(encoder=EncoderConfig(hidden=5, layers=2, batch_norm=True))
    generator = torch.Generator().manual_seed(graph.num_nodes + 1)
    opinion = Opinion(
        config, num_features=graph.num_features, num_classes=num_classes, generator=generator
    ).double()
    for norm in opinion.encoder.norms:
        norm.running_var.uniform_(0.01, 0.1, generator=generator)
    return opinion.to(dtype)


def drawn_calibration(num_nodes=40) -> KnownCalibration:
    """A calibration with scores of the size that untrained models have, without ties."""
    rng = np.random.default_rng(num_nodes)
    scores = {
        "epistemic_no_network": -3.0 - rng.lognormal(sigma=2.0, size=num_nodes),
        "epistemic": -3.0 - rng.lognormal(sigma=2.0, size=num_nodes),
        "entropy": -rng.lognormal(size=num_nodes),
        "energy": rng.normal(-1.0, size=num_nodes),
        "label_absence": -rng.random(num_nodes),
    }
    as_float32 = {name: score.astype(np.float32) for name, score in scores.items()}
    return KnownCalibration(1.7, as_float32, num_nodes)


def plus_model(graph, num_classes=3, *, calibration=None, **options) -> TrainedModel:
    """A GPN+ for the graph's features, on the CPU."""
    trained = trained_model(graph, num_classes, **options)
    opinion = TrainedOpinion(
        opinion_for(graph, num_classes, dtype=trained.dtype),
        trained.scaling,
        trained.diffusion,
        CPU,
        trained.dtype,
    )
    return replace(trained, opinion=opinion, calibration=calibration)


def dense_prediction(trained, graph) -> Prediction:
    """GPN+ by dense matrices: softmax(Pi logits / T), -logsumexp(Pi logits), Pi 1_train, alpha_0.

    It has no p-values; `assert_counted` compares them with counts.
    """
    rows, everyone = exact_rows(graph, trained.diffusion), np.arange(graph.num_nodes)
    own = trained.values_of(graph.features, everyone).double().numpy()
    logits = rows @ trained.opinion.values_of(graph.features, everyone).double().numpy()
    temperature = 1.0 if trained.calibration is None else trained.calibration.temperature
    power = np.exp(logits / temperature)
    label_evidence = None
    if graph.split is not None:
        is_training = np.isin(everyone, graph.split.train).astype(float)
        label_evidence = rows @ is_training
    return Prediction(
        probabilities=power / power.sum(1, keepdims=True),
        probabilities_no_network=(1.0 + own) / (1.0 + own).sum(1, keepdims=True),
        alpha_0=(1.0 + rows @ own).sum(1),
        alpha_0_no_network=(1.0 + own).sum(1),
        energy=-np.log(np.exp(logits).sum(1)),
        label_evidence=label_evidence,
    )


def assert_plus(got: Prediction, expected: Prediction, calibration, rtol=1e-5) -> None:
    """Arrays are close, and p-values are the counts that follow from the arrays."""
    for name in (
        "probabilities",
        "probabilities_no_network",
        "alpha_0",
        "alpha_0_no_network",
        "energy",
        "label_evidence",
    ):
        array, wanted = getattr(got, name), getattr(expected, name)
        assert (array is None) == (wanted is None), name
        if array is not None:
            assert array.dtype == np.float32
            np.testing.assert_allclose(array, wanted, rtol=rtol, atol=1e-6, err_msg=name)
    if calibration is None:
        assert got.p is None
    else:
        assert_counted(got, calibration)


def assert_counted(got: Prediction, calibration: KnownCalibration) -> None:
    """The p-values are those of the definition, counted node by node."""
    score_of = {
        "epistemic_no_network": -got.alpha_0_no_network,
        "epistemic": -got.alpha_0,
        "entropy": got.entropy,
        "energy": got.energy,
        "label_absence": None if got.label_evidence is None else -got.label_evidence,
    }
    parts = {
        "features": ["epistemic_no_network"],
        "neighbourhood": ["epistemic", "entropy"],
        "opinion": ["energy"],
        "labels": ["label_absence"],
    }
    has = {name for name in calibration.scores if score_of[name] is not None}
    parts = {part: [name for name in names if name in has] for part, names in parts.items()}
    parts = {part: names for part, names in parts.items() if names}
    scores = {name: calibration.scores[name] for name in has}
    expected = known_p_values(parts, scores, {name: score_of[name] for name in has})
    assert got.p.parts == tuple(parts)
    for part, values in expected.items():
        np.testing.assert_allclose(getattr(got.p, part), values, rtol=1e-6, err_msg=part)
