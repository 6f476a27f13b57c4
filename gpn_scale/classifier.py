"""`AbstractClassifier`: scikit-learn's interface of a classifier, for graphs.

Shapes: N nodes, C classes, F feature columns.
"""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from gpn_scale.config import RunConfig
from gpn_scale.data.contract import DataContract
from gpn_scale.data.conversion import GraphLike, as_graph
from gpn_scale.data.graph import MISSING_LABEL, Graph, NodeIds
from gpn_scale.data.node_positions import node_positions
from gpn_scale.errors import ConfigError, GraphError
from gpn_scale.evaluation.detection import known_test_nodes
from gpn_scale.evaluation.metrics import accuracy
from gpn_scale.inference.perturbed import Perturbed
from gpn_scale.inference.stored_rows import open_rows
from gpn_scale.keywords import changed_fields, configuration_for, with_keywords
from gpn_scale.ppr.store import PPRStore
from gpn_scale.predictor import AbstractPredictor
from gpn_scale.progress import ProgressMeter
from gpn_scale.train.model_file import SavedModel
from gpn_scale.train.model_parts import ModelParts, NetworkSizes
from gpn_scale.train.trainer import EpochRecord, Trainer

ENDLESS_EPOCHS = 10_000
"""Largest limit on epochs that progress shows as a total; larger ones are never reached."""


class AbstractClassifier(AbstractPredictor):
    """Parameters, fitted attributes and scores of a `GPNClassifier`.

    >>> from gpn_scale import GPNClassifier
    >>> issubclass(GPNClassifier, AbstractClassifier)
    True

    Args:
        parameters: Arguments of the subclass's constructor by name, as they were given.

    Raises:
        ConfigError: a value is not allowed.
    """

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self._parameters = dict(parameters)
        super().__init__(
            self._configuration(),
            predicts_with=parameters["predicts_with"],
            device=parameters["device"],
            dtype=parameters["dtype"],
            world=parameters["world"],
        )
        self._history: dict[str, list[EpochRecord]] = {}
        self._seconds: dict[str, float] = {}
        """Duration of the training of each part."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments as they were given; None where the recipe decides.

        Args:
            deep: Has no effect, because no argument has parameters of its own.
        """
        return dict(self._parameters)

    def set_params(self, **changes: Any) -> Self:
        """Change constructor arguments for the next `fit`; a trained model does not change.

        Raises:
            ConfigError: an argument does not exist, or a value is not allowed.
        """
        unknown = [name for name in changes if name not in self._parameters]
        if unknown:
            raise ConfigError(
                f"{type(self).__name__} has no parameter {unknown[0]!r}, expected "
                f"{', '.join(self._parameters)}: other fields of the configuration are set with "
                "config=",
                arguments=("config",),
            )
        before = self._parameters
        self._parameters = before | changes
        try:
            config = self._configuration()
        except ConfigError:
            self._parameters = before
            raise
        if self._trained is None:
            self._use(config)
        return self

    def __repr__(self) -> str:
        defaults = self._default_parameters()
        parts = []
        for name, value in self._parameters.items():
            if isinstance(value, RunConfig):
                parts.append(f"{name}={changed_fields(value)}")
            elif value != defaults[name]:
                parts.append(f"{name}={value!r}")
        state = "not fitted"
        if self._trained is not None:
            sizes = f"{self.n_features_in_} features, {len(self.classes_)} classes"
            state = f"fitted: {self.config.model}, {sizes}"
        return f"{type(self).__name__}({', '.join(parts)}), {state}"

    @classmethod
    @abstractmethod
    def _default_parameters(cls) -> dict[str, Any]:
        """Return the default value of every argument of the constructor."""

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes, (C,): their names, or 0..C-1 if they have none."""
        contract = self.contract
        return np.array(contract.class_names or np.arange(contract.num_classes))

    @property
    def n_features_in_(self) -> int:
        """Number of feature columns of the training graph."""
        return self.contract.num_features

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the feature columns of the training graph, (F,).

        Raises:
            AttributeError: the columns have no names.
        """
        if not self.contract.feature_names:
            raise AttributeError("the feature columns of the training graph have no names")
        return np.array(self.contract.feature_names, object)

    @property
    def history_(self) -> dict[str, list[EpochRecord]]:
        """Records of all epochs, for each part of the model; {} for a loaded model."""
        assert self.trained is not None
        return self._history

    def predict_proba(self, graph: GraphLike) -> NDArray[np.float32]:
        """Return the class probabilities of every node, (N, C), in the order of `classes_`."""
        return self.predict(graph).probabilities

    def score(self, graph: GraphLike, nodes: ArrayLike | None = None) -> float:
        """Return the accuracy on the graph's test nodes.

        Args:
            graph: Graph with labels.
            nodes: Labelled nodes to score, by position or by name; None for the test nodes without
                a mark, or for all labelled nodes of a graph that has no split.

        Raises:
            GraphError: a node does not exist, or its label is not a class of the model.
        """
        graph = self.aligned(graph).graph
        ids = _scored_nodes(graph) if nodes is None else node_positions(graph, nodes)
        if len(ids) == 0 or (graph.labels[ids] == MISSING_LABEL).any():
            raise GraphError(
                f"graph {graph.name!r} has no labels of the model's classes at "
                f"{'its test nodes' if nodes is None else 'some of the nodes'}, expected labelled "
                "nodes to score",
                arguments=("nodes",),
            )
        return accuracy(self.predict(graph).probabilities[ids], graph.labels[ids])

    def open_store(self, path: Path | str, graph: Graph) -> PPRStore:
        """Open a store, check that it matches the graph and the model's diffusion, and return it.

        Raises:
            StoreError: the store belongs to another graph or diffusion, or cannot be read.
        """
        return open_rows(path, graph, self.predicts_with)

    def perturbed(self, graph: GraphLike) -> Perturbed:
        """Return the model applied to `graph`, whose features or edges can then be changed."""
        return Perturbed(self.trained, self.aligned(graph).graph)

    def state(self) -> dict[str, Tensor]:
        """Return all tensors of the trained model, by name."""
        return self._parts.state()

    def load_state(
        self, graph: GraphLike, tensors: Mapping[str, Tensor], source: Path | str
    ) -> None:
        """Use tensors from `state` of a classifier with the same configuration.

        Args:
            graph: Graph with the features and classes of training.
            tensors: The tensors.
            source: Origin of the tensors, for messages.

        Raises:
            RunError: the tensors belong to another model.
        """
        graph = as_graph(graph)
        self._contract = DataContract.of(graph)
        sizes = NetworkSizes.of(graph, tensors)
        self._keep(ModelParts.restored(self.config, sizes, self.dtype, tensors, source))

    def saved_model(self) -> SavedModel:
        """Return the content of the file that `save` writes; the networks are not copied."""
        facts = (self.config, self.predicts_with, self._clusters_fingerprint, self.dtype)
        return SavedModel(self._parts, *facts, self.contract, self._surprise)

    @property
    def training_seconds(self) -> dict[str, float]:
        """Training time of each part of the model, in seconds; {} for a loaded model."""
        return dict(self._seconds)

    def _configuration(self) -> RunConfig:
        """Return the configuration, as far as it does not depend on a graph."""
        return with_keywords(self._parameters["config"] or RunConfig(), self._parameters)

    def _configured_for(self, graph: GraphLike) -> Graph:
        """Apply the current parameters for training on `graph`, and return it as a `Graph`."""
        given = as_graph(graph)
        self._use(configuration_for(given, self._parameters["config"], self._parameters))
        self._history, self._seconds = {}, {}
        return given

    def _use(self, config: RunConfig) -> None:
        options = self._parameters
        self._configure(config, options["predicts_with"], options["world"], options["device"])
        self.dtype: torch.dtype = options["dtype"]

    def _progress(self, trainer: Trainer) -> ProgressMeter:
        silent = not self._parameters["verbose"] or not self.world.is_first
        title = "train" if self.config.model == "GPN" else f"train {trainer.part}"
        limit = trainer.warmup_epochs + trainer.config.epochs
        total = limit if limit <= ENDLESS_EPOCHS else None
        return ProgressMeter(title, "epoch", total, done=trainer.state.epoch, silent=silent)

    def _is_stopped(self, answer: object) -> bool:
        """Return whether an observer in any process returned exactly True."""
        stop = isinstance(answer, bool | np.bool_) and bool(answer)
        return self.world.totals([float(stop)])[0] > 0


def _scored_nodes(graph: Graph) -> NodeIds:
    if graph.split is not None:
        return known_test_nodes(graph)
    return np.setdiff1d(np.flatnonzero(graph.labels != MISSING_LABEL), graph.marked)
