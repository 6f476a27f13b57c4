"""The predictions of all nodes as a table on disk, which every process of a service maps.

It is an Arrow file without compression: a row is read without decoding anything, and the pages
are shared by all processes that map it. Rows are written in blocks, so that no copy of the whole
table is made.

Shapes: N nodes, B nodes of a request, C classes.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.evaluation.p_values import PARTS, PValues
from gpn_scale.evaluation.prediction import ROW_BLOCK, Prediction, row_blocks
from gpn_scale.evaluation.prediction_table import VALUE_COLUMNS, class_names
from gpn_scale.evaluation.reasons import reasons
from gpn_scale.files import replacing
from gpn_scale.inference.evidence import EvidenceSummary
from gpn_scale.reading import check_file
from gpn_scale.triage.trust import trust_of

SUBSETS = ("train", "val", "test")
"""Names of the subsets of a split, in the order of their codes."""
_REASON, _SPLIT, _LABEL, _TRUST = "reason", "split", "label", "trust"
_TOTAL, _LEADING, _BEYOND = "own_evidence", "leading_class", "beyond"


def write_table(
    path: Path, graph: Graph, prediction: Prediction, evidence: EvidenceSummary
) -> tuple[str, ...]:
    """Write the table of all nodes, and return the texts of its reasons by their codes.

    Args:
        path: The Arrow file.
        graph: The graph, with the model's classes.
        prediction: Prediction of all its nodes.
        evidence: Feature evidence of all its nodes.
    """
    codes: dict[str, int] = {}
    names = class_names(graph, prediction.probabilities.shape[1])
    trust_N, split_N = trust_of(prediction), _split_codes(graph)
    with replacing(path) as file:
        writer = None
        for rows in row_blocks(graph.num_nodes):
            block = prediction.rows(rows)
            columns = _value_columns(block, names, codes)
            columns |= {
                _TRUST: trust_N[rows],
                _LABEL: graph.labels[rows],
                _SPLIT: split_N[rows],
                _TOTAL: evidence.total[rows],
                _LEADING: evidence.leading_class[rows].astype(np.int32),
            }
            batch = pa.record_batch({name: pa.array(values) for name, values in columns.items()})
            width = block.probabilities.shape[1]
            flat = pa.array(np.ascontiguousarray(block.probabilities, np.float32).reshape(-1))
            column = pa.FixedSizeListArray.from_arrays(flat, width)
            batch = batch.append_column("probabilities", column)
            if writer is None:
                writer = pa.ipc.new_file(file, batch.schema)
            writer.write_batch(batch)
        assert writer is not None
        writer.close()
    return tuple(codes)


def _value_columns(
    block: Prediction, names: Sequence[str], codes: dict[str, int]
) -> dict[str, NDArray[Any]]:
    """Return the columns of a block of nodes; new reasons get new codes."""
    columns: dict[str, NDArray[Any]] = {"predicted_class": block.predicted_class.astype(np.int32)}
    values = {name: value_of(block) for name, value_of in VALUE_COLUMNS.items()}
    columns |= {name: np.asarray(value) for name, value in values.items() if value is not None}
    if block.p is not None and block.p.beyond is not None:
        columns[_BEYOND] = block.p.beyond
    texts = reasons(block, names)
    if texts is not None:
        distinct, inverse = np.unique(texts.astype(np.str_), return_inverse=True)
        own = np.array([codes.setdefault(str(text), len(codes)) for text in distinct], np.int32)
        columns[_REASON] = own[inverse]
    return columns


def _split_codes(graph: Graph) -> NDArray[np.int8]:
    code_N = np.full(graph.num_nodes, -1, np.int8)
    if graph.split is not None:
        for code, subset in enumerate(SUBSETS):
            code_N[getattr(graph.split, subset)] = code
    return code_N


class NodeTable:
    """The table of all nodes, mapped into memory.

    Args:
        path: The Arrow file, as `write_table` wrote it.
        reasons: Texts of its reasons, by their codes.

    Raises:
        pyarrow.ArrowException: the file is damaged.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path, reasons: Sequence[str]) -> None:
        self.reasons = tuple(reasons)
        # The map outlives this block, because arrays on it keep a reference.
        check_file(path)
        with pa.memory_map(str(path)) as file, pa.ipc.open_file(file) as reader:
            batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
        self._blocks = [_arrays(batch) for batch in batches]
        self.num_nodes = sum(batch.num_rows for batch in batches)
        self.num_classes = int(self._blocks[0]["probabilities"].shape[1])
        self.value_names = tuple(name for name in VALUE_COLUMNS if name in self._blocks[0])
        self.parts = tuple(part for part in PARTS if f"p_{part}" in self._blocks[0])
        self.has_p_values = "p_known" in self._blocks[0]

    def block_of(self, node: int) -> tuple[dict[str, NDArray[Any]], int]:
        """Return the arrays that hold a node's row, and the row's place in them."""
        block, row = divmod(node, ROW_BLOCK)
        return self._blocks[block], row

    def column(self, name: str) -> NDArray[Any]:
        """Return a column of all nodes, (N,) or (N, C); a view if the table has one block."""
        if len(self._blocks) == 1:
            return self._blocks[0][name]
        return np.concatenate([block[name] for block in self._blocks])

    def values(self, name: str, nodes: NodeIds) -> NDArray[Any]:
        """Return a column of some nodes, (B,) or (B, C)."""
        if len(self._blocks) == 1:
            return np.asarray(self._blocks[0][name][nodes])
        own = self._blocks[0][name]
        values = np.empty((len(nodes), *own.shape[1:]), own.dtype)
        for block in np.unique(nodes // ROW_BLOCK):
            inside = nodes // ROW_BLOCK == block
            values[inside] = self._blocks[block][name][nodes[inside] - block * ROW_BLOCK]
        return values

    def prediction(self, nodes: NodeIds) -> Prediction:
        """Return the prediction of some nodes, without probabilities from own features alone."""
        return Prediction(
            probabilities=self.values("probabilities", nodes),
            # They are not in the table, since no answer contains them.
            probabilities_no_network=np.empty((len(nodes), 0), np.float32),
            alpha_0=self.values("alpha_0", nodes),
            alpha_0_no_network=self.values("alpha_0_no_network", nodes),
            energy=self._optional("energy", nodes),
            label_evidence=self._optional("label_evidence", nodes),
            surprise=self._optional("surprise", nodes),
            p=self._p_values(nodes),
        )

    def evidence(self) -> EvidenceSummary:
        """Return the feature evidence of all nodes."""
        return EvidenceSummary(self.column(_TOTAL), self.column(_LEADING).astype(np.int64))

    def _optional(self, name: str, nodes: NodeIds) -> NDArray[Any] | None:
        return self.values(name, nodes) if name in self._blocks[0] else None

    def _p_values(self, nodes: NodeIds) -> PValues | None:
        if not self.has_p_values:
            return None
        parts = {part: self.values(f"p_{part}", nodes) for part in self.parts}
        known, beyond = self.values("p_known", nodes), self._optional(_BEYOND, nodes)
        return PValues(known=known, beyond=beyond, **parts)


def _arrays(batch: pa.RecordBatch) -> dict[str, NDArray[Any]]:
    """Return the columns of a block as arrays that share its memory."""
    arrays = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name == "probabilities":
            width = column.type.list_size
            arrays[name] = column.flatten().to_numpy(zero_copy_only=True).reshape(-1, width)
        else:
            arrays[name] = column.to_numpy(zero_copy_only=True)
    return arrays
