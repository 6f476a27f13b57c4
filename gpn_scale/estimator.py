"""`GPNClassifier`: fit on a graph, predict classes and uncertainty, explain, save and load."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from gpn_scale.config import DiffusionConfig, RunConfig
from gpn_scale.data.graph import Features, Graph, as_node_ids
from gpn_scale.device import pick_device
from gpn_scale.diffusion.growth import new_nodes
from gpn_scale.distributed import World
from gpn_scale.errors import ConfigError, RunError
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.inference.all_nodes import DEFAULT_MEMORY_BYTES, ProgressCallback, predict_all
from gpn_scale.inference.cluster_summary import (
    ClusterSummary,
    clusters_fingerprint,
    summarise_clusters,
)
from gpn_scale.inference.evidence import EvidenceSummary
from gpn_scale.inference.explanation import Explanation, explain_nodes
from gpn_scale.inference.new_nodes import GraphFacts, NewNodesPrediction, predict_new
from gpn_scale.inference.perturbed import Perturbed
from gpn_scale.inference.some_nodes import NodesPrediction, predict_nodes
from gpn_scale.inference.stored_rows import StoreLike, open_rows, require_evidence_diffusion
from gpn_scale.inference.trained_model import TrainedModel
from gpn_scale.nn.aggregation import ClusterEvidence
from gpn_scale.nn.model import GPN
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.tails import AbstractTail, make_tail
from gpn_scale.train.model_file import (
    NetworkSizes,
    SavedModel,
    load_model,
    network_of,
    save_model,
)
from gpn_scale.train.new_trainer import check_trainable, new_trainer
from gpn_scale.train.trainer import EpochRecord, Trainer


class GPNClassifier:
    """A Graph Posterior Network, trained on the whole graph or on batches of stored rows.

    >>> from gpn_scale.config import SplitConfig, TrainConfig
    >>> from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph
    >>> graph = synthetic_graph(SyntheticConfig(nodes=200, classes=3, features=8))
    >>> config = RunConfig(split=SplitConfig(train=0.3, val=0.3), train=TrainConfig(epochs=2))
    >>> classifier = GPNClassifier(config, device="cpu").fit(graph)
    >>> classifier.predict(graph).probabilities.shape
    (200, 3)
    >>> classifier.explain(graph, 7, count=2).contributors.node.shape
    (1, 2)

    Args:
        config: What to build and how to train it; `gpn_scale.recipes` has the paper's settings.
        predicts_with: Diffusion of predictions; None for that of training.
        device: `auto`, `cpu`, `cuda`, ...
        dtype: Type of all real numbers; float64 is for tests and studies of round-off.
        world: Processes that train and predict together, each making the same calls.
    """

    def __init__(
        self,
        config: RunConfig | None = None,
        *,
        predicts_with: DiffusionConfig | None = None,
        device: str = "auto",
        dtype: torch.dtype = torch.float32,
        world: World | None = None,
    ) -> None:
        self.config = config or RunConfig()
        self.predicts_with = predicts_with or self.config.diffusion
        self.world = world or World()
        self.device = pick_device(device) if self.world.size == 1 else self.world.device
        self.dtype = dtype
        self._trained: TrainedModel | None = None
        self._clusters_fingerprint = ""
        """Fingerprint of the graph and clusters that the network's cluster evidence belongs to."""

    @property
    def trained(self) -> TrainedModel:
        """The trained model.

        Raises:
            RunError: there is none yet.
        """
        if self._trained is None:
            raise RunError("this classifier has no model yet: call fit or load first")
        return self._trained

    def check(self, graph: Graph) -> None:
        """Check that a GPN can be trained on the graph.

        Raises:
            GraphError: the graph has fewer than two classes or no features.
        """
        check_trainable(graph)

    def open_store(self, path: Path | str, graph: Graph) -> PPRStore:
        """Open a store, and check that its rows fit this graph and the diffusion of predictions.

        Raises:
            StoreError: the store belongs to another graph or diffusion, or cannot be read.
        """
        return open_rows(path, graph, self.predicts_with)

    def trainer(self, graph: Graph, store: StoreLike | None = None) -> Trainer:
        """Return a trainer that has not started, for callers that drive or restore it themselves.

        Args:
            graph: Graph with features and labels; gets the configured split if it has none.
            store: Rows of the training and validation nodes, for `mode="minibatch"`.

        Raises:
            GraphError: the graph cannot be trained on.
            StoreError: the store is missing, or does not fit the graph or the diffusion.
        """
        return new_trainer(
            self.config, graph, store, device=self.device, dtype=self.dtype, world=self.world
        )

    def fit(
        self,
        graph: Graph,
        *,
        store: StoreLike | None = None,
        observe: Callable[[EpochRecord], None] | None = None,
    ) -> Self:
        """Train on the graph's split, or on the configured one if it has none; return self.

        Args:
            graph: Graph with features and labels.
            store: Rows of the training and validation nodes, for `mode="minibatch"`.
            observe: Called after every epoch; an exception from it ends training.
        """
        return self.fit_trainer(self.trainer(graph, store), observe=observe)

    def fit_trainer(
        self, trainer: Trainer, *, observe: Callable[[EpochRecord], None] | None = None
    ) -> Self:
        """Train with a trainer from `trainer()`, perhaps restored from a checkpoint; return self.

        Args:
            trainer: The trainer, which knows its graph.
            observe: Called after every epoch; an exception from it ends training.
        """
        for record in trainer.records():
            if observe is not None:
                observe(record)
        trainer.restore_best()
        self._keep(trainer.model)
        return self

    def predict(
        self,
        graph: Graph,
        *,
        store: StoreLike | None = None,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        scratch: Path | None = None,
        progress: ProgressCallback | None = None,
    ) -> Prediction:
        """Return class probabilities and uncertainty of every node, by exact diffusion.

        The graph may differ from that of training, but must have the same feature columns.

        Args:
            graph: Graph with features.
            store: Rows of the graph; cluster evidence for `predict_nodes` and `predict_new` is
                then collected too, and saved with the model.
            memory_bytes: Memory budget in addition to graph and model.
            scratch: Directory for what does not fit into the budget; None for the system's default.
            progress: Called with the number of nodes done and the name of the phase.

        Raises:
            GraphError: the graph has a different number of feature columns from that of training.
            ConfigError: the budget is too small; the message says what would suffice.
        """
        return self._predict(graph, None, store, memory_bytes, scratch, progress)

    def predict_with_evidence(
        self,
        graph: Graph,
        *,
        store: StoreLike | None = None,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        scratch: Path | None = None,
        progress: ProgressCallback | None = None,
    ) -> tuple[Prediction, EvidenceSummary]:
        """Return the prediction of every node and the feature evidence that it was made from.

        Arguments and errors are those of `predict`. Pass the evidence to `explain` to avoid
        computing it again.
        """
        evidence = EvidenceSummary.empty(graph.num_nodes)
        prediction = self._predict(graph, evidence, store, memory_bytes, scratch, progress)
        return prediction, evidence

    def predict_nodes(
        self, graph: Graph, nodes: ArrayLike, rows: StoreLike, *, explain: int = 0
    ) -> NodesPrediction:
        """Return the prediction of some nodes from stored rows, with an interval for alpha_0.

        Cluster evidence of the graph is computed first, unless the model has it already.

        Args:
            graph: Graph with features.
            nodes: Ids of nodes with rows, (B,).
            rows: PPR store of the graph.
            explain: Number of contributors to name for each node.

        Raises:
            StoreError: the store does not fit, or a node has no row.
        """
        self.trained.check_features(graph)
        require_evidence_diffusion(self.predicts_with, "predicting single nodes from rows")
        if explain < 0:
            raise ConfigError(
                f"explain is {explain}, expected at least 0 contributors", arguments=("explain",)
            )
        store, tail = self._store_and_tail(rows, graph)
        return predict_nodes(
            self.trained,
            graph,
            as_node_ids(nodes, "nodes").astype(np.int64),
            store=store,
            tail=tail,
            clusters=self._cluster_evidence(graph, tail, store),
            explain=explain,
        )

    def predict_new(
        self,
        graph: Graph,
        features: Features | ArrayLike,
        neighbours: Sequence[ArrayLike],
        *,
        edge_weights: Sequence[ArrayLike] | None = None,
        tolerance: float = 1e-6,
    ) -> NewNodesPrediction:
        """Return the prediction of nodes that joined `graph` after training.

        Args:
            graph: Graph of the existing nodes.
            features: Feature rows of the new nodes, with the columns of training.
            neighbours: Ids of the neighbours of each new node; N + j is the j-th new node.
            edge_weights: Weights of these edges; None for 1.
            tolerance: Amounts of mass below this are not followed further; 0 is exact.

        Raises:
            GraphError: the new nodes do not fit the graph or the model.
        """
        require_evidence_diffusion(self.predicts_with, "predicting new nodes")
        clusters, largest = self.trained.network.clusters, None
        if clusters is not None and self._clusters_fingerprint.startswith(graph.fingerprint()):
            largest = float(clusters.largest_total_P.max())
        new = new_nodes(graph, features, neighbours, edge_weights)
        facts = GraphFacts(largest_evidence=largest)
        return predict_new(self.trained, graph, new, tolerance=tolerance, facts=facts)

    def explain(
        self,
        graph: Graph,
        nodes: ArrayLike,
        *,
        rows: StoreLike | None = None,
        count: int = 6,
        evidence: EvidenceSummary | None = None,
    ) -> Explanation:
        """Return the nodes whose evidence makes the model sure, or unsure, of `nodes`.

        Args:
            graph: Graph with features.
            nodes: A node id, or several.
            rows: PPR store of the graph, for graphs that are too large for exact rows.
            count: Number of contributors to name for each node.
            evidence: Evidence from `predict_with_evidence` of this graph; None to compute it.

        Raises:
            ConfigError: the model diffuses logarithms of evidence, which have no shares.
            StoreError: the graph is too large for exact rows, and `rows` is None or does not fit.
        """
        self.trained.check_features(graph)
        require_evidence_diffusion(self.predicts_with, "explaining nodes")
        stored = None
        if rows is not None:
            stored = partial(self.predict_nodes, graph, rows=rows, explain=count)
        return explain_nodes(
            self.trained, graph, nodes, count=count, evidence=evidence, predict_stored=stored
        )

    def perturbed(self, graph: Graph) -> Perturbed:
        """Return the model applied to `graph` with features or edges that can be changed."""
        return Perturbed(self.trained, graph)

    def state(self) -> dict[str, Tensor]:
        """Return all tensors of the trained network, by name."""
        return self.trained.network.state_dict()

    def load_state(self, graph: Graph, tensors: Mapping[str, Tensor], source: Path | str) -> None:
        """Use tensors from `state` of a classifier with the same configuration.

        Args:
            graph: Graph with the features and classes of training.
            tensors: The tensors.
            source: Where they are from, for messages.

        Raises:
            RunError: the tensors belong to another model.
        """
        sizes = NetworkSizes.of(graph, tensors)
        self._keep(network_of(self.config, sizes, self.dtype, tensors, source))

    def save(self, path: Path | str) -> None:
        """Write weights, cluster evidence and configuration to one safetensors file."""
        facts = (self.config, self.predicts_with, self._clusters_fingerprint, self.dtype)
        save_model(Path(path), SavedModel(self.trained.network, *facts))

    @classmethod
    def load(cls, path: Path | str, *, device: str = "auto") -> Self:
        """Return a classifier that predicts as the saved one did.

        Raises:
            RunError: the file is missing, damaged, not a model file, or of another version.
        """
        saved = load_model(Path(path))
        classifier = cls(
            saved.config, predicts_with=saved.predicts_with, device=device, dtype=saved.dtype
        )
        classifier._keep(saved.network, saved.clusters_of)
        return classifier

    def _keep(self, network: GPN, clusters_of: str = "") -> None:
        self._trained = TrainedModel(
            network.to(self.device),
            self.config.data.feature_scaling,
            self.predicts_with,
            self.device,
            self.dtype,
        )
        self._clusters_fingerprint = clusters_of

    def _predict(
        self,
        graph: Graph,
        evidence: EvidenceSummary | None,
        store: StoreLike | None,
        memory_bytes: int,
        scratch: Path | None,
        progress: ProgressCallback | None,
    ) -> Prediction:
        self.trained.check_features(graph)
        observers = [] if evidence is None else [evidence.observe]
        if store is not None:
            require_evidence_diffusion(self.predicts_with, "cluster evidence")
            opened, tail = self._store_and_tail(store, graph)
            summary = ClusterSummary(tail, self.trained.num_classes, self.device)
            observers.append(summary.observe)
        prediction = predict_all(
            self.trained,
            graph,
            memory_bytes=memory_bytes,
            scratch=scratch,
            progress=progress,
            observers=observers,
            observer_bytes=0 if evidence is None else evidence.num_bytes,
            world=self.world,
        )
        if store is not None:
            self.trained.network.clusters = summary.result(self.dtype)
            self._clusters_fingerprint = clusters_fingerprint(graph, opened, tail)
        return prediction

    def _store_and_tail(self, store: StoreLike, graph: Graph) -> tuple[PPRStore, AbstractTail]:
        """Return the checked store, and the configured tail for its rows."""
        opened = open_rows(store, graph, self.predicts_with)
        return opened, make_tail(self.config.minibatch, opened, graph, self.predicts_with)

    def _cluster_evidence(
        self, graph: Graph, tail: AbstractTail, store: PPRStore
    ) -> ClusterEvidence:
        """Return the evidence of this graph's clusters; compute it unless the model has it."""
        network = self.trained.network
        key = clusters_fingerprint(graph, store, tail)
        if network.clusters is None or self._clusters_fingerprint != key:
            network.clusters = summarise_clusters(self.trained, graph, tail)
            self._clusters_fingerprint = key
        return network.clusters
