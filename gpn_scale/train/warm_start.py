"""Training that starts from the weights of an earlier model, on a graph that may have changed.

Everything that depends on the graph (the class prior and the means of clusters) is taken from the
new graph. The optimiser and early stopping start afresh.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torch import Tensor

from gpn_scale.config import RunConfig
from gpn_scale.data.contract import AlignedGraph, DataContract
from gpn_scale.data.graph import Graph
from gpn_scale.data.surprises import listed
from gpn_scale.errors import ConfigError, GraphError
from gpn_scale.train.model_file import SavedModel, load_model
from gpn_scale.train.trainer import Trainer

_SAME = (
    "model",
    "data.feature_scaling",
    "encoder.hidden",
    "encoder.layers",
    "encoder.latent",
    "encoder.batch_norm",
    "encoder.standardise",
    "flow.radial_layers",
    "evidence.budget",
    "evidence.log_limit",
)
"""Configuration fields that define the shapes and the meaning of the weights."""
_OF_GRAPH = ("clusters.", "cluster_PS", "evidence.log_prior_C")
"""Name prefixes of tensors that belong to a graph and not to the weights."""


def check_same_architecture(config: RunConfig, earlier: RunConfig, source: Path | str) -> None:
    """Refuse a configuration that does not match the weights of an earlier model.

    Args:
        config: Configuration of the training.
        earlier: Configuration of the earlier model.
        source: Where that model is from, for messages.

    Raises:
        ConfigError: a field differs.
    """
    for key in _SAME:
        now, before = _value(config, key), _value(earlier, key)
        if now != before:
            raise ConfigError(
                f"{source} was trained with {key}={before}, got {key}={now} for a training that "
                f"starts from its weights, expected the same value: use {key}={before}, or train "
                "without a warm start",
                arguments=(f"{key}={before}", "warm_start"),
            )


def aligned_for_start(graph: Graph, contract: DataContract, source: Path | str) -> AlignedGraph:
    """Return the graph with the columns and classes of an earlier model, in the model's order.

    Args:
        graph: The graph, with left-out classes hidden.
        contract: Columns and classes of the earlier model.
        source: Where that model is from, for messages.

    Raises:
        GraphError: the graph has other classes or features.
        TableFaults: raw columns are missing or of another kind.
    """
    classes, known = _classes(graph), contract.class_names or contract.num_classes
    if not _are_same(classes, known):
        raise _other(graph, "classes", _text(classes), source, _text(known))
    is_made_again = contract.preparation is not None and graph.raw_columns is not None
    names = [] if graph.feature_names is None else graph.feature_names.tolist()
    if not is_made_again and names and contract.feature_names:
        gone = [name for name in contract.feature_names if name not in set(names)]
        new = [name for name in names if name not in set(contract.feature_names)]
        if gone or new:
            given = f"without {listed(gone)}" if gone else f"also {listed(new)}"
            before = f"{len(contract.feature_names):,} features"
            raise _other(graph, "feature columns", given, source, before)
    elif not is_made_again and graph.num_features != contract.num_features:
        given = f"{graph.num_features:,}"
        raise _other(graph, "feature columns", given, source, f"{contract.num_features:,}")
    return contract.aligned(graph)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WarmStart:
    """An earlier model whose weights a training starts from."""

    model: SavedModel
    source: Path | str
    """Origin of the model, for messages."""

    @classmethod
    def loaded(cls, path: Path) -> "WarmStart":
        """Return the model in a file.

        Raises:
            RunError: the file cannot be used.
        """
        return cls(model=load_model(path), source=path)

    def prepared(self, graph: Graph, config: RunConfig) -> tuple[AlignedGraph, RunConfig]:
        """Check that graph and configuration match the model; return both, prepared for training.

        Raises:
            ConfigError: the configuration does not match the weights.
            GraphError: the classes or features of the graph differ from the model's.
        """
        check_same_architecture(config, self.model.config, self.source)
        aligned = aligned_for_start(graph, self.model.contract, self.source)
        # The flows are already trained, so there is no need for a warm-up.
        return aligned, replace(config, train=replace(config.train, warmup_steps=0))

    def give_weights(self, trainers: Sequence[Trainer]) -> None:
        """Copy the model's weights into the networks of trainers that have not started."""
        for trainer in trainers:
            parts = self.model.parts
            earlier = parts.opinion if trainer.part == "opinion" else parts.network
            assert earlier is not None
            state = trainer.model.state_dict()
            weights = {name: t for name, t in earlier.state_dict().items() if _is_weight(name)}
            trainer.model.load_state_dict(state | _like(weights, state))


def _like(weights: dict[str, Tensor], state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors with device and type of those of the same names."""
    return {name: t.to(state[name].device, state[name].dtype) for name, t in weights.items()}


def _is_weight(name: str) -> bool:
    return not name.startswith(_OF_GRAPH)


def _value(config: RunConfig, key: str) -> object:
    section, _, name = key.rpartition(".")
    return getattr(getattr(config, section) if section else config, name)


def _classes(graph: Graph) -> tuple[str, ...] | int:
    if graph.class_names is None:
        return graph.num_classes
    return tuple(str(name) for name in graph.class_names)


def _are_same(classes: tuple[str, ...] | int, known: tuple[str, ...] | int) -> bool:
    if isinstance(classes, tuple) and isinstance(known, tuple):
        return set(classes) == set(known)
    return classes == known


def _text(classes: tuple[str, ...] | int) -> str:
    return f"{classes} classes without names" if isinstance(classes, int) else listed(classes)


def _other(graph: Graph, what: str, given: str, source: Path | str, before: str) -> GraphError:
    return GraphError(
        f"graph {graph.name!r} has other {what} ({given}) than {source} was trained on ({before}), "
        "expected the same to start from its weights: train without a warm start",
        arguments=("warm_start",),
    )
