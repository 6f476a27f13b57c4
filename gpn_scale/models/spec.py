"""Entries of the registry, which turn the recipe of a dataset into the setting of a model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from gpn_scale.baselines.baseline import AbstractBaseline
from gpn_scale.baselines.options import changed_options
from gpn_scale.config import RunConfig, override
from gpn_scale.data.graph import Graph
from gpn_scale.models.setting import BaselineSetting, GPNSetting, ModelSetting

Changes = Sequence[tuple[str, str]]
"""Keys of fields and the texts of their new values."""
Configure = Callable[[RunConfig], RunConfig]
"""Function from the configuration of a dataset to that of a model on this dataset."""


class ModelSpec(Protocol):
    """An entry of the registry.

    >>> from gpn_scale.data.building import build_graph
    >>> from gpn_scale.models.registry import MODELS
    >>> graph = build_graph([0], [1], labels=[0, 1])
    >>> MODELS["LP"].setting("LP", RunConfig(), [("train.epochs", "5")], graph).config.train.epochs
    5
    """

    def setting(self, kind: str, recipe: RunConfig, changes: Changes, graph: Graph) -> ModelSetting:
        """Return the setting of the model.

        Args:
            kind: Name of the entry.
            recipe: Configuration of the dataset.
            changes: Changes that the user asks for.
            graph: Graph to train on.

        Raises:
            ConfigError: a field does not exist, or its value cannot be parsed.
        """


@dataclass(frozen=True)
class GPNSpec:
    """GPN or an ablation of it; changes by the user win over `configure`, except in `fixed` fields.

    >>> from gpn_scale.data.building import build_graph
    >>> from gpn_scale.models.hyper_parameters import without_diffusion
    >>> fixed = ("diffusion.steps",)
    >>> spec = GPNSpec(without_diffusion, predicts_with_recipe=True, fixed=fixed)
    >>> setting = spec.setting("PostNet-Diff", RunConfig(), [], build_graph([0], [1]))
    >>> setting.config.diffusion.steps, setting.predicts_with.steps
    (0, 10)
    """

    configure: Callable[[RunConfig, Graph], RunConfig] = lambda config, graph: config
    """Function from the recipe, with changes, to the configuration of training."""
    predicts_with_recipe: bool = False
    """Whether predictions use the diffusion of the recipe although training does not."""
    model: Literal["GPN", "GPN+"] = "GPN"
    """The model itself."""
    fixed: tuple[str, ...] = ()
    """Keys of the fields that make the variant what it is; changes by the user do not count."""

    def setting(self, kind: str, recipe: RunConfig, changes: Changes, graph: Graph) -> ModelSetting:
        """Return the setting of the variant; see `ModelSpec.setting`."""
        wanted = override(replace(recipe, model=self.model), changes)
        # What `configure` derives from changed fields stays, but it does not undo the changes.
        free = [pair for pair in changes if pair[0] not in self.fixed]
        config = override(self.configure(wanted, graph), free)
        diffusion = wanted.diffusion if self.predicts_with_recipe else config.diffusion
        return GPNSetting(kind=kind, config=config, predicts_with=diffusion)


@dataclass(frozen=True)
class BaselineSpec:
    """A comparison model; changes by the user come after `configure` and `options`.

    >>> from gpn_scale.baselines.gcn import VGCN
    >>> from gpn_scale.data.building import build_graph
    >>> from gpn_scale.models.hyper_parameters import tuned
    >>> spec = BaselineSpec(VGCN, tuned(dropout=0.8))
    >>> spec.setting("VGCN", RunConfig(), [], build_graph([0], [1])).config.encoder.dropout
    0.8
    """

    model: type[AbstractBaseline]
    configure: Configure = lambda config: config
    options: Callable[[RunConfig], Any] | None = None
    """Function from a dataset's configuration to the model's own options; None for defaults."""

    def setting(self, kind: str, recipe: RunConfig, changes: Changes, graph: Graph) -> ModelSetting:
        """Return the setting of the model; see `ModelSpec.setting`.

        Keys `model.FIELD` change the model's own options.
        """
        own = [pair for pair in changes if pair[0].startswith("model.")]
        shared = [pair for pair in changes if not pair[0].startswith("model.")]
        options = self.model.Options() if self.options is None else self.options(recipe)
        return BaselineSetting(
            kind=kind,
            config=override(self.configure(replace(recipe, model="GPN")), shared),
            options=changed_options(kind, options, own),
            model=self.model,
        )
