"""One function per experiment, from a trained model and its graph to named numbers.

Names of numbers are `metric`, or `metric@setting` where an experiment has several settings, such as
`accuracy@normal_0.10` for Gaussian features at a tenth of the nodes.
"""

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import NodeIds
from gpn_scale.data.shifts import (
    EdgeShift,
    FeatureNoise,
    noise_rows,
    shifted_edges,
    shifted_nodes,
)
from gpn_scale.evaluation.conformal import DEFAULT_MISS, conformal_summary
from gpn_scale.evaluation.detection import detection_metrics, known_and_unknown
from gpn_scale.evaluation.metrics import (
    accuracy,
    expected_calibration_error,
    false_positive_rate,
)
from gpn_scale.evaluation.prediction import AbstractPrediction, FloatArray
from gpn_scale.evaluation.prediction_metrics import (
    Metrics,
    classification_metrics,
    out_of_distribution_metrics,
)
from gpn_scale.evaluation.risk_coverage import risk_coverage
from gpn_scale.evaluation.scores import DETECTION_SCORES
from gpn_scale.experiments.trained import Trained

ISOLATED_NODES = 100
"""Number of test nodes whose features `isolated` replaces, one node at a time."""
FEATURE_NOISES: tuple[FeatureNoise, ...] = ("bernoulli", "normal")
"""Kinds of noise that replace features."""
EDGE_SHIFTS: tuple[EdgeShift, ...] = ("random", "dice")
"""Methods of moving edges."""
_MISCLASSIFICATION = "misclassification_"


def clean(trained: Trained) -> Metrics:
    """Measure accuracy and calibration, risk over coverage, and conformal sets."""
    test = trained.test_nodes
    metrics = classification_metrics(trained.prediction, trained.graph, test)
    metrics = {name: value for name, value in metrics.items() if _MISCLASSIFICATION not in name}
    wrong = _misclassified(trained)
    for name, score in trained.prediction.scores(test).items():
        metrics[f"aurc_{name}"] = np.nan if score is None else risk_coverage(score, wrong).area
    return metrics | _conformal_metrics(trained)


def misclassification(trained: Trained) -> Metrics:
    """Measure how well each score detects the misclassified test nodes."""
    test = trained.test_nodes
    return detection_metrics(_detection_scores(trained, test), _misclassified(trained))


def left_out_classes(trained: Trained) -> Metrics:
    """Measure how well each score detects nodes of classes that training did not know."""
    graph = trained.graph
    detection = out_of_distribution_metrics(trained.prediction, graph)
    metrics = {name: value for name, value in detection.items() if isinstance(value, float)}
    nodes, is_unknown = known_and_unknown(graph)
    return metrics | detection_metrics(trained.local_score(nodes), is_unknown)


def left_out_false_alarms(trained: Trained) -> Metrics:
    """Measure which fraction of known nodes each score rejects with 95 % of the unknown nodes."""
    nodes, is_unknown = known_and_unknown(trained.graph)
    scores = _detection_scores(trained, nodes)
    return {
        f"fpr95_{name}": np.nan if score is None else false_positive_rate(is_unknown, score)
        for name, score in scores.items()
    }


def isolated(trained: Trained) -> Metrics:
    """Measure how well each score detects test nodes whose features are replaced by noise.

    One node is changed at a time; the negatives are the same nodes unchanged.
    """
    graph = trained.graph
    rng = np.random.default_rng(trained.rng_seed)
    count = min(ISOLATED_NODES, len(trained.test_nodes))
    nodes = np.sort(rng.choice(trained.test_nodes, count, replace=False))
    before = _detection_scores(trained, nodes)
    results: Metrics = {}
    for kind in FEATURE_NOISES:
        rows = noise_rows(kind, count, graph.num_features, trained.rng_seed)
        prediction = trained.perturbed.isolated(nodes, rows.__getitem__)
        after = prediction.scores(np.arange(count), DETECTION_SCORES)
        after |= trained.local_score(nodes, prediction)
        scores = {name: _appended(before[name], score) for name, score in after.items()}
        metrics = detection_metrics(scores, np.arange(2 * count) >= count)
        metrics["accuracy"] = accuracy(prediction.probabilities, graph.labels[nodes])
        results |= {f"{name}@{kind}": value for name, value in metrics.items()}
    return results


def feature_shift(trained: Trained) -> Metrics:
    """Measure accuracy, calibration and confidence with some nodes' features replaced by noise."""
    graph = trained.graph
    metrics = _curve_point(trained, trained.prediction, "clean")
    for fraction in trained.fractions:
        nodes = shifted_nodes(graph, fraction, trained.rng_seed)
        for kind in FEATURE_NOISES:

            def rows_of(rows: slice, kind: FeatureNoise = kind) -> NDArray[np.float32]:
                seed = trained.rng_seed + rows.start
                return noise_rows(kind, rows.stop - rows.start, graph.num_features, seed)

            prediction = trained.perturbed.with_features(nodes, rows_of)
            metrics |= _curve_point(trained, prediction, f"{kind}_{fraction:.2f}")
    return metrics


def edge_shift(trained: Trained) -> Metrics:
    """Measure accuracy, calibration and confidence with some edges moved."""
    metrics = _curve_point(trained, trained.prediction, "clean")
    for fraction in trained.fractions:
        for kind in EDGE_SHIFTS:
            moved = shifted_edges(trained.graph, fraction, kind, trained.rng_seed)
            prediction = trained.perturbed.with_edges(moved)
            metrics |= _curve_point(trained, prediction, f"{kind}_{fraction:.2f}")
    return metrics


def _detection_scores(trained: Trained, nodes: NodeIds) -> dict[str, FloatArray | None]:
    """Return all scores of `nodes` on the unchanged graph; None for those the model lacks."""
    scores = trained.prediction.scores(nodes, DETECTION_SCORES)
    return {**scores, **trained.local_score(nodes)}


def _misclassified(trained: Trained) -> NDArray[np.bool_]:
    test = trained.test_nodes
    wrong: NDArray[np.bool_] = (
        trained.prediction.predicted_class[test] != trained.graph.labels[test]
    )
    return wrong


def _conformal_metrics(trained: Trained) -> Metrics:
    """Measure coverage and size of conformal sets.

    Half of the test nodes, which neither training nor early stopping uses, calibrate the sets; the
    other half measures them.
    """
    summary = conformal_summary(
        trained.prediction.probabilities[trained.test_nodes],
        trained.graph.labels[trained.test_nodes],
        trained.test_nodes,
        num_nodes=trained.graph.num_nodes,
        rng_seed=trained.rng_seed,
        miss=DEFAULT_MISS,
    )
    return {"conformal_coverage": summary.coverage, "conformal_size": summary.mean_size}


def _appended(first: FloatArray | None, second: FloatArray | None) -> FloatArray | None:
    """Return both arrays as one; None for a score that the model does not have."""
    return None if first is None or second is None else np.append(first, second)


def _curve_point(trained: Trained, prediction: AbstractPrediction, setting: str) -> Metrics:
    """Measure accuracy, ECE and both mean confidences of the test nodes."""
    test = trained.test_nodes
    probability, label = prediction.probabilities[test], trained.graph.labels[test]
    epistemic = prediction.scores(test)["epistemic"]
    confidence = np.nan if epistemic is None else -float(epistemic.mean(dtype=np.float64))
    point = {
        "accuracy": accuracy(probability, label),
        "ece": expected_calibration_error(probability, label),
        "aleatoric_confidence": float(probability.max(1).mean()),
        "epistemic_confidence": confidence,
    }
    return {f"{name}@{setting}": value for name, value in point.items()}
