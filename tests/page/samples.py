"""Made-up facts of a run, for tests of drawing."""

import numpy as np

from gpn_scale.config import DataConfig, RunConfig
from gpn_scale.evaluation.conformal import ConformalSummary
from gpn_scale.evaluation.detection import UnknownDetection
from gpn_scale.evaluation.metrics import reliability
from gpn_scale.evaluation.report import Report
from gpn_scale.evaluation.scores import PAGE_SCORES
from gpn_scale.page.class_facts import ClassFacts
from gpn_scale.page.detection_curves import DetectionCurve
from gpn_scale.page.facts import (
    KnownFacts,
    PredictionFacts,
    RunFacts,
    ScoreCurve,
    TemperatureFacts,
    TrainingCurves,
)
from gpn_scale.page.histograms import histogram_of
from gpn_scale.page.node_rows import ContributorLists, IndexLists, LatentMap, NodeRows


def index_lists(lists) -> IndexLists:
    start = np.cumsum([0, *(len(each) for each in lists)])
    return IndexLists(start=start, index=np.array([i for each in lists for i in each], np.int64))


def node_rows(count=30, name="7", mark="planted", class_name="class", rng_seed=0) -> NodeRows:
    """Rows of which the first is a neighbour and a contributor of all others."""
    rng = np.random.default_rng(rng_seed)
    lists = index_lists([[0] if row else [] for row in range(count)])
    places = {"position": rng.normal(size=(count, 2))}
    return NodeRows(
        total=count,
        choice=f"All {count} nodes are listed.",
        node=np.arange(count),
        names=tuple([name, *(f"n{row}" for row in range(1, count))][:count]),
        leading_class=np.ones(count, np.int64),
        predicted=np.arange(count) % 3,
        probability=rng.uniform(0.4, 1.0, count),
        label=np.arange(count) % 4 - 1,
        split=np.arange(count) % 4 - 1,
        mark=(np.arange(count) % 7 == 0).astype(np.int64),
        marks=("", mark),
        evidence=rng.normal(size=count),
        own_evidence=rng.normal(size=count),
        median_evidence=12.0,
        p_known=np.linspace(0.0, 1.0, count),
        p_parts={"features": rng.uniform(size=count), "opinion": rng.uniform(size=count)},
        reason=np.arange(count) % 3,
        reasons=("", "foreign features", f"torn between {class_name} and b"),
        degree=np.arange(count),
        neighbours=lists,
        contributors=ContributorLists(
            lists=lists,
            share=np.full(len(lists.index), 0.5),
            weight=np.full(len(lists.index), 0.1),
            adjacent=np.ones(len(lists.index), bool),
            is_bound=np.arange(count) % 2 == 0,
            source="Weights are made up.",
        ),
        components=LatentMap(
            method="principal components", explained_variance=(0.5, 0.25), **places
        ),
        near=LatentMap(method="t-SNE", **places),
    )


def detection_curves() -> tuple[DetectionCurve, ...]:
    curve = np.linspace(0.0, 1.0, 10)
    values = {"false_alarms": curve**2, "recall": curve, "precision": 1 - curve / 2}
    return tuple(
        DetectionCurve(score=score, auroc=0.75, aupr=0.5, **values) for score in PAGE_SCORES
    )


def prediction_facts(class_name="class", node_name="7", mark="planted") -> PredictionFacts:
    rng = np.random.default_rng(0)
    probability, label = rng.dirichlet(np.ones(3), 50), rng.integers(0, 3, 50)
    groups = {"known test nodes": rng.normal(size=40), "unknown nodes": rng.normal(2, size=10)}
    curve = np.linspace(0.1, 1.0, 10)
    metrics = {"ood_nodes": 10, **{f"auroc_{score}": 0.75 for score in PAGE_SCORES}}
    intervals = {f"auroc_{score}": [0.65, 0.85] for score in PAGE_SCORES}
    return PredictionFacts(
        class_names=(class_name, "b", "c"),
        known_nodes=40,
        unknown_nodes=10,
        left_out=(),
        detection=UnknownDetection(
            known_nodes=40, together=metrics, marks={mark: metrics, "other": metrics}
        ),
        detection_intervals={**intervals, "marks": {mark: intervals, "other": {}}},
        alpha_0=histogram_of(groups),
        alpha_0_no_network=histogram_of(groups),
        reliability=reliability(probability, label),
        risk=tuple(
            ScoreCurve(score=score, coverage=curve, risk=curve**2, area=0.25)
            for score in PAGE_SCORES
        ),
        conformal=ConformalSummary(
            miss=0.1, calibration_nodes=25, measured_nodes=25, coverage=0.92, mean_size=2.1
        ),
        temperature=TemperatureFacts(
            fitted=1.5, nodes=20, ece=0.04, nll=0.5, log_temperature=curve - 0.5, eces=curve**2
        ),
        vacuity=histogram_of({name: np.abs(values) for name, values in groups.items()}),
        dissonance=histogram_of({"correct": rng.uniform(size=30), "wrong": rng.uniform(size=20)}),
        missing_mass=histogram_of({"stored rows": rng.uniform(size=20)}),
        known=known_facts(rng),
        classes=ClassFacts(
            confusion=np.array([[5, 1, 0], [0, 4, 0], [2, 0, 0]]),
            train=np.array([2, 2, 1]),
            val=np.array([1, 1, 0]),
            predicted=np.array([20, 10, 0]),
        ),
        errors=detection_curves(),
        unknown=detection_curves(),
        nodes=node_rows(name=node_name, mark=mark, class_name=class_name),
    )


def known_facts(rng) -> KnownFacts:
    groups = {"known test nodes": rng.uniform(size=40), "unknown nodes": rng.uniform(size=10) / 9}
    return KnownFacts(
        validation_nodes=30,
        notes=("There are 30 validation nodes.",),
        p_known=histogram_of(groups),
        distance=0.03,
    )


def training_curves(count=12) -> TrainingCurves:
    epoch = np.arange(1.0, count + 1)
    return TrainingCurves(
        epoch=epoch,
        loss=100 / epoch,
        val_cross_entropy=2 / epoch,
        val_accuracy=1 - 0.9 / epoch,
        best_epoch=count,
    )


def run_facts(dataset="sample", **names) -> RunFacts:
    config = RunConfig(model="GPN", data=DataConfig(dataset=dataset))
    metrics = {"accuracy": 0.8, "accuracy_largest_class": 0.4, "ece": 0.05, "brier": 0.2}
    metrics |= {"nll": 0.6}
    intervals = {"accuracy": [0.7, 0.875], "ece": [0.0, 0.1], "brier": [0.15, 0.25]}
    report = Report(
        dataset=dataset,
        mode="exact",
        config=config.to_dict(),
        fingerprint=config.fingerprint(),
        graph={"nodes": 300, "edges": 900, "features": 8, "classes": 3, "train_nodes": 60}
        | {"fingerprint": "f00d"},
        seconds={"precompute": 0.0, "train": 1.5, "inference": 0.2},
        peak_rss_bytes=2**28,
        epochs=12,
        best_epoch=12,
        minibatch={},
        ranks={"count": 1, "seconds": {"forward": 0.5}},
        metrics={"test": metrics, "val": metrics},
        ood={},
        intervals={"test": intervals, "val": intervals, "ood": {}},
    )
    return RunFacts(
        config=config,
        training=training_curves(),
        report=report,
        prediction=prediction_facts(**names),
    )
