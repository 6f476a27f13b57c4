"""A trained model in one safetensors file: its tensors, and everything needed to use them."""

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
from gpn_scale.errors import ConfigError, GraphError, RunError
from gpn_scale.field_types import shown
from gpn_scale.train.checkpoint import check_tensors, load_tensors, save_tensors
from gpn_scale.train.model_parts import ModelParts, NetworkSizes

_FACTS: dict[str, type] = {
    "config": dict,
    "num_features": int,
    "num_classes": int,
    "num_clusters": int,
    "summary_of": str,
}
"""Entries that every model file has besides its tensors, with their types."""
_OPTIONAL_FACTS: dict[str, type] = {
    "predicts_with": dict,
    "surprise_of": str,
    "feature_names": list,
    "class_names": list,
    "source": str,
    "directed": bool,
    "weighted": bool,
    "preparation": dict,
}
"""Optional entries of model files."""
_KINDS = {dict: "an object", int: "a whole number", str: "a text", list: "a list"}
_KINDS |= {bool: "true or false"}
_LEAST = {"num_features": 1, "num_classes": 1, "num_clusters": 0}
_MOST = (1 << 31) - 1
_FIRST_WEIGHT, _SURPRISE = "encoder.first.weight", "surprise"


class GraphSurprise(NamedTuple):
    """The surprise of all nodes of a graph, which is needed for p-values of single nodes.

    >>> GraphSurprise("fingerprint", np.zeros(3, np.float32)).values.shape
    (3,)
    """

    fingerprint: str
    """Fingerprint of the graph."""
    values: NDArray[np.float32] | None
    """Surprise, (N,); None if there are no p-values."""


@dataclass(frozen=True, slots=True, eq=False)
class SavedModel:
    """Content of a model file."""

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
        RunError: the file is missing, damaged, not a model file, or from another version.
    """
    tensors, facts = load_tensors(path)
    surprise = tensors.pop(_SURPRISE, None)
    if "num_features" not in facts:
        raise RunError(f"{path} is a training checkpoint, expected a model file")
    if missing := _FACTS.keys() - facts.keys():
        raise RunError(
            f"{path} has no entry {min(missing)!r}: it was written by another version; train again"
        )
    _check_facts(path, facts)
    config, predicts_with = _configs(path, facts)
    first = tensors.get(_FIRST_WEIGHT)
    dtype = torch.float32 if first is None or not first.is_floating_point() else first.dtype
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


def _check_facts(path: Path, facts: dict[str, Any]) -> None:
    """Refuse entries of other types than a model file has, and numbers out of range."""
    for key, kind in (_FACTS | _OPTIONAL_FACTS).items():
        if key in facts and type(facts[key]) is not kind:
            raise RunError(
                f"{path} has {shown(facts[key])} for {key!r}, expected {_KINDS[kind]}: it is "
                "damaged, train again"
            )
    for key, least in _LEAST.items():
        if not least <= facts[key] <= _MOST:
            raise RunError(
                f"{path} has {shown(facts[key])} for {key!r}, expected {least} to {_MOST:,}: it is "
                "damaged, train again"
            )


def _configs(path: Path, facts: dict[str, Any]) -> tuple[RunConfig, DiffusionConfig]:
    """Return the configuration of the training, and the diffusion of predictions."""
    try:
        config = RunConfig.from_dict(facts["config"])
        if "predicts_with" not in facts:
            return config, config.diffusion
        return config, DiffusionConfig(**facts["predicts_with"])
    except (ConfigError, TypeError) as error:
        raise RunError(
            f"{path} has a configuration that cannot be used ({error}): it is damaged or was "
            "written by another version, train again"
        ) from error


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
        directed=facts.get("directed"),
        weighted=facts.get("weighted"),
        source=facts.get("source"),
    )


def _names(path: Path, facts: dict[str, Any], key: str, size: int) -> tuple[str, ...]:
    names = tuple(facts.get(key, []))
    if not all(isinstance(name, str) for name in names):
        raise RunError(f"{path} has {key} that are not texts: it is damaged, train again")
    if names and len(names) != size:
        raise RunError(
            f"{path} has {len(names)} {key}, expected {size}: it is damaged, train again"
        )
    return names


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
