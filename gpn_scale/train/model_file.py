"""A trained model in one safetensors file: its tensors, and all that is needed to use them."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from gpn_scale import __version__
from gpn_scale.config import DiffusionConfig, RunConfig
from gpn_scale.data.contract import DataContract
from gpn_scale.data.preparation import Preparation
from gpn_scale.errors import GraphError, RunError
from gpn_scale.train.checkpoint import check_tensors, load_tensors, save_tensors
from gpn_scale.train.model_parts import ModelParts, NetworkSizes

_FACTS = {"config", "num_features", "num_classes", "num_clusters", "summary_of"}
"""Entries that every model file has besides its tensors."""
_FIRST_WEIGHT, _SURPRISE = "encoder.first.weight", "surprise"


class GraphSurprise(NamedTuple):
    """The surprise of all nodes of a graph, which p-values of some nodes need.

    >>> GraphSurprise("fingerprint", np.zeros(3, np.float32)).values.shape
    (3,)
    """

    fingerprint: str
    """Fingerprint of the graph."""
    values: NDArray[np.float32] | None
    """Surprise, (N,); None if there are no p-values."""


@dataclass(frozen=True, slots=True, eq=False)
class SavedModel:
    """What a model file holds."""

    parts: ModelParts
    """The networks, on the CPU and in evaluation mode, and the calibration."""
    config: RunConfig
    """Configuration of the training."""
    predicts_with: DiffusionConfig
    """Diffusion of its predictions."""
    clusters_of: str
    """Fingerprint of the graph and clusters that its cluster evidence belongs to; empty if none."""
    dtype: torch.dtype
    """Type of its real numbers."""
    contract: DataContract
    """Feature columns, their preparation, classes and kind of edges of its training graph."""
    surprise: GraphSurprise | None = None
    """Surprise of a graph's nodes, of GPN+; None if it is not known."""


def save_model(path: Path, model: SavedModel) -> None:
    """Replace `path` with the model; equal models give equal bytes."""
    network = model.parts.network
    facts: dict[str, Any] = {
        "config": model.config.to_dict(),
        "num_features": len(network.encoder.first.shift_F),
        "num_classes": network.flow.num_classes,
        "num_clusters": 0 if network.clusters is None else network.clusters.num_clusters,
        "summary_of": model.clusters_of,
        "version": __version__,
    }
    if model.predicts_with != model.config.diffusion:
        facts["predicts_with"] = asdict(model.predicts_with)
    facts |= _contract_facts(model.contract)
    tensors = model.parts.state()
    if model.surprise is not None and model.surprise.values is not None:
        facts["surprise_of"] = model.surprise.fingerprint
        tensors[_SURPRISE] = torch.from_numpy(model.surprise.values)
    save_tensors(path, tensors, facts)


def load_model(path: Path) -> SavedModel:
    """Return the model in the file `path`.

    Raises:
        RunError: the file is missing, damaged, not a model file, or of another version.
    """
    tensors, facts = load_tensors(path)
    surprise = tensors.pop(_SURPRISE, None)
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
    parts = ModelParts.restored(config, sizes, dtype, tensors, path)
    of_graph = None
    if surprise is not None:
        check_tensors(path, {_SURPRISE: surprise}, {_SURPRISE: torch.empty(surprise.numel())})
        of_graph = GraphSurprise(facts.get("surprise_of", ""), surprise.numpy())
    return SavedModel(
        parts,
        config,
        predicts_with,
        facts["summary_of"],
        dtype,
        _contract(path, facts),
        of_graph,
    )


def _contract_facts(contract: DataContract) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "feature_names": list(contract.feature_names),
        "class_names": list(contract.class_names),
    }
    optional = {
        "directed": contract.directed,
        "weighted": contract.weighted,
        "source": contract.source,
    }
    facts |= {key: value for key, value in optional.items() if value is not None}
    if contract.preparation is not None:
        facts["preparation"] = contract.preparation.to_dict()
    return facts


def _contract(path: Path, facts: dict[str, Any]) -> DataContract:
    """Return the contract in a model file; files of earlier versions have fewer entries."""
    return DataContract(
        num_features=facts["num_features"],
        num_classes=facts["num_classes"],
        feature_names=_names(path, facts, "feature_names", facts["num_features"]),
        class_names=_names(path, facts, "class_names", facts["num_classes"]),
        preparation=_preparation(path, facts),
        directed=_edge_fact(path, facts, "directed"),
        weighted=_edge_fact(path, facts, "weighted"),
        source=None if facts.get("source") is None else str(facts["source"]),
    )


def _names(path: Path, facts: dict[str, Any], key: str, size: int) -> tuple[str, ...]:
    names = tuple(str(name) for name in facts.get(key, []))
    if names and len(names) != size:
        raise RunError(
            f"{path} has {len(names)} {key}, expected {size}: it is damaged, train again"
        )
    return names


def _edge_fact(path: Path, facts: dict[str, Any], key: str) -> bool | None:
    value = facts.get(key)
    if not isinstance(value, bool | None):
        raise RunError(
            f"{path} has {value!r} for {key!r}, expected true or false: it is damaged, train again"
        )
    return value


def _preparation(path: Path, facts: dict[str, Any]) -> Preparation | None:
    if "preparation" not in facts:
        return None
    try:
        preparation = Preparation.from_dict(facts["preparation"])
    except GraphError as error:
        raise RunError(f"{path}: {error}, and train again") from error
    if preparation.num_features != facts["num_features"]:
        raise RunError(
            f"{path} has a preparation of {preparation.num_features} features, expected "
            f"{facts['num_features']}: it is damaged, train again"
        )
    return preparation
