"""`Report`: the results of a run, as JSON for programs and Markdown for people."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gpn_scale import __version__
from gpn_scale.checked_json import write_checked_json
from gpn_scale.config import RunConfig
from gpn_scale.data.class_counts import class_counts
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.data.summary import GraphSummary
from gpn_scale.evaluation.few_labels import label_warnings
from gpn_scale.evaluation.known_calibration import P_VALUE_CONDITION, KnownCalibration
from gpn_scale.evaluation.metric_intervals import (
    classification_intervals,
    out_of_distribution_intervals,
)
from gpn_scale.evaluation.metric_labels import metric_label
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.evaluation.prediction_metrics import (
    classification_metrics,
    is_largest_class,
    out_of_distribution_metrics,
)
from gpn_scale.evaluation.quality_change import QualityChange
from gpn_scale.evaluation.sample_sizes import LEAST_FITTED_NODES, SampleSizes
from gpn_scale.evaluation.scores import DETECTION_SCORES
from gpn_scale.files import write_text
from gpn_scale.memory import peak_rss_bytes
from gpn_scale.table_text import markdown_row, markdown_text


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
    """Duration of each phase in seconds; has no `train` if the model was loaded from a file."""
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
    intervals: dict[str, dict[str, Any]] = field(default_factory=dict)
    """95 % intervals [lower, upper] of the metrics in `test`, `val` and `ood`.

    A metric without an interval is based on too few nodes and is not shown (`sample_sizes`).
    """
    warnings: list[str] = field(default_factory=list)
    """Warnings about few labelled nodes, one sentence each; [] if there are enough."""
    left_out: list[str] = field(default_factory=list)
    """Figures that are not shown because of too few nodes, one sentence each."""
    files: dict[str, str] = field(default_factory=dict)
    """Checksums of other files of the run, by name, to detect damage."""
    warm_start: dict[str, Any] = field(default_factory=dict)
    """Comparison with the run whose weights training started from; {} without one."""
    version: str = field(default=__version__)

    def write(self, json_path: Path, markdown_path: Path) -> None:
        """Write both files atomically; in JSON, NaN becomes null, and a checksum is added."""
        write_checked_json(json_path, _nan_to_none(asdict(self)))
        write_text(markdown_path, self.to_markdown())

    @property
    def edges(self) -> int:
        """Number of edges to show; undirected edges count once if the graph has a summary."""
        return int(self.graph.get("summary", self.graph)["edges"])

    def to_markdown(self) -> str:
        """Return the report as Markdown."""
        graph = self.graph
        lines = [
            f"# {markdown_text(self.dataset)}, {self.mode} mode",
            "",
            f"{graph['nodes']:,} nodes, {self.edges:,} edges, {graph['features']:,} features, "
            f"{graph['classes']} classes. {self._training_sentence()}",
            "All metrics except the NLL are in percent, with 95 % intervals in brackets. Metrics "
            "that are undefined, or based on too few nodes, are n.a.",
            "",
            *(f"**Warning:** {markdown_text(sentence)}\n" for sentence in self.warnings),
            "## Classification",
            "",
            *_table(["metric", *self.metrics], _metric_rows(self.metrics, self.intervals)),
        ]
        if self.ood:
            lines += ["", "## Detection of unknown nodes", ""]
            intervals = self.intervals.get("ood", {})
            lines += [_detection_sentence(self.ood, intervals), ""]
            lines += _detection_tables(self.ood, intervals)
        if self.warm_start:
            change = QualityChange(**self.warm_start)
            lines += ["", "## Compared with the run that training started from", ""]
            lines += [markdown_text(change.sentence), "", *_change_table(change)]
        if self.left_out:
            lines += [
                "",
                "## Too few nodes",
                "",
                *(f"- {markdown_text(each)}" for each in self.left_out),
            ]
        if self.calibration:
            lines += ["", "## Calibration", "", *_calibration_lines(self.calibration)]
        if self.minibatch:
            lines += ["", "## Batches", "", _batch_sentence(self.minibatch)]
        lines += ["", "## Cost", ""]
        lines += [f"- {name}: {seconds:.2f} s" for name, seconds in self.seconds.items()]
        lines += [f"- peak memory: {self.peak_rss_bytes / 2**20:,.0f} MiB", ""]
        return "\n".join(lines)

    def _training_sentence(self) -> str:
        if "train" not in self.seconds:
            return "The model was trained earlier and loaded from a file."
        return (
            f"Trained for {self.epochs} epochs in {self.seconds['train']:.1f} s; the weights are "
            f"those of epoch {self.best_epoch}."
        )


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
    summary: GraphSummary | None = None,
    warm_start: QualityChange | None = None,
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
        seconds: Duration of each phase in seconds.
        epochs: Number of epochs trained, warm-up included.
        best_epoch: Epoch whose weights were kept.
        minibatch: Rows, tail and batches of minibatch mode.
        ranks: Number of processes, their memory and their time.
        parts: Epochs of every part of a GPN+.
        calibration: Calibration of a GPN+.
        summary: Summary of the graph, which becomes part of the report.
        warm_start: Comparison with the run whose weights training started from.
    """
    assert graph.split is not None
    subsets = {"test": graph.split.test, "val": graph.split.val}
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
            "labels": [count.to_dict() for count in class_counts(graph)],
            **({} if summary is None else {"summary": summary.to_dict()}),
        },
        seconds=seconds,
        peak_rss_bytes=peak_rss_bytes(),
        epochs=epochs,
        best_epoch=best_epoch,
        minibatch=minibatch or {},
        ranks=ranks or {},
        metrics={name: _subset_metrics(prediction, graph, ids) for name, ids in subsets.items()},
        ood=out_of_distribution_metrics(prediction, graph),
        parts=parts or {},
        calibration={} if calibration is None else _calibration_facts(calibration, graph),
        intervals={
            **{
                name: classification_intervals(prediction, graph, ids)
                for name, ids in subsets.items()
            },
            "ood": out_of_distribution_intervals(prediction, graph),
        },
        warnings=[*label_warnings(graph), *_temperature_warnings(calibration)],
        left_out=list(SampleSizes.of(prediction, graph).left_out),
        warm_start={} if warm_start is None else warm_start.to_dict(),
    )


def _subset_metrics(prediction: Prediction, graph: Graph, nodes: NodeIds) -> dict[str, float]:
    """Return the metrics of a subset, with the accuracy of the largest class beside accuracy."""
    metrics = classification_metrics(prediction, graph, nodes)
    largest = float(is_largest_class(graph, nodes).mean()) if len(nodes) else math.nan
    return {"accuracy": metrics["accuracy"], "accuracy_largest_class": largest} | metrics


def _temperature_warnings(calibration: KnownCalibration | None) -> list[str]:
    if calibration is None or calibration.num_nodes >= LEAST_FITTED_NODES:
        return []
    return [
        "Expect probabilities that are far too confident or not confident enough: their "
        f"temperature, {calibration.tempering.temperature:.2g}, was fitted to "
        f"{calibration.num_nodes} validation nodes, fewer than {LEAST_FITTED_NODES}."
    ]


def _calibration_facts(calibration: KnownCalibration, graph: Graph) -> dict[str, Any]:
    assert graph.split is not None
    classes = np.unique(graph.labels[graph.split.val])
    notes = list(calibration.notes)
    if len(classes) < graph.num_classes:
        notes.append(
            f"{graph.num_classes - len(classes)} of {graph.num_classes} classes have no validation "
            "node, so their nodes may look less known than they are."
        )
    return {
        "temperature": calibration.tempering.temperature,
        "temperature_slope": calibration.tempering.slope,
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


def _detection_sentence(ood: dict[str, Any], intervals: Mapping[str, Any]) -> str:
    accuracy = _with_interval(ood["id_accuracy"], intervals.get("id_accuracy"))
    return (
        f"Scores should be higher for unknown nodes than for the {ood['id_nodes']:,} known test "
        f"nodes, of which {accuracy} percent are classified correctly. An "
        "AUC-ROC of 50 is chance, 100 separates the two completely."
    )


def _metric_rows(
    metrics: dict[str, dict[str, float]], intervals: dict[str, dict[str, Any]]
) -> list[list[str]]:
    names = next(iter(metrics.values()))
    return [
        [
            metric_label(name),
            *(
                _metric(name, values[name], intervals.get(subset, {}))
                for subset, values in metrics.items()
            ),
        ]
        for name in names
    ]


def _metric(name: str, value: float, intervals: Mapping[str, Any]) -> str:
    # Two metrics have no interval; they need as many nodes as a metric that has one.
    if name == "nll":
        return f"{value:.4f}" if "brier" in intervals else "n.a."
    if name == "mce":
        return _percent(value) if "ece" in intervals else "n.a."
    return _with_interval(value, intervals.get(name))


def _with_interval(value: float, interval: Sequence[float] | None) -> str:
    if interval is None or math.isnan(value):
        return "n.a."
    return f"{_percent(value)} ({100 * interval[0]:.1f} to {100 * interval[1]:.1f})"


def _detection_tables(ood: dict[str, Any], intervals: Mapping[str, Any]) -> list[str]:
    """Return a table for each metric: scores in rows, kinds of unknown nodes in columns."""
    by_mark = intervals.get("marks", {})
    groups = [(mark, values, by_mark.get(mark, {})) for mark, values in ood["marks"].items()]
    if len(groups) > 1:
        groups = [("all", ood, intervals), *groups]
    lines: list[str] = []
    for kind, title in (("auroc", "AUC-ROC"), ("aupr", "AUC-PR")):
        counted = [
            f"{name.replace('_', ' ')} ({values['ood_nodes']:,})" for name, values, _ in groups
        ]
        rows = [
            [
                score.title,
                *(
                    _with_interval(values[f"{kind}_{name}"], ends.get(f"{kind}_{name}"))
                    for _, values, ends in groups
                ),
            ]
            for name, score in DETECTION_SCORES.items()
            if not math.isnan(ood[f"{kind}_{name}"])
        ]
        lines += [*([""] if lines else []), *_table([title, *counted], rows)]
    return lines


def _calibration_lines(facts: dict[str, Any]) -> list[str]:
    """Return lines on the p-values, their conditions, and the notes."""
    lines = [
        f"Temperature and p-values come from {facts['validation_nodes']:,} validation nodes; the "
        f"temperature is {facts['temperature']:.3f}. {P_VALUE_CONDITION}"
    ]
    return [*lines, *(f"- {markdown_text(note)}" for note in facts["notes"])]


def _change_table(change: QualityChange) -> list[str]:
    """Return the changes in quality as a table; [] if nothing is compared."""
    rows = [
        [subset, metric_label(name), _percent(before), _percent(after)]
        for subset, name, before, after in change.rows()
    ]
    return _table(["nodes", "metric", "before", "after"], rows) if rows else []


def _table(header: list[str], rows: list[list[str]]) -> list[str]:
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return [markdown_row(cells) for cells in lines]


def _percent(value: float) -> str:
    return "n.a." if math.isnan(value) else f"{100 * value:.2f}"


def _nan_to_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _nan_to_none(content) for key, content in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value
