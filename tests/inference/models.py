"""Untrained models for tests of inference, which does not care how good a model is."""

from dataclasses import replace

import numpy as np
import torch

from gpn_scale.config import DiffusionConfig, EncoderConfig, FlowConfig, RunConfig
from gpn_scale.evaluation.known_calibration import PART_SCORES, KnownCalibration
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.evaluation.temperature import NodeTemperature
from gpn_scale.inference.trained_model import TrainedModel, TrainedOpinion
from gpn_scale.nn.model import GPN
from gpn_scale.nn.opinion import Opinion
from tests.oracles import known_p_values, surprise_by_part
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
    around = {
        part: rng.lognormal(sigma=0.5, size=num_nodes).astype(np.float32) for part in PART_SCORES
    }
    tempering = NodeTemperature(1.7, slope=0.3, mean=-1.0, deviation=0.5)
    return KnownCalibration(tempering, as_float32, around, num_nodes)


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
    """GPN+ by dense matrices: softmax(Pi logits / T_v), -logsumexp(Pi logits), Pi 1_train, alpha_0.

    It has no p-values; `assert_counted` compares them with counts.
    """
    rows, everyone = exact_rows(graph, trained.diffusion), np.arange(graph.num_nodes)
    own = trained.values_of(graph.features, everyone).double().numpy()
    logits = rows @ trained.opinion.values_of(graph.features, everyone).double().numpy()
    energy = -np.log(np.exp(logits).sum(1))
    rule = NodeTemperature(1.0) if trained.calibration is None else trained.calibration.tempering
    power = np.exp(logits / rule.of(energy)[:, None])
    label_evidence = None
    if graph.split is not None:
        is_training = np.isin(everyone, graph.split.train).astype(float)
        label_evidence = rows @ is_training
    return Prediction(
        probabilities=power / power.sum(1, keepdims=True),
        probabilities_no_network=(1.0 + own) / (1.0 + own).sum(1, keepdims=True),
        alpha_0=(1.0 + rows @ own).sum(1),
        alpha_0_no_network=(1.0 + own).sum(1),
        energy=energy,
        label_evidence=label_evidence,
    )


def dense_average(trained, graph, values) -> np.ndarray:
    """Means of values over every node's row, by the dense matrix."""
    rows = exact_rows(graph, trained.diffusion)
    return rows @ values / rows.sum(1)


def scores_and_parts(prediction, calibration):
    """Scores of a calibrated prediction by name, and the names of the scores of each part."""
    score_of = {
        "epistemic_no_network": -prediction.alpha_0_no_network,
        "epistemic": -prediction.alpha_0,
        "entropy": prediction.entropy,
        "energy": prediction.energy,
    }
    if prediction.label_evidence is not None:
        score_of["label_absence"] = -prediction.label_evidence
    has = calibration.scores.keys() & score_of.keys()
    parts = {part: [name for name in names if name in has] for part, names in PART_SCORES.items()}
    return {n: score_of[n] for n in has}, {part: names for part, names in parts.items() if names}


def total_surprise(prediction, calibration) -> np.ndarray:
    """Surprise of the nodes of a calibrated prediction, all parts together, by counting."""
    scores, parts = scores_and_parts(prediction, calibration)
    score_V = {name: calibration.scores[name] for name in scores}
    return np.sum(list(surprise_by_part(parts, score_V, scores).values()), axis=0)


def assert_plus(got: Prediction, expected: Prediction, calibration, around=None, rtol=1e-5) -> None:
    """Arrays are close, and p-values are the counts that follow from the arrays.

    Args:
        got: Prediction to check.
        expected: Its arrays.
        calibration: The calibration; None if there should be no p-values.
        around: Surprise of the nodes' surroundings; None if it should not count.
        rtol: Tolerance of the arrays.
    """
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
        assert got.surprise is None
    else:
        assert_counted(got, calibration, around)


def assert_counted(got: Prediction, calibration: KnownCalibration, around=None) -> None:
    """The p-values are those of the definition, counted node by node."""
    scores, parts = scores_and_parts(got, calibration)
    score_V = {name: calibration.scores[name] for name in scores}
    expected = known_p_values(parts, score_V, scores)
    surprise_N = total_surprise(got, calibration)
    assert got.p.parts == tuple(parts)
    np.testing.assert_allclose(got.surprise, surprise_N, rtol=1e-5, atol=1e-6)
    if around is not None:
        del expected["known"]
        assert_known(got, calibration, list(parts), surprise_N + around)
    for part, values in expected.items():
        np.testing.assert_allclose(getattr(got.p, part), values, rtol=3e-6, err_msg=part)


def assert_known(got, calibration, parts, total_N) -> None:
    """`p.known` counts the validation nodes that are as strange with their surroundings."""
    size, total_V = calibration.num_nodes, np.zeros(calibration.num_nodes)
    for part in parts:
        names = [name for name in PART_SCORES[part] if name in calibration.scores]
        scores = [calibration.scores[name] for name in names]
        at_least = [[int((s >= each).sum()) / (1 + size) for each in s] for s in scores]
        total_V += -np.log(at_least).mean(0) + calibration.surroundings[part]
    # Round-off decides where sums are closer than this.
    least, most = ((total_V >= total_N[:, None] + gap).sum(1) for gap in (1e-4, -1e-4))
    assert (got.p.known >= (1 + least) / (1 + size) - 1e-6).all()
    assert (got.p.known <= (1 + most) / (1 + size) + 1e-6).all()
