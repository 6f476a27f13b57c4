"""The networks and tables of a trained model, and their conversion to tensors by name."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gpn_scale.config import RunConfig
from gpn_scale.data.graph import Graph
from gpn_scale.errors import RunError
from gpn_scale.evaluation.known_calibration import (
    PART_SCORES,
    TEMPERATURE_SLOPE,
    KnownCalibration,
)
from gpn_scale.nn.model import GPN
from gpn_scale.nn.opinion import Opinion
from gpn_scale.train.checkpoint import check_tensors
from gpn_scale.train.model_size import parameter_count
from gpn_scale.train.new_trainer import new_network, new_opinion

_CLUSTER_MEANS = "clusters.mean_PC"
_LARGEST_TOTALS = "clusters.largest_total_P"
"""Infinite before the clusters of a store are summarised."""
_FREE_NUMBERS, _FREE_FACTOR = 10_000_000, 100
"""Number of parameters, and ratio to those in the file, up to which a network is not checked."""
_OPINION, _CALIBRATION = "opinion.", "calibration."


@dataclass(frozen=True, slots=True)
class NetworkSizes:
    """Sizes of a network that follow from its data, not from the configuration."""

    num_features: int
    num_classes: int
    num_clusters: int

    @classmethod
    def of(cls, graph: Graph, tensors: Mapping[str, Tensor]) -> "NetworkSizes":
        """Return the sizes for a graph, with as many clusters as the tensors have."""
        means_PC = tensors.get(_CLUSTER_MEANS)
        num_clusters = 0 if means_PC is None else len(means_PC)
        return cls(graph.num_features, graph.num_classes, num_clusters)


@dataclass(frozen=True, slots=True, eq=False)
class ModelParts:
    """A GPN, and for GPN+ its opinion and calibration."""

    network: GPN
    """The network of the feature evidence."""
    opinion: Opinion | None = None
    """The opinion of a GPN+; None for a GPN."""
    calibration: KnownCalibration | None = None
    """The calibration of a GPN+; None for a GPN, and before it is calibrated."""

    def state(self) -> dict[str, Tensor]:
        """Return all tensors by name; those of a GPN have the names of its network's state."""
        tensors = dict(self.network.state_dict())
        if self.opinion is not None:
            tensors |= {f"{_OPINION}{name}": t for name, t in self.opinion.state_dict().items()}
        if self.calibration is not None:
            tensors |= {f"{_CALIBRATION}{name}": t for name, t in self.calibration.state().items()}
        return tensors

    @classmethod
    def restored(
        cls,
        config: RunConfig,
        sizes: NetworkSizes,
        dtype: torch.dtype,
        tensors: Mapping[str, Tensor],
        source: Path | str,
    ) -> "ModelParts":
        """Return the parts with these tensors, on the CPU, networks in evaluation mode.

        Args:
            config: Configuration of the training.
            sizes: Numbers of features, classes and clusters.
            dtype: Type of its real numbers.
            tensors: What `state` returned.
            source: Origin of the tensors, for messages.

        Raises:
            RunError: the tensors belong to another model.
        """
        _check_numbers(config, sizes, tensors, source)
        opinion_tensors = _below(_OPINION, tensors)
        calibration_tensors = _below(_CALIBRATION, tensors)
        is_plus = config.model == "GPN+"
        if is_plus and not opinion_tensors:
            raise RunError(
                f"{source} has no opinion, expected one for model='GPN+': it was saved before all "
                "parts were trained, train again"
            )
        others = (_OPINION, _CALIBRATION) if is_plus else ()
        own = {name: t for name, t in tensors.items() if not name.startswith(others)}
        return cls(
            network=_network(config, sizes, dtype, own, source),
            opinion=_opinion(config, sizes, dtype, opinion_tensors, source) if is_plus else None,
            calibration=_calibration(calibration_tensors, source)
            if is_plus and calibration_tensors
            else None,
        )


def _check_numbers(
    config: RunConfig, sizes: NetworkSizes, tensors: Mapping[str, Tensor], source: Path | str
) -> None:
    """Refuse sizes far beyond those of the tensors, before a network of that size is created."""
    needed = parameter_count(config, sizes.num_features, sizes.num_classes)
    needed += sizes.num_clusters * sizes.num_classes
    present = sum(tensor.numel() for tensor in tensors.values())
    if needed > max(_FREE_NUMBERS, _FREE_FACTOR * present):
        raise RunError(
            f"{source} describes a model of {needed:,} numbers, but holds only {present:,}: it is "
            "damaged; train again"
        )


def _network(
    config: RunConfig,
    sizes: NetworkSizes,
    dtype: torch.dtype,
    tensors: Mapping[str, Tensor],
    source: Path | str,
) -> GPN:
    prior_C = torch.full((sizes.num_classes,), 1.0 / sizes.num_classes)
    network = new_network(config, sizes.num_features, prior_C, sizes.num_clusters).to(dtype)
    check_tensors(source, tensors, network.state_dict())
    _check_finite(tensors, source)
    network.load_state_dict(tensors)
    return network.eval()


def _opinion(
    config: RunConfig,
    sizes: NetworkSizes,
    dtype: torch.dtype,
    tensors: Mapping[str, Tensor],
    source: Path | str,
) -> Opinion:
    opinion = new_opinion(config, sizes.num_features, sizes.num_classes).to(dtype)
    if "cluster_PS" in tensors:
        shape = (sizes.num_clusters, sizes.num_classes + 1)
        opinion.cluster_PS = torch.zeros(shape, dtype=dtype)
    check_tensors(source, tensors, opinion.state_dict())
    _check_finite(tensors, source)
    opinion.load_state_dict(tensors)
    return opinion.eval()


def _check_finite(tensors: Mapping[str, Tensor], source: Path | str) -> None:
    for name, tensor in tensors.items():
        numbers = tensor.clamp_max(0) if name == _LARGEST_TOTALS else tensor
        if not bool(torch.isfinite(numbers).all()):
            raise RunError(
                f"{source} has a tensor {name!r} whose numbers are not all finite: it is damaged, "
                "train again"
            )


def _calibration(tensors: Mapping[str, Tensor], source: Path | str) -> KnownCalibration:
    check_tensors(source, tensors, _like_calibration(tensors))
    calibration = KnownCalibration.from_state(tensors)
    rule = calibration.tempering
    if not 0.0 < rule.temperature < math.inf:
        raise RunError(
            f"{source} has a temperature of {rule.temperature}, expected a positive number: "
            "it is damaged, train again"
        )
    if not (math.isfinite(rule.slope + rule.mean) and 0.0 < rule.deviation < math.inf):
        raise RunError(
            f"{source} has {rule.slope}, {rule.mean} and {rule.deviation} as slope, mean and "
            "deviation of its temperatures, expected finite numbers and a positive deviation: it "
            "is damaged, train again"
        )
    for name, values in (*calibration.scores.items(), *calibration.surroundings.items()):
        if not np.isfinite(values).all():
            raise RunError(
                f"{source} has values {name!r} of validation nodes that are not finite, expected "
                "numbers: it is damaged, train again"
            )
    return calibration


def _like_calibration(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors of a calibration with the scores that occur in `tensors`."""
    count = tensors.get("num_nodes", torch.tensor(0))
    size = int(count) if count.dtype == torch.int64 and count.numel() == 1 else 0
    column_V = torch.empty(max(size, 0), device="meta")
    has_around = any(name.startswith("around.") for name in tensors)
    expected = {"num_nodes": torch.tensor(0), "temperature": torch.zeros((), dtype=torch.float64)}
    if TEMPERATURE_SLOPE in tensors:
        expected[TEMPERATURE_SLOPE] = torch.zeros(3, dtype=torch.float64)
    for part, scores in PART_SCORES.items():
        present = {f"scores.{score}" for score in scores} & tensors.keys()
        expected |= dict.fromkeys(present, column_V)
        if present and has_around:
            expected[f"around.{part}"] = column_V
    return expected


def _below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name[len(prefix) :]: t for name, t in tensors.items() if name.startswith(prefix)}
