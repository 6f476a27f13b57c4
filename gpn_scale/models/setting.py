"""Settings of models: everything that is needed to create, check and identify a model."""

import hashlib
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any

from gpn_scale.baselines.baseline import AbstractBaseline
from gpn_scale.baselines.options import NoOptions, fingerprint_values
from gpn_scale.baselines.post_hoc_base import AbstractPostHoc
from gpn_scale.config import DiffusionConfig, RunConfig
from gpn_scale.data.graph import Graph
from gpn_scale.data.splits import prepare_graph
from gpn_scale.estimator import GPNClassifier
from gpn_scale.models.protocol import NodeClassifier


@dataclass(frozen=True, kw_only=True)
class ModelSetting(ABC):
    """A model by name, with its whole configuration.

    >>> from gpn_scale.data.building import build_graph
    >>> from gpn_scale.models.registry import setting_of
    >>> setting = setting_of("PPRGo", RunConfig(), [], build_graph([0], [1], labels=[0, 1]))
    >>> setting.kind, setting.needs_rows
    ('PPRGo', True)
    """

    kind: str
    """Name in the registry."""
    config: RunConfig
    """Configuration of training."""
    options: Any = field(default_factory=NoOptions)
    """Hyper-parameters that are not part of the configuration, in a frozen dataclass."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Hash of everything that results depend on besides graph and code."""

    @property
    @abstractmethod
    def needs_rows(self) -> bool:
        """Whether training uses the rows of a PPR store."""

    @property
    @abstractmethod
    def row_diffusion(self) -> DiffusionConfig | None:
        """Diffusion of the rows that the model can use; None for a model that uses no rows."""

    @property
    def base(self) -> "ModelSetting | None":
        """Setting of the network that a post-hoc method extends; None for all other models."""
        return None

    @abstractmethod
    def new(self) -> NodeClassifier:
        """Return the model, not fitted yet."""

    def check(self, graph: Graph) -> None:
        """Refuse a dataset that the model cannot be fitted on.

        Args:
            graph: The graph of the dataset; the configured split is made here.

        Raises:
            GpnScaleError: the configured split or the model's own `check` refuses the graph.
        """
        self.new().check(prepare_graph(graph, self.config))


@dataclass(frozen=True, kw_only=True)
class GPNSetting(ModelSetting):
    """A GPN, which may predict with another diffusion than it is trained with.

    >>> config = RunConfig()
    >>> setting = GPNSetting(kind="GPN", config=config, predicts_with=config.diffusion)
    >>> setting.needs_rows, type(setting.new()).__name__
    (False, 'GPNClassifier')
    """

    predicts_with: DiffusionConfig
    """Diffusion of predictions."""

    @property
    def fingerprint(self) -> str:  # noqa: D102
        predicting = replace(self.config, diffusion=self.predicts_with).fingerprint()
        if self.predicts_with == self.config.diffusion:
            return predicting
        return f"{predicting} {self.config.fingerprint()}"

    @property
    def needs_rows(self) -> bool:  # noqa: D102
        return self.config.mode == "minibatch"

    @property
    def row_diffusion(self) -> DiffusionConfig | None:
        """Diffusion of predictions, if it is a sum over rows."""
        diffusion = self.predicts_with
        return None if diffusion.steps == 0 or diffusion.of != "evidence" else diffusion

    def new(self) -> GPNClassifier:  # noqa: D102
        return GPNClassifier(self.config, predicts_with=self.predicts_with)


@dataclass(frozen=True, kw_only=True)
class BaselineSetting(ModelSetting):
    """A comparison model.

    >>> from gpn_scale.baselines.appnp import APPNP
    >>> setting = BaselineSetting(kind="APPNP", config=RunConfig(), model=APPNP)
    >>> setting.needs_rows, type(setting.new()).__name__
    (False, 'APPNP')
    """

    model: type[AbstractBaseline]
    """Class of the model."""

    @property
    def fingerprint(self) -> str:
        """Hash of the model's name, its revision and the value of every field."""
        facts: dict[str, Any] = {
            "kind": self.kind,
            "config": self.config.fingerprinted(),
            "options": fingerprint_values(self.options),
        }
        if self.model.revision:
            facts["revision"] = self.model.revision
        text = json.dumps(facts, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    @property
    def base(self) -> ModelSetting | None:
        """Setting of the network, which is registered under the name before the last `+`."""
        if not issubclass(self.model, AbstractPostHoc):
            return None
        kind = self.kind.rpartition("+")[0]
        return BaselineSetting(kind=kind, config=self.config, model=self.model.Base)

    @property
    def needs_rows(self) -> bool:  # noqa: D102
        return self.model.needs_rows

    @property
    def row_diffusion(self) -> DiffusionConfig | None:  # noqa: D102
        return self.config.diffusion if self.needs_rows else None

    def new(self) -> AbstractBaseline:  # noqa: D102
        return self.model(self.config, self.options)
