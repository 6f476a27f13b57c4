"""Converts rows of the table of predictions to the JSON objects of answers.

Shapes: B nodes of a request, C classes.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.evaluation.prediction_table import VALUE_COLUMNS
from gpn_scale.evaluation.reasons import reasons
from gpn_scale.serve.node_table import SUBSETS
from gpn_scale.serve.served_model import ServedModel
from gpn_scale.triage.promise import Promise
from gpn_scale.triage.trust import trust_of

MOST_CLASSES = 100
"""Number of classes whose probabilities an answer has."""

Answer = dict[str, Any]


def json_bytes(value: Any) -> bytes:
    """Return a value as JSON; it must not hold numbers that are not finite."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def finite(value: float) -> float | None:
    """Return a number for JSON: None for NaN and infinity."""
    return value if math.isfinite(value) else None


def node_answer(model: ServedModel, node: int) -> Answer:
    """Return everything that is known about a node: a `NodeAnswer`."""
    table = model.table
    block, row = table.block_of(node)
    answer: Answer = {"id": model.ids.text(node)}
    answer["predicted_class"] = model.classes[block["predicted_class"].item(row)]
    answer["probability"] = finite(-block["aleatoric"].item(row))
    answer["probabilities"] = probabilities(block["probabilities"][row], model.classes)
    for name in table.value_names:
        answer[name] = finite(block[name].item(row))
    reason = block["reason"].item(row) if table.reasons else None
    trust = block["trust"].item(row)
    answer["reason"] = None if reason is None else table.reasons[reason]
    answer["trust"] = trust
    answer["abstain"] = None if model.promise is None else trust < model.promise.threshold
    answer["label"], answer["split"] = _label(model, block, row), _split(block, row)
    answer["degree"] = degree(model, node)
    return answer


def node_brief(model: ServedModel, node: int) -> Answer:
    """Return the main facts of a node: a `NodeBrief`."""
    table = model.table
    block, row = table.block_of(node)
    reason = block["reason"].item(row) if table.reasons else None
    return {
        "id": model.ids.text(node),
        "predicted_class": model.classes[block["predicted_class"].item(row)],
        "probability": finite(-block["aleatoric"].item(row)),
        "p_known": finite(block["p_known"].item(row)) if table.has_p_values else None,
        "trust": block["trust"].item(row),
        "reason": None if reason is None else table.reasons[reason],
        "label": _label(model, block, row),
        "split": _split(block, row),
        "degree": degree(model, node),
    }


def briefs(model: ServedModel, nodes: Sequence[int] | NDArray[np.integer]) -> list[Answer]:
    """Return the main facts of several nodes in their order."""
    return [node_brief(model, int(node)) for node in nodes]


def predicted_answers(
    prediction: Prediction,
    ids: Sequence[str],
    classes: Sequence[str],
    *,
    promise: Promise | None = None,
    further: Mapping[str, Sequence[Any] | NDArray[Any]] | None = None,
) -> list[Answer]:
    """Return the answers for nodes that are new or changed, and thus not in the table.

    Args:
        prediction: Prediction of the nodes.
        ids: Their ids.
        classes: Names of the classes.
        promise: Threshold of `abstain`; None if nothing is promised of these nodes.
        further: More fields by name, with a value per node.
    """
    columns = {name: value_of(prediction) for name, value_of in VALUE_COLUMNS.items()}
    present = {name: values for name, values in columns.items() if values is not None}
    texts, trust = reasons(prediction, classes), trust_of(prediction)
    answers = []
    for i, node_id in enumerate(ids):
        answer: Answer = {
            "id": node_id,
            "predicted_class": classes[int(prediction.predicted_class[i])],
            "probability": finite(float(prediction.probabilities[i].max())),
            "probabilities": probabilities(prediction.probabilities[i], classes),
        }
        answer |= {name: finite(float(values[i])) for name, values in present.items()}
        answer["reason"] = None if texts is None else str(texts[i])
        answer["trust"] = float(trust[i])
        answer["abstain"] = None if promise is None else bool(trust[i] < promise.threshold)
        answer |= {name: _plain(values[i]) for name, values in (further or {}).items()}
        answers.append(answer)
    return answers


def probabilities(probability_C: NDArray[np.float32], classes: Sequence[str]) -> Answer:
    """Return the probabilities by class; of many classes, those of the most probable ones."""
    if len(classes) <= MOST_CLASSES:
        return dict(zip(classes, map(finite, probability_C.tolist()), strict=True))
    top = np.argsort(-probability_C, kind="stable")[:MOST_CLASSES]
    return {classes[label]: finite(float(probability_C[label])) for label in top}


def degree(model: ServedModel, node: int) -> int:
    """Return the number of stored neighbours of a node."""
    indptr = model.graph.indptr
    return int(indptr[node + 1]) - int(indptr[node])


def with_fields(answers: list[Answer], fields: Mapping[str, Callable[[int], Any]]) -> list[Answer]:
    """Return answers with further fields, each a function of the place in the list."""
    for place, answer in enumerate(answers):
        answer |= {name: value_of(place) for name, value_of in fields.items()}
    return answers


def _label(model: ServedModel, block: Mapping[str, NDArray[Any]], row: int) -> str | None:
    label = block["label"].item(row)
    return None if label < 0 else model.classes[label]


def _split(block: Mapping[str, NDArray[Any]], row: int) -> str | None:
    code = block["split"].item(row)
    return None if code < 0 else SUBSETS[code]


def _plain(value: Any) -> Any:
    if isinstance(value, float | np.floating):
        return finite(float(value))
    return value.item() if isinstance(value, np.generic) else value
