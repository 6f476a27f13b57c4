"""Keywords of `GPNClassifier` that stand for fields of the configuration."""

from collections.abc import Mapping
from typing import Any

from gpn_scale.config import RunConfig, override
from gpn_scale.data.graph import Graph
from gpn_scale.recipes import in_minibatches, recipe_for

KEYWORDS = {
    "model": "model",
    "mode": "mode",
    "epochs": "train.epochs",
    "patience": "train.patience",
    "learning_rate": "train.learning_rate",
    "weight_decay": "train.weight_decay",
    "hidden": "encoder.hidden",
    "layers": "encoder.layers",
    "latent": "encoder.latent",
    "dropout": "encoder.dropout",
    "teleport": "diffusion.teleport",
    "steps": "diffusion.steps",
    "random_state": "train.rng_seed",
}
"""Key of the `RunConfig` field that each keyword sets."""


def with_keywords(config: RunConfig, keywords: Mapping[str, Any]) -> RunConfig:
    """Return `config` with the fields of all keywords that are not None replaced.

    >>> with_keywords(RunConfig(), {"epochs": 3, "latent": None}).train.epochs
    3

    Raises:
        ConfigError: a value is not allowed.
    """
    given = {key: keywords.get(name) for name, key in KEYWORDS.items()}
    return override(config, [(key, str(v)) for key, v in given.items() if v is not None])


def configuration_for(
    graph: Graph, config: RunConfig | None, keywords: Mapping[str, Any]
) -> RunConfig:
    """Return the given configuration, or else the graph's recipe, overridden by keywords.

    The recipe is the one that `gpn-train` uses for a dataset of the graph's name.

    >>> from gpn_scale import build_graph
    >>> graph = build_graph([0, 1], [1, 2], features=[[0.5], [2.0], [-1.0]], name="mine")
    >>> configuration_for(graph, None, {"epochs": 3}).encoder.standardise
    True

    Args:
        graph: Graph to train on.
        config: Configuration to start from; None for the recipe.
        keywords: Values of `KEYWORDS`; fields whose keyword is None or missing are kept.

    Raises:
        ConfigError: a value is not allowed.
    """
    if config is None:
        config = recipe_for(graph.name, graph)
        if keywords.get("mode") == "minibatch":
            own = None if graph.split is None else len(graph.split.train)
            config = in_minibatches(config, graph, num_train=own)
    return with_keywords(config, keywords)


def changed_fields(config: RunConfig) -> str:
    """Return Python code that creates `config`, with only the fields that differ from defaults.

    >>> from gpn_scale.config import TrainConfig
    >>> changed_fields(RunConfig(model="GPN", train=TrainConfig(epochs=3)))
    "RunConfig(model='GPN', train=TrainConfig(epochs=3))"
    """
    values, default = config.to_dict(), RunConfig().to_dict()
    parts = []
    for name, value in values.items():
        if value == default[name]:
            continue
        text = repr(value)
        if isinstance(value, dict):
            fields = [f"{key}={v!r}" for key, v in value.items() if v != default[name][key]]
            text = f"{type(getattr(config, name)).__name__}({', '.join(fields)})"
        parts.append(f"{name}={text}")
    return f"RunConfig({', '.join(parts)})"
