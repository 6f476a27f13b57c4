"""`Report`: the results of a run, as JSON for programs and Markdown for people."""

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gpn_scale import __version__
from gpn_scale.config import RunConfig
from gpn_scale.data.graph import Graph
from gpn_scale.evaluation.known_calibration import P_VALUE_CONDITION, KnownCalibration
from gpn_scale.evaluation.metric_labels import metric_label
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.evaluation.prediction_metrics import (
    classification_metrics,
    out_of_distribution_metrics,
)
from gpn_scale.evaluation.scores import DETECTION_SCORES
from gpn_scale.files import write_json, write_text
from gpn_scale.memory import peak_rss_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Settings and results of a run; `report.json` has exactly these fields.

    >>> fields = {"dataset": "mine", "mode": "exact", "config": {}, "fingerprint": "", "ranks": {}}
    >>> graph = {"nodes": 3, "edges": 4, "features": 1, "classes": 2}
    >>> costs = {"seconds": {"train": 0.5}, "peak_rss_bytes": 1 << 20, "epochs": 2, "best_epoch": 1}
    >>> results = {"metrics": {"test": {"accuracy": 0.5}}, "ood": {}, "minibatch": {}}
    >>> Report(graph=graph, **fields, **costs, **results).to_markdown().splitlines()[0]
    '# mine, exact mode'
    """

    dataset: str
    mode: str
    config: dict[str, Any]
    fingerprint: str
    """Fingerprint of the configuration."""
    graph: dict[str, Any]
    """Size and fingerprint of the graph with its split."""
    seconds: dict[str, float]
    """Duration of each phase."""
    peak_rss_bytes: int
    epochs: int
    """Number of epochs trained, warm-up included."""
    best_epoch: int
    """Epoch whose weights were kept."""
    minibatch: dict[str, Any]
    """Rows, tail and batches of minibatch mode; {} in exact mode."""
    ranks: dict[str, Any]
    """Number of processes, their memory without mapped files, and time per step of training."""
    metrics: dict[str, dict[str, float]]
    """Accuracy, calibration and misclassification detection on `test` and `val` nodes."""
    ood: dict[str, Any]
    """Detection of unknown nodes; {} for a graph without marks."""
    parts: dict[str, dict[str, int]] = field(default_factory=dict)
    """Epochs of every part of a GPN+; {} for a GPN."""
    calibration: dict[str, Any] = field(default_factory=dict)
    """Temperature and number of validation nodes of a GPN+, and notes; {} for a GPN."""
    version: str = field(default=__version__)

    def write(self, json_path: Path, markdown_path: Path) -> None:
        """Write both files, each atomically; NaN becomes null in JSON."""
        write_json(json_path, _nan_to_none(asdict(self)))
        write_text(markdown_path, self.to_markdown())

    def to_markdown(self) -> str:
        """Return the report as Markdown."""
        graph = self.graph
        lines = [
            f"# {self.dataset}, {self.mode} mode",
            "",
            f"{graph['nodes']:,} nodes, {graph['edges']:,} edges, {graph['features']:,} features, "
            f"{graph['classes']} classes. Trained for {self.epochs} epochs in "
            f"{self.seconds['train']:.1f} s; the weights are those of epoch {self.best_epoch}.",
            "All metrics but the NLL are in percent.",
            "",
            "## Classification",
            "",
            *_table(["metric", *self.metrics], _metric_rows(self.metrics)),
        ]
        if self.ood:
            lines += ["", "## Detection of unknown nodes", ""]
            lines += [_detection_sentence(self.ood), ""]
            lines += _detection_tables(self.ood)
        if self.calibration:
            lines += ["", "## Calibration", "", *_calibration_lines(self.calibration)]
        if self.minibatch:
            lines += ["", "## Batches", "", _batch_sentence(self.minibatch)]
        lines += ["", "## Cost", ""]
        lines += [f"- {name}: {seconds:.2f} s" for name, seconds in self.seconds.items()]
        lines += [f"- peak memory: {self.peak_rss_bytes / 2**20:,.0f} MiB", ""]
        return "\n".join(lines)


def make_report(
    prediction: Prediction,
    graph: Graph,
    config: RunConfig,
    *,
    seconds: dict[str, float],
    epochs: int,
    best_epoch: int,
    minibatch: dict[str, Any] | None = None,
    ranks: dict[str, Any] | None = None,
    parts: dict[str, dict[str, int]] | None = None,
    calibration: KnownCalibration | None = None,
) -> Report:
    """Return the report of `prediction` on the graph's validation, test and unknown nodes.

    >>> import numpy as np
    >>> from gpn_scale.data.building import build_graph
    >>> from gpn_scale.data.graph import Split
    >>> split = Split(train=[0, 1], val=[2], test=[3])
    >>> graph = build_graph([0, 2], [1, 3], labels=[0, 1, 0, 1], split=split)
    >>> probabilities, alpha_0 = np.array([[0.9, 0.1]] * 4), np.array([8.0] * 4)
    >>> prediction = Prediction(
    ...     probabilities=probabilities,
    ...     probabilities_no_network=probabilities,
    ...     alpha_0=alpha_0,
    ...     alpha_0_no_network=alpha_0,
    ... )
    >>> report = make_report(
    ...     prediction, graph, RunConfig(), seconds={"train": 0.5}, epochs=2, best_epoch=1
    ... )
    >>> report.metrics["val"]["accuracy"], report.metrics["test"]["accuracy"]
    (1.0, 0.0)

    Args:
        prediction: Prediction of all nodes.
        graph: The graph, with its split.
        config: Configuration of the run.
        seconds: Duration of each phase.
        epochs: Number of epochs trained, warm-up included.
        best_epoch: Epoch whose weights were kept.
        minibatch: Rows, tail and batches of minibatch mode.
        ranks: Number of processes, their memory and their time.
        parts: Epochs of every part of a GPN+.
        calibration: Calibration of a GPN+.
    """
    assert graph.split is not None
    return Report(
        dataset=config.data.dataset,
        mode=config.mode,
        config=config.to_dict(),
        fingerprint=config.fingerprint(),
        graph={
            "nodes": graph.num_nodes,
            "edges": graph.num_edges,
            "features": graph.num_features,
            "classes": graph.num_classes,
            "train_nodes": len(graph.split.train),
            "fingerprint": graph.fingerprint(),
        },
        seconds=seconds,
        peak_rss_bytes=peak_rss_bytes(),
        epochs=epochs,
        best_epoch=best_epoch,
        minibatch=minibatch or {},
        ranks=ranks or {},
        metrics={
            subset: classification_metrics(prediction, graph, getattr(graph.split, subset))
            for subset in ("test", "val")
        },
        ood=out_of_distribution_metrics(prediction, graph),
        parts=parts or {},
        calibration={} if calibration is None else _calibration_facts(calibration, graph),
    )


def _calibration_facts(calibration: KnownCalibration, graph: Graph) -> dict[str, Any]:
    assert graph.split is not None
    classes = np.unique(graph.labels[graph.split.val])
    notes = list(calibration.notes)
    if len(classes) < graph.num_classes:
        notes.append(
            f"{graph.num_classes - len(classes)} of {graph.num_classes} classes have no validation "
            "node, so that their nodes may look less known than they are."
        )
    return {
        "temperature": calibration.temperature,
        "validation_nodes": calibration.num_nodes,
        "parts": list(calibration.parts),
        "notes": notes,
    }


def _batch_sentence(facts: dict[str, Any]) -> str:
    steps = facts["steps_per_epoch"]
    return (
        f"Rows keep up to {facts['k']} entries and cut a mass of "
        f"{facts['mean_missing_mass']:.2f} on average; the tail is {facts['tail']!r}. "
        f"An epoch has {steps:,} step{'s' * (steps > 1)} of {facts['batch_size']:,} roots and "
        f"encodes {facts['encodings_per_epoch']:,} nodes, {facts['repeated_encodings']:.0%} of "
        "which were encoded before in the same epoch."
    )


def _detection_sentence(ood: dict[str, Any]) -> str:
    return (
        f"Scores should be higher for unknown nodes than for the {ood['id_nodes']:,} known test "
        f"nodes, of which {_percent(ood['id_accuracy'])} percent are classified correctly. An "
        "AUC-ROC of 50 is chance, 100 separates the two completely."
    )


def _metric_rows(metrics: dict[str, dict[str, float]]) -> list[list[str]]:
    names = next(iter(metrics.values()))
    return [
        [metric_label(name), *(_metric(name, subset[name]) for subset in metrics.values())]
        for name in names
    ]


def _metric(name: str, value: float) -> str:
    return f"{value:.4f}" if name == "nll" and not math.isnan(value) else _percent(value)


def _detection_tables(ood: dict[str, Any]) -> list[str]:
    """Return a table for each metric: scores in rows, kinds of unknown nodes in columns."""
    groups = {"all": ood, **ood["marks"]} if len(ood["marks"]) > 1 else ood["marks"]
    lines: list[str] = []
    for kind, title in (("auroc", "AUC-ROC"), ("aupr", "AUC-PR")):
        counted = [
            f"{name.replace('_', ' ')} ({values['ood_nodes']:,})" for name, values in groups.items()
        ]
        rows = [
            [score.title, *(_percent(values[f"{kind}_{name}"]) for values in groups.values())]
            for name, score in DETECTION_SCORES.items()
            if not math.isnan(ood[f"{kind}_{name}"])
        ]
        lines += [*([""] if lines else []), *_table([title, *counted], rows)]
    return lines


def _calibration_lines(facts: dict[str, Any]) -> list[str]:
    """Return what the p-values say and under which condition, and the notes."""
    lines = [
        f"Temperature and p-values come from {facts['validation_nodes']:,} validation nodes; the "
        f"temperature is {facts['temperature']:.3f}. {P_VALUE_CONDITION}"
    ]
    return [*lines, *(f"- {note}" for note in facts["notes"])]


def _table(header: list[str], rows: list[list[str]]) -> list[str]:
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def _percent(value: float) -> str:
    return "n.a." if math.isnan(value) else f"{100 * value:.2f}"


def _nan_to_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _nan_to_none(content) for key, content in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value
