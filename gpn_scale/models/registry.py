"""The registry of models: GPN, its ablations and every comparison model by name.

A new model is one more entry of `MODELS`, or a plug-in that calls `register`;
docs/adding_a_model.md has an example.
"""

import re
from collections.abc import Sequence
from difflib import get_close_matches

from gpn_scale.baselines.appnp import APPNP
from gpn_scale.baselines.bayesian_gcn import BayesianGCN
from gpn_scale.baselines.committee import Committee, CommitteeGCN, RowCommittee
from gpn_scale.baselines.drop_edge import DropEdge
from gpn_scale.baselines.dropout_gcn import DropoutGCN
from gpn_scale.baselines.ensemble import Ensemble
from gpn_scale.baselines.evidential_gcn import EvidentialGCN
from gpn_scale.baselines.feature_process import FeatureProcess
from gpn_scale.baselines.gcn import VGCN, EnergyGCN
from gpn_scale.baselines.graph_kernel import KernelDirichlet
from gpn_scale.baselines.kernel_gcn import KernelGCN
from gpn_scale.baselines.label_propagation import LabelPropagation
from gpn_scale.baselines.matern_process import MaternProcess
from gpn_scale.baselines.minibatch_gcn import ensemble_of, in_neighbour_batches
from gpn_scale.baselines.opinion_pool import OpinionPool, RowOpinionPool
from gpn_scale.baselines.post_hoc import POST_HOC, on_top_of
from gpn_scale.baselines.pprgo import PPRGo
from gpn_scale.baselines.robust_gcn import RobustGCN
from gpn_scale.config import RunConfig
from gpn_scale.data.graph import Graph
from gpn_scale.errors import ConfigError
from gpn_scale.field_types import parse_assignments
from gpn_scale.models.hyper_parameters import (
    averaging_logs,
    in_batches,
    kernel_gcn_options,
    pooling,
    tuned,
    whole_graph,
    without_diffusion,
)
from gpn_scale.models.setting import ModelSetting
from gpn_scale.models.spec import BaselineSpec, GPNSpec, ModelSpec
from gpn_scale.recipes import in_minibatches

_VGCN = tuned(dropout=0.8, large_dropout=0.5)
_PLAIN = tuned(dropout=0.5)
_NO_DECAY = tuned(dropout=0.0, weight_decay=0.0)
_BATCHED = in_batches(_VGCN, neighbours=5)
_BATCHED_VGCN = in_neighbour_batches(VGCN)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9+._-]*")

MODELS: dict[str, ModelSpec] = {
    "GPN+": GPNSpec(model="GPN+"),
    "GPN+-minibatch": GPNSpec(in_minibatches, model="GPN+", fixed=("mode",)),
    "GPN": GPNSpec(),
    "GPN-minibatch": GPNSpec(in_minibatches, fixed=("mode",)),
    "PostNet": GPNSpec(without_diffusion, fixed=("diffusion.steps",)),
    "PostNet-Diff": GPNSpec(
        without_diffusion, predicts_with_recipe=True, fixed=("diffusion.steps",)
    ),
    "GPN-LOG-beta": GPNSpec(averaging_logs, fixed=("diffusion.of",)),
    "LP": BaselineSpec(LabelPropagation, _PLAIN),
    "GKDE": BaselineSpec(KernelDirichlet, _PLAIN),
    "GGP": BaselineSpec(FeatureProcess, _NO_DECAY),
    "Matern-GGP": BaselineSpec(MaternProcess, _NO_DECAY),
    "APPNP": BaselineSpec(APPNP, _PLAIN),
    "VGCN": BaselineSpec(VGCN, _VGCN),
    "RGCN": BaselineSpec(RobustGCN, tuned(dropout=0.5, weight_decay=0.0, hidden_fraction=0.5)),
    "VGCN-Dropout": BaselineSpec(DropoutGCN, _VGCN),
    "DropEdge": BaselineSpec(DropEdge, _PLAIN),
    "VGCN-Energy": BaselineSpec(EnergyGCN, _VGCN),
    "VGCN-Ensemble": BaselineSpec(Ensemble, _VGCN),
    "VGCN-BNN": BaselineSpec(
        BayesianGCN, tuned(dropout=0.0, weight_decay=0.0, hidden_fraction=0.5)
    ),
    "GKDE-GCN": BaselineSpec(KernelGCN, _PLAIN, kernel_gcn_options),
    "EDL-GCN": BaselineSpec(EvidentialGCN, _VGCN),
    "EDL-GCN-minibatch": BaselineSpec(in_neighbour_batches(EvidentialGCN), _BATCHED),
    "LOP-GPN": BaselineSpec(OpinionPool, pooling),
    "LOP-GPN-minibatch": BaselineSpec(RowOpinionPool, in_batches(pooling)),
    "CUQ-GNN": BaselineSpec(Committee, whole_graph),
    "CUQ-GNN-minibatch": BaselineSpec(RowCommittee, in_batches(whole_graph)),
    "CUQ-GCN": BaselineSpec(CommitteeGCN, whole_graph),
    "CUQ-GCN-minibatch": BaselineSpec(
        in_neighbour_batches(CommitteeGCN), in_batches(whole_graph, neighbours=5)
    ),
    "PPRGo": BaselineSpec(PPRGo, in_batches(_PLAIN)),
    "VGCN-minibatch": BaselineSpec(_BATCHED_VGCN, _BATCHED),
    "VGCN-Dropout-minibatch": BaselineSpec(in_neighbour_batches(DropoutGCN), _BATCHED),
    "VGCN-Energy-minibatch": BaselineSpec(in_neighbour_batches(EnergyGCN), _BATCHED),
    "VGCN-Ensemble-minibatch": BaselineSpec(ensemble_of(_BATCHED_VGCN), _BATCHED),
    **{f"VGCN+{method}": BaselineSpec(on_top_of(VGCN, method), _VGCN) for method in POST_HOC},
    **{
        f"VGCN-minibatch+{method}": BaselineSpec(on_top_of(_BATCHED_VGCN, method), _BATCHED)
        for method in POST_HOC
    },
    "PPRGo+EPN": BaselineSpec(on_top_of(PPRGo, "EPN"), in_batches(_PLAIN)),
    **{f"APPNP+{method}": BaselineSpec(on_top_of(APPNP, method), _PLAIN) for method in POST_HOC},
}
"""Models by name; GPN and its ablations come first."""
ABLATION = ("PostNet", "PostNet-Diff", "GPN", "GPN-LOG-beta")
"""Models of the paper's ablation."""


def register(name: str, spec: ModelSpec) -> None:
    """Add a model under a name that is not taken.

    >>> register("My-APPNP", MODELS["APPNP"])
    >>> "My-APPNP" in model_names()
    True
    >>> del MODELS["My-APPNP"]

    Raises:
        ConfigError: the name is taken or cannot be written in a list of models, or `spec` is not an
            entry of the registry.
    """
    if name in MODELS:
        raise ConfigError(
            f"a model {name!r} is already registered, expected a new name", arguments=("models",)
        )
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(
            f"the model name is {name!r}, expected letters, digits, '+', '-', '_' and '.', "
            "beginning with a letter or digit",
            arguments=("models",),
        )
    if not callable(getattr(spec, "setting", None)):
        raise ConfigError(
            f"the model {name!r} is registered with {type(spec).__name__}, expected an entry "
            "such as BaselineSpec(MyModel)",
            arguments=("models",),
        )
    MODELS[name] = spec


def model_names() -> list[str]:
    """Return the names of all registered models, GPN+, GPN and its ablations first.

    >>> model_names()[:4]
    ['GPN+', 'GPN+-minibatch', 'GPN', 'GPN-minibatch']
    """
    return list(MODELS)


def setting_of(
    name: str, recipe: RunConfig, changes: Sequence[tuple[str, str]], graph: Graph
) -> ModelSetting:
    """Return the setting of a model on a dataset.

    Args:
        name: Name of the model, or `NAME[section.field=value;...]` with changes of its own.
        recipe: Configuration of the dataset.
        changes: Changes of all models, as pairs of a field's key and the text of its value.
        graph: Graph to train on.

    Raises:
        ConfigError: a model or a field does not exist, a value cannot be parsed, or `model` is to
            be changed.

    Example:
        >>> from gpn_scale.config import RunConfig
        >>> from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph
        >>> graph = synthetic_graph(SyntheticConfig(nodes=200, classes=4))
        >>> setting_of("VGCN[train.epochs=5]", RunConfig(), [], graph).config.train.epochs
        5
    """
    kind, own = parse_model(name)
    changes = [*changes, *own]
    if (model := dict(changes).get("model")) is not None:
        raise ConfigError(
            f"model is set to {model!r}, which would turn {kind} into another model under the same "
            "name: choose models by name",
            arguments=("models",),
        )
    return MODELS[kind].setting(kind, recipe, changes, graph)


def parse_model(name: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the registered name in `NAME[section.field=value;...]`, and its changes.

    >>> parse_model("VGCN[train.epochs=5;encoder.hidden=32]")
    ('VGCN', [('train.epochs', '5'), ('encoder.hidden', '32')])

    Raises:
        ConfigError: the model does not exist, or the brackets are not closed or hold no changes.
    """
    kind, bracket, rest = name.partition("[")
    if kind not in MODELS:
        near = get_close_matches(kind, MODELS, n=1)
        hint = f"; did you mean {near[0]}?" if near else "; models of a plug-in need its file"
        raise ConfigError(
            f"models got {kind!r}, expected names among {', '.join(MODELS)}{hint}",
            arguments=("models",),
        )
    parts = [part for part in rest[:-1].split(";") if part]
    if (bracket and not rest.endswith("]")) or not all("=" in part for part in parts):
        raise ConfigError(
            f"models got {name!r}, expected NAME[section.field=value;...]", arguments=("models",)
        )
    return kind, parse_assignments(parts)
