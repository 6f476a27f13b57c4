"""`Report`: a run in numbers, as JSON for scripts and Markdown for people; and predictions."""

import math
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from gpn_scale import __version__
from gpn_scale.config import RunConfig
from gpn_scale.data.graph import Graph
from gpn_scale.evaluation.evaluate import classification_metrics, out_of_distribution_metrics
from gpn_scale.evaluation.prediction import SCORES, Prediction, row_blocks
from gpn_scale.files import replacing, write_json, write_text
from gpn_scale.memory import peak_rss_bytes

_PARTS = ["train", "val", "test"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a run was and what came out; `report.json` has exactly these fields."""

    dataset: str
    mode: str
    config: dict[str, Any]
    fingerprint: str
    """Of the configuration."""
    graph: dict[str, Any]
    """Size and fingerprint of the graph with its split."""
    seconds: dict[str, float]
    peak_rss_bytes: int
    epochs: int
    """Trained, warm-up included."""
    best_epoch: int
    """The epoch whose weights were kept."""
    metrics: dict[str, dict[str, float]]
    """Per part of the split: accuracy, calibration, misclassification detection."""
    ood: dict[str, Any]
    """Detection of marked nodes (left-out classes, planted trouble); {} where there are none."""
    version: str = field(default=__version__)

    def write(self, json_path: Path, markdown_path: Path) -> None:
        """Both files, each atomically."""
        write_json(json_path, _nan_to_none(asdict(self)))
        write_text(markdown_path, self.to_markdown())

    def to_markdown(self) -> str:
        """The report for people."""
        graph = self.graph
        lines = [
            f"# {self.dataset}, {self.mode} mode",
            "",
            f"{graph['nodes']:,} nodes, {graph['edges']:,} edges, {graph['features']:,} features, "
            f"{graph['classes']} classes; trained {self.epochs} epochs in "
            f"{self.seconds['train']:.1f} s, weights of epoch {self.best_epoch}.",
            "",
            "## Classification",
            "",
            *_table(["metric", *self.metrics], _metric_rows(self.metrics)),
        ]
        if self.ood:
            lines += ["", "## Detection of unknown nodes", ""]
            lines += [f"Accuracy on the known test nodes: {_percent(self.ood['id_accuracy'])}.", ""]
            lines += _table(["nodes", "count", *_detection_columns()], _detection_rows(self.ood))
        lines += ["", "## Cost", ""]
        lines += [f"- {name}: {seconds:.2f} s" for name, seconds in self.seconds.items()]
        lines += [f"- peak memory: {self.peak_rss_bytes / 2**20:,.0f} MiB"]
        lines += ["", "Values are in percent. Scores: see docs/architecture.md.", ""]
        return "\n".join(lines)


def make_report(
    prediction: Prediction,
    graph: Graph,
    config: RunConfig,
    *,
    seconds: dict[str, float],
    epochs: int,
    best_epoch: int,
) -> Report:
    """Evaluates `prediction` on the graph's validation and test nodes and marks."""
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
        metrics={
            part: classification_metrics(prediction, graph, getattr(graph.split, part))
            for part in ("test", "val")
        },
        ood=out_of_distribution_metrics(prediction, graph),
    )


def write_predictions(path: Path, prediction: Prediction, graph: Graph) -> None:
    """One row per node: class, probabilities, alpha_0, scores, and what is known of the node.

    Rows go in groups, so that nothing of size N x C is ever copied whole.
    """
    known = {"split": _split_code(graph)}
    known |= {f"mark_{name}": _members(ids, graph) for name, ids in graph.marks.items()}
    with replacing(path) as temporary, ExitStack() as closing:
        writer = None
        for rows in row_blocks(graph.num_nodes):
            table = _prediction_rows(prediction.rows(rows), graph, rows, known)
            if writer is None:
                opened = pa.parquet.ParquetWriter(temporary, table.schema)
                writer = closing.enter_context(opened)
            writer.write_table(table)


def _prediction_rows(
    prediction: Prediction, graph: Graph, rows: slice, known: dict[str, np.ndarray]
) -> Any:
    """The table of some nodes; `prediction` is theirs alone, `known` has facts of all nodes."""
    columns: dict[str, Any] = {"node": np.arange(*rows.indices(graph.num_nodes))}
    if graph.node_names is not None:
        columns["node_name"] = pa.array(graph.node_names[rows].tolist(), pa.string())
    columns["predicted_class"] = prediction.predicted_class
    if graph.class_names is not None:
        names = pa.array(graph.class_names.tolist(), pa.string())
        columns["predicted_class_name"] = names.take(pa.array(prediction.predicted_class))
    columns |= {
        "alpha_0": prediction.alpha_0,
        "alpha_0_no_network": prediction.alpha_0_no_network,
        "aleatoric": prediction.aleatoric,
        "aleatoric_entropy": prediction.aleatoric_entropy,
        "aleatoric_no_network": prediction.aleatoric_no_network,
        "epistemic": prediction.epistemic,
        "epistemic_no_network": prediction.epistemic_no_network,
        "label": pa.array(graph.labels[rows], mask=graph.labels[rows] < 0),
        "split": _split_column(known["split"][rows]),
    }
    columns |= {name: member[rows] for name, member in known.items() if name != "split"}
    for label in range(prediction.probabilities.shape[1]):
        columns[f"probability_{label}"] = prediction.probabilities[:, label]
    return pa.table(columns)


def _members(ids: Any, graph: Graph) -> np.ndarray:
    member = np.zeros(graph.num_nodes, bool)
    member[ids] = True
    return member


def _split_code(graph: Graph) -> np.ndarray:
    code = np.full(graph.num_nodes, -1, np.int8)
    for position, part in enumerate(_PARTS if graph.split is not None else []):
        code[getattr(graph.split, part)] = position
    return code


def _split_column(code: np.ndarray) -> Any:
    # Wider than it must be: the column's type in files that others read.
    code = code.astype(np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(code, mask=code < 0), pa.array(_PARTS))


def _metric_rows(metrics: dict[str, dict[str, float]]) -> list[list[str]]:
    names = next(iter(metrics.values()))
    return [
        [name.replace("_", " "), *(_percent(part[name]) for part in metrics.values())]
        for name in names
    ]


def _detection_columns() -> list[str]:
    return [f"{kind} {s.replace('_', ' ')}" for kind in ("AUC-ROC", "AUC-PR") for s in SCORES]


def _detection_rows(ood: dict[str, Any]) -> list[list[str]]:
    groups = {"all": ood, **ood["marks"]} if len(ood["marks"]) > 1 else ood["marks"]
    return [
        [name.replace("_", " "), f"{values['ood_nodes']:,}"]
        + [_percent(values[f"{kind}_{score}"]) for kind in ("auroc", "aupr") for score in SCORES]
        for name, values in groups.items()
    ]


def _table(header: list[str], rows: list[list[str]]) -> list[str]:
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def _percent(value: float) -> str:
    return "n.a." if math.isnan(value) else f"{100 * value:.2f}"


def _nan_to_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _nan_to_none(content) for key, content in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value
