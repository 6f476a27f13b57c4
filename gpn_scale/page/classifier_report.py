"""The report of a classifier on a graph: the files that a training run writes, without the run."""

import time
import warnings
from dataclasses import asdict, replace
from pathlib import Path

from gpn_scale.config import RunConfig
from gpn_scale.data.conversion import GraphLike
from gpn_scale.data.graph import Graph
from gpn_scale.errors import GraphError, MissingExtraError, RunError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.evaluation.report import Report, make_report
from gpn_scale.extras import check_extra
from gpn_scale.files import make_folder
from gpn_scale.page.facts import RunFacts
from gpn_scale.page.run_facts import run_facts
from gpn_scale.page.run_record import RunRecord, training_curves
from gpn_scale.train.run_directory import RunDirectory


def write_report(
    classifier: GPNClassifier, graph: GraphLike, path: Path, store: Path | str | None = None
) -> Report:
    """Predict the graph and write report and page; see `GPNClassifier.report`."""
    aligned = classifier.aligned(graph).graph
    if aligned.split is None:
        raise GraphError(
            f"graph {aligned.name!r} has no split, expected one whose test nodes are evaluated: "
            "call `stratified_split` first",
            arguments=("graph",),
        )
    opened = None if store is None else classifier.open_store(store, aligned)
    began = time.monotonic()
    prediction, evidence = classifier.predict_with_evidence(aligned)
    report = _report(classifier, aligned, prediction, time.monotonic() - began)
    curves = training_curves([asdict(each) for each in classifier.history_.get("features", [])])
    record = RunRecord(config=_named(classifier, aligned), training=curves, report=report)
    facts = run_facts(record, classifier, aligned, prediction, opened, evidence)
    directory = RunDirectory(path)
    try:
        make_folder(path)
        report.write(directory.report, directory.report_markdown)
        _write_page(directory, facts)
    except OSError as error:
        raise RunError(
            f"{path} cannot be written ({error.strerror}): choose another folder",
            arguments=("path",),
        ) from error
    return report


def _write_page(directory: RunDirectory, facts: RunFacts) -> None:
    """Write the page and its charts; without the packages for charts, warn."""
    try:
        check_extra("charts", "a page")
    except MissingExtraError as error:
        message = f"{directory.page} is not written, since {error}"
        warnings.warn(message, RuntimeWarning, stacklevel=4)
        return
    from gpn_scale.page.run_page import write_page

    write_page(directory, facts)


def _report(
    classifier: GPNClassifier, graph: Graph, prediction: Prediction, inference: float
) -> Report:
    seconds = classifier.training_seconds
    parts = {
        part: {"epochs": records[-1].epoch, "best_epoch": records[-1].best_epoch}
        for part, records in classifier.history_.items()
        if records
    }
    first = parts.get("features", {"epochs": 0, "best_epoch": 0})
    phases = {"train": sum(seconds.values())} if seconds else {}
    return make_report(
        prediction,
        graph,
        _named(classifier, graph),
        seconds={**phases, "inference": inference},
        epochs=first["epochs"],
        best_epoch=first["best_epoch"],
        parts=parts if len(parts) > 1 else None,
        calibration=classifier.trained.calibration,
    )


def _named(classifier: GPNClassifier, graph: Graph) -> RunConfig:
    """Return the configuration with the name of the graph that is reported on."""
    config = classifier.config
    return replace(config, data=replace(config.data, dataset=graph.name))
