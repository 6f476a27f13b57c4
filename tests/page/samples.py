"""Made-up facts of a run, for tests of drawing."""

from dataclasses import replace

import numpy as np

from gpn_scale.config import DataConfig, RunConfig
from gpn_scale.evaluation.conformal import ConformalSummary
from gpn_scale.evaluation.detection import UnknownDetection
from gpn_scale.evaluation.metrics import reliability
from gpn_scale.evaluation.report import Report
from gpn_scale.evaluation.scores import PAGE_SCORES
from gpn_scale.page.facts import (
    ContributorFacts,
    ExplainedNode,
    ExtremeNodes,
    KnownFacts,
    LatentPoints,
    PredictionFacts,
    RunFacts,
    ScoreCurve,
    StrangeNode,
    TemperatureFacts,
    TrainingCurves,
)
from gpn_scale.page.histograms import histogram_of


def explained_node(name="7", contributor="8", marks=()) -> ExplainedNode:
    return ExplainedNode(
        name=name,
        marks=marks,
        label=-1 if marks else 1,
        predicted=0,
        probability=0.4,
        evidence=1e-7,
        own_evidence=3e-9,
        contributors=(
            contributor_facts(contributor, share=0.5),
            contributor_facts(name, share=0.25, itself=True),
        ),
    )


def contributor_facts(name, share, itself=False) -> ContributorFacts:
    return ContributorFacts(
        name=name, itself=itself, adjacent=not itself, leading_class=1, weight=0.1, share=share
    )


def latent_points(count=30, rng_seed=0) -> LatentPoints:
    rng = np.random.default_rng(rng_seed)
    return LatentPoints(
        position=rng.normal(size=(count, 2)),
        label=np.arange(count) % 3,
        log_evidence=rng.normal(size=count),
        unknown=np.arange(count) % 7 == 0,
        explained_variance=(0.5, 0.25),
    )


def prediction_facts(class_name="class", node_name="7", mark="planted") -> PredictionFacts:
    rng = np.random.default_rng(0)
    probability, label = rng.dirichlet(np.ones(3), 50), rng.integers(0, 3, 50)
    groups = {"known test nodes": rng.normal(size=40), "unknown nodes": rng.normal(2, size=10)}
    curve = np.linspace(0.1, 1.0, 10)
    metrics = {"ood_nodes": 10, **{f"auroc_{score}": 0.75 for score in PAGE_SCORES}}
    intervals = {f"auroc_{score}": [0.65, 0.85] for score in PAGE_SCORES}
    node = explained_node(node_name, node_name, (mark,))
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
        extremes=ExtremeNodes(certain=(node,), uncertain=(node,), median_evidence=12.0),
        known=known_facts(rng, node_name, class_name),
        latent=latent_points(),
        neighbours=replace(latent_points(), explained_variance=None, method="t-SNE"),
    )


def known_facts(rng, node_name, class_name) -> KnownFacts:
    strange = StrangeNode(
        name=node_name,
        predicted=0,
        probability=0.6,
        p_known=0.01,
        p_parts=(0.02, 0.5),
        reason=f"torn between {class_name} and b",
    )
    groups = {"known test nodes": rng.uniform(size=40), "unknown nodes": rng.uniform(size=10) / 9}
    return KnownFacts(
        validation_nodes=30,
        notes=("There are 30 validation nodes.",),
        p_known=histogram_of(groups),
        distance=0.03,
        parts=("features", "opinion"),
        strangest=(strange,),
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
        graph={"nodes": 300, "edges": 900, "features": 8, "classes": 3, "train_nodes": 60},
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
