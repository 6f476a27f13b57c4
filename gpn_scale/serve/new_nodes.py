"""Predictions of nodes that are not in the graph, and of existing nodes after a change.

Shapes: M new nodes, F features.
"""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.column_roles import ColumnNames
from gpn_scale.data.faults import Fault, TableFaults
from gpn_scale.data.features import take_rows
from gpn_scale.data.graph import CSRFeatures
from gpn_scale.evaluation.known_calibration import ELSEWHERE_CONDITION
from gpn_scale.inference.new_tables import NewTables, read_looked_up_tables
from gpn_scale.serve.answers import Answer, degree, node_answer, predicted_answers
from gpn_scale.serve.failures import RequestFailure, shown
from gpn_scale.serve.served_model import ServedModel
from gpn_scale.serve.service import position_of, positions_of

Values = Mapping[str, bool | int | float | str | None]
"""Values of columns by name."""


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge between two nodes, by their ids."""

    source: str
    target: str
    weight: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of a node."""

    columns: Values
    add_edges: Sequence[tuple[str, float | None]]
    """Ids and weights of new neighbours."""
    remove_edges: Sequence[str]


def predict_new_nodes(
    model: ServedModel, ids: Sequence[str], columns: Sequence[Values], edges: Sequence[Edge]
) -> Answer:
    """Return the predictions of new nodes.

    Args:
        model: The model.
        ids: Ids of the new nodes, (M,).
        columns: Values of their columns, (M,).
        edges: Edges to each other and to nodes of the graph.

    Raises:
        RequestFailure: the nodes or edges do not fit the graph or the model.
        GpnScaleError: the model cannot predict new nodes.
    """
    live, names = model.live(), _column_names(model)
    _check_columns(columns, names)
    _check_ends(model, ids, edges)
    try:
        if live.contract.preparation is None and not live.contract.feature_names:
            new = _numbered(model, ids, columns, edges)
        else:
            nodes, roles = _node_table(ids, columns)
            new = live.read(nodes, _edge_table(edges, ids), model.ids, roles)
    except TableFaults as faults:
        raise RequestFailure(422, _sentence(faults.faults)) from faults
    result = live.new(new.features, new.neighbours, new.edge_weights)
    further: dict[str, Any] = {
        "alpha_0_lower": result.alpha_0_lower,
        "alpha_0_upper": result.alpha_0_upper,
        "degree": _degrees(new, model.graph.num_nodes),
    }
    answers = predicted_answers(result.prediction, list(ids), model.classes, further=further)
    return {"predictions": answers, "notes": list(new.notes), "condition": ELSEWHERE_CONDITION}


def what_if(model: ServedModel, node: int, change: Change) -> Answer:
    """Return a node as it is, and as it would be with other values or edges.

    Raises:
        RequestFailure: the change names unknown nodes or columns.
        GpnScaleError: an edge to add exists, one to remove does not, or a value cannot be read.
    """
    live, names = model.live(), _column_names(model)
    _check_columns([change.columns], names)
    added = positions_of(model, [other for other, _ in change.add_edges])
    removed = positions_of(model, list(change.remove_edges))
    _check_edges(model, node, added, removed)
    _check_weights(model, [weight for _, weight in change.add_edges])
    weights = None
    if model.graph.edge_weight is not None:
        weights = [1.0 if weight is None else weight for _, weight in change.add_edges]
    changes: dict[str, Any] = {"columns": change.columns or None}
    if change.columns and live.contract.preparation is None and not live.contract.feature_names:
        changes = {"features": _changed_row(model, node, change.columns)}
    result = live.changed(
        node, add_edges=added, add_weights=weights, remove_edges=removed, **changes
    )
    before = node_answer(model, node)
    own = {"label": [before["label"]], "split": [before["split"]]}
    own["degree"] = [degree(model, node) + len(added) - len(removed)]
    [after] = predicted_answers(result.prediction, [before["id"]], model.classes, further=own)
    return {
        "id": before["id"],
        "before": before,
        "after": after,
        "notes": list(result.notes),
        "condition": ELSEWHERE_CONDITION,
    }


def changed_node(model: ServedModel, node_id: str, change: Change) -> Answer:
    """Return `what_if` of the node with an id."""
    return what_if(model, position_of(model, node_id), change)


def _column_names(model: ServedModel) -> set[str]:
    """Return the names of columns that may be given; numbers for features without names."""
    contract = model.classifier.contract
    if contract.preparation is not None:
        rules, left_out = contract.preparation.rules, contract.preparation.left_out
        return {rule.column for rule in rules} | {column.column for column in left_out}
    return set(contract.feature_names) or set(map(str, range(contract.num_features)))


def _check_columns(columns: Sequence[Values], names: set[str]) -> None:
    for own in columns:
        if unknown := [name for name in own if name not in names]:
            near = difflib.get_close_matches(unknown[0][:100], sorted(names)[:10_000], n=3)
            hint = f"; similar names are {', '.join(map(repr, near))}" if near else ""
            raise RequestFailure(
                422,
                f"columns holds {shown(unknown[0])}, expected names of the model's {len(names):,} "
                f"columns{hint}",
            )


def _check_ends(model: ServedModel, ids: Sequence[str], edges: Sequence[Edge]) -> None:
    """Check that every edge joins nodes of the graph or of the request."""
    new = set(ids)
    ends = dict.fromkeys(end for edge in edges for end in (edge.source, edge.target))
    positions_of(model, [end for end in ends if end not in new])


def _check_edges(model: ServedModel, node: int, added: list[int], removed: list[int]) -> None:
    """Check that edges to add do not exist, and edges to remove do."""
    graph, own = model.graph, shown(model.ids.text(node))
    row = graph.indices[int(graph.indptr[node]) : int(graph.indptr[node + 1])]
    for other in added:
        if other == node or other in row:
            name = shown(model.ids.text(other))
            raise RequestFailure(
                422, f"add_edges holds {name}, which is {own} itself or a neighbour of it already"
            )
    for other in removed:
        if other not in row:
            name = shown(model.ids.text(other))
            raise RequestFailure(
                422, f"remove_edges holds {name}, which is not a neighbour of {own}"
            )


def _check_weights(model: ServedModel, weights: Sequence[float | None]) -> None:
    if model.graph.edge_weight is None and any(weight is not None for weight in weights):
        raise RequestFailure(
            422, "an edge has a weight, but the edges of the graph have none: leave it out"
        )


def _node_table(
    ids: Sequence[str], columns: Sequence[Values]
) -> tuple[dict[str, list[Any]], ColumnNames]:
    """Return the new nodes as a table, and the name of its column of ids."""
    given = list(dict.fromkeys(name for own in columns for name in own))
    id_name = "id"
    while id_name in given:
        id_name += "_"
    table = {name: _one_kind([own.get(name) for own in columns]) for name in given}
    return {id_name: list(ids), **table}, ColumnNames(id=id_name)


def _one_kind(values: list[Any]) -> list[Any]:
    """Return values that fit into one column: unchanged, or all converted to text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} or len(kinds) == 1:
        return [float(value) if float in kinds and value is not None else value for value in values]
    return [None if value is None else str(value) for value in values]


def _edge_table(edges: Sequence[Edge], ids: Sequence[str]) -> dict[str, list[Any]] | None:
    if not edges:
        return None
    table: dict[str, list[Any]] = {
        "source": [edge.source for edge in edges],
        "target": [edge.target for edge in edges],
    }
    if any(edge.weight is not None for edge in edges):
        table["weight"] = [1.0 if edge.weight is None else edge.weight for edge in edges]
    return table


def _numbered(
    model: ServedModel, ids: Sequence[str], columns: Sequence[Values], edges: Sequence[Edge]
) -> NewTables:
    """Return new nodes whose features have numbers for names; features left out are 0."""
    contract = model.classifier.contract
    rows = np.zeros((len(ids), contract.num_features), np.float32)
    for row, own in zip(rows, columns, strict=True):
        _write_numbers(row, own)
    bare = replace(contract, num_features=0)
    table, edge_table = {"id": list(ids)}, _edge_table(edges, ids)
    new = read_looked_up_tables(table, edge_table, model.graph, bare, model.ids)
    return replace(new, features=rows)


def _changed_row(model: ServedModel, node: int, columns: Values) -> NDArray[np.float32]:
    features = model.graph.features
    assert features is not None
    old = take_rows(features, np.array([node]))
    dense = old.to_dense() if isinstance(old, CSRFeatures) else old
    row: NDArray[np.float32] = dense[0].astype(np.float32)
    _write_numbers(row, columns)
    return row


def _write_numbers(row: NDArray[np.float32], columns: Values) -> None:
    for name, value in columns.items():
        try:
            number = 0.0 if value is None else float(value)
        except (ValueError, OverflowError):
            number = np.inf
        if not abs(number) <= float(np.finfo(np.float32).max):
            raise RequestFailure(422, f"feature {name} is {value!r}, expected a finite number")
        row[int(name)] = number


def _degrees(new: NewTables, num_existing: int) -> list[int]:
    """Return the number of neighbours of each new node; an edge of two is listed at one of them."""
    degrees = [len(ends) for ends in new.neighbours]
    for ends in new.neighbours:
        for other in ends[ends >= num_existing].tolist():
            degrees[other - num_existing] += 1
    return degrees


def _sentence(faults: Sequence[Fault]) -> str:
    """Return the first fault of the request's tables, and how many more there are."""
    fault = faults[0]
    place = fault.file if fault.row is None else f"{fault.file}[{fault.row - 1}]"
    column = "" if fault.column is None else f" {fault.column!r}"
    value = "" if fault.value is None else f" is {shown(fault.value)}"
    more = "" if len(faults) == 1 else f" (and {len(faults) - 1} more faults)"
    return f"{place}{column}{value}: {fault.advice}{more}"
