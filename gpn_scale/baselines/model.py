"""The interface of comparison models: fit a graph, predict one, give and take tensors to keep.

Shapes: N nodes, C classes.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self, get_type_hints

import torch
from torch import Tensor
from torch.nn import functional

from gpn_scale.baselines.view import View
from gpn_scale.config import RunConfig
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.device import pick_device
from gpn_scale.errors import ConfigError, GraphError
from gpn_scale.evaluation.scored_prediction import ScoredPrediction
from gpn_scale.field_types import parse_value
from gpn_scale.inference.encoder_inputs import required_features
from gpn_scale.train.task import checked_split


@dataclass(frozen=True, slots=True, kw_only=True)
class NoOptions:
    """Of models that a run's configuration describes wholly."""


class AbstractBaseline(ABC):
    """A classifier of nodes that GPN is compared with.

    Args:
        config: Of the run; a model uses the fields that mean something to it.
        options: What the model has beside them, an instance of `Options`; None for the defaults.
        device: `auto`, `cpu`, `cuda`, ...
        dtype: Of all real numbers.
    """

    name: ClassVar[str]
    """As in tables and messages."""
    Options: ClassVar[type[Any]] = NoOptions
    """Frozen dataclass of what the model has beside a run's configuration."""

    mode: ClassVar[str] = "exact"
    """How it trains: on the whole graph, or (`minibatch`) on batches of training nodes."""
    needs_rows: ClassVar[bool] = False
    """Whether these batches are made of stored rows."""
    revision: ClassVar[int] = 0
    """Raised when the mathematics changes, so that results of before are not taken for new ones."""

    _is_fitted = False

    def __init__(
        self,
        config: RunConfig | None = None,
        options: Any = None,
        *,
        device: str = "auto",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.config = config or RunConfig()
        self.options = self.Options() if options is None else options
        self.device = pick_device(device)
        self.dtype = dtype

    @property
    def reach(self) -> int | None:
        """Over so many hops features act; 0 for a model without features, None for any number."""
        return None

    def unfitted(self) -> GraphError:
        """What to raise when it is asked too early."""
        return GraphError(f"this {self.name} has learnt nothing yet: call fit first")

    def fit(self, graph: Graph, *, store: Path | None = None) -> Self:
        """Trains on the graph's split.

        Args:
            graph: With labels and a split.
            store: Rows of all nodes, for models that train on them.

        Raises:
            GraphError: `check` refuses the graph.
        """
        self.check(graph)
        return self.fit_on(self.view(graph), store)

    def fit_on(self, view: View, store: Path | None) -> Self:
        """The same on a view that is there already, without `check`."""
        self.fit_view(view, store)
        self._is_fitted = True
        return self

    def check(self, graph: Graph) -> None:
        """Refuses what the model cannot be fitted on, before anything is computed.

        Raises:
            GraphError: there are fewer than two classes, no split, no features for a model that
                learns from them, or more nodes than it can take.
            ConfigError: it does not train in the configured mode, or a package is not there.
        """
        if self.config.mode != self.mode:
            raise ConfigError(
                f"{self.name} trains with mode={self.mode}, got mode={self.config.mode}: the whole "
                "graph is in every step of all models but PPRGo and those named -minibatch"
            )
        if graph.num_classes < 2:
            raise GraphError(
                f"graph {graph.name!r} has {graph.num_classes} class(es) to learn, expected at "
                "least 2: check the labels"
            )
        if self.reach != 0:
            required_features(graph)
        split = checked_split(graph)
        if self.mode == "minibatch":
            self.config.minibatch.roots_per_batch(len(split.train))
        self.check_limits(graph)

    def check_limits(self, graph: Graph) -> None:
        """What this model cannot do; nothing, unless it says so."""
        return

    def predict(self, graph: Graph) -> ScoredPrediction:
        """Class probabilities and scores of every node.

        The graph may have other edges or features than that of training.

        Raises:
            GraphError: the model was neither fitted nor loaded.
        """
        if not self._is_fitted:
            raise self.unfitted()
        return self.predict_view(self.view(graph))

    def view(self, graph: Graph) -> View:
        """The graph as this model sees it."""
        return View.of(graph, self.config.data.feature_scaling, self.device, self.dtype)

    def generator(self, offset: int = 0) -> torch.Generator:
        """The run's source of random numbers at its start; one of others for other offsets."""
        seed = self.config.train.rng_seed + 1_000_003 * offset
        return torch.Generator(self.device).manual_seed(seed)

    @abstractmethod
    def fit_view(self, view: View, store: Path | None) -> None:
        """Trains on the split of the view's graph."""

    @abstractmethod
    def predict_view(self, view: View) -> ScoredPrediction:
        """Of every node of the view."""

    def predict_nodes(self, view: View, nodes: NodeIds) -> ScoredPrediction:
        """Of some nodes of the view; a model that can do so predicts no others."""
        return self.predict_view(view).rows(nodes)

    def state(self) -> dict[str, Tensor]:
        """Tensors to keep; {} for a model that is fitted as fast as it is read."""
        return {}

    def load(self, graph: Graph, tensors: dict[str, Tensor], source: Path) -> None:
        """Takes the tensors that a fit of the same graph gave, instead of fitting.

        Raises:
            RunError: they are of another model; `source` is named.
        """
        self.load_state(graph, tensors, source)
        self._is_fitted = True

    def load_state(self, graph: Graph, tensors: dict[str, Tensor], source: Path) -> None:
        """What `load` does for this model; without tensors to keep, it is fitted."""
        self.fit(graph)

    def answer(self, probability_NC: Tensor, epistemic_N: Tensor | None = None) -> ScoredPrediction:
        """A prediction of tensors."""
        score = None if epistemic_N is None else epistemic_N.detach().float().cpu().numpy()
        return ScoredPrediction(
            model=self.name,
            probabilities=probability_NC.detach().float().cpu().numpy(),
            epistemic_score=score,
        )


def changed_options(kind: str, options: Any, pairs: Iterable[tuple[str, str]]) -> Any:
    """Options of the model `kind` with some fields replaced: (`model.field`, text) pairs.

    Raises:
        ConfigError: there is no such field, or the value does not parse.
    """
    types = get_type_hints(type(options))
    changes = {}
    for key, text in pairs:
        field = key.removeprefix("model.")
        if field not in types:
            known = ", ".join(f"model.{name}" for name in types) or "none"
            raise ConfigError(f"{kind} has no option {key!r}, known are {known}")
        value = parse_value(types[field], text, key)
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{key} of {kind} is {text}, expected a finite number")
        changes[field] = value
    return replace(options, **changes)


def dirichlet_answer(model: AbstractBaseline, alpha_NC: Tensor) -> ScoredPrediction:
    """Of Dirichlet distributions: their means, and -alpha_0 as epistemic score."""
    total_N = alpha_NC.sum(1)
    return model.answer(alpha_NC / total_N.unsqueeze(1), -total_N)


def counted_answer(
    model: AbstractBaseline, evidence_NC: Tensor, labels: Tensor
) -> ScoredPrediction:
    """Of alpha = 1 + evidence from labelled nodes; where there is none, the commonest class.

    The epistemic score is less what all alpha_0 have in common, of which float32 would keep
    nothing but that where evidence is small.

    Args:
        model: That answers.
        evidence_NC: In float64.
        labels: Of the training nodes.
    """
    num_classes = evidence_NC.shape[1]
    commonest = labels.bincount(minlength=num_classes).argmax()
    total_N = evidence_NC.sum(1)
    # In float32, so that equal evidence is equal in whatever order it was summed.
    winner_N = torch.where(total_N > 0.0, evidence_NC.float().argmax(1), commonest)
    # The winner leads by what float32 can tell from a tie, at least.
    alpha_NC = 1.0 + evidence_NC
    least_N1 = alpha_NC.topk(2).values[:, 1:] * (1.0 + 3e-7)
    alpha_NC = alpha_NC.maximum(functional.one_hot(winner_N, num_classes) * least_N1)
    return model.answer(alpha_NC / alpha_NC.sum(1, keepdim=True), -total_N)


def sampled_answer(model: AbstractBaseline, samples_SNC: Iterable[Tensor]) -> ScoredPrediction:
    """Of several class probabilities per node: their mean, and the sum of their variances.

    The sums are kept, not the samples. GPN's appendix: empirical mean and empirical variance.
    """
    count, sum_NC, square_NC = 0, torch.zeros(()), torch.zeros(())
    for sample_NC in samples_SNC:
        exact_NC = sample_NC.double()
        count += 1
        sum_NC, square_NC = sum_NC + exact_NC, square_NC + exact_NC.square()
    mean_NC = sum_NC / count
    variance_NC = (square_NC / count - mean_NC.square()).clamp_min(0.0)
    return model.answer(mean_NC, variance_NC.sum(1))


def require_positive(name: str, value: int, what: str) -> None:
    """Refuses numbers below 1.

    Raises:
        ConfigError: with the number.
    """
    if value < 1:
        raise ConfigError(f"{name} is {value}, expected at least 1 {what}")
