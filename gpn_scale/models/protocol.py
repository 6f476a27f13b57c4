"""The protocol that GPN and every comparison model satisfy.

Experiments, the command line and benchmarks use models only through `NodeClassifier`.

Shapes: N nodes, B perturbed or scored nodes.
"""

from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

from torch import Tensor

from gpn_scale.config import RunConfig
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.evaluation.prediction import AbstractPrediction, FloatArray
from gpn_scale.inference.perturbed import FeaturesOf
from gpn_scale.ppr.rows import Rows


@runtime_checkable
class PerturbedClassifier(Protocol):
    """A trained classifier and a graph whose features or edges are changed.

    >>> from gpn_scale.inference.perturbed import Perturbed
    >>> issubclass(Perturbed, PerturbedClassifier)
    True
    """

    def unchanged(self) -> AbstractPrediction:
        """Return the prediction of all nodes of the unchanged graph, (N,)."""

    def isolated(self, nodes: NodeIds, rows_of: FeaturesOf) -> AbstractPrediction:
        """Return the prediction of each of `nodes` as if it alone had other features, (B,)."""

    def with_features(self, nodes: NodeIds, rows_of: FeaturesOf) -> AbstractPrediction:
        """Return the prediction of all nodes as if `nodes` had other features, (N,)."""

    def with_edges(self, graph: Graph) -> AbstractPrediction:
        """Return the prediction of all nodes as if their edges were those of `graph`, (N,)."""

    def local_score(self, nodes: NodeIds, rows: Rows, isolated: Any) -> FloatArray | None:
        """Return the score `epistemic_local`, (B,): minus the evidence in the nodes' stored rows.

        Args:
            nodes: Nodes to score.
            rows: Their rows.
            isolated: What `isolated` returned for `nodes`, to score them with those features; None
                for their own features.

        Returns:
            None for a model without evidence per node.
        """


@runtime_checkable
class NodeClassifier(Protocol):
    """A model that learns from the labelled nodes of a graph and predicts all nodes.

    >>> from gpn_scale import GPNClassifier
    >>> isinstance(GPNClassifier(), NodeClassifier)
    True
    """

    @property
    def config(self) -> RunConfig:
        """The configuration of its training."""

    def check(self, graph: Graph) -> None:
        """Refuse a graph that the model cannot be fitted on, before anything is computed.

        Raises:
            GpnScaleError: the graph, the configuration or the installation is not suitable.
        """

    def fit(self, graph: Graph, *, store: Path | None = None) -> Self:
        """Train on the graph's split and return the model.

        `store` is a PPR store, for models that train on its rows.
        """

    def predict(self, graph: Graph) -> AbstractPrediction:
        """Return class probabilities and scores of every node."""

    def perturbed(self, graph: Graph) -> PerturbedClassifier:
        """Return an object that predicts variants of `graph` with other features or edges."""

    def state(self) -> dict[str, Tensor]:
        """Return the tensors to save; {} for a model that is as fast to fit as to load."""

    def load_state(self, graph: Graph, tensors: dict[str, Tensor], source: Path) -> None:
        """Restore the tensors of a model that was fitted on `graph`; `source` is for messages.

        Raises:
            RunError: the tensors belong to another model.
        """
