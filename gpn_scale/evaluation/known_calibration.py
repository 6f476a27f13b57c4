"""Calibration of GPN+ on the validation nodes: temperatures, and p-values of being known.

Validation nodes belong to known classes, so no unknown node is looked at. The p-values hold on
average over the draw of validation and test nodes, **if a known node is exchangeable with the
validation nodes**: drawn at random from the same graph, and in it during training. Early stopping
and the temperatures have seen the validation nodes, which is a small bias, and the surroundings in
`p_known` make it approximate (docs/posterior.md). For nodes that join later, for another graph or
after a shift nothing is promised: a small p-value then says that a node looks strange compared with
the validation nodes, for whatever reason.

Shapes: N nodes, V validation nodes, C classes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpn_scale.data.graph import NodeIds
from gpn_scale.evaluation.p_values import (
    PARTS,
    PValues,
    calibration_p,
    conformal_p,
    mean_surprise,
)
from gpn_scale.evaluation.prediction import FloatArray, Prediction, row_blocks
from gpn_scale.evaluation.temperature import NodeTemperature
from gpn_scale.scratch import release_pages

PART_SCORES: Mapping[str, tuple[str, ...]] = {
    "features": ("epistemic_no_network",),
    "neighbourhood": ("epistemic", "entropy"),
    "opinion": ("energy",),
    "labels": ("label_absence",),
}
"""The scores that represent each part; docs/posterior.md compares alternatives."""
AROUND_WEIGHT = 1.0
"""Weight of the surroundings' surprise relative to a node's own; see docs/posterior.md."""
P_VALUE_CONDITION = (
    "P-values hold for nodes that are exchangeable with the validation nodes: nodes of known "
    "classes, drawn at random from this graph. For nodes that join later, for another graph or "
    "after a shift, a small p-value says only that a node looks strange beside the validation "
    "nodes."
)
"""The condition under which p-values are valid, for pages and reports."""
ELSEWHERE_CONDITION = (
    "P-values compare these nodes with the validation nodes of the training graph, which they are "
    "not exchangeable with: a small one says that a node looks strange beside them, and no rate of "
    "false alarms is promised."
)
"""Meaning of p-values for nodes of another graph, and for nodes that joined after training."""
LATER_CONDITION = (
    "P-values compare nodes with the validation nodes of training as they are in this later graph. "
    "They hold for nodes of known classes that were in the graph of training. For nodes that have "
    "joined since, a small p-value says only that a node looks strange beside the validation nodes."
)
"""Meaning of p-values on a later version of the training graph, after calibration on it."""
LEAST_NODES = 19
"""Number of validation nodes below which no p-values are given: none could be as small as 5 %."""
COARSE_NODES = 99
"""Number of validation nodes below which no p-value can be as small as 1 %."""
MOST_NODES = 1 << 16
"""Largest number of validation nodes that are kept; if there are more, they are sampled."""

Average = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""Maps values of the predicted nodes, (N, M), to their means over these nodes' rows, (N, M)."""


def calibration_nodes(val: NodeIds, rng_seed: int) -> NodeIds:
    """Return the validation nodes to calibrate on: all of them, or `MOST_NODES` at random.

    >>> calibration_nodes(np.arange(3), rng_seed=1)
    array([0, 1, 2])
    """
    if len(val) <= MOST_NODES:
        return val
    drawn = np.random.default_rng(rng_seed).choice(len(val), MOST_NODES, replace=False)
    return val[np.sort(drawn)]


TEMPERATURE_SLOPE = "temperature_slope"
"""Name of the tensor of slope, mean and deviation; models of before have none, and a slope of 0."""
_ROUND_OFF = 1e-6
"""Sums of logarithms that differ by less count as equal, so that round-off lowers no p-value."""


@dataclass(frozen=True, eq=False)
class KnownCalibration:
    """The calibration of a GPN+: its temperatures, and the scores of the validation nodes.

    A node's surprise by a part is the mean of -log p over the part's scores. Strange nodes have
    strange neighbours, so the p-value that a node is known counts, beside the node's own surprise,
    that of its surroundings: the mean over its row of the diffusion.

    >>> rule, scores = NodeTemperature(2.0), {"energy": np.arange(3.0)}
    >>> calibration = KnownCalibration(rule, scores, {"opinion": np.ones(3)}, 3)
    >>> calibration.parts
    ('opinion',)

    Args:
        tempering: Temperatures of the opinion's probabilities.
        scores: Scores of the validation nodes by name, (V,) each; {} if there are too few nodes.
        surroundings: Surprise of their surroundings by part, (V,) each; {} before it is known.
        num_nodes: Number V of validation nodes.
    """

    tempering: NodeTemperature
    scores: Mapping[str, FloatArray]
    surroundings: Mapping[str, FloatArray]
    num_nodes: int

    @classmethod
    def fitted(
        cls, prediction: Prediction, label_V: NDArray[np.integer], *, has_edges: bool = True
    ) -> "KnownCalibration":
        """Fit the calibration to validation nodes; their surroundings are added later.

        A part is left out if it cannot distinguish nodes, because its scores are all equal or the
        graph has no edges.

        Args:
            prediction: Uncalibrated prediction of the validation nodes.
            label_V: Their labels.
            has_edges: Whether the graph has edges.
        """
        count = len(label_V)
        tempering = NodeTemperature.fitted(prediction.probabilities, prediction.energy, label_V)
        if count < LEAST_NODES:
            return cls(tempering, {}, {}, count)
        tempered = replace(prediction, probabilities=_tempered(prediction, tempering))
        scores: dict[str, FloatArray] = {}
        for part in PARTS if has_edges else ("features", "opinion"):
            by_name = {name: _raw_score(tempered, name) for name in PART_SCORES[part]}
            scores |= {name: s for name, s in by_name.items() if s is not None and np.ptp(s) > 0}
        return cls(tempering, scores, {}, count)

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """Names of the parts that have p-values."""
        return tuple(part for part in PARTS if self._names(part))

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for readers of the p-values, one sentence each."""
        if self.num_nodes < LEAST_NODES:
            return (
                f"There are {self.num_nodes} validation nodes; p-values need at least "
                f"{LEAST_NODES}, so none are given.",
            )
        if not self.scores:
            return (
                f"No score distinguishes the {self.num_nodes} validation nodes, so no p-values "
                "are given.",
            )
        notes = []
        if self.num_nodes < COARSE_NODES:
            notes.append(
                f"There are only {self.num_nodes} validation nodes, so p-values are coarse: the "
                f"smallest possible one is {1 / (1 + self.num_nodes):.1%}."
            )
        if silent := [part for part in PARTS if part not in self.parts]:
            notes.append(
                f"The p-value that a node is known leaves out {', '.join(silent)}: such a part "
                "gives every validation node the same score, or needs edges."
            )
        return tuple(notes)

    def temper(self, prediction: Prediction) -> None:
        """Apply the temperatures to a prediction's probabilities, in place.

        In place, since the array may be larger than memory.
        """
        for rows in row_blocks(len(prediction.alpha_0)):
            block = prediction.rows(rows)
            prediction.probabilities[rows] = _tempered(block, self.tempering)
            release_pages(prediction.probabilities)

    def surprise(self, prediction: Prediction) -> dict[str, FloatArray]:
        """Return the surprise of every node by each part that the prediction has, (N,) each.

        Args:
            prediction: A prediction of GPN+ whose probabilities are tempered.
        """
        pieces = [
            self._block_surprise(prediction.rows(rows))
            for rows in row_blocks(len(prediction.alpha_0))
        ]
        return {part: np.concatenate([piece[part] for piece in pieces]) for part in pieces[0]}

    def p_values(
        self, surprise: Mapping[str, FloatArray], around_N: FloatArray | None
    ) -> PValues | None:
        """Return the p-values of nodes; None without parts.

        Args:
            surprise: Surprise of the nodes by part, from `surprise`.
            around_N: Surprise of their surroundings in all parts together; None to ignore it.
        """
        if not surprise:
            return None
        total_V = np.sum([self._surprise[part] for part in surprise], axis=0)
        total_N = np.asarray(np.sum(list(surprise.values()), axis=0, dtype=np.float64))
        if around_N is not None and self.surroundings:
            total_V = total_V + AROUND_WEIGHT * np.sum(
                [self.surroundings[part] for part in surprise], axis=0, dtype=np.float64
            )
            total_N = total_N + AROUND_WEIGHT * around_N
        return PValues(
            known=_joint_p(total_V, total_N),
            beyond=np.maximum(total_N - total_V.max(), 0.0).astype(np.float32),
            **{part: self._part_p(part, s) for part, s in surprise.items()},
        )

    def _part_p(self, part: str, surprise_N: FloatArray) -> FloatArray:
        """Return the p-values of one part, (N,); a single score has its own already."""
        if len(self._names(part)) == 1:
            return np.exp(-surprise_N)
        return _joint_p(self._surprise[part], surprise_N)

    def state(self) -> dict[str, Tensor]:
        """Return the tensors, by name, that `from_state` needs."""
        tensors = {f"scores.{name}": torch.from_numpy(s) for name, s in self.scores.items()}
        around = {f"around.{part}": torch.from_numpy(s) for part, s in self.surroundings.items()}
        tensors |= around | {"num_nodes": torch.tensor(self.num_nodes)}
        rule = self.tempering
        energies = [rule.slope, rule.mean, rule.deviation]
        return tensors | {
            "temperature": torch.tensor(rule.temperature, dtype=torch.float64),
            TEMPERATURE_SLOPE: torch.tensor(energies, dtype=torch.float64),
        }

    @classmethod
    def from_state(cls, tensors: Mapping[str, Tensor]) -> "KnownCalibration":
        """Return the calibration whose `state` is given."""

        def below(prefix: str) -> dict[str, FloatArray]:
            names = [name for name in tensors if name.startswith(prefix)]
            return {name.removeprefix(prefix): tensors[name].numpy() for name in names}

        energies = tensors[TEMPERATURE_SLOPE].tolist() if TEMPERATURE_SLOPE in tensors else ()
        tempering = NodeTemperature(float(tensors["temperature"]), *energies)
        return cls(tempering, below("scores."), below("around."), int(tensors["num_nodes"]))

    def _block_surprise(self, prediction: Prediction) -> dict[str, FloatArray]:
        surprise: dict[str, FloatArray] = {}
        for part in self.parts:
            names = self._names(part)
            scores = [_raw_score(prediction, name) for name in names]
            p_values = [
                conformal_p(self._sorted[name], score)
                for name, score in zip(names, scores, strict=True)
                if score is not None
            ]
            if len(p_values) == len(names):
                surprise[part] = mean_surprise(p_values).astype(np.float32)
        return surprise

    @cached_property
    def _sorted(self) -> dict[str, FloatArray]:
        return {name: np.sort(score) for name, score in self.scores.items()}

    @cached_property
    def _surprise(self) -> dict[str, NDArray[np.float64]]:
        """Mean of -log p over the scores of each part, of every validation node."""
        return {
            part: mean_surprise([calibration_p(self.scores[name]) for name in self._names(part)])
            for part in self.parts
        }

    def _names(self, part: str) -> list[str]:
        """Return the names of the scores that stand for a part."""
        return [name for name in PART_SCORES[part] if name in self.scores]


def _raw_score(prediction: Prediction, name: str) -> FloatArray | None:
    if name == "energy":
        return prediction.energy
    if name == "label_absence":
        return None if prediction.label_evidence is None else -prediction.label_evidence
    return prediction.score(name)


def _joint_p(
    surprise_V: NDArray[np.float64], surprise_N: NDArray[np.floating]
) -> NDArray[np.float32]:
    """Return the p-values of sums of -log p against those of the validation nodes, (N,)."""
    return conformal_p(np.sort(surprise_V), surprise_N - _ROUND_OFF)


def _tempered(prediction: Prediction, tempering: NodeTemperature) -> FloatArray:
    return tempering.scaled(prediction.probabilities, prediction.energy).astype(np.float32)
