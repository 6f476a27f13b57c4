"""The base class of comparison models: fit a graph, predict one, save and restore tensors.

Shapes: N nodes, C classes.
"""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from gpn_scale.baselines.graph_view import GraphView
from gpn_scale.baselines.options import NoOptions
from gpn_scale.baselines.perturbed import PerturbedBaseline
from gpn_scale.baselines.predictions import scored_prediction
from gpn_scale.config import RunConfig
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.device import pick_device
from gpn_scale.errors import ConfigError, GraphError, RunError
from gpn_scale.evaluation.scored_prediction import ScoredPrediction
from gpn_scale.inference.encoder_inputs import required_features
from gpn_scale.train.task import checked_split


class AbstractBaseline(ABC):
    """A node classifier that GPN is compared with.

    It satisfies `gpn_scale.models.protocol.NodeClassifier`. A subclass implements `fit_view` and
    `predict_view`, and `state` and `restore` if it has tensors to save.

    Args:
        config: Configuration of the run; a model uses the fields that apply to it.
        options: The model's own hyper-parameters, an instance of `Options`; None for the defaults.
        device: `auto`, `cpu`, `cuda`, ...
        dtype: Type of all real numbers.
    """

    name: ClassVar[str]
    """Name in tables and messages."""
    Options: ClassVar[type[Any]] = NoOptions
    """Frozen dataclass of the hyper-parameters that a run's configuration does not have."""

    mode: ClassVar[str] = "exact"
    """Training on the whole graph (`exact`) or on batches of training nodes (`minibatch`)."""
    needs_rows: ClassVar[bool] = False
    """Whether training uses the rows of a PPR store."""
    revision: ClassVar[int] = 0
    """Increased when the mathematics changes, so that older results are not reused."""

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
        """Number of hops over which features act: 0 without features, None for no limit."""
        return None

    def check(self, graph: Graph) -> None:
        """Refuse a graph or configuration that the model cannot be fitted on, before computing.

        Raises:
            GraphError: the graph has fewer than two classes, no split, no features for a model that
                learns from them, or more nodes than the model can handle.
            ConfigError: the model does not train in the configured mode, or a package is missing.
        """
        if self.config.mode != self.mode:
            raise ConfigError(
                f"{self.name} trains with mode={self.mode}, got mode={self.config.mode}: only "
                "PPRGo and models with -minibatch in their names train on batches"
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
        """Refuse graphs that only this model cannot handle; the default refuses none."""
        return

    def fit(self, graph: Graph, *, store: Path | None = None) -> Self:
        """Train on the graph's split, and return the model.

        Args:
            graph: Graph with labels and a split.
            store: PPR store with the rows of all nodes, for models with `needs_rows`.

        Raises:
            GraphError, ConfigError: `check` refuses the graph.
        """
        self.check(graph)
        return self.fit_on(self.view(graph), store)

    def fit_on(self, view: GraphView, store: Path | None) -> Self:
        """Train like `fit`, but on an existing view and without `check`; return the model."""
        self.fit_view(view, store)
        self._is_fitted = True
        return self

    def predict(self, graph: Graph) -> ScoredPrediction:
        """Return class probabilities and scores of every node.

        The edges and features of the graph may differ from those in training.

        Raises:
            RunError: the model was neither fitted nor loaded.
        """
        if not self._is_fitted:
            raise self.unfitted_error()
        return self.predict_view(self.view(graph))

    def perturbed(self, graph: Graph) -> PerturbedBaseline:
        """Return an object that predicts variants of `graph` with other features or edges."""
        return PerturbedBaseline(self, graph)

    def state(self) -> dict[str, Tensor]:
        """Return the tensors to save; {} for a model that is as fast to fit as to load."""
        return {}

    def load_state(self, graph: Graph, tensors: dict[str, Tensor], source: Path) -> None:
        """Restore the state of a model that was fitted on the same graph, instead of fitting.

        Args:
            graph: The graph of that fit.
            tensors: What its `state` returned.
            source: The file of the tensors, for messages.

        Raises:
            RunError: the tensors belong to another model.
        """
        self.restore(graph, tensors, source)
        self._is_fitted = True

    def view(self, graph: Graph) -> GraphView:
        """Return the graph as this model sees it."""
        return GraphView.of(graph, self.config.data.feature_scaling, self.device, self.dtype)

    def generator(self, offset: int = 0) -> torch.Generator:
        """Return a new random generator for the run's seed; offsets give different streams."""
        seed = self.config.train.rng_seed + 1_000_003 * offset
        return torch.Generator(self.device).manual_seed(seed)

    def prediction(
        self, probability_NC: Tensor, epistemic_N: Tensor | None = None
    ) -> ScoredPrediction:
        """Return a prediction of this model from tensors."""
        return scored_prediction(self.name, probability_NC, epistemic_N)

    def unfitted_error(self) -> RunError:
        """Return the error to raise when a prediction is requested before training."""
        return RunError(f"this {self.name} has not been trained yet: call fit first")

    @abstractmethod
    def fit_view(self, view: GraphView, store: Path | None) -> None:
        """Train on the split of the view's graph."""

    @abstractmethod
    def predict_view(self, view: GraphView) -> ScoredPrediction:
        """Predict every node of the view."""

    def predict_nodes(self, view: GraphView, nodes: NodeIds) -> ScoredPrediction:
        """Predict some nodes of the view; override where this is cheaper than predicting all."""
        return self.predict_view(view).rows(nodes)

    def restore(self, graph: Graph, tensors: dict[str, Tensor], source: Path) -> None:
        """Restore what `state` returned; the default, for models without tensors, fits again."""
        self.fit(graph)
