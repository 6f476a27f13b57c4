"""Models of the evaluation by name: how each is trained and predicts."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from gpn_scale.baselines.registry import BASELINES, BaselineSetting
from gpn_scale.config import RunConfig, override, parse_assignments
from gpn_scale.data.graph import Graph
from gpn_scale.errors import ConfigError
from gpn_scale.experiments.matrix import AnySetting, Setting
from gpn_scale.recipes import in_minibatches


def _gpn(config: RunConfig, graph: Graph) -> Setting:
    return Setting(config, config.diffusion)


def _gpn_minibatch(config: RunConfig, graph: Graph) -> Setting:
    return Setting(in_minibatches(config, graph), config.diffusion)


def _postnet(config: RunConfig, graph: Graph) -> Setting:
    """Posterior Network (Charpentier et al., 2020): features alone."""
    alone = replace(config.diffusion, steps=0)
    return Setting(replace(config, diffusion=alone), alone)


def _postnet_diff(config: RunConfig, graph: Graph) -> Setting:
    """PostNet whose evidence is diffused when it predicts, but not when it is trained."""
    return Setting(_postnet(config, graph).config, config.diffusion)


def _gpn_log(config: RunConfig, graph: Graph) -> Setting:
    """GPN that averages logarithms of evidence over neighbourhoods."""
    logs = replace(config.diffusion, of="log_evidence")
    return Setting(replace(config, diffusion=logs), logs)


MODELS: dict[str, Callable[[RunConfig, Graph], Setting]] = {
    "GPN": _gpn,
    "GPN-minibatch": _gpn_minibatch,
    "PostNet": _postnet,
    "PostNet-Diff": _postnet_diff,
    "GPN-LOG-beta": _gpn_log,
}
ABLATION = ("PostNet", "PostNet-Diff", "GPN", "GPN-LOG-beta")


def known_models() -> list[str]:
    """All names, GPN's first."""
    return [*MODELS, *BASELINES]


def setting_of(
    name: str, recipe: RunConfig, changes: Sequence[tuple[str, str]], graph: Graph
) -> AnySetting:
    """The setting of a model; `NAME[section.field=value;...]` changes it, as `--set` does.

    Args:
        name: Of the model.
        recipe: The dataset's.
        changes: What the command line changes of all models.
        graph: To be trained on.

    Raises:
        ConfigError: there is no such model or field.
    """
    kind, own = parse_model(name)
    if kind in MODELS:
        return MODELS[kind](override(override(recipe, changes), own), graph)
    return BaselineSetting.of(kind, recipe, [*changes, *own])


def parse_model(name: str) -> tuple[str, list[tuple[str, str]]]:
    """Name of the kind, and what is changed.

    Raises:
        ConfigError: there is no such model, or the brackets do not close or hold no changes.
    """
    kind, bracket, rest = name.partition("[")
    if kind not in MODELS and kind not in BASELINES:
        raise ConfigError(f"--models got {kind!r}, expected some of {', '.join(known_models())}")
    parts = [part for part in rest[:-1].split(";") if part]
    if (bracket and not rest.endswith("]")) or not all("=" in part for part in parts):
        raise ConfigError(f"--models got {name!r}, expected NAME[section.field=value;...]")
    return kind, parse_assignments(parts)
