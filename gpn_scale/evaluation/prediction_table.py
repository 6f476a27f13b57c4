"""Predictions as a table: one row per node, for all nodes of a graph or for some."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph, NodeIds, Split
from gpn_scale.evaluation.node_facts import NodeFacts
from gpn_scale.evaluation.p_values import PARTS
from gpn_scale.evaluation.prediction import Prediction, row_blocks
from gpn_scale.evaluation.reasons import reasons
from gpn_scale.evaluation.table_writers import table_writer

MARK = "mark_"
"""Beginning of the names of columns that tell which nodes have a mark."""
_SUBSETS = ["train", "val", "test"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Origin of predictions, which a Parquet file records.

    >>> Origin.from_facts(Origin(dataset="november", data_dir="graphs").facts)
    Origin(dataset='november', data_dir='graphs', model=None)
    """

    dataset: str | None = None
    """Name of the graph; None if it is not known."""
    data_dir: str | None = None
    """Folder of graphs."""
    model: str | None = None
    """Fingerprint of the model file."""

    @property
    def facts(self) -> dict[str, str]:
        """The known fields, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_facts(cls, facts: Mapping[str, str]) -> "Origin":
        """Return the origin that `facts` describe; unknown entries are ignored."""
        return cls(**{name: facts.get(name) for name in ("dataset", "data_dir", "model")})


VALUE_COLUMNS: Mapping[str, Callable[[Prediction], NDArray[Any] | None]] = {
    "alpha_0": lambda prediction: prediction.alpha_0,
    "alpha_0_no_network": lambda prediction: prediction.alpha_0_no_network,
    "aleatoric": lambda prediction: prediction.aleatoric,
    "aleatoric_entropy": lambda prediction: prediction.aleatoric_entropy,
    "aleatoric_no_network": lambda prediction: prediction.aleatoric_no_network,
    "epistemic": lambda prediction: prediction.epistemic,
    "epistemic_no_network": lambda prediction: prediction.epistemic_no_network,
    "entropy": lambda prediction: prediction.entropy,
    "entropy_no_network": lambda prediction: prediction.entropy_no_network,
    "energy": lambda prediction: prediction.energy,
    "label_evidence": lambda prediction: prediction.label_evidence,
    "surprise": lambda prediction: prediction.surprise,
    **{
        f"p_{name}": partial(lambda name, prediction: getattr(prediction.p, name, None), name)
        for name in (*PARTS, "known")
    },
}
"""Columns with one number per node; a column whose value is None is left out."""


def class_names(graph: Graph | NodeFacts, num_classes: int) -> list[str]:
    """Return the names of the classes, or their numbers if they have no names.

    >>> from gpn_scale.data.building import build_graph
    >>> class_names(build_graph([0], [1], labels=[0, 1]), 2)
    ['0', '1']
    """
    if graph.class_names is None:
        return [str(label) for label in range(num_classes)]
    return [str(name) for name in graph.class_names.tolist()]


def write_predictions(
    path: Path,
    prediction: Prediction,
    graph: Graph,
    *,
    nodes: NodeIds | None = None,
    further: Mapping[str, NDArray[Any]] | None = None,
    origin: Origin | None = None,
) -> None:
    """Write one row per node: class, probabilities, alpha_0, scores, label, split and marks.

    Rows are written in groups, so that no array of size N x C is copied as a whole.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.data.building import build_graph
    >>> prediction = Prediction(
    ...     probabilities=np.array([[0.75, 0.25], [0.5, 0.5]]),
    ...     probabilities_no_network=np.array([[0.5, 0.5], [0.5, 0.5]]),
    ...     alpha_0=np.array([8.0, 2.0]),
    ...     alpha_0_no_network=np.array([2.0, 2.0]),
    ... )
    >>> with TemporaryDirectory() as folder:
    ...     write_predictions(Path(folder) / "p.parquet", prediction, build_graph([0], [1]))
    ...     table = pa.parquet.read_table(Path(folder) / "p.parquet")
    >>> table.select(["node", "predicted_class", "alpha_0"]).to_pylist()[1]
    {'node': 1, 'predicted_class': 0, 'alpha_0': 2.0}

    Args:
        path: The file to write; its suffix decides the format (`table_writers.SUFFIXES`).
        prediction: Prediction of all nodes, or of `nodes` in their order.
        graph: The graph, which has the names, labels, split and marks.
        nodes: Ids of the nodes in `prediction`; all nodes by default.
        further: More columns by name; a matrix becomes a column of lists.
        origin: Origin of the predictions, which a Parquet file records.
    """
    facts = NodeFacts.of(graph, nodes)
    of_all = _columns_of_all(facts)
    with table_writer(path, (origin or Origin()).facts) as writer:
        for rows in row_blocks(graph.num_nodes if nodes is None else len(nodes)):
            columns = _columns(prediction.rows(rows), facts.rows(rows), of_all)
            columns |= {name: _column(values[rows]) for name, values in (further or {}).items()}
            writer.write(pa.table(columns))


def prediction_frame(prediction: Prediction, facts: NodeFacts) -> Any:
    """Return the table that `write_predictions` writes, as a pandas DataFrame.

    >>> half = np.full((2, 2), 0.5, np.float32)
    >>> prediction = Prediction(
    ...     probabilities=half,
    ...     probabilities_no_network=half,
    ...     alpha_0=half[0],
    ...     alpha_0_no_network=half[0],
    ... )
    >>> list(prediction_frame(prediction, NodeFacts()).columns[:3])
    ['node', 'predicted_class', 'alpha_0']

    Args:
        prediction: Prediction of nodes.
        facts: What is known of these nodes.
    """
    return prediction_columns(prediction, facts).to_pandas()


def prediction_columns(prediction: Prediction, facts: NodeFacts) -> pa.Table:
    """Return the table that `write_predictions` writes, as an Arrow table.

    >>> half = np.full((2, 2), 0.5, np.float32)
    >>> prediction = Prediction(
    ...     probabilities=half,
    ...     probabilities_no_network=half,
    ...     alpha_0=half[0],
    ...     alpha_0_no_network=half[0],
    ... )
    >>> prediction_columns(prediction, NodeFacts()).num_rows
    2

    Args:
        prediction: Prediction of nodes.
        facts: What is known of these nodes.
    """
    return pa.table(_columns(prediction, facts, _columns_of_all(facts)))


def _columns_of_all(facts: NodeFacts) -> dict[str, NDArray[Any]]:
    """Return the columns that have a value for every node of the graph, (N,) each."""
    if facts.labels is None:
        return {}
    count = len(facts.labels)
    columns: dict[str, NDArray[Any]] = {"split": _split_code(facts.split, count)}
    columns |= {f"{MARK}{name}": _members(ids, count) for name, ids in facts.marks.items()}
    return columns


def _columns(
    prediction: Prediction, facts: NodeFacts, of_all: dict[str, NDArray[Any]]
) -> dict[str, Any]:
    """Return the columns of some nodes; `of_all` holds columns with a value for every node."""
    ids = facts.ids(len(prediction.probabilities))
    columns: dict[str, Any] = {"node": ids}
    if facts.node_names is not None:
        columns["node_name"] = pa.array(facts.node_names[ids].tolist(), pa.string())
    columns["predicted_class"] = prediction.predicted_class
    names = class_names(facts, prediction.probabilities.shape[1])
    if facts.class_names is not None:
        name_array = pa.array(names, pa.string())
        columns["predicted_class_name"] = name_array.take(pa.array(prediction.predicted_class))
    values = {name: value_of(prediction) for name, value_of in VALUE_COLUMNS.items()}
    columns |= {name: value for name, value in values.items() if value is not None}
    if (texts := reasons(prediction, names)) is not None:
        columns["reason"] = pa.array(texts, pa.string())
    if facts.labels is not None:
        labels = facts.labels[ids]
        columns |= {
            "label": pa.array(labels, mask=labels < 0),
            "split": _split_column(of_all["split"][ids]),
        }
    columns |= {name: member[ids] for name, member in of_all.items() if name != "split"}
    for label in range(prediction.probabilities.shape[1]):
        columns[f"probability_{label}"] = prediction.probabilities[:, label]
    return columns


def _column(values: NDArray[Any]) -> Any:
    if values.ndim == 1:
        return values
    offsets = np.arange(len(values) + 1, dtype=np.int32) * values.shape[1]
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values.reshape(-1)))


def _members(ids: NodeIds, num_nodes: int) -> NDArray[np.bool_]:
    member = np.zeros(num_nodes, bool)
    member[ids] = True
    return member


def _split_code(split: Split | None, num_nodes: int) -> NDArray[np.int8]:
    code = np.full(num_nodes, -1, np.int8)
    for position, subset in enumerate(_SUBSETS if split is not None else []):
        code[getattr(split, subset)] = position
    return code


def _split_column(code: NDArray[np.int8]) -> Any:
    # int32 where int8 would do: readers of existing files rely on the type of this column.
    wide = code.astype(np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(wide, mask=wide < 0), pa.array(_SUBSETS))
