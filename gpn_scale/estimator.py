"""`GPNClassifier`: fit on a graph, predict classes and uncertainty, explain, save and load."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, Self

import torch

from gpn_scale.classifier import AbstractClassifier
from gpn_scale.config import DiffusionConfig, RunConfig
from gpn_scale.data.contract import DataContract
from gpn_scale.data.conversion import GraphLike, as_graph
from gpn_scale.data.graph import Graph
from gpn_scale.data.splits import prepare_graph
from gpn_scale.distributed import World
from gpn_scale.evaluation.report import Report
from gpn_scale.inference.all_nodes import DEFAULT_MEMORY_BYTES, ProgressCallback
from gpn_scale.inference.stored_rows import StoreLike, open_rows
from gpn_scale.nn.opinion import Opinion
from gpn_scale.train.model_file import load_model, save_model
from gpn_scale.train.model_parts import ModelParts
from gpn_scale.train.new_trainer import check_trainable, new_opinion_trainer, new_trainer
from gpn_scale.train.trainer import EpochRecord, Trainer
from gpn_scale.train.warm_start import WarmStart
from gpn_scale.triage.label_next import needs_store
from gpn_scale.triage.lists import (
    CONTRIBUTORS,
    Triage,
    TriageRequest,
    checked_lengths,
    make_triage,
)

Observer = Callable[[EpochRecord], bool | None]
"""Called after every epoch; returns True to end the training of the part."""


class GPNClassifier(AbstractClassifier):
    """A Graph Posterior Network, trained on the whole graph or on batches of stored rows.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import example_graph, example_store
    >>> graph = example_graph()
    >>> classifier = GPNClassifier(epochs=1, teleport=0.5, device="cpu")
    >>> classifier.check(graph)
    >>> classifier = classifier.fit(graph)
    >>> classifier
    GPNClassifier(epochs=1, teleport=0.5, device='cpu'), fitted: GPN+, 1 features, 2 classes
    >>> classifier.predict(graph).to_frame()[["node", "predicted_class"]].shape
    (3, 2)
    >>> classifier.predict_proba(graph).shape, classifier.classes_.tolist()
    ((3, 2), [0, 1])
    >>> classifier.score(graph, nodes=[0, 1, 2]) >= 0.0
    True

    Configurations, explanations and files:

    >>> from gpn_scale.ppr.example import EXAMPLE_DIFFUSION
    >>> from gpn_scale.config import RunConfig, TrainConfig
    >>> config = RunConfig(diffusion=EXAMPLE_DIFFUSION, train=TrainConfig(epochs=1))
    >>> classifier = GPNClassifier(config, device="cpu").fit(graph)
    >>> sorted(classifier.history_), len(classifier.history_["opinion"])
    (['features', 'opinion'], 1)
    >>> classifier.aligned(graph).notes
    ()
    >>> prediction, evidence = classifier.predict_with_evidence(graph)
    >>> prediction.probabilities.shape
    (3, 2)
    >>> classifier.explain(graph, 0, count=2, evidence=evidence).contributors.node.shape
    (1, 2)
    >>> classifier.predict_new(graph, [[0.5]], neighbours=[[0, 2]]).prediction.alpha_0.shape
    (1,)
    >>> classifier.surprise_of(graph) is None  # one validation node is too few for p-values
    True
    >>> request = TriageRequest(review=1, label_next=0, include_labelled=True)
    >>> classifier.triage(graph, request).review.column_names[:4]
    ['id', 'predicted_class', 'probability', 'p_known']
    >>> with TemporaryDirectory() as folder:
    ...     rows = classifier.open_store(example_store(folder).path, graph)
    ...     classifier.predict_nodes(graph, [2], rows).node.tolist()
    ...     classifier.report(graph, f"{folder}/report").metrics["val"].keys() > {"accuracy"}
    ...     classifier.save(f"{folder}/model.safetensors")
    ...     loaded = GPNClassifier.load(f"{folder}/model.safetensors", device="cpu")
    [2]
    True
    >>> bool((loaded.predict(graph).alpha_0 == prediction.alpha_0).all())
    True

    Parameters, and training part by part:

    >>> loaded.get_params()["config"] == config
    True
    >>> loaded = loaded.set_params(learning_rate=0.1)
    >>> loaded = loaded.fit_trainer(loaded.trainer(graph))
    >>> for trainer in loaded.trainers(graph)[1:]:
    ...     loaded = loaded.fit_trainer(trainer)
    >>> calibrated = loaded.calibrate(graph)
    >>> loaded.load_state(graph, classifier.state(), source="classifier")  # and go back
    >>> bool((loaded.perturbed(graph).unchanged().alpha_0 == prediction.alpha_0).all())
    True

    >>> warm = GPNClassifier(config, device="cpu").fit(graph, warm_start=classifier)
    >>> warm.saved_model().config.train.warmup_steps
    0

    Args:
        config: Configuration of the model and its training; None for the recipe that `gpn-train`
            uses for a graph of this name (`gpn_scale.recipes`). The keywords up to `random_state`
            override single fields; None keeps a field.
        model: `GPN+` or `GPN`.
        mode: `exact` or `minibatch`.
        epochs: Maximum number of epochs after the warm-up.
        patience: Number of epochs without a better validation cross-entropy after which training
            stops.
        learning_rate: Learning rate of the Adam optimiser.
        weight_decay: Weight decay of the encoder's parameters.
        hidden: Width of the hidden layers.
        layers: Number of linear layers; the last one maps to the latent space.
        latent: Dimension of the latent space.
        dropout: Fraction of the encoder's hidden units that are dropped in training.
        teleport: Probability of returning to the root in the diffusion.
        steps: Number of diffusion steps, or `inf`.
        random_state: Seed of the initial weights and of dropout, at least 0.
        verbose: Whether `fit` shows a progress bar for each part of the model.
        predicts_with: Diffusion of predictions; None for the diffusion of training.
        device: `auto`, `cpu`, `cuda`, ...
        dtype: Type of all real numbers; float64 is for tests and studies of round-off.
        world: Processes that train and predict together; all of them must make the same calls.

    Raises:
        ConfigError: a value is not allowed, or the model cannot predict with `predicts_with`.
    """

    def __init__(
        self,
        config: RunConfig | None = None,
        *,
        model: str | None = None,
        mode: str | None = None,
        epochs: int | None = None,
        patience: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        hidden: int | None = None,
        layers: int | None = None,
        latent: int | None = None,
        dropout: float | None = None,
        teleport: float | None = None,
        steps: int | str | None = None,
        random_state: int | None = None,
        verbose: int = 0,
        predicts_with: DiffusionConfig | None = None,
        device: str = "auto",
        dtype: torch.dtype = torch.float32,
        world: World | None = None,
    ) -> None:
        given = locals()
        super().__init__({name: given[name] for name in self._default_parameters()})

    @classmethod
    def _default_parameters(cls) -> dict[str, Any]:
        parameters = list(signature(GPNClassifier).parameters.values())
        return {parameter.name: parameter.default for parameter in parameters}

    def check(self, graph: GraphLike) -> None:
        """Check that a GPN can be trained on the graph.

        Raises:
            GraphError: the graph has fewer than two classes or no features.
            ConfigError: batches would have more nodes than the graph's split has for training.
        """
        check_trainable(given := as_graph(graph))
        if self.config.mode == "minibatch" and given.split is not None:
            self.config.minibatch.roots_per_batch(len(given.split.train))

    def trainer(self, graph: GraphLike, store: StoreLike | None = None) -> Trainer:
        """Return a new trainer of the feature evidence, which is the only part of a GPN.

        Args:
            graph: Graph with features and labels; without a split, it gets the configured one.
            store: Rows of the training and validation nodes, for `mode="minibatch"`.

        Raises:
            GraphError: the graph cannot be trained on.
            StoreError: the store is missing, or does not fit the graph or the diffusion.
        """
        return self._evidence_trainer(self._prepared(graph), store)

    def trainers(
        self,
        graph: GraphLike,
        store: StoreLike | None = None,
        *,
        warm_start: WarmStart | None = None,
    ) -> tuple[Trainer, ...]:
        """Return trainers of all parts, for callers that run or restore them themselves.

        Pass each to `fit_trainer`, then call `calibrate`. Arguments and errors are those of
        `trainer` and `fit`.
        """
        return self._trainers(self._prepared(graph, warm_start), store, warm_start)

    def fit(
        self,
        graph: GraphLike,
        *,
        store: StoreLike | None = None,
        observe: Observer | None = None,
        warm_start: "GPNClassifier | Path | str | None" = None,
    ) -> Self:
        """Train on the graph's split, or else on the configured one; return self.

        Args:
            graph: Graph with features and labels, or what `as_graph` makes one of: PyG `Data`, a
                networkx graph, or a tuple (X, y, edges).
            store: Rows of the training and validation nodes, for `mode="minibatch"`.
            observe: Called after every epoch. If it returns True, the training of this part of the
                model ends and its best weights so far are kept; further parts and the calibration
                follow as usual. An exception from it ends `fit`, without a model.
            warm_start: A trained classifier, or its file, whose weights training starts from; None
                for random weights. Its architecture must match the configuration, and the graph
                must have its classes and features. Nodes that it was trained on should be training
                nodes again (`EarlierNodes.grown_split_of` makes such a split).

        Raises:
            ConfigError: the weights of `warm_start` do not match the configuration.
            GraphError: the graph cannot be trained on, or does not match `warm_start`.
        """
        given = as_graph(graph)
        check_trainable(given)
        start = None if warm_start is None else _start_of(warm_start)
        self._trained = None  # an earlier model would no longer match the parameters
        prepared = self._prepared(given, start)
        for trainer in self._trainers(prepared, store, start):
            self.fit_trainer(trainer, observe=observe)
        if self.config.model == "GPN+":
            self.calibrate(prepared)
        return self

    def fit_trainer(self, trainer: Trainer, *, observe: Observer | None = None) -> Self:
        """Train one part with its trainer, new or restored from a checkpoint; return self.

        Args:
            trainer: The trainer, which knows its graph.
            observe: Called after every epoch; returns True to stop and keep the best weights.
        """
        began, records = time.monotonic(), self._history.setdefault(trainer.part, [])
        with self._progress(trainer) as meter:
            for record in trainer.records():
                records.append(record)
                note = f"val accuracy {record.val_accuracy:.3f}, best epoch {record.best_epoch}"
                meter.update(record.epoch, note)
                if observe is not None and self._is_stopped(observe(record)):
                    break
        trainer.restore_best()
        self._seconds[trainer.part] = time.monotonic() - began
        if isinstance(trainer.model, Opinion):
            parts = replace(self._parts, opinion=trainer.model, calibration=None)
        else:
            earlier = None if self._trained is None else self._parts.opinion
            parts = ModelParts(trainer.model, earlier)
        self._keep(parts)
        return self

    def triage(
        self,
        graph: GraphLike,
        request: TriageRequest | None = None,
        *,
        rows: StoreLike | None = None,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        scratch: Path | None = None,
        progress: ProgressCallback | None = None,
    ) -> Triage:
        """Return which predictions to review and why, and which nodes to label next.

        Args:
            graph: The training graph with its split, or another graph.
            request: Lengths of the lists, and the error rate to promise; None for the defaults.
            rows: PPR store of the graph, for graphs that are too large for exact rows.
            memory_bytes: Memory budget of the prediction in addition to graph and model.
            scratch: Directory for arrays that exceed the budget; None for the system's default.
            progress: Called with the number of finished nodes and the name of the phase.

        Raises:
            ConfigError: more nodes are requested than exist, or the promise cannot be made.
            StoreError: the graph is too large for exact rows, and `rows` is None or does not fit.
        """
        graph, request = self.aligned(graph).graph, request or TriageRequest()
        checked_lengths(graph, request)  # fail before the costly prediction
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

    def report(
        self, graph: GraphLike, path: Path | str, *, store: Path | str | None = None
    ) -> Report:
        """Write the report that `gpn-train` writes: `report.html`, `.md`, `.json`, and plots.

        Without the extra `charts`, page and plots are skipped with a `RuntimeWarning`.

        Args:
            graph: Graph with a split, or the training graph if training has drawn its split.
            path: Folder, which is created if needed; files of an earlier report are replaced.
            store: Rows of minibatch mode, whose missing mass the page shows.

        Returns:
            The report; `metrics` has its numbers.

        Raises:
            GraphError: the graph has no split.
            RunError: the folder cannot be written.
        """
        # The page is drawn by a layer above this one; docs/architecture.md names this exception.
        from gpn_scale.page.classifier_report import write_report

        return write_report(self, graph, Path(path), store)

    def save(self, path: Path | str) -> None:
        """Write weights, calibration, cluster means and configuration to one safetensors file.

        The file of a GPN+ also holds the surprise of the nodes of one graph, 4 bytes per node: the
        graph of the calibration, or the one whose single nodes were predicted last.
        """
        save_model(Path(path), self.saved_model())

    @classmethod
    def load(cls, path: Path | str, *, device: str = "auto") -> Self:
        """Return a classifier that predicts as the saved one did.

        Raises:
            RunError: the file is missing, damaged, not a model file, or from another version.
        """
        saved = load_model(Path(path))
        classifier = cls(
            saved.config, predicts_with=saved.predicts_with, device=device, dtype=saved.dtype
        )
        classifier._keep(saved.parts, saved.clusters_of)
        classifier._contract = saved.contract
        classifier._surprise = saved.surprise
        return classifier

    def _prepared(self, graph: GraphLike, start: WarmStart | None = None) -> Graph:
        """Apply the parameters for training on `graph`, and return it with a split."""
        given = self._configured_for(graph)
        check_trainable(given)
        self._split_of = given.fingerprint() if given.split is None else ""
        prepared = given if given.split is not None else prepare_graph(given, self.config)
        if start is not None:
            (prepared, *_), config = start.prepared(prepared, self.config)
            self._use(config)
        self._contract = DataContract.of(prepared)
        return prepared

    def _evidence_trainer(self, graph: Graph, store: StoreLike | None) -> Trainer:
        return new_trainer(
            self.config, graph, store, device=self.device, dtype=self.dtype, world=self.world
        )

    def _trainers(
        self, graph: Graph, store: StoreLike | None, start: WarmStart | None = None
    ) -> tuple[Trainer, ...]:
        trainers = [self._evidence_trainer(graph, store)]
        if self.config.model == "GPN+":
            trainers.append(self._opinion_trainer(graph, store, trainers[0]))
        if start is not None:
            start.give_weights(trainers)
        return tuple(trainers)

    def _opinion_trainer(self, graph: Graph, store: StoreLike | None, beside: Trainer) -> Trainer:
        return new_opinion_trainer(
            self.config,
            graph,
            store,
            device=self.device,
            dtype=self.dtype,
            world=self.world,
            beside=beside,
        )


def _start_of(given: GPNClassifier | Path | str) -> WarmStart:
    if isinstance(given, GPNClassifier):
        return WarmStart(model=given.saved_model(), source="the earlier model")
    return WarmStart.loaded(Path(given))
