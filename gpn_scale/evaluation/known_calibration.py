"""Calibration of GPN+ on the validation nodes: one temperature, and p-values of being known.

Validation nodes belong to known classes, so no unknown node is looked at. The p-values hold on
average over the draw of validation and test nodes, **if a known node is exchangeable with the
validation nodes**: drawn at random from the same graph, and in it during training. Early stopping
and the temperature have seen the validation nodes, which is a small bias that docs/posterior.md
measures. For nodes that join later, for another graph or after a shift nothing is promised: a small
p-value then says that a node looks strange compared with the validation nodes, for whatever reason.

Shapes: N nodes, V validation nodes, C classes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpn_scale.evaluation.p_values import (
    PARTS,
    PValues,
    calibration_p,
    conformal_p,
    mean_surprise,
)
from gpn_scale.evaluation.prediction import FloatArray, Prediction, row_blocks
from gpn_scale.evaluation.temperature import fitted_temperature, scaled
from gpn_scale.scratch import release_pages

PART_SCORES: Mapping[str, tuple[str, ...]] = {
    "features": ("epistemic_no_network",),
    "neighbourhood": ("epistemic", "entropy"),
    "opinion": ("energy",),
    "labels": ("label_absence",),
}
"""The scores that stand for each part; docs/posterior.md compares others."""
LEAST_NODES = 19
"""Number of validation nodes below which no p-values are given: none could be as small as 5 %."""
COARSE_NODES = 99
"""Number of validation nodes below which no p-value can be as small as 1 %."""
MOST_NODES = 1 << 16
"""Number of validation nodes that are kept; of more, so many are drawn at random."""

_ROUND_OFF = 1e-6
"""Sums of logarithms that differ by less are equal: round-off must not make p-values smaller."""


@dataclass(frozen=True, eq=False)
class KnownCalibration:
    """The temperature of the opinion, and the scores of the validation nodes.

    Args:
        temperature: Temperature of the opinion's probabilities.
        scores: Scores of the validation nodes by name, (V,) each; {} if there are too few nodes.
        num_nodes: Number V of validation nodes.
    """

    temperature: float
    scores: Mapping[str, FloatArray]
    num_nodes: int

    @classmethod
    def fitted(
        cls,
        prediction: Prediction,
        label_V: NDArray[np.integer],
        *,
        has_edges: bool = True,
        rng_seed: int = 0,
    ) -> "KnownCalibration":
        """Return the calibration for the validation nodes of a graph.

        A part that says nothing, because its scores are all equal or the graph has no edges, is
        left out.

        Args:
            prediction: Prediction of the validation nodes, not calibrated.
            label_V: Their labels.
            has_edges: Whether the graph has edges.
            rng_seed: Seed of the draw from more than `MOST_NODES` nodes.
        """
        count = len(label_V)
        temperature = fitted_temperature(prediction.probabilities, label_V)
        if count < LEAST_NODES:
            return cls(temperature, {}, count)
        if count > MOST_NODES:
            drawn = np.random.default_rng(rng_seed).choice(count, MOST_NODES, replace=False)
            prediction = prediction.rows(np.sort(drawn))
        tempered = replace(prediction, probabilities=_tempered(prediction, temperature))
        scores: dict[str, FloatArray] = {}
        for part in PARTS if has_edges else ("features", "opinion"):
            by_name = {name: _raw_score(tempered, name) for name in PART_SCORES[part]}
            scores |= {name: s for name, s in by_name.items() if s is not None and np.ptp(s) > 0}
        return cls(temperature, scores, len(prediction.alpha_0))

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """Names of the parts that have p-values."""
        return tuple(part for part in PARTS if self._names(part))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the p-values should know, one sentence each."""
        if self.num_nodes < LEAST_NODES:
            return (
                f"There are {self.num_nodes} validation nodes; p-values need at least "
                f"{LEAST_NODES}, so none are given.",
            )
        if not self.scores:
            return (
                f"No score tells the {self.num_nodes} validation nodes apart, so that no p-values "
                "are given.",
            )
        notes = []
        if self.num_nodes < COARSE_NODES:
            notes.append(
                f"There are {self.num_nodes} validation nodes, so that p-values are coarse: the "
                f"smallest possible one is {1 / (1 + self.num_nodes):.1%}."
            )
        if silent := [part for part in PARTS if part not in self.parts]:
            notes.append(
                f"The p-value that a node is known leaves out {', '.join(silent)}, which says the "
                "same of every validation node or needs edges."
            )
        return tuple(notes)

    def applied(self, prediction: Prediction) -> Prediction:
        """Return a prediction with tempered probabilities and p-values.

        The array of probabilities, which may be larger than memory, is changed in place.

        Args:
            prediction: A prediction of GPN+ that is not calibrated.
        """
        pieces = []
        for rows in row_blocks(len(prediction.alpha_0)):
            block = prediction.rows(rows)
            prediction.probabilities[rows] = _tempered(block, self.temperature)
            pieces.append(self._p_values(prediction.rows(rows)))
            release_pages(prediction.probabilities)
        return replace(prediction, p=_joined(pieces))

    def state(self) -> dict[str, Tensor]:
        """Return all that `from_state` needs, as tensors by name."""
        tensors = {f"scores.{name}": torch.from_numpy(s) for name, s in self.scores.items()}
        tensors["temperature"] = torch.tensor(self.temperature, dtype=torch.float64)
        return tensors | {"num_nodes": torch.tensor(self.num_nodes)}

    @classmethod
    def from_state(cls, tensors: Mapping[str, Tensor]) -> "KnownCalibration":
        """Return the calibration that `state` was called on."""
        prefix = "scores."
        scores = {
            name.removeprefix(prefix): tensor.numpy()
            for name, tensor in tensors.items()
            if name.startswith(prefix)
        }
        return cls(float(tensors["temperature"]), scores, int(tensors["num_nodes"]))

    def _p_values(self, prediction: Prediction) -> PValues | None:
        """Return the p-values of nodes whose probabilities are tempered already."""
        surprise_N: dict[str, NDArray[np.float64]] = {}
        p_of_part: dict[str, FloatArray] = {}
        for part in self.parts:
            names = self._names(part)
            scores = [_raw_score(prediction, name) for name in names]
            p_values = [
                conformal_p(self._sorted[name], score)
                for name, score in zip(names, scores, strict=True)
                if score is not None
            ]
            if len(p_values) == len(names):
                surprise_N[part] = mean_surprise(p_values)
                p_of_part[part] = p_values[0]
                if len(names) > 1:
                    p_of_part[part] = _joint_p(self._surprise[part], surprise_N[part])
        if not surprise_N:
            return None
        total_V = np.sum([self._surprise[part] for part in surprise_N], axis=0)
        total_N = np.sum(list(surprise_N.values()), axis=0)
        return PValues(known=_joint_p(total_V, total_N), **p_of_part)

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
    surprise_V: NDArray[np.float64], surprise_N: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Return the p-values of sums of -log p against those of the validation nodes, (N,)."""
    return conformal_p(np.sort(surprise_V), surprise_N - _ROUND_OFF)


def _tempered(prediction: Prediction, temperature: float) -> FloatArray:
    return scaled(prediction.probabilities, temperature).astype(np.float32)


def _joined(pieces: Sequence[PValues | None]) -> PValues | None:
    present = [piece for piece in pieces if piece is not None]
    if not present:
        return None
    names = (*present[0].parts, "known")
    return PValues(**{name: np.concatenate([getattr(p, name) for p in present]) for name in names})
