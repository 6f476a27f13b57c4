"""The features of a node after a what-if change of raw columns, features or edges.

Shapes: F features, S structural features.
"""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from gpn_scale.data.building import check_features
from gpn_scale.data.contract import DataContract
from gpn_scale.data.faults import Fault, TableFaults
from gpn_scale.data.features import take_rows
from gpn_scale.data.graph import CSRFeatures, Features, Graph
from gpn_scale.data.preparation import Preparation
from gpn_scale.diffusion.edge_patch import EdgePatch
from gpn_scale.errors import GraphError
from gpn_scale.inference.encoder_inputs import required_features
from gpn_scale.inference.local_structure import structural_rows
from gpn_scale.inference.new_tables import numbers_of

_COLUMNS = ("columns",)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChangedFeatures:
    """The feature row of a node after a change, with notes on it.

    >>> ChangedFeatures(row=np.ones((1, 2), np.float32), notes=()).row.shape
    (1, 2)
    """

    row: Features
    """Dense or sparse like the features of the graph, (1, F)."""
    notes: tuple[str, ...]
    """Notes on values that are unusual or have no effect, one sentence each."""


def changed_features(
    graph: Graph,
    contract: DataContract,
    node: int,
    patch: EdgePatch,
    *,
    columns: Mapping[str, Any] | None = None,
    features: ArrayLike | CSRFeatures | None = None,
) -> ChangedFeatures:
    """Return the features of a node after a change.

    Raw columns become features by the model's rule; without a rule, `columns` holds numbers by the
    names of the features. Other features keep their values, except that structural ones follow the
    patch.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.diffusion.edge_patch import rewired
    >>> graph = build_graph([0], [1], features=[[31.0], [29.0]], feature_names=["age"])
    >>> nothing, contract = rewired(graph, 0), DataContract.of(graph)
    >>> changed_features(graph, contract, 0, nothing, columns={"age": "30"}).row
    array([[30.]], dtype=float32)

    Args:
        graph: The graph, with the model's columns.
        contract: What the model expects.
        node: The node.
        patch: Edges that it gains and loses.
        columns: New values of raw columns by name.
        features: A whole feature row, (F,) or (1, F), instead of `columns`.

    Raises:
        GraphError: a column is unknown, a value cannot be read, or features have another shape.
    """
    if features is not None:
        if columns:
            raise GraphError(
                "columns and features are both given, expected one of them", arguments=_COLUMNS
            )
        return ChangedFeatures(row=_checked_row(graph, features), notes=())
    old = take_rows(required_features(graph), np.array([node]))
    dense = old.to_dense() if isinstance(old, CSRFeatures) else old.copy()
    notes: tuple[str, ...] = ()
    if columns:
        rule = contract.preparation
        notes = (
            _with_numbers(dense, columns, contract)
            if rule is None
            else _with_rules(dense, columns, rule)
        )
    if contract.preparation is not None and len(patch.source):
        _with_structure(dense, graph, node, patch, contract.preparation)
    return ChangedFeatures(row=_as_stored(dense, graph), notes=notes)


def _with_rules(
    row: NDArray[Any], columns: Mapping[str, Any], preparation: Preparation
) -> tuple[str, ...]:
    """Write the features of changed columns into the row (1, F); return notes."""
    without_effect = {column.column for column in preparation.left_out}
    known = [rule.column for rule in preparation.rules]
    _check_known(columns, [*known, *without_effect])
    changed = [rule for rule in preparation.rules if rule.column in columns]
    part = replace(preparation, rules=tuple(changed), structural=False, structure=(), left_out=())
    table = _one_row({rule.column: columns[rule.column] for rule in changed})
    try:
        prepared = part.apply(table)
    except TableFaults as error:
        raise _unreadable(error.faults[0]) from error
    values = prepared.features
    dense = values.to_dense() if isinstance(values, CSRFeatures) else values
    start = place = 0
    for rule in preparation.rules:
        width = len(rule.labels)
        if rule.column in columns:
            row[0, start : start + width] = dense[0, place : place + width]
            place += width
        start += width
    silent = [name for name in columns if name in without_effect]
    return (
        *prepared.notes,
        *(f"The column {name!r} is no feature of the model: it has no effect." for name in silent),
    )


def _with_numbers(
    row: NDArray[Any], columns: Mapping[str, Any], contract: DataContract
) -> tuple[str, ...]:
    """Write numbers into the row (1, F) by the names of the features."""
    if not contract.feature_names:
        raise GraphError(
            "columns are given by name, but the features of the model have no names: give features",
            arguments=_COLUMNS,
        )
    _check_known(columns, contract.feature_names)
    table = _one_row(columns)
    place = {name: column for column, name in enumerate(contract.feature_names)}
    for name in columns:
        value, faults = numbers_of(table[name], name, "columns")
        if faults:
            raise _unreadable(faults[0])
        row[0, place[name]] = value[0]
    return ()


def _with_structure(
    row: NDArray[Any], graph: Graph, node: int, patch: EdgePatch, preparation: Preparation
) -> None:
    """Write the structural features of the patched graph into the row (1, F)."""
    count = len(preparation.structure)
    if not count:
        return
    values_S = structural_rows(graph, patch, np.array([node]), preparation.structure)[0]
    place = row.shape[1] - count + np.flatnonzero(~np.isnan(values_S))
    row[0, place] = values_S[~np.isnan(values_S)]


def _one_row(columns: Mapping[str, Any]) -> pa.Table:
    arrays = {}
    for name, value in columns.items():
        try:
            arrays[name] = pa.array([value])
        except (pa.ArrowException, OverflowError) as error:
            raise GraphError(
                f"columns: the value of {name!r} cannot be read ({error}): give a number, a text "
                "or a boolean",
                arguments=_COLUMNS,
            ) from error
    return pa.table(arrays)


def _check_known(columns: Mapping[str, Any], known: Sequence[str]) -> None:
    for name in columns:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=3)
            hint = f"; similar names are {', '.join(map(repr, near))}" if near else ""
            raise GraphError(
                f"columns holds {name!r}, expected names of the model's {len(known)} columns{hint}",
                arguments=_COLUMNS,
            )


def _unreadable(fault: Fault) -> GraphError:
    return GraphError(
        f"columns: the value {fault.value!r} of {fault.column!r} cannot be read: {fault.advice}",
        arguments=_COLUMNS,
    )


def _checked_row(graph: Graph, features: ArrayLike | CSRFeatures) -> Features:
    """Return a given feature row of the graph's own kind, (1, F)."""
    given = features
    if not isinstance(features, CSRFeatures) and np.ndim(features) == 1:
        given = np.asarray(features)[None]
    checked = check_features(given, "features of the changed node")
    if checked.shape != (1, graph.num_features):
        raise GraphError(
            f"features have shape {checked.shape}, expected one row of the {graph.num_features} "
            "features of the model",
            arguments=("features",),
        )
    return _as_stored(checked.to_dense() if isinstance(checked, CSRFeatures) else checked, graph)


def _as_stored(row: NDArray[Any], graph: Graph) -> Features:
    """Return a dense row (1, F) in the kind and type of the graph's features."""
    if not isinstance(graph.features, CSRFeatures):
        half = graph.features is not None and graph.features.dtype == np.float16
        return row.astype(np.float16) if half else row.astype(np.float32)
    indices = np.flatnonzero(row[0])
    return CSRFeatures(
        indptr=np.array([0, len(indices)]),
        indices=indices.astype(np.int32),
        values=row[0, indices].astype(np.float32),
        num_columns=row.shape[1],
    )
