"""`GPNClassifier`: fit on a graph, predict classes and uncertainty, explain, save and load."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self

from torch import Tensor

from gpn_scale.data.contract import DataContract
from gpn_scale.data.graph import Graph
from gpn_scale.data.splits import prepare_graph
from gpn_scale.inference.all_nodes import DEFAULT_MEMORY_BYTES, ProgressCallback
from gpn_scale.inference.stored_rows import StoreLike, open_rows
from gpn_scale.nn.opinion import Opinion
from gpn_scale.predictor import AbstractPredictor
from gpn_scale.train.model_file import SavedModel, load_model, save_model
from gpn_scale.train.model_parts import ModelParts, NetworkSizes
from gpn_scale.train.new_trainer import check_trainable, new_opinion_trainer, new_trainer
from gpn_scale.train.trainer import EpochRecord, Trainer
from gpn_scale.triage.label_next import needs_store
from gpn_scale.triage.lists import (
    CONTRIBUTORS,
    Triage,
    TriageRequest,
    checked_lengths,
    make_triage,
)


class GPNClassifier(AbstractPredictor):
    """A Graph Posterior Network, trained on the whole graph or on batches of stored rows.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> from gpn_scale.ppr.example import EXAMPLE_DIFFUSION, example_graph, example_store
    >>> graph = example_graph()
    >>> config = RunConfig(diffusion=EXAMPLE_DIFFUSION, train=TrainConfig(epochs=1))
    >>> classifier = GPNClassifier(config, device="cpu")
    >>> classifier.check(graph)
    >>> classifier = classifier.fit(graph)
    >>> classifier.aligned(graph).notes
    ()
    >>> prediction, evidence = classifier.predict_with_evidence(graph)
    >>> prediction.probabilities.shape
    (3, 2)
    >>> classifier.explain(graph, 0, count=2, evidence=evidence).contributors.node.shape
    (1, 2)
    >>> classifier.predict_new(graph, [[0.5]], neighbours=[[0, 2]]).prediction.alpha_0.shape
    (1,)
    >>> request = TriageRequest(review=1, label_next=0, include_labelled=True)
    >>> classifier.triage(graph, request).review.column_names[:4]
    ['id', 'predicted_class', 'probability', 'p_known']
    >>> with TemporaryDirectory() as folder:
    ...     rows = classifier.open_store(example_store(folder).path, graph)
    ...     classifier.predict_nodes(graph, [2], rows).node.tolist()
    ...     classifier.save(f"{folder}/model.safetensors")
    ...     loaded = GPNClassifier.load(f"{folder}/model.safetensors", device="cpu")
    [2]
    >>> bool((loaded.predict(graph).alpha_0 == prediction.alpha_0).all())
    True
    >>> loaded = loaded.fit_trainer(loaded.trainer(graph))  # train again, part by part
    >>> for trainer in loaded.trainers(graph)[1:]:
    ...     loaded = loaded.fit_trainer(trainer)
    >>> calibrated = loaded.calibrate(graph)
    >>> loaded.load_state(graph, classifier.state(), source="classifier")  # and go back
    >>> bool((loaded.perturbed(graph).unchanged().alpha_0 == prediction.alpha_0).all())
    True

    Args:
        config: What to build and how to train it; `gpn_scale.recipes` has the paper's settings.
        predicts_with: Diffusion of predictions; None for that of training.
        device: `auto`, `cpu`, `cuda`, ...
        dtype: Type of all real numbers; float64 is for tests and studies of round-off.
        world: Processes that train and predict together, each making the same calls.

    Raises:
        ConfigError: the model cannot predict with `predicts_with`.
    """

    def check(self, graph: Graph) -> None:
        """Check that a GPN can be trained on the graph.

        Raises:
            GraphError: the graph has fewer than two classes or no features.
        """
        check_trainable(graph)

    def trainer(self, graph: Graph, store: StoreLike | None = None) -> Trainer:
        """Return a trainer of the feature evidence, which is all of a GPN, that has not started.

        Args:
            graph: Graph with features and labels; gets the configured split if it has none.
            store: Rows of the training and validation nodes, for `mode="minibatch"`.

        Raises:
            GraphError: the graph cannot be trained on.
            StoreError: the store is missing, or does not fit the graph or the diffusion.
        """
        check_trainable(graph)
        graph = graph if graph.split is not None else prepare_graph(graph, self.config)
        self._contract = DataContract.of(graph)
        return new_trainer(
            self.config, graph, store, device=self.device, dtype=self.dtype, world=self.world
        )

    def trainers(self, graph: Graph, store: StoreLike | None = None) -> tuple[Trainer, ...]:
        """Return trainers of all parts, for callers that drive or restore them themselves.

        Pass each to `fit_trainer`, then call `calibrate`. Arguments and errors are those of
        `trainer`.
        """
        first = self.trainer(graph, store)
        if self.config.model == "GPN":
            return (first,)
        second = new_opinion_trainer(
            self.config,
            graph,
            store,
            device=self.device,
            dtype=self.dtype,
            world=self.world,
            beside=first,
        )
        return first, second

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
        check_trainable(graph)
        graph = graph if graph.split is not None else prepare_graph(graph, self.config)
        for trainer in self.trainers(graph, store):
            self.fit_trainer(trainer, observe=observe)
        if self.config.model == "GPN+":
            self.calibrate(graph)
        return self

    def fit_trainer(
        self, trainer: Trainer, *, observe: Callable[[EpochRecord], None] | None = None
    ) -> Self:
        """Train one part with its trainer, perhaps restored from a checkpoint; return self.

        Args:
            trainer: The trainer, which knows its graph.
            observe: Called after every epoch; an exception from it ends training.
        """
        for record in trainer.records():
            if observe is not None:
                observe(record)
        trainer.restore_best()
        if isinstance(trainer.model, Opinion):
            parts = replace(self._parts, opinion=trainer.model, calibration=None)
        else:
            earlier = None if self._trained is None else self._parts.opinion
            parts = ModelParts(trainer.model, earlier)
        self._keep(parts)
        return self

    def triage(
        self,
        graph: Graph,
        request: TriageRequest | None = None,
        *,
        rows: StoreLike | None = None,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        scratch: Path | None = None,
        progress: ProgressCallback | None = None,
    ) -> Triage:
        """Return which predictions to review and why, and which nodes to label next.

        Args:
            graph: The graph of training with its split, or another one.
            request: How many nodes to list, and the error rate to promise; None for the defaults.
            rows: PPR store of the graph, for graphs that are too large for exact rows.
            memory_bytes: Memory budget of the prediction in addition to graph and model.
            scratch: Directory for what does not fit into the budget; None for the system's default.
            progress: Called with the number of nodes done and the name of the phase.

        Raises:
            ConfigError: there are fewer nodes than requested, or the promise cannot be made.
            StoreError: the graph is too large for exact rows, and `rows` is None or does not fit.
        """
        graph, request = self.aligned(graph).graph, request or TriageRequest()
        checked_lengths(graph, request)  # before the work of a prediction
        store = None if rows is None else open_rows(rows, graph, self.predicts_with)
        prediction, evidence = self.predict_with_evidence(
            graph, memory_bytes=memory_bytes, scratch=scratch, progress=progress
        )
        has_shares = self.predicts_with.of == "evidence"  # logarithms of evidence have none
        explain = partial(self.explain, graph, rows=store, count=CONTRIBUTORS, evidence=evidence)
        return make_triage(
            self.trained,
            graph,
            prediction,
            request,
            explain=explain if has_shares and (store or not needs_store(graph)) else None,
            store=store,
        )

    def load_state(self, graph: Graph, tensors: Mapping[str, Tensor], source: Path | str) -> None:
        """Use tensors from `state` of a classifier with the same configuration.

        Args:
            graph: Graph with the features and classes of training.
            tensors: The tensors.
            source: Where they are from, for messages.

        Raises:
            RunError: the tensors belong to another model.
        """
        self._contract = DataContract.of(graph)
        sizes = NetworkSizes.of(graph, tensors)
        self._keep(ModelParts.restored(self.config, sizes, self.dtype, tensors, source))

    def save(self, path: Path | str) -> None:
        """Write weights, calibration, cluster means and configuration to one safetensors file.

        The file of a GPN+ also holds the surprise of the nodes of one graph, 4 bytes per node: the
        graph of calibration, or the one whose nodes were last predicted one by one.
        """
        facts = (self.config, self.predicts_with, self._clusters_fingerprint, self.dtype)
        save_model(Path(path), SavedModel(self._parts, *facts, self.contract, self._surprise))

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
        classifier._keep(saved.parts, saved.clusters_of)
        classifier._contract = saved.contract
        classifier._surprise = saved.surprise
        return classifier
