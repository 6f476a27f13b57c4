"""`GPNClassifier`: fit on a graph, predict classes and uncertainty; the library's front door."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import overload

import numpy as np
import torch
from numpy.typing import ArrayLike

from gpn_scale.config import RunConfig
from gpn_scale.data.graph import Features, Graph, as_node_ids
from gpn_scale.data.splits import class_prior, prepare_graph
from gpn_scale.device import pick_device
from gpn_scale.diffusion.growth import new_nodes
from gpn_scale.distributed import World
from gpn_scale.errors import ConfigError, GraphError, RunError, StoreError
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.inference.all_nodes import DEFAULT_MEMORY_BYTES, Progress, node_evidence, predict_all
from gpn_scale.inference.cluster_summary import ClusterSummary, num_summarised
from gpn_scale.inference.encoder_inputs import column_moments, required_features
from gpn_scale.inference.evidence import FeatureEvidence
from gpn_scale.inference.new_nodes import NewPrediction, predict_new
from gpn_scale.inference.some_nodes import RowPrediction, predict_rows
from gpn_scale.nn.aggregation import ClusterEvidence
from gpn_scale.nn.model import GPN
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.tails import AbstractTail, make_tail
from gpn_scale.train.checkpoint import check_tensors, load_tensors, save_tensors
from gpn_scale.train.minibatch_task import MinibatchTask
from gpn_scale.train.task import AbstractTask, ExactTask
from gpn_scale.train.trainer import EpochRecord, Trainer

_SUMMARY_CHUNK = 1 << 13
_FACTS = {"config", "num_features", "num_classes", "num_clusters", "summary_of"}
"""What a model file tells beside its tensors."""


class GPNClassifier:
    """A Graph Posterior Network, trained on the whole graph or on batches of stored rows.

    Args:
        config: What to build and how to train it; `gpn_scale.recipes` has the paper's settings.
        device: `auto`, `cpu`, `cuda`, ...
        dtype: Of all real numbers; float64 is for tests and studies of round-off.
        world: The processes that train and predict together, each with this very call.
    """

    def __init__(
        self,
        config: RunConfig | None = None,
        *,
        device: str = "auto",
        dtype: torch.dtype = torch.float32,
        world: World | None = None,
    ) -> None:
        self.config = config or RunConfig()
        self.world = world or World()
        self.device = pick_device(device) if self.world.size == 1 else self.world.device
        self.dtype = dtype
        self._model: GPN | None = None
        self._rows: tuple[Graph, AbstractTail, PPRStore] | None = None
        """What minibatch training used; predicting this very graph then summarises its clusters."""
        self._summary_of = ""
        """Graph and clusters that the model's cluster evidences are of."""
        self._fingerprinted: tuple[Graph, str] | None = None
        """The last graph whose fingerprint was needed; it reads every feature."""

    @property
    def model(self) -> GPN:
        """The trained network."""
        if self._model is None:
            raise RunError("this classifier has no model yet: call fit or load first")
        return self._model

    def open_store(self, path: Path | str, graph: Graph) -> PPRStore:
        """The store in `path`, checked to be of this graph and of the configured diffusion.

        Raises:
            StoreError: it is not, or cannot be read.
        """
        wanted = self.config.diffusion.store_parameters
        store = PPRStore.open(path, graph_fingerprint=graph.structure_fingerprint())
        for name, value in wanted.items():
            stored = store.parameters.get(name)
            if stored != value:
                word = {True: "on", False: "off"}[value] if isinstance(value, bool) else value
                raise StoreError(
                    f"{path} has rows of {name} {stored}, the model diffuses with {value}: build "
                    f"the store again with `--{name.replace('_', '-')} {word} --overwrite`, or "
                    f"train with `--set diffusion.{name}={stored}`"
                )
        return store

    def trainer(self, graph: Graph, store: PPRStore | Path | str | None = None) -> Trainer:
        """A trainer at its start, for callers that want to drive or restore it themselves."""
        if graph.num_classes < 2:
            raise GraphError(
                f"graph {graph.name!r} has {graph.num_classes} class(es) to learn, expected at "
                "least 2: check the labels"
            )
        if graph.split is None:
            graph = prepare_graph(graph, self.config)
        task = self._task(graph, store)
        # Initial values are drawn on the CPU, so that a seed means the same on every device.
        generator = torch.Generator().manual_seed(self.config.train.rng_seed)
        prior_C = torch.from_numpy(class_prior(graph)).to(self.dtype)
        clusters = num_summarised(task.tail) if isinstance(task, MinibatchTask) else 0
        model = self._new_model(graph.num_features, prior_C, generator, clusters)
        if self.config.encoder.standardise:
            features = required_features(graph)
            moments = column_moments(features, self.config.data.feature_scaling)
            model.encoder.first.standardise(*moments)
        if self.device.type != "cpu":
            generator = torch.Generator(self.device).manual_seed(self.config.train.rng_seed)
        return Trainer(model, task, self.config.train, generator, self.world)

    def fit(
        self,
        graph: Graph,
        *,
        store: PPRStore | Path | str | None = None,
        observe: Callable[[EpochRecord], None] | None = None,
        trainer: Trainer | None = None,
    ) -> "GPNClassifier":
        """Trains on the graph's split, or on the configured one where it has none.

        Args:
            graph: With features and labels.
            store: Rows of the training and validation nodes, for `mode="minibatch"`.
            observe: Called after every epoch; an exception from it ends training.
            trainer: One from `trainer()`, perhaps restored from a checkpoint.
        """
        trainer = trainer or self.trainer(graph, store)
        for record in trainer.records():
            if observe is not None:
                observe(record)
        trainer.restore_best()
        self._model = trainer.model
        self._summary_of = ""
        return self

    @overload
    def predict(
        self,
        graph: Graph,
        *,
        memory_bytes: int = ...,
        scratch: Path | None = ...,
        progress: Progress | None = ...,
    ) -> Prediction: ...

    @overload
    def predict(
        self,
        graph: Graph,
        *,
        nodes: ArrayLike,
        store: PPRStore | Path | str | None,
        explain: int = ...,
    ) -> RowPrediction: ...

    def predict(
        self,
        graph: Graph,
        *,
        nodes: ArrayLike | None = None,
        store: PPRStore | Path | str | None = None,
        explain: int = 0,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        scratch: Path | None = None,
        progress: Progress | None = None,
    ) -> Prediction | RowPrediction:
        """Class probabilities and uncertainty of every node, or of some from their stored rows.

        The graph may be another one than that of training, with the same feature columns.

        Args:
            graph: With features.
            nodes: Ids of the nodes wanted; absent means all, by exact diffusion.
            store: Where the rows of `nodes` are.
            explain: How many contributors to name for each of `nodes`.
            memory_bytes: What predicting all nodes may use beside graph and model.
            scratch: Directory for what does not fit into it.
            progress: Told how far predicting all nodes has come.
        """
        self._check_features(graph)
        if nodes is None:
            return self._predict_all(graph, memory_bytes, scratch, progress)
        if store is None:
            raise StoreError("predicting single nodes needs their rows: give the store as well")
        self._require_sums("predicting single nodes from rows")
        if explain < 0:
            raise ConfigError(f"explain is {explain}, expected at least 0 contributors")
        store = self._checked(store, graph)
        tail = make_tail(self.config.minibatch, store, graph, self.config.diffusion)
        scaling = self.config.data.feature_scaling
        return predict_rows(
            as_node_ids(nodes, "nodes").astype(np.int64),
            FeatureEvidence(self.model, required_features(graph), scaling, self.device, self.dtype),
            store,
            tail,
            self._cluster_evidence(graph, tail, store),
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
    ) -> NewPrediction:
        """Classes and uncertainty of nodes that joined `graph` after training.

        Args:
            graph: The known nodes.
            features: Of the new nodes, as many columns as in training.
            neighbours: Per new node the ids of its neighbours; N + j is the j-th new node.
            edge_weights: Weights of these edges; absent means 1.
            tolerance: What arrives at a node with less is not followed; 0 is exact.
        """
        self._require_sums("predicting new nodes")
        clusters, largest = self.model.clusters, None
        if clusters is not None and self._summary_of.startswith(self._fingerprint(graph)):
            largest = float(clusters.largest_total_P.max())
        return predict_new(
            self.model,
            graph,
            new_nodes(graph, features, neighbours, edge_weights),
            scaling=self.config.data.feature_scaling,
            diffusion=self.config.diffusion,
            device=self.device,
            dtype=self.dtype,
            tolerance=tolerance,
            largest_evidence=largest,
        )

    def save(self, path: Path | str) -> None:
        """Writes weights, cluster evidences and configuration to one safetensors file."""
        clusters = self.model.clusters
        facts = {
            "config": self.config.to_dict(),
            "num_features": self.model.encoder.first.shift_F.shape[0],
            "num_classes": self.model.flow.num_classes,
            "num_clusters": 0 if clusters is None else clusters.num_clusters,
            "summary_of": self._summary_of,
        }
        save_tensors(Path(path), self.model.state_dict(), facts)

    @classmethod
    def load(cls, path: Path | str, *, device: str = "auto") -> "GPNClassifier":
        """A classifier that predicts as the saved one did.

        Raises:
            RunError: the file is missing, damaged, no model, or its tensors are of another one.
        """
        tensors, facts = load_tensors(Path(path))
        if "num_features" not in facts:
            raise RunError(f"{path} is a training checkpoint, expected a model file")
        if absent := _FACTS - facts.keys():
            raise RunError(
                f"{path} does not tell {min(absent)!r}: it was written by another version, "
                "train again"
            )
        first = tensors.get("encoder.first.weight")
        dtype = torch.float32 if first is None else first.dtype
        classifier = cls(RunConfig.from_dict(facts["config"]), device=device, dtype=dtype)
        prior_C = torch.full((facts["num_classes"],), 1.0 / facts["num_classes"])
        model = classifier._new_model(
            facts["num_features"], prior_C, torch.Generator(), facts["num_clusters"]
        )
        check_tensors(Path(path), tensors, model.state_dict())
        model.load_state_dict(tensors)
        classifier._model = model.eval()
        classifier._summary_of = facts["summary_of"]
        return classifier

    def _new_model(
        self, num_features: int, prior_C: torch.Tensor, source: torch.Generator, num_clusters: int
    ) -> GPN:
        model = GPN(
            self.config,
            num_features=num_features,
            class_prior_C=prior_C,
            generator=source,
            num_clusters=num_clusters,
        )
        return model.to(self.device, self.dtype)

    def _task(self, graph: Graph, store: PPRStore | Path | str | None) -> AbstractTask:
        if self.config.mode == "exact":
            if self.world.size > 1:
                raise ConfigError(
                    f"exact mode trains in one process, got {self.world.size} ranks: start it with "
                    "plain python, or use --mode minibatch"
                )
            return ExactTask(graph, self.config, self.device, self.dtype)
        if store is None:
            raise StoreError(
                "minibatch mode needs the rows of a store: make one with `python -m precompute` "
                "and name it with --ppr STORE"
            )
        self._require_sums("minibatch mode")
        opened = self._checked(store, graph)
        task = MinibatchTask(graph, self.config, opened, self.device, self.dtype, self.world)
        self._rows = (graph, task.tail, opened)
        return task

    def _require_sums(self, what: str) -> None:
        if self.config.diffusion.of != "evidence":
            raise ConfigError(
                f"{what} adds up evidence, got diffusion.of={self.config.diffusion.of}: train and "
                "predict all nodes in exact mode, or use diffusion.of=evidence"
            )

    def _checked(self, store: PPRStore | Path | str, graph: Graph) -> PPRStore:
        return self.open_store(store.path if isinstance(store, PPRStore) else store, graph)

    def _check_features(self, graph: Graph) -> None:
        trained_on = self.model.encoder.first.shift_F.shape[0]
        if graph.num_features != trained_on:
            raise GraphError(
                f"graph {graph.name!r} has {graph.num_features} feature columns, the model was "
                f"trained on {trained_on}"
            )

    def _predict_all(
        self, graph: Graph, memory_bytes: int, scratch: Path | None, progress: Progress | None
    ) -> Prediction:
        summary = None
        if self._rows is not None and self._rows[0] is graph:
            summary = ClusterSummary(self._rows[1], self.model.flow.num_classes, self.device)
        prediction = predict_all(
            self.model,
            graph,
            scaling=self.config.data.feature_scaling,
            diffusion=self.config.diffusion,
            device=self.device,
            dtype=self.dtype,
            memory_bytes=memory_bytes,
            scratch=scratch,
            progress=progress,
            observe=None if summary is None else summary.observe,
            world=self.world,
        )
        if summary is not None and self._rows is not None:
            self._keep(summary, *self._rows)
        return prediction

    def _cluster_evidence(
        self, graph: Graph, tail: AbstractTail, store: PPRStore
    ) -> ClusterEvidence:
        """The model's summary of this graph's clusters; made now if it has another's or none."""
        if self.model.clusters is None or self._summary_of != self._key(graph, store):
            summary = ClusterSummary(tail, self.model.flow.num_classes, self.device)
            scaling = self.config.data.feature_scaling
            for start, stop, evidence_NC in node_evidence(
                self.model,
                graph,
                scaling,
                device=self.device,
                dtype=self.dtype,
                chunk=_SUMMARY_CHUNK,
            ):
                summary.observe(start, stop, evidence_NC)
            self._keep(summary, graph, tail, store)
        assert self.model.clusters is not None
        return self.model.clusters

    def _keep(
        self, summary: ClusterSummary, graph: Graph, tail: AbstractTail, store: PPRStore
    ) -> None:
        clusters = ClusterEvidence(num_summarised(tail), self.model.flow.num_classes)
        self.model.clusters = clusters.to(self.device, self.dtype)
        summary.store_into(self.model.clusters)
        self._summary_of = self._key(graph, store)

    def _key(self, graph: Graph, store: PPRStore) -> str:
        """What cluster evidences depend on beside the weights."""
        own = self.config.minibatch.tail == "clustered"
        clusters = store.clusters_checksum if own else "one cluster"
        return f"{self._fingerprint(graph)} {clusters}"

    def _fingerprint(self, graph: Graph) -> str:
        if self._fingerprinted is None or self._fingerprinted[0] is not graph:
            self._fingerprinted = (graph, graph.fingerprint())
        return self._fingerprinted[1]
