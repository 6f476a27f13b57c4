"""A trained model in one safetensors file: its tensors, and all that is needed to use them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gpn_scale.config import DiffusionConfig, RunConfig
from gpn_scale.data.graph import Graph
from gpn_scale.errors import RunError
from gpn_scale.nn.model import GPN
from gpn_scale.train.checkpoint import check_tensors, load_tensors, save_tensors
from gpn_scale.train.new_trainer import new_network

_FACTS = {"config", "num_features", "num_classes", "num_clusters", "summary_of"}
"""Entries that every model file has besides its tensors."""
_FIRST_WEIGHT, _CLUSTER_MEANS = "encoder.first.weight", "clusters.mean_PC"


@dataclass(frozen=True, slots=True, eq=False)
class SavedModel:
    """What a model file holds."""

    network: GPN
    """The network, on the CPU, in evaluation mode."""
    config: RunConfig
    """Configuration of the training."""
    predicts_with: DiffusionConfig
    """Diffusion of its predictions."""
    clusters_of: str
    """Fingerprint of the graph and clusters that its cluster evidence belongs to; empty if none."""
    dtype: torch.dtype
    """Type of its real numbers."""


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


def save_model(path: Path, model: SavedModel) -> None:
    """Replace `path` with the model; equal models give equal bytes."""
    network = model.network
    facts: dict[str, Any] = {
        "config": model.config.to_dict(),
        "num_features": len(network.encoder.first.shift_F),
        "num_classes": network.flow.num_classes,
        "num_clusters": 0 if network.clusters is None else network.clusters.num_clusters,
        "summary_of": model.clusters_of,
    }
    if model.predicts_with != model.config.diffusion:
        facts["predicts_with"] = asdict(model.predicts_with)
    save_tensors(path, network.state_dict(), facts)


def load_model(path: Path) -> SavedModel:
    """Return the model in the file `path`.

    Raises:
        RunError: the file is missing, damaged, not a model file, or of another version.
    """
    tensors, facts = load_tensors(path)
    if "num_features" not in facts:
        raise RunError(f"{path} is a training checkpoint, expected a model file")
    if missing := _FACTS - facts.keys():
        raise RunError(
            f"{path} has no entry {min(missing)!r}: it was written by another version, train again"
        )
    config = RunConfig.from_dict(facts["config"])
    predicts_with = config.diffusion
    if "predicts_with" in facts:
        predicts_with = DiffusionConfig(**facts["predicts_with"])
    first = tensors.get(_FIRST_WEIGHT)
    dtype = torch.float32 if first is None else first.dtype
    sizes = NetworkSizes(facts["num_features"], facts["num_classes"], facts["num_clusters"])
    network = network_of(config, sizes, dtype, tensors, path)
    return SavedModel(network, config, predicts_with, facts["summary_of"], dtype)


def network_of(
    config: RunConfig,
    sizes: NetworkSizes,
    dtype: torch.dtype,
    tensors: Mapping[str, Tensor],
    source: Path | str,
) -> GPN:
    """Return the network with these tensors, on the CPU, in evaluation mode.

    Args:
        config: Configuration of the training.
        sizes: Numbers of features, classes and clusters.
        dtype: Type of its real numbers.
        tensors: State of the network, by name.
        source: Where the tensors are from, for messages.

    Raises:
        RunError: the tensors belong to another network.
    """
    prior_C = torch.full((sizes.num_classes,), 1.0 / sizes.num_classes)
    network = new_network(config, sizes.num_features, prior_C, sizes.num_clusters).to(dtype)
    check_tensors(source, tensors, network.state_dict())
    network.load_state_dict(tensors)
    return network.eval()
