"""The facts of a run, from its files, its trained model, its graph and its prediction."""

from gpn_scale.data.graph import Graph
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.detection import detect_unknown, known_test_nodes
from gpn_scale.evaluation.metric_intervals import out_of_distribution_intervals
from gpn_scale.evaluation.metrics import reliability
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.evaluation.sample_sizes import SampleSizes
from gpn_scale.evaluation.scores import P_KNOWN, PAGE_SCORES
from gpn_scale.inference.evidence import EvidenceSummary
from gpn_scale.page.class_facts import class_facts
from gpn_scale.page.detection_curves import error_curves, unknown_curves
from gpn_scale.page.evidence_facts import dissonance_histogram, log_histogram
from gpn_scale.page.facts import PredictionFacts, RunFacts
from gpn_scale.page.histograms import histogram_of
from gpn_scale.page.known_facts import known_facts
from gpn_scale.page.node_facts import node_rows
from gpn_scale.page.run_record import RunRecord
from gpn_scale.page.trust_facts import conformal_facts, risk_curves, temperature_facts
from gpn_scale.ppr.store import PPRStore
from gpn_scale.train.run_directory import RunDirectory


def run_facts(
    record: RunRecord,
    classifier: GPNClassifier,
    graph: Graph,
    prediction: Prediction,
    store: PPRStore | None,
    evidence: EvidenceSummary | None = None,
) -> RunFacts:
    """Return the facts of a finished run.

    Args:
        record: The run's files.
        classifier: The trained model.
        graph: The graph, with the run's split.
        prediction: Prediction of all nodes.
        store: Rows of minibatch mode; None in exact mode, or if they are not available.
        evidence: Feature evidence of all nodes; computed here if it is not given.
    """
    assert graph.split is not None
    missing, facts = [], None
    if len(graph.split.test) + len(graph.marked):
        facts = prediction_facts(classifier, graph, prediction, store, evidence)
    else:
        missing.append("The graph has no test nodes and no unknown nodes to evaluate.")
    if record.config.mode == "minibatch" and store is None:
        missing.append(
            "The PPR store that training used was not found, so the missing mass of its rows is "
            "not shown. To add it, run gpn-report with --ppr STORE."
        )
    return RunFacts(
        config=record.config,
        training=record.training,
        report=record.report,
        prediction=facts,
        missing=tuple(missing),
    )


def unfinished_facts(record: RunRecord, directory: RunDirectory) -> RunFacts:
    """Return the facts of a run that has not finished."""
    missing = [
        f"Training has not finished: {directory.report.name} and {directory.model.name} are not "
        "complete yet. Run the same command with --resume to continue; it writes this page again."
    ]
    if len(record.training.epoch) == 0:
        missing.append(f"No epoch is recorded in {directory.metrics.name} yet.")
    return RunFacts(config=record.config, training=record.training, missing=tuple(missing))


def prediction_facts(
    classifier: GPNClassifier,
    graph: Graph,
    prediction: Prediction,
    store: PPRStore | None,
    evidence: EvidenceSummary | None = None,
) -> PredictionFacts:
    """Return the facts that need the trained model; arguments are those of `run_facts`."""
    assert graph.split is not None
    test, unknown = graph.split.test, graph.marked
    known = known_test_nodes(graph)
    sizes, scores = SampleSizes.of(prediction, graph), (*PAGE_SCORES, P_KNOWN.name)
    return PredictionFacts(
        class_names=_class_names(graph),
        known_nodes=len(known),
        unknown_nodes=len(unknown),
        left_out=sizes.left_out,
        detection=detect_unknown(prediction, graph, scores),
        detection_intervals=out_of_distribution_intervals(prediction, graph, scores),
        alpha_0=log_histogram(prediction.alpha_0, known, unknown),
        alpha_0_no_network=log_histogram(prediction.alpha_0_no_network, known, unknown),
        reliability=reliability(prediction.probabilities[test], graph.labels[test])
        if sizes.has_calibration
        else None,
        risk=risk_curves(prediction, graph),
        conformal=conformal_facts(prediction, graph),
        temperature=temperature_facts(prediction, graph),
        vacuity=log_histogram(prediction.vacuity, known, unknown),
        dissonance=dissonance_histogram(prediction, graph),
        missing_mass=None if store is None else histogram_of({"stored rows": store.missing_mass}),
        known=known_facts(prediction, graph, classifier.trained.calibration),
        classes=class_facts(prediction, graph),
        errors=error_curves(prediction, graph),
        unknown=unknown_curves(prediction, graph),
        nodes=node_rows(classifier, graph, prediction, store, evidence),
    )


def _class_names(graph: Graph) -> tuple[str, ...]:
    if graph.class_names is None:
        return tuple(f"class {label}" for label in range(graph.num_classes))
    return tuple(str(name) for name in graph.class_names[: graph.num_classes])
