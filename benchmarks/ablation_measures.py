"""What `ablation_parts` measures of one training: scores, parts, joins, p-values, probabilities.

Shapes: N nodes, V calibration nodes, B perturbed nodes, C classes.
"""

from unittest.mock import patch

import numpy as np
import torch
from ablation_case import JOINS, Array, Case, Key, joint_p, part_sets
from numpy.typing import NDArray
from scipy.stats import kstest

from gpn_scale.diffusion.power_iteration import exact_diffusion
from gpn_scale.evaluation import known_calibration
from gpn_scale.evaluation.known_calibration import PART_SCORES
from gpn_scale.evaluation.metrics import (
    accuracy,
    expected_calibration_error,
    negative_log_likelihood,
)
from gpn_scale.evaluation.p_values import calibration_p, conformal_p
from gpn_scale.evaluation.temperature import fitted_temperature, scaled

WEIGHTS = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Weights of the surroundings."""
LABEL_WEIGHTS = (0.0, 1.0, 10.0, 100.0)
"""Weights of diffused labels, in medians of GPN's total evidence."""
NOISES = ("bernoulli", "normal")


def single_scores(case: Case) -> dict[Key, float]:
    """Measure every score by itself."""
    scores = case.scores(case.plus, case.gpn)
    return {("scores", name, "auroc"): case.auroc(score) for name, score in scores.items()}


def parts(case: Case) -> dict[Key, float]:
    """Measure sets of parts, joined as GPN+ does, with surroundings."""
    scores = case.scores(case.plus, case.gpn)
    changed = {kind: case.scores(*case.isolated(kind)) for kind in NOISES}
    own = {name: case.own_surprise(scores, p).sum(0) for name, p in part_sets().items()}
    every = {name: case.surprise(scores, p).sum(0) for name, p in part_sets().items()}
    values: dict[Key, float] = {}
    for name, around_N in case.around(every).items():
        total_V = own[name] + around_N[case.calibration]
        p_N = joint_p(total_V, every[name] + around_N)
        values["parts", name, "auroc"] = case.auroc(-p_N)
        for kind, new in changed.items():
            new_B = case.surprise(scores, part_sets()[name], new).sum(0)
            change_B = new_B - every[name][case.changed_nodes]
            around_B = around_N[case.changed_nodes] + case.own_share * change_B
            p_B = joint_p(total_V, new_B + around_B)
            values["parts", name, kind] = case.changed_auroc(p_N, p_B)
    return values


def joins(case: Case) -> dict[Key, float]:
    """Measure ways to join the parts, with and without surroundings.

    The statistics have different scales, so each becomes -log p before it is averaged over rows.
    """
    scores = case.scores(case.plus, case.gpn)
    own_PV, every_PN = case.own_surprise(scores, PART_SCORES), case.surprise(scores, PART_SCORES)
    half = 0.5 / (1 + len(case.calibration))
    values: dict[Key, float] = {}
    own, every = {}, {}
    for name, join in JOINS.items():
        own_V = join(own_PV, half)
        p_N = joint_p(own_V, join(every_PN, half))
        values["joins", name, "without surroundings"] = case.auroc(-p_N)
        own[name], every[name] = -np.log(np.asarray(calibration_p(own_V), float)), -np.log(p_N)
    for name, around_N in case.around(every).items():
        p_N = joint_p(own[name] + around_N[case.calibration], every[name] + around_N)
        values["joins", name, "with surroundings"] = case.auroc(-p_N)
    return values


def surroundings(case: Case) -> dict[Key, float]:
    """Measure weights of the surroundings, on left-out classes and on features of noise."""
    perturbed = case.perturbed  # calibrated before the weight is changed
    values: dict[Key, float] = {}
    for weight in WEIGHTS:
        line = f"{weight:g}"
        with patch.object(known_calibration, "AROUND_WEIGHT", weight):
            before = perturbed.unchanged()
            if len(case.unknown):
                values["surroundings", line, "left-out"] = case.auroc(-before.p_value("known"))
            for kind in NOISES:
                after, _ = case.isolated(kind)
                for p in ("known", "features"):
                    area = case.changed_auroc(before.p_value(p), after.p_value(p))
                    values["surroundings", line, f"{kind} p_{p}"] = area
    return values


def validity(case: Case) -> dict[Key, float]:
    """Measure how far p_known of the known nodes is from uniform, beside exchangeable numbers."""
    rng, p_N = np.random.default_rng(case.rng_seed), case.plus.p_value("known")[case.known]
    drawn = [
        conformal_p(np.sort(rng.random(len(case.calibration))), rng.random(len(case.known)))
        for _ in range(200)
    ]
    return {
        ("validity", "p_known", "KS distance"): float(kstest(p_N, "uniform").statistic),
        ("validity", "p_known", "KS if exchangeable"): float(
            np.mean([kstest(p, "uniform").statistic for p in drawn])
        ),
        ("validity", "p_known", "p <= 5 %"): float((p_N <= 0.05).mean()),
        ("validity", "p_known", "p <= 10 %"): float((p_N <= 0.1).mean()),
    }


def probabilities(case: Case) -> dict[Key, float]:
    """Measure class probabilities of the known nodes; all is fitted on the calibration nodes."""
    opinion_NC, gpn_NC = np.asarray(case.plus.probabilities, np.float64), case.gpn.probabilities
    candidates = {"opinion": opinion_NC, "GPN": gpn_NC}
    candidates["opinion and GPN, pooled in logs"] = _pooled(case, opinion_NC, gpn_NC)
    total_N1 = (case.gpn.alpha_0 - case.graph.num_classes).clip(0.0)[:, None].astype(np.float64)
    unit = np.median(total_N1[case.calibration])
    label_NC = _diffused_labels(case)
    for weight in LABEL_WEIGHTS:
        alpha_NC = 1.0 + total_N1 * opinion_NC + weight * unit * label_NC
        name = f"mean of Dirichlet(1 + B0 p + {weight:g} m L)"
        candidates[name] = alpha_NC / alpha_NC.sum(1, keepdims=True)
    values = {}
    for name, probability_NC in candidates.items():
        for metric, value in _quality(case, probability_NC).items():
            values["probabilities", name, metric] = value
    return values


def _quality(case: Case, probability_NC: NDArray[np.floating]) -> dict[str, float]:
    own = case.calibration
    temperature = fitted_temperature(probability_NC[own], case.calibration_labels)
    tempered, labels = scaled(probability_NC[case.known], temperature), case.graph.labels
    return {
        "accuracy": accuracy(tempered, labels[case.known]),
        "ECE": expected_calibration_error(tempered, labels[case.known]),
        "NLL x 100": negative_log_likelihood(tempered, labels[case.known]),
    }


def _pooled(case: Case, first_NC: Array, second_NC: NDArray[np.floating]) -> Array:
    """Return p^a q^(1 - a), normalised; a has the smallest NLL of the calibration nodes."""
    own, labels = case.calibration, case.calibration_labels
    logs = []
    for probability_NC in (first_NC, second_NC):
        temperature = fitted_temperature(probability_NC[own], labels)
        logs.append(np.log(np.maximum(scaled(probability_NC, temperature), 1e-30)))
    pools = [
        scaled(np.exp(share * logs[0] + (1.0 - share) * logs[1]), 1.0)
        for share in np.linspace(0.0, 1.0, 11)
    ]
    return min(pools, key=lambda pool: negative_log_likelihood(pool[own], labels))


def _diffused_labels(case: Case) -> Array:
    """Return the diffused labels of the training nodes, (N, C)."""
    graph, trained = case.graph, case.classifier.trained
    assert graph.split is not None
    one_hot_NC = torch.zeros(graph.num_nodes, graph.num_classes, dtype=torch.float64)
    train = graph.split.train
    one_hot_NC[train, graph.labels[train].astype(np.int64)] = 1.0
    diffuse = exact_diffusion(graph, trained.diffusion, torch.device("cpu"), torch.float64)
    return np.asarray(diffuse.linear(one_hot_NC).numpy())
