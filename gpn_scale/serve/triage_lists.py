"""The triage lists of a service: nodes to review, and nodes to label next."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from gpn_scale.data.graph import NodeIds
from gpn_scale.serve.answers import Answer, briefs
from gpn_scale.serve.decisions import DecisionLog
from gpn_scale.serve.features import usual_columns
from gpn_scale.serve.node_table import SUBSETS
from gpn_scale.serve.served_model import ServedModel
from gpn_scale.triage.label_next import label_candidates, label_next
from gpn_scale.triage.lists import MOST_LABELLED, node_columns, review_columns

LISTS = ("review", "label_next")


def triage_page(
    model: ServedModel, decisions: DecisionLog, name: str, offset: int, limit: int
) -> Answer:
    """Return a page of a list, with the reasons of `gpn-triage` and the latest decisions.

    Args:
        model: The model.
        decisions: Decisions so far.
        name: `review` or `label_next`.
        offset: Number of nodes to skip at the start.
        limit: Largest number of nodes.

    Raises:
        StoreError: the graph is too large to choose nodes to label without a store.
    """
    nodes = model.unused_by_trust() if name == "review" else nodes_to_label(model)
    page = np.asarray(nodes[offset : offset + limit])
    prediction = model.table.prediction(page)
    facts = (model.graph, page, prediction, model.usual())
    if name == "review":
        columns = review_columns(model.classifier.trained, *facts, raw=usual_columns(model))
    else:
        columns = node_columns(*facts)
    decisions.refresh()
    rows = _rows(model, decisions, page, columns["reason"].to_pylist(), columns["detail"])
    decided = _num_decided(model, decisions, None if name == "review" else nodes)
    return {"list": name, "total": len(nodes), "decided": decided, "rows": rows}


def nodes_to_label(model: ServedModel) -> NodeIds:
    """Return the nodes whose labels would teach most, in the order of choice; computed once."""
    return model.once("label_next", lambda: _chosen(model))


def _num_decided(model: ServedModel, decisions: DecisionLog, nodes: NodeIds | None) -> int:
    """Return how many nodes of a list have a decision; None for the nodes to review."""
    ids = decisions.decided_ids()
    positions = [node for each in ids if (node := model.ids.position(each)) is not None]
    decided = np.array(positions, np.int64)
    if nodes is not None:
        return int(np.isin(nodes, decided).sum())
    used = [SUBSETS.index("train"), SUBSETS.index("val")]
    return int((~np.isin(model.table.values("split", decided), used)).sum())


def _chosen(model: ServedModel) -> NodeIds:
    count = min(MOST_LABELLED, len(label_candidates(model.graph)))
    uncertainty_N = 1.0 - model.table.column("trust")
    diffusion = model.classifier.trained.diffusion
    return label_next(model.graph, diffusion, uncertainty_N, count, store=model.store).node


def _rows(
    model: ServedModel,
    decisions: DecisionLog,
    nodes: NodeIds,
    reasons: Sequence[str],
    details: Any,
) -> list[Answer]:
    rows = briefs(model, nodes)
    for row, reason, detail in zip(rows, reasons, details.to_pylist(), strict=True):
        decision = decisions.latest(row["id"])
        row |= {
            "reason": reason,
            "detail": detail,
            "decision": None if decision is None else asdict(decision),
        }
    return rows
