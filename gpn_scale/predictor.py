"""`AbstractPredictor`: a trained model applied to all nodes, some nodes or new nodes."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from gpn_scale.config import DiffusionConfig, RunConfig
from gpn_scale.data.contract import AlignedGraph, DataContract
from gpn_scale.data.conversion import GraphLike, as_graph
from gpn_scale.data.graph import Features, Graph
from gpn_scale.data.node_positions import node_positions
from gpn_scale.data.splits import prepare_graph
from gpn_scale.device import pick_device
from gpn_scale.diffusion.growth import new_nodes
from gpn_scale.distributed import World
from gpn_scale.errors import ConfigError, UnfittedError
from gpn_scale.evaluation.known_calibration import calibration_nodes
from gpn_scale.evaluation.node_facts import NodeFacts
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.inference.all_nodes import (
    DEFAULT_MEMORY_BYTES,
    ProgressCallback,
    averaged,
    predict_all,
)
from gpn_scale.inference.calibration import calibrated
from gpn_scale.inference.cluster_summary import (
    CollectedClusters,
    clusters_fingerprint,
    summarise_model,
)
from gpn_scale.inference.evidence import EvidenceSummary
from gpn_scale.inference.explanation import Explanation, explain_nodes
from gpn_scale.inference.new_nodes import GraphFacts, NewNodesPrediction, predict_new
from gpn_scale.inference.some_nodes import NodesPrediction, predict_nodes
from gpn_scale.inference.stored_rows import StoreLike, open_rows, require_evidence_diffusion
from gpn_scale.inference.trained_model import TrainedModel, TrainedOpinion
from gpn_scale.nn.aggregation import ClusterEvidence
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.tails import AbstractTail, make_tail
from gpn_scale.train.model_file import GraphSurprise
from gpn_scale.train.model_parts import ModelParts
from gpn_scale.train.task import checked_split


class AbstractPredictor:
    """The methods of a trained `GPNClassifier`.

    >>> from gpn_scale import GPNClassifier
    >>> issubclass(GPNClassifier, AbstractPredictor)
    True

    Arguments and errors are those of `GPNClassifier`.
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
        self._configure(config or RunConfig(), predicts_with, world, device)
        self.dtype = dtype
        self._trained: TrainedModel | None = None
        self._contract: DataContract | None = None
        self._surprise: GraphSurprise | None = None
        self._clusters_fingerprint = ""
        """Fingerprint of the graph and clusters to which the network's cluster evidence belongs."""
        self._split_of = ""
        """Fingerprint of the graph for which training drew a split; empty if it drew none."""

    def _configure(
        self, config: RunConfig, diffusion: DiffusionConfig | None, world: World | None, device: str
    ) -> None:
        self.config, self.predicts_with = config, diffusion or config.diffusion
        replace(config, diffusion=self.predicts_with)  # raises if the model does not support it
        self.world = world or World()
        self.device = pick_device(device) if self.world.size == 1 else self.world.device

    @property
    def trained(self) -> TrainedModel:
        """The trained model.

        Raises:
            UnfittedError: the classifier has not been trained.
        """
        if self._trained is None:
            raise UnfittedError("this classifier has no model yet: call fit or load first")
        return self._trained

    @property
    def contract(self) -> DataContract:
        """Feature columns and classes of the training graph; `UnfittedError` without a model."""
        assert self.trained is not None
        assert self._contract is not None
        return self._contract

    def aligned(self, graph: GraphLike) -> AlignedGraph:
        """Match a graph's columns and classes with the model's by name; return it with notes.

        All methods that take a graph do this themselves. If training drew a split for this graph,
        the graph gets it.

        Raises:
            GraphError: it is not a graph, or feature columns are missing or differ in number.
        """
        graph = as_graph(graph)
        if graph.split is None and self._split_of and self._split_of == graph.fingerprint():
            graph = prepare_graph(graph, self.config)
        aligned = self.contract.aligned(graph)
        self.trained.check_features(aligned.graph)
        return aligned

    def calibrate(
        self,
        graph: GraphLike,
        prediction: Prediction | None = None,
        *,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
    ) -> Prediction:
        """Fit the temperature and the p-values of a GPN+ to the validation nodes.

        A GPN has neither, so its prediction is returned as it is.

        Args:
            graph: Graph with a split.
            prediction: Uncalibrated prediction of all nodes, whose probabilities are changed in
                place; None to compute it.
            memory_bytes: Memory budget in addition to graph and model.

        Returns:
            The calibrated prediction of all nodes.

        Raises:
            GraphError: the graph has no validation nodes.
        """
        graph = self.aligned(graph).graph
        if prediction is None:
            prediction = self._predict(graph, None, None, memory_bytes, None, None)
        if self.trained.opinion is None:
            return prediction
        nodes = calibration_nodes(checked_split(graph).val, self.config.train.rng_seed)
        calibration, prediction = calibrated(
            self.trained, graph, nodes, prediction, memory_bytes=memory_bytes, world=self.world
        )
        self._keep(replace(self._parts, calibration=calibration), self._clusters_fingerprint)
        self._surprise = GraphSurprise(graph.fingerprint(), prediction.surprise)
        return prediction

    def predict(
        self,
        graph: GraphLike,
        *,
        store: StoreLike | None = None,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        scratch: Path | None = None,
        progress: ProgressCallback | None = None,
    ) -> Prediction:
        """Return class probabilities and uncertainty of every node, by exact diffusion.

        The graph may differ from the training graph, but must have the same feature columns.

        Args:
            graph: Graph with features, or any input of `as_graph`.
            store: Rows of the graph; cluster evidence for `predict_nodes` and `predict_new` is
                then collected too, and saved with the model.
            memory_bytes: Memory budget in addition to graph and model.
            scratch: Directory for arrays that exceed the budget; None for the system's default.
            progress: Called with the number of finished nodes and the name of the phase.

        Raises:
            GraphError: the number of feature columns differs from that of the training graph.
            ConfigError: the budget is too small; the message names one that suffices.
        """
        graph = self.aligned(graph).graph
        raw = self._predict(graph, None, store, memory_bytes, scratch, progress)
        return self._finished(graph, raw, memory_bytes)

    def predict_with_evidence(
        self,
        graph: GraphLike,
        *,
        store: StoreLike | None = None,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        scratch: Path | None = None,
        progress: ProgressCallback | None = None,
        calibrate: bool = False,
    ) -> tuple[Prediction, EvidenceSummary]:
        """Return the prediction of every node, and the feature evidence on which it is based.

        Arguments and errors are those of `predict`; with `calibrate`, the model is calibrated on
        this graph first, with this prediction. Pass the evidence to `explain` to avoid computing
        it again.
        """
        graph = self.aligned(graph).graph
        evidence = EvidenceSummary.empty(graph.num_nodes)
        raw = self._predict(graph, evidence, store, memory_bytes, scratch, progress)
        if calibrate:
            return self.calibrate(graph, raw, memory_bytes=memory_bytes), evidence
        return self._finished(graph, raw, memory_bytes), evidence

    def predict_nodes(
        self, graph: GraphLike, nodes: ArrayLike, rows: StoreLike, *, explain: int = 0
    ) -> NodesPrediction:
        """Return the prediction of some nodes from stored rows, with an interval for alpha_0.

        Cluster evidence of the graph and, for p-values, the surprise of all its nodes are computed
        first, unless the model has them already.

        Args:
            graph: Graph with features.
            nodes: Nodes by position or by name, (B,); each needs a row in the store.
            rows: PPR store of the graph.
            explain: Number of contributors to list for each node.

        Raises:
            GpnScaleError: a node is not in the graph or has no row, or the store does not match.
        """
        graph = self.aligned(graph).graph
        require_evidence_diffusion(self.predicts_with, "predicting single nodes from rows")
        if explain < 0:
            raise ConfigError(
                f"explain is {explain}, expected at least 0 contributors", arguments=("explain",)
            )
        store, tail = self._store_and_tail(rows, graph)
        clusters, opinion_clusters = self._cluster_means(graph, tail, store)
        ids = node_positions(graph, nodes)
        predicted = predict_nodes(
            self.trained,
            graph,
            ids,
            store=store,
            tail=tail,
            clusters=clusters,
            opinion_clusters=opinion_clusters,
            surprise=self.surprise_of(graph),
            explain=explain,
        )
        named = replace(predicted.prediction, facts=NodeFacts.of(graph, ids))
        return replace(predicted, prediction=named)

    def predict_new(
        self,
        graph: GraphLike,
        features: Features | ArrayLike,
        neighbours: Sequence[ArrayLike],
        *,
        edge_weights: Sequence[ArrayLike] | None = None,
        tolerance: float = 1e-6,
    ) -> NewNodesPrediction:
        """Return the prediction of nodes that joined `graph` after training.

        P-values need the surprise of all nodes, which is computed unless the model has it already.

        Args:
            graph: Graph of the existing nodes.
            features: Feature rows of the new nodes, with the columns of training.
            neighbours: Positions of the neighbours of each new node; N + j is the j-th new node.
            edge_weights: Weights of these edges; None for 1.
            tolerance: Mass below this amount is not diffused further; 0 is exact.

        Raises:
            GraphError: the new nodes do not match the graph or the model.
        """
        graph = self.aligned(graph).graph
        require_evidence_diffusion(self.predicts_with, "predicting new nodes")
        clusters, largest = self.trained.network.clusters, None
        if clusters is not None and self._clusters_fingerprint.startswith(graph.fingerprint()):
            largest = float(clusters.largest_total_P.max())
        new = new_nodes(graph, features, neighbours, edge_weights)
        facts = GraphFacts(largest_evidence=largest, surprise=self.surprise_of(graph))
        predicted = predict_new(self.trained, graph, new, tolerance=tolerance, facts=facts)
        of_new = NodeFacts(nodes=new.ids, class_names=graph.class_names)
        return replace(predicted, prediction=replace(predicted.prediction, facts=of_new))

    def explain(
        self,
        graph: GraphLike,
        nodes: ArrayLike,
        *,
        rows: StoreLike | None = None,
        count: int = 6,
        evidence: EvidenceSummary | None = None,
    ) -> Explanation:
        """Return the nodes whose evidence makes the model sure, or unsure, of `nodes`.

        Args:
            graph: Graph with features.
            nodes: One node or several, by position or by name (`Graph.node_names`).
            rows: PPR store of the graph, for graphs that are too large for exact rows.
            count: Number of contributors to list for each node.
            evidence: Evidence from `predict_with_evidence` of this graph; None to compute it.

        Raises:
            ConfigError: the model diffuses logarithms of evidence, for which shares do not exist.
            StoreError: the graph is too large for exact rows, and `rows` is None or does not fit.
        """
        graph = self.aligned(graph).graph
        require_evidence_diffusion(self.predicts_with, "explaining nodes")
        stored = None
        if rows is not None:
            stored = partial(self.predict_nodes, graph, rows=rows, explain=count)
        return explain_nodes(
            self.trained, graph, nodes, count=count, evidence=evidence, predict_stored=stored
        )

    @property
    def _parts(self) -> ModelParts:
        """The networks and tables of the trained model."""
        trained = self.trained
        opinion = None if trained.opinion is None else trained.opinion.network
        return ModelParts(trained.network, opinion, trained.calibration)

    def _keep(self, parts: ModelParts, clusters_of: str = "") -> None:
        facts = (self.config.data.feature_scaling, self.predicts_with, self.device, self.dtype)
        opinion = None
        if parts.opinion is not None:
            opinion = TrainedOpinion(parts.opinion.to(self.device), *facts)
        network = parts.network.to(self.device)
        self._trained = TrainedModel(network, *facts, opinion, parts.calibration)
        self._clusters_fingerprint = clusters_of
        self._surprise = None

    def _predict(
        self,
        graph: Graph,
        evidence: EvidenceSummary | None,
        store: StoreLike | None,
        memory_bytes: int,
        scratch: Path | None,
        progress: ProgressCallback | None,
    ) -> Prediction:
        observers = [] if evidence is None else [evidence.observe]
        collected = None
        if store is not None:
            require_evidence_diffusion(self.predicts_with, "cluster evidence")
            opened, tail = self._store_and_tail(store, graph)
            collected = CollectedClusters(self.trained, graph, tail)
            observers.append(collected.evidence.observe)
        prediction = predict_all(
            self.trained,
            graph,
            memory_bytes=memory_bytes,
            scratch=scratch,
            progress=progress,
            observers=observers,
            opinion_observers=[] if collected is None else collected.opinion_observers,
            observer_bytes=0 if evidence is None else evidence.num_bytes,
            world=self.world,
        )
        prediction = replace(prediction, facts=NodeFacts.of(graph))
        if collected is not None:
            collected.store()
            self._clusters_fingerprint = clusters_fingerprint(graph, opened, tail)
        return prediction

    def _finished(self, graph: Graph, raw: Prediction, memory_bytes: int) -> Prediction:
        """Return a prediction of all nodes with calibrated probabilities and p-values."""
        average = partial(
            averaged, self.trained, graph, memory_bytes=memory_bytes, world=self.world
        )
        return self.trained.finished(raw, average)

    def surprise_of(self, graph: Graph) -> NDArray[np.float32] | None:
        """Return the surprise of the graph's nodes, (N,), or None for a model without p-values.

        Unless it is known already, all nodes are predicted.
        """
        if self.trained.calibration is None or not self.trained.calibration.scores:
            return None
        fingerprint = graph.fingerprint()
        if self._surprise is None or self._surprise.fingerprint != fingerprint:
            self._surprise = GraphSurprise(fingerprint, self.predict(graph).surprise)
        return self._surprise.values

    def _store_and_tail(self, store: StoreLike, graph: Graph) -> tuple[PPRStore, AbstractTail]:
        """Return the checked store, and the configured tail for its rows."""
        opened = open_rows(store, graph, self.predicts_with)
        return opened, make_tail(self.config.minibatch, opened, graph, self.predicts_with)

    def _cluster_means(
        self, graph: Graph, tail: AbstractTail, store: PPRStore
    ) -> tuple[ClusterEvidence, Tensor | None]:
        """Return the means of this graph's clusters; compute them unless the model has them."""
        trained, key = self.trained, clusters_fingerprint(graph, store, tail)
        if trained.network.clusters is None or self._clusters_fingerprint != key:
            summarise_model(trained, graph, tail)
            self._clusters_fingerprint = key
        assert trained.network.clusters is not None
        opinion = trained.opinion
        return trained.network.clusters, None if opinion is None else opinion.network.cluster_PS
