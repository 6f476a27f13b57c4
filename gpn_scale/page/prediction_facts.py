"""A trained model, its graph and its prediction -> the facts of a page.

Shapes: L sampled nodes, D latent dimensions, C classes.
"""

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.conformal import calibrated, coverage
from gpn_scale.evaluation.metrics import auroc, reliability
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.evaluation.risk_coverage import risk_coverage
from gpn_scale.inference.encoder_inputs import required_features
from gpn_scale.inference.evidence import EvidenceSummary
from gpn_scale.page.explain import explain_extremes
from gpn_scale.page.facts import (
    SCORE_NAMES,
    ConformalFacts,
    Histogram,
    LatentPoints,
    PredictionFacts,
    RunFacts,
    ScoreCurve,
    histogram_of,
)
from gpn_scale.page.posterior_facts import (
    dissonance_histogram,
    temperature_facts,
    vacuity_histogram,
)
from gpn_scale.page.projection import neighbour_points
from gpn_scale.page.run_files import RunRecord
from gpn_scale.ppr.store import PPRStore

MISS = 0.1
_SAMPLED_NODES = 2000
_CURVE_POINTS = 200
_RNG_SEED = 0


def run_facts(
    record: RunRecord,
    classifier: GPNClassifier,
    graph: Graph,
    prediction: Prediction,
    store: PPRStore | None,
    evidence: EvidenceSummary | None = None,
) -> RunFacts:
    """What the page of a finished run shows.

    Args:
        record: The run's files.
        classifier: Trained.
        graph: With the run's split.
        prediction: Of all nodes.
        store: Rows of minibatch mode; None if there are none or they were not found.
        evidence: Feature evidence of all nodes; None to compute it.
    """
    assert graph.split is not None
    missing, found = [], None
    if len(graph.split.test) + len(graph.marked):
        found = prediction_facts(classifier, graph, prediction, store, evidence)
    else:
        missing.append("The split has no test nodes to look at, and no node is marked as unknown.")
    if record.config.mode == "minibatch" and store is None:
        missing.append(
            "The rows that training used were not found, so that their missing mass is not shown: "
            "name them with --ppr STORE."
        )
    return RunFacts(
        config=record.config,
        training=record.training,
        report=record.report,
        prediction=found,
        missing=tuple(missing),
    )


def prediction_facts(
    classifier: GPNClassifier,
    graph: Graph,
    prediction: Prediction,
    store: PPRStore | None,
    evidence: EvidenceSummary | None = None,
) -> PredictionFacts:
    """What takes a model."""
    assert graph.split is not None
    test = graph.split.test
    known = np.setdiff1d(test, graph.marked)
    candidates = np.union1d(test, graph.marked)
    probability, label = prediction.probabilities[test], graph.labels[test]
    names = graph.class_names
    latent, latent_LD = latent_points(classifier, graph, candidates)
    return PredictionFacts(
        class_names=tuple(
            f"class {c}" if names is None else str(names[c]) for c in range(graph.num_classes)
        ),
        known_nodes=len(known),
        marked_nodes=len(graph.marked),
        detection=_detection(prediction, graph, known),
        alpha_0=_log_histogram(prediction.alpha_0, known, graph.marked),
        alpha_0_no_network=_log_histogram(prediction.alpha_0_no_network, known, graph.marked),
        reliability=reliability(probability, label),
        risk=_risk(prediction, graph, test),
        conformal=conformal_facts(probability, label, graph.num_nodes),
        temperature=temperature_facts(prediction, graph),
        vacuity=vacuity_histogram(prediction, known, graph.marked),
        dissonance=dissonance_histogram(prediction, graph),
        missing_mass=None if store is None else histogram_of({"stored rows": store.missing_mass}),
        explained=explain_extremes(
            classifier, graph, prediction, candidates, known, store, evidence
        ),
        latent=latent,
        neighbours=neighbour_points(latent, latent_LD),
    )


def _detection(prediction: Prediction, graph: Graph, known: NodeIds) -> dict[str, dict[str, float]]:
    """AUC-ROC of telling marked nodes from the known test nodes, by mark and score."""
    groups = {"all": graph.marked, **graph.marks} if graph.marks else {}
    found = {}
    for name, marked in groups.items():
        nodes = np.concatenate([known, np.asarray(marked)])
        positive = np.arange(len(nodes)) >= len(known)
        scores = _scores(prediction, nodes)
        found[name] = {score: auroc(positive, values) for score, values in scores.items()}
    return found


def _scores(prediction: Prediction, nodes: NodeIds) -> dict[str, NDArray[np.float32]]:
    """All four of `nodes`."""
    most = prediction.probabilities_no_network[nodes].max(1, initial=0.0)
    scores = {**prediction.scores(nodes), "aleatoric_no_network": -np.asarray(most)}
    return {name: scores[name] for name in SCORE_NAMES}


def _log_histogram(alpha_0: NDArray[np.float32], known: NodeIds, marked: NodeIds) -> Histogram:
    groups = {"known test nodes": known, "unknown nodes": marked}
    return histogram_of({name: np.log10(alpha_0[ids]) for name, ids in groups.items() if len(ids)})


def _risk(prediction: Prediction, graph: Graph, test: NodeIds) -> tuple[ScoreCurve, ...]:
    wrong = prediction.probabilities[test].argmax(1) != graph.labels[test]
    found = []
    for name, score in _scores(prediction, test).items():
        curve = risk_coverage(score, wrong)
        thin = curve.thinned(_CURVE_POINTS)
        found.append(
            ScoreCurve(score=name, coverage=thin.coverage_N, risk=thin.risk_N, area=curve.area)
        )
    return tuple(found)


def conformal_facts(
    probability_NC: NDArray[np.float32], label_N: NDArray[np.int32], num_nodes: int
) -> ConformalFacts | None:
    """Sets calibrated on a random half of the nodes, measured on the other; None below two."""
    if len(label_N) < 2:
        return None
    order = np.random.default_rng(_RNG_SEED).permutation(len(label_N))
    first, second = order[: len(order) // 2], order[len(order) // 2 :]
    rule = calibrated(probability_NC[first], label_N[first], miss=MISS, num_nodes=num_nodes)
    sets_NC = rule.sets(probability_NC[second], second)
    return ConformalFacts(
        miss=MISS,
        calibration_nodes=len(first),
        measured_nodes=len(second),
        coverage=coverage(sets_NC, label_N[second]),
        mean_size=float(sets_NC.sum(1).mean()),
    )


def latent_points(
    classifier: GPNClassifier, graph: Graph, nodes: NodeIds
) -> tuple[LatentPoints, NDArray[np.float64]]:
    """A sample of `nodes` on the two widest directions of the latent space, and (L, D) in it."""
    rng = np.random.default_rng(_RNG_SEED)
    nodes = np.sort(rng.choice(nodes, min(len(nodes), _SAMPLED_NODES), replace=False))
    features = required_features(graph)
    array_LD = classifier.trained.latent(features, nodes).double().cpu().numpy()
    evidence_LC = classifier.trained.evidence(features, nodes)
    position, explained = principal_components(array_LD)
    points = LatentPoints(
        position=position,
        label=graph.labels[nodes].astype(np.int64),
        log_evidence=np.log10(evidence_LC.double().sum(1).cpu().numpy()),
        marked=np.isin(nodes, graph.marked),
        explained=explained,
    )
    return points, array_LD


def principal_components(
    latent_LD: NDArray[np.float64],
) -> tuple[NDArray[np.float64], tuple[float, float]]:
    """Positions along the two directions of most variance, (L, 2), and their shares of it."""
    if len(latent_LD) == 0:
        return np.empty((0, 2)), (0.0, 0.0)
    # Rows and columns of zeros give fewer than two nodes or dimensions their missing axes.
    padded = np.pad(latent_LD - latent_LD.mean(0, keepdims=True), ((0, 2), (0, 2)))
    _, size, direction = np.linalg.svd(padded, full_matrices=False)
    first = direction[:2]
    first = first * np.sign(first[np.arange(2), np.abs(first).argmax(1)])[:, None]
    share = np.square(size[:2]) / max(float(np.square(size).sum()), np.finfo(np.float64).tiny)
    return padded[:-2] @ first.T, (float(share[0]), float(share[1]))
