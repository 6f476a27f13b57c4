"""`compare`: compares predictions B with predictions A, and writes the results to files."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpn_scale.data.graph import Graph
from gpn_scale.drift.classes import ClassesDrift, class_drifts
from gpn_scale.drift.columns import ColumnsDrift, check_graph, column_drifts
from gpn_scale.drift.common_parts import with_common_parts
from gpn_scale.drift.nodes import NodesDrift, node_drifts
from gpn_scale.drift.parts import PartDrift, part_drifts
from gpn_scale.drift.reference import ComparedNodes
from gpn_scale.drift.scored_table import ScoredTable
from gpn_scale.drift.two_samples import CONDITION
from gpn_scale.drift.verdict import THRESHOLDS, advice, most_moved_part, verdict
from gpn_scale.evaluation.table_writers import table_writer
from gpn_scale.files import write_json

DRIFT_PAGE, DRIFT_JSON, DRIFT_CSV = "drift.html", "drift.json", "drift.csv"
"""Names of the files: the page, all figures, and the nodes that moved."""
NO_GRAPHS = "Columns are not compared: this needs the graphs of both A and B."
"""Reason why columns are left out if a graph is missing, unless a more specific one is known."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drift:
    """Movements of B against A, as computed by `compare`.

    >>> import pyarrow as pa
    >>> columns = {"node": range(30), "predicted_class": [0] * 30, "aleatoric": [-0.9] * 30}
    >>> table = ScoredTable.of(pa.table(columns))
    >>> compare(table, table).to_dict()["nodes"]["in_both"]
    30
    """

    a: str
    """Name of A."""
    b: str
    """Name of B."""
    verdict: str
    """What has moved, in one sentence."""
    advice: tuple[str, ...]
    """What to do, one sentence each."""
    reference: tuple[str, ...]
    """What is compared, one sentence each."""
    nodes_a: int
    """Number of compared nodes of A."""
    nodes_b: int
    """Number of compared nodes of B."""
    parts: tuple[PartDrift, ...]
    classes: ClassesDrift
    columns: ColumnsDrift | None
    """None if a graph is missing."""
    nodes: NodesDrift
    left_out: tuple[str, ...]
    """Notes on what is not compared and on limits of the comparison, one sentence each."""

    @property
    def most_moved_part(self) -> PartDrift | None:
        """The part that moved most, in the direction of p_known; None if none did."""
        return most_moved_part(self.parts)

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as JSON values."""
        part = self.most_moved_part
        values = {
            "a": self.a,
            "b": self.b,
            "verdict": self.verdict,
            "advice": self.advice,
            "reference": self.reference,
            "nodes_a": self.nodes_a,
            "nodes_b": self.nodes_b,
            "thresholds": THRESHOLDS,
            "condition": CONDITION,
            "left_out": self.left_out,
            "most_moved_part": None if part is None else part.name,
            "parts": [each.to_dict() for each in self.parts],
            "classes": self.classes.to_dict(),
            "columns": None if self.columns is None else self.columns.to_dict(),
            "nodes": self.nodes.to_dict(),
        }
        return dict(_finite(values))

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Write `drift.json` and `drift.csv` to an existing folder, and return their paths."""
        paths = folder / DRIFT_JSON, folder / DRIFT_CSV
        write_json(paths[0], self.to_dict())
        with table_writer(paths[1]) as writer:
            writer.write(self.nodes.table)
        return paths


def compare(
    a: ScoredTable,
    b: ScoredTable,
    *,
    graph_a: Graph | None = None,
    graph_b: Graph | None = None,
    left_out: Sequence[str] = (),
) -> Drift:
    """Return how predictions B moved against predictions A.

    >>> import numpy as np
    >>> import pyarrow as pa
    >>> columns = {"node": range(400), "predicted_class": [0] * 400, "aleatoric": [-0.9] * 400}
    >>> p = (1 + np.arange(400)) / 401
    >>> a = ScoredTable.of(pa.table(columns | {"p_known": p, "p_features": p}))
    >>> strange = np.where(np.arange(400) < 100, 0.0025, p)
    >>> b = ScoredTable.of(pa.table(columns | {"p_known": strange, "p_features": strange}))
    >>> compare(a, b).verdict
    'The share of nodes that look unknown rose from 5.0 % to 25.0 %, mostly by their features.'

    Args:
        a: Predictions of training, or of an earlier time.
        b: Predictions of a later time.
        graph_a: The graph of A, to compare columns; None to leave them out.
        graph_b: The graph of B.
        left_out: Further sentences on what is not compared.

    Raises:
        ConfigError: there are no nodes to compare.
        GraphError: a graph has other nodes than its table.
    """
    nodes = ComparedNodes.of(a, b)
    a, b, changes = with_common_parts(a, b)
    parts, silent_parts = part_drifts(a, b, nodes)
    classes = class_drifts(a, b, nodes)
    columns = None
    if graph_a is not None and graph_b is not None:
        check_graph(a, graph_a, "graph_a")
        check_graph(b, graph_b, "graph_b")
        columns = column_drifts(graph_a, graph_b, a, b, nodes)
    node_drift = node_drifts(a, b, nodes)
    silent_columns = columns.left_out if columns is not None else () if left_out else (NO_GRAPHS,)
    return Drift(
        a=a.name,
        b=b.name,
        verdict=verdict(parts, classes, columns),
        advice=advice(parts, classes, columns, node_drift),
        reference=(*nodes.sentences, *_model_sentences(a, b)),
        nodes_a=len(nodes.a),
        nodes_b=len(nodes.b),
        parts=parts,
        classes=classes,
        columns=columns,
        nodes=node_drift,
        left_out=(*changes, *silent_parts, *classes.left_out, *silent_columns, *left_out),
    )


def _model_sentences(a: ScoredTable, b: ScoredTable) -> tuple[str, ...]:
    models = a.origin.model, b.origin.model
    if None in models or models[0] == models[1]:
        return ()
    return (
        "A and B were predicted by different models, each with p-values against its own validation "
        "nodes: the models may have moved rather than the nodes.",
    )


def _finite(value: Any) -> Any:
    """Return a JSON value with null for numbers that are not finite."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value
