"""Movements of the shares of predicted classes, of their probabilities and of abstentions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.drift.reference import ComparedNodes
from gpn_scale.drift.scored_table import ScoredTable
from gpn_scale.drift.two_samples import Movement, Share, share_movement
from gpn_scale.evaluation.intervals import Interval, mean_interval
from gpn_scale.evaluation.sample_sizes import LEAST_MEAN_NODES


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassDrift:
    """Movement of the share of one predicted class.

    >>> drift = ClassDrift(
    ...     name="fraud", a=Share(0, 50), b=Share(9, 50), movement=Movement(0.18, 0.001), moved=True
    ... )
    >>> drift.status, drift.change
    ('new', 0.18)
    """

    name: str
    a: Share
    b: Share
    movement: Movement
    moved: bool
    """Whether the share moved, corrected for comparing all classes at once."""

    @property
    def change(self) -> float:
        """Share in B minus share in A."""
        return self.b.value - self.a.value

    @property
    def status(self) -> str:
        """`new` if no node of A has the class, `vanished` if none of B has it, else ``."""
        if not self.a.count:
            return "new"
        return "" if self.b.count else "vanished"

    def to_dict(self) -> dict[str, Any]:
        """Return the drift as JSON values."""
        return {
            "class": self.name,
            "a": self.a.to_dict(),
            "b": self.b.to_dict(),
            "change": self.change,
            "p_value": self.movement.p_value,
            "moved": self.moved,
            "status": self.status,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """The mean of a quantity with its interval.

    >>> Mean(value=0.8, interval=(0.7, 0.9), nodes=50).to_dict()
    {'mean': 0.8, 'interval': (0.7, 0.9), 'nodes': 50}
    """

    value: float
    interval: Interval
    nodes: int

    def to_dict(self) -> dict[str, Any]:
        """Return the mean as JSON values."""
        return {"mean": self.value, "interval": self.interval, "nodes": self.nodes}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassesDrift:
    """Movements of the predictions.

    >>> ClassesDrift(classes=(), probability=None, abstained=None, left_out=()).to_dict()
    {'shares': [], 'mean_probability': None, 'abstained': None}
    """

    classes: tuple[ClassDrift, ...]
    """Classes that either table predicts, the largest change first."""
    probability: tuple[Mean, Mean] | None
    """Mean calibrated probability of the predicted class; None for too few nodes."""
    abstained: tuple[Share, Share] | None
    """Share of nodes that are not answered; None without a promise."""
    left_out: tuple[str, ...]
    """What is not compared, one sentence each."""

    def to_dict(self) -> dict[str, Any]:
        """Return the drift as JSON values."""
        return {
            "shares": [each.to_dict() for each in self.classes],
            "mean_probability": _pair(self.probability, Mean.to_dict),
            "abstained": _pair(self.abstained, Share.to_dict),
        }


def class_drifts(a: ScoredTable, b: ScoredTable, nodes: ComparedNodes) -> ClassesDrift:
    """Return how the shares of classes moved.

    >>> import pyarrow as pa
    >>> sure = {"node": range(40), "aleatoric": [-0.9] * 40}
    >>> a = ScoredTable.of(pa.table(sure | {"predicted_class": [0] * 20 + [1] * 20}))
    >>> b = ScoredTable.of(pa.table(sure | {"predicted_class": [0] * 40}))
    >>> [(each.name, each.change) for each in class_drifts(a, b, ComparedNodes.of(a, b)).classes]
    [('0', 0.5), ('1', -0.5)]
    """
    counts = [_counts(table, rows, a, b) for table, rows in ((a, nodes.a), (b, nodes.b))]
    names = sorted(set(counts[0]) | set(counts[1]))
    drifts = []
    for name in names:
        share_a = Share(counts[0].get(name, 0), len(nodes.a))
        share_b = Share(counts[1].get(name, 0), len(nodes.b))
        movement = share_movement(share_a, share_b)
        moved = movement.is_notable(len(names))
        drifts.append(ClassDrift(name=name, a=share_a, b=share_b, movement=movement, moved=moved))
    means = _mean(a.probability[nodes.a]), _mean(b.probability[nodes.b])
    return ClassesDrift(
        classes=tuple(sorted(drifts, key=lambda each: (-abs(each.change), each.name))),
        probability=None if means[0] is None or means[1] is None else (means[0], means[1]),
        abstained=_abstained(a, b, nodes),
        left_out=_left_out(a, b, nodes),
    )


def _counts(
    table: ScoredTable, rows: NDArray[np.int64], a: ScoredTable, b: ScoredTable
) -> dict[str, int]:
    """Return the number of nodes per class, by names if both tables have them, else by numbers."""
    if a.has_class_names and b.has_class_names:
        counts = np.bincount(table.predicted[rows], minlength=len(table.class_names))
        pairs = zip(table.class_names, counts.tolist(), strict=True)
        return {name: count for name, count in pairs if count}
    counts = np.bincount(table.predicted_number[rows])
    return {str(number): int(counts[number]) for number in np.flatnonzero(counts)}


def _mean(values: NDArray[np.float64]) -> Mean | None:
    interval = mean_interval(values) if len(values) >= LEAST_MEAN_NODES else None
    if interval is None:
        return None
    return Mean(value=float(values.mean()), interval=interval, nodes=len(values))


def _abstained(a: ScoredTable, b: ScoredTable, nodes: ComparedNodes) -> tuple[Share, Share] | None:
    if a.abstain is None or b.abstain is None:
        return None
    counts = int(a.abstain[nodes.a].sum()), int(b.abstain[nodes.b].sum())
    return Share(counts[0], len(nodes.a)), Share(counts[1], len(nodes.b))


def _left_out(a: ScoredTable, b: ScoredTable, nodes: ComparedNodes) -> tuple[str, ...]:
    sentences = []
    if None not in (a.num_classes, b.num_classes) and a.num_classes != b.num_classes:
        sentences.append(
            f"The model of A has {a.num_classes} classes and that of B has {b.num_classes}: a "
            "class that only one of them predicts has a share of 0 in the other."
        )
    if a.has_class_names != b.has_class_names:
        sentences.append("One table has no names of classes, so that classes go by their numbers.")
    if min(len(nodes.a), len(nodes.b)) < LEAST_MEAN_NODES:
        sentences.append(
            f"Mean probabilities are not given: they need {LEAST_MEAN_NODES} nodes of A and of B, "
            f"and there are {len(nodes.a)} and {len(nodes.b)}."
        )
    if (a.abstain is None) != (b.abstain is None):
        holder = "B" if a.abstain is None else "A"
        sentences.append(f"Abstained nodes are not compared: only {holder} says which they are.")
    elif a.abstain is not None and a.joint != "p_known":
        sentences.append(
            "Which nodes are not answered depends on p_known as it was predicted, whose parts "
            "differ between A and B."
        )
    return tuple(sentences)


def _pair(pair: Any, as_json: Callable[[Any], Any]) -> Any:
    return None if pair is None else {"a": as_json(pair[0]), "b": as_json(pair[1])}
