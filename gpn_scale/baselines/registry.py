"""Comparison models by name, each with the hyper-parameters of GPN's appendix."""

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple

from gpn_scale.baselines.appnp import APPNP, PPRGo
from gpn_scale.baselines.bayesian import BayesianGCN
from gpn_scale.baselines.gaussian_process import FeatureProcess, MaternProcess
from gpn_scale.baselines.gcn import VGCN, EnergyGCN
from gpn_scale.baselines.kernel import KernelDirichlet
from gpn_scale.baselines.kernel_gcn import KernelGCN, KernelGCNOptions
from gpn_scale.baselines.model import AbstractBaseline, changed_options
from gpn_scale.baselines.neighbours import ensemble_of, in_neighbour_batches
from gpn_scale.baselines.post_hoc import POST_HOC, on_top_of
from gpn_scale.baselines.propagation import LabelPropagation
from gpn_scale.baselines.robust import RobustGCN
from gpn_scale.baselines.sampled import DropEdge, DropoutGCN, Ensemble
from gpn_scale.config import RunConfig, override
from gpn_scale.data.graph import Graph
from gpn_scale.data.splits import prepare_graph

Configure = Callable[[RunConfig], RunConfig]
"""The dataset's configuration -> the model's own on that dataset."""


class Spec(NamedTuple):
    """A model and how it is configured."""

    model: type[AbstractBaseline]
    configure: Configure = lambda config: config
    options: Callable[[RunConfig], Any] | None = None
    """The model's own options on a dataset; None for the defaults on all."""

    def own_options(self, config: RunConfig) -> Any:
        """On a dataset of this configuration."""
        return self.model.Options() if self.options is None else self.options(config)


def tuned(
    *,
    dropout: float,
    large_dropout: float | None = None,
    weight_decay: float = 1e-4,
    hidden_share: float = 1.0,
    teleport: float = 0.1,
) -> Configure:
    """Changes a dataset's configuration as the appendix says for a model.

    No model has weight decay with the recipe of ogbn-arxiv.

    Args:
        dropout: Share of hidden units dropped.
        large_dropout: The same for the recipe of ogbn-arxiv; None for no difference.
        weight_decay: Of all parameters.
        hidden_share: Width, relative to other models'.
        teleport: Of a diffusion, of K = 10 steps.
    """

    def configure(config: RunConfig) -> RunConfig:
        large = _is_large(config)
        encoder = replace(
            config.encoder,
            dropout=large_dropout if large and large_dropout is not None else dropout,
            hidden=max(1, round(hidden_share * config.encoder.hidden)),
        )
        diffusion = replace(
            config.diffusion, teleport=teleport, steps=10, normalisation="sym", of="evidence"
        )
        train = replace(config.train, weight_decay=0.0 if large else weight_decay)
        return replace(config, mode="exact", encoder=encoder, diffusion=diffusion, train=train)

    return configure


def _kernel_options(config: RunConfig) -> KernelGCNOptions:
    """On ogbn-arxiv without a teacher, which did harm there (appendix)."""
    if _is_large(config):
        return KernelGCNOptions(kernel_weight=1e-4, teacher_weight=0.0)
    return KernelGCNOptions()


def _is_large(config: RunConfig) -> bool:
    """Whether it is the recipe of ogbn-arxiv, which alone has batch-norm."""
    return config.encoder.batch_norm


def in_batches(configure: Configure, neighbours: int | Literal["all"] = "all") -> Configure:
    """The same for a model that trains on batches; many steps make fewer epochs enough.

    Args:
        configure: For training on the whole graph.
        neighbours: Drawn per node for a graph convolution.
    """

    def configured(config: RunConfig) -> RunConfig:
        config = configure(config)
        train = config.train
        if _is_large(config):
            train = replace(train, epochs=min(train.epochs, 30), patience=5)
        minibatch = replace(config.minibatch, neighbours=neighbours)
        return replace(config, mode="minibatch", train=train, minibatch=minibatch)

    return configured


_VGCN = tuned(dropout=0.8, large_dropout=0.5)
_PLAIN = tuned(dropout=0.5)
_NO_DECAY = tuned(dropout=0.0, weight_decay=0.0)
_BATCHED = in_batches(_VGCN, neighbours=5)
_BATCHED_VGCN = in_neighbour_batches(VGCN)

BASELINES: dict[str, Spec] = {
    "LP": Spec(LabelPropagation, _PLAIN),
    "GKDE": Spec(KernelDirichlet, _PLAIN),
    "GGP": Spec(FeatureProcess, _NO_DECAY),
    "Matern-GGP": Spec(MaternProcess, _NO_DECAY),
    "APPNP": Spec(APPNP, _PLAIN),
    "VGCN": Spec(VGCN, _VGCN),
    "RGCN": Spec(RobustGCN, tuned(dropout=0.5, weight_decay=0.0, hidden_share=0.5)),
    "VGCN-Dropout": Spec(DropoutGCN, _VGCN),
    "DropEdge": Spec(DropEdge, _PLAIN),
    "VGCN-Energy": Spec(EnergyGCN, _VGCN),
    "VGCN-Ensemble": Spec(Ensemble, _VGCN),
    "VGCN-BNN": Spec(BayesianGCN, tuned(dropout=0.0, weight_decay=0.0, hidden_share=0.5)),
    "GKDE-GCN": Spec(KernelGCN, _PLAIN, _kernel_options),
    "PPRGo": Spec(PPRGo, in_batches(_PLAIN)),
    "VGCN-minibatch": Spec(_BATCHED_VGCN, _BATCHED),
    "VGCN-Dropout-minibatch": Spec(in_neighbour_batches(DropoutGCN), _BATCHED),
    "VGCN-Energy-minibatch": Spec(in_neighbour_batches(EnergyGCN), _BATCHED),
    "VGCN-Ensemble-minibatch": Spec(ensemble_of(_BATCHED_VGCN), _BATCHED),
    **{f"VGCN+{method}": Spec(on_top_of(VGCN, method), _VGCN) for method in POST_HOC},
    **{
        f"VGCN-minibatch+{method}": Spec(on_top_of(_BATCHED_VGCN, method), _BATCHED)
        for method in POST_HOC
    },
    **{f"APPNP+{method}": Spec(on_top_of(APPNP, method), _PLAIN) for method in POST_HOC},
}
"""A new model is one more line; docs/adding_a_model.md."""


@dataclass(frozen=True)
class BaselineSetting:
    """A comparison model with its configuration: what a cell of a matrix needs to train it."""

    kind: str
    config: RunConfig
    options: Any

    @classmethod
    def of(
        cls, kind: str, config: RunConfig, changes: Iterable[tuple[str, str]] = ()
    ) -> "BaselineSetting":
        """The appendix's setting for a dataset's configuration, then `changes` by key and text.

        Keys are those of a run's configuration, and `model.field` for the model's own options.

        Raises:
            ConfigError: a key is unknown or a value does not parse.
        """
        spec, pairs = BASELINES[kind], list(changes)
        own = [pair for pair in pairs if pair[0].startswith("model.")]
        shared = [pair for pair in pairs if not pair[0].startswith("model.")]
        return cls(
            kind,
            override(spec.configure(config), shared),
            changed_options(kind, spec.own_options(config), own),
        )

    @property
    def fingerprint(self) -> str:
        """Hash of the model's name and every field's value."""
        facts: dict[str, Any] = {
            "kind": self.kind,
            "config": self.config.to_dict(),
            "options": asdict(self.options),
        }
        if revision := BASELINES[self.kind].model.revision:
            facts["revision"] = revision
        text = json.dumps(facts, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    @property
    def needs_rows(self) -> bool:
        """Whether the model trains on stored rows."""
        return BASELINES[self.kind].model.needs_rows

    def check(self, graph: Graph) -> None:
        """Refuses a dataset that the model cannot be fitted on.

        Raises:
            GraphError, ConfigError: as `AbstractBaseline.check`, of the graph with its split.
        """
        self.new().check(prepare_graph(graph, self.config))

    def new(self) -> AbstractBaseline:
        """The model, not fitted yet."""
        return BASELINES[self.kind].model(self.config, self.options)
