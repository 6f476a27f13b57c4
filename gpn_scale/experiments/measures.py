"""One function per experiment: a trained model and its graph -> named numbers.

Names of numbers are `metric`, or `metric@setting` where an experiment has several settings, such as
`accuracy@normal_0.10` for a tenth of the nodes with Gaussian features.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpn_scale.baselines.model import AbstractBaseline
from gpn_scale.baselines.perturbed import PerturbedBaseline
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.data.shifts import (
    EdgeShift,
    FeatureNoise,
    check_movable,
    noise_rows,
    shifted_edges,
    shifted_nodes,
)
from gpn_scale.errors import ConfigError, GraphError, NumericalError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.conformal import calibrated, coverage
from gpn_scale.evaluation.metrics import accuracy, expected_calibration_error
from gpn_scale.evaluation.prediction import FloatArray, Prediction
from gpn_scale.evaluation.prediction_metrics import (
    Metrics,
    classification_metrics,
    detection_metrics,
    out_of_distribution_metrics,
)
from gpn_scale.evaluation.risk_coverage import risk_coverage
from gpn_scale.evaluation.scored_prediction import AnyPrediction
from gpn_scale.experiments.calibration import calibration
from gpn_scale.inference.perturbed import Perturbed
from gpn_scale.ppr.store import PPRStore

ISOLATED_NODES = 100
FRACTIONS = (0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.99)
"""Of nodes or edges that a shift changes."""
CONFORMAL_MISS = 0.1
_MISCLASSIFICATION = "misclassification_"
_FEATURE_NOISES: tuple[FeatureNoise, ...] = ("bernoulli", "normal")
_EDGE_SHIFTS: tuple[EdgeShift, ...] = ("random", "dice")


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model, the graph it is of, and what the experiments share."""

    classifier: GPNClassifier | AbstractBaseline
    graph: Graph
    rng_seed: int
    store: Path | None = None
    """Rows of all nodes, for the score `epistemic_local`."""
    fractions: tuple[float, ...] = FRACTIONS

    @cached_property
    def perturbed(self) -> Perturbed | PerturbedBaseline:
        """The model asked of changed graphs; of a GPN, the evidence of all nodes computed once."""
        classifier = self.classifier
        if isinstance(classifier, AbstractBaseline):
            return PerturbedBaseline(classifier, self.graph)
        return Perturbed(
            classifier.model,
            self.graph,
            scaling=classifier.config.data.feature_scaling,
            diffusion=classifier.config.diffusion,
            device=classifier.device,
            dtype=classifier.dtype,
        )

    @cached_property
    def prediction(self) -> AnyPrediction:
        """Of the graph as it is.

        Raises:
            NumericalError: it is not finite.
        """
        found = self.perturbed.as_it_is()
        is_finite = np.isfinite(found.probabilities).all(1)
        for score in found.scores(np.arange(self.graph.num_nodes)).values():
            is_finite &= True if score is None else np.isfinite(score)
        if lost := np.count_nonzero(~is_finite):
            raise NumericalError(
                f"the model's prediction of {lost} of {self.graph.num_nodes} nodes is not finite, "
                "expected probabilities and scores: train it with other settings, or leave it out"
            )
        return found


def clean(trained: Trained) -> Metrics:
    """Accuracy and calibration, risk over coverage, conformal sets."""
    assert trained.graph.split is not None
    test = trained.graph.split.test
    found = classification_metrics(trained.prediction, trained.graph, test)
    found = {name: value for name, value in found.items() if _MISCLASSIFICATION not in name}
    wrong = trained.prediction.predicted_class[test] != trained.graph.labels[test]
    for name, score in trained.prediction.scores(test).items():
        area = np.nan if score is None else risk_coverage(score, wrong).area
        found[f"aurc_{name}"] = area
    # Of the test nodes, which had no part in training or stopping, half calibrate and half measure.
    order = np.random.default_rng(trained.rng_seed).permutation(test)
    half = len(order) // 2
    probability, label = trained.prediction.probabilities[order], trained.graph.labels[order]
    rule = calibrated(
        probability[:half], label[:half], miss=CONFORMAL_MISS, num_nodes=trained.graph.num_nodes
    )
    sets = rule.sets(probability[half:], order[half:])
    found["conformal_coverage"] = coverage(sets, label[half:])
    found["conformal_size"] = float(sets.sum(1).mean())
    return found


def misclassification(trained: Trained) -> Metrics:
    """How well each score finds the misclassified test nodes."""
    assert trained.graph.split is not None
    test = trained.graph.split.test
    found = classification_metrics(trained.prediction, trained.graph, test)
    metrics = {
        name.removeprefix(_MISCLASSIFICATION): value
        for name, value in found.items()
        if _MISCLASSIFICATION in name
    }
    wrong = trained.prediction.predicted_class[test] != trained.graph.labels[test]
    return metrics | detection_metrics(_local_score(trained, test), wrong)


def left_out_classes(trained: Trained) -> Metrics:
    """How well each score finds nodes of classes that training did not know."""
    found = out_of_distribution_metrics(trained.prediction, trained.graph)
    metrics = {name: value for name, value in found.items() if isinstance(value, float)}
    assert trained.graph.split is not None
    ordinary = np.setdiff1d(trained.graph.split.test, trained.graph.marked)
    nodes = np.append(ordinary, trained.graph.marked)
    positive = np.arange(len(nodes)) >= len(ordinary)
    return metrics | detection_metrics(_local_score(trained, nodes), positive)


def isolated(trained: Trained) -> Metrics:
    """Some test nodes, each alone with features of noise, told from the same nodes as they are."""
    graph = trained.graph
    assert graph.split is not None
    rng = np.random.default_rng(trained.rng_seed)
    count = min(ISOLATED_NODES, len(graph.split.test))
    nodes = np.sort(rng.choice(graph.split.test, count, replace=False))
    before = {**trained.prediction.scores(nodes), **_local_score(trained, nodes)}
    found: Metrics = {}
    for kind in _FEATURE_NOISES:
        rows = noise_rows(kind, count, graph.num_features, trained.rng_seed)
        after = trained.perturbed.isolated(nodes, rows.__getitem__)
        scores = {**after.scores(np.arange(count)), **_local_score(trained, nodes, after)}
        both = {name: _appended(before[name], score) for name, score in scores.items()}
        metrics = detection_metrics(both, np.arange(2 * count) >= count)
        metrics["accuracy"] = accuracy(after.probabilities, graph.labels[nodes])
        found |= {f"{name}@{kind}": value for name, value in metrics.items()}
    return found


def feature_shift(trained: Trained) -> Metrics:
    """Accuracy, calibration and confidence with features of noise at a fraction of the nodes."""
    graph, found = trained.graph, _curve_point(trained, trained.prediction, "clean")
    for fraction in trained.fractions:
        nodes = shifted_nodes(graph, fraction, trained.rng_seed)
        for kind in _FEATURE_NOISES:

            def rows_of(part: slice, kind: FeatureNoise = kind) -> NDArray[np.float32]:
                seed = trained.rng_seed + part.start
                return noise_rows(kind, part.stop - part.start, graph.num_features, seed)

            prediction = trained.perturbed.with_features(nodes, rows_of)
            found |= _curve_point(trained, prediction, f"{kind}_{fraction:.2f}")
    return found


def edge_shift(trained: Trained) -> Metrics:
    """The same with a fraction of the edges moved."""
    found = _curve_point(trained, trained.prediction, "clean")
    for fraction in trained.fractions:
        for kind in _EDGE_SHIFTS:
            moved = shifted_edges(trained.graph, fraction, kind, trained.rng_seed)
            prediction = trained.perturbed.with_edges(moved)
            found |= _curve_point(trained, prediction, f"{kind}_{fraction:.2f}")
    return found


EXPERIMENTS: Mapping[str, Callable[[Trained], Metrics]] = {
    "clean": clean,
    "misclassification": misclassification,
    "left-out-classes": left_out_classes,
    "isolated": isolated,
    "feature-shift": feature_shift,
    "edge-shift": edge_shift,
    "calibration": lambda trained: calibration(trained.prediction, trained.graph),
}
LEFT_OUT = "left-out-classes"
"""The experiment that needs a training of its own; all others share one."""


def check_experiment(name: str) -> None:
    """Refuses names that are none.

    Raises:
        ConfigError: with the known ones.
    """
    if name not in EXPERIMENTS:
        known = ", ".join([*EXPERIMENTS, "ablation", "hyper-parameters", "all"])
        raise ConfigError(f"--experiment got {name!r}, expected one of {known}")


def check_possible(experiments: Iterable[str], graph: Graph) -> None:
    """Refuses experiments that the graph is not made for.

    Raises:
        GraphError: features that it has not, or edges of another kind, would have to be changed.
    """
    wanted = set(experiments)
    if "edge-shift" in wanted:
        check_movable(graph)
    if graph.features is None and (feature := sorted(wanted & {"isolated", "feature-shift"})):
        raise GraphError(
            f"graph {graph.name!r} has no features, expected some for the experiment {feature[0]} "
            "to change: leave it out of --experiment"
        )


def is_complete(experiment: str, metrics: Metrics, fractions: Iterable[float]) -> bool:
    """Whether a result has all of the fractions, if it is that of a shift."""
    kinds = {"feature-shift": _FEATURE_NOISES, "edge-shift": _EDGE_SHIFTS}.get(experiment, ())
    return all(
        f"accuracy@{kind}_{fraction:.2f}" in metrics for kind in kinds for fraction in fractions
    )


def _appended(first: FloatArray | None, second: FloatArray | None) -> FloatArray | None:
    """One after the other; None for a score that the model has not."""
    return None if first is None or second is None else np.append(first, second)


def _curve_point(trained: Trained, prediction: AnyPrediction, setting: str) -> Metrics:
    """Of the test nodes: accuracy, ECE, and the means of both confidences."""
    assert trained.graph.split is not None
    test = trained.graph.split.test
    probability, label = prediction.probabilities[test], trained.graph.labels[test]
    epistemic = prediction.scores(test)["epistemic"]
    certainty = np.nan if epistemic is None else -float(epistemic.mean(dtype=np.float64))
    point = {
        "accuracy": accuracy(probability, label),
        "ece": expected_calibration_error(probability, label),
        "aleatoric_confidence": float(probability.max(1).mean()),
        "epistemic_confidence": certainty,
    }
    return {f"{name}@{setting}": value for name, value in point.items()}


def _local_score(
    trained: Trained, nodes: NodeIds, alone: AnyPrediction | None = None
) -> dict[str, FloatArray | None]:
    """`epistemic_local`: little evidence in the nodes' stored rows, whatever else is around them.

    Nothing stands for what the rows cut. Empty without rows, and for models without evidence.

    Args:
        trained: The model, its graph and its rows.
        nodes: To be scored.
        alone: What was predicted for each of them with other features, if they are to have those.
    """
    perturbed = trained.perturbed
    if trained.store is None or not isinstance(perturbed, Perturbed):
        return {}
    fingerprint = trained.graph.structure_fingerprint()
    rows = PPRStore.open(trained.store, graph_fingerprint=fingerprint).rows(nodes)
    total_N = perturbed.evidence_NC.sum(1).double().cpu().numpy()
    row, evidence = rows.row_of_entry(), total_N[rows.ids]
    if alone is not None:
        assert isinstance(alone, Prediction)
        own = alone.alpha_0_no_network - perturbed.evidence_NC.shape[1]
        evidence = np.where(rows.ids == nodes[row], own[row], evidence)
    local = np.bincount(row, rows.weights * evidence, minlength=len(nodes))
    return {"epistemic_local": -local.astype(np.float32)}
