"""`GPNClassifier`: fit on a graph, predict classes and uncertainty; the library's front door."""

from collections.abc import Callable
from pathlib import Path

import torch

from gpn_scale.config import RunConfig
from gpn_scale.data.graph import Graph
from gpn_scale.data.splits import class_prior, leave_out_classes, stratified_split
from gpn_scale.errors import ConfigError, GraphError, RunError
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.inference.exact import exact_diffusion
from gpn_scale.inference.inputs import model_inputs
from gpn_scale.nn.model import GPN
from gpn_scale.train.checkpoint import load_tensors, save_tensors
from gpn_scale.train.task import ExactTask
from gpn_scale.train.trainer import EpochRecord, Trainer


def prepare_graph(graph: Graph, config: RunConfig) -> Graph:
    """The graph with the configured split, and without the labels of the left-out classes.

    Raises:
        GraphError: a public split is asked for and there is none, or the labels do not do.
    """
    if config.split.kind == "public":
        if graph.split is None:
            raise GraphError(
                f"graph {graph.name!r} has no public split, expected one with split.kind=public: "
                "use --set split.kind=stratified"
            )
    else:
        graph = stratified_split(
            graph,
            train=config.split.train,
            val=config.split.val,
            rng_seed=config.split.rng_seed,
        )
    left_out = config.data.left_out_classes
    return leave_out_classes(graph, left_out) if left_out else graph


def pick_device(name: str) -> torch.device:
    """`auto` is CUDA where there is one, else the CPU; other names are torch's.

    Raises:
        ConfigError: there is no such device.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(
            f"device {name!r} cannot be used ({reason}), expected auto, cpu or cuda"
        ) from error


class GPNClassifier:
    """A Graph Posterior Network with exact diffusion.

    Args:
        config: What to build and how to train it; `launch.recipes` has the paper's settings.
        device: `auto`, `cpu`, `cuda`, ...
        dtype: Of all real numbers; float64 is for tests and studies of round-off.
    """

    def __init__(
        self,
        config: RunConfig | None = None,
        *,
        device: str = "auto",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.config = config or RunConfig()
        self.device = pick_device(device)
        self.dtype = dtype
        self._model: GPN | None = None

    @property
    def model(self) -> GPN:
        """The trained network."""
        if self._model is None:
            raise RunError("this classifier has no model yet: call fit or load first")
        return self._model

    def trainer(self, graph: Graph) -> Trainer:
        """A trainer at its start, for callers that want to drive or restore it themselves."""
        if graph.num_classes < 2:
            raise GraphError(
                f"graph {graph.name!r} has {graph.num_classes} class(es) to learn, expected at "
                "least 2: check the labels"
            )
        if graph.split is None:
            graph = prepare_graph(graph, self.config)
        task = ExactTask(graph, self.config, self.device, self.dtype)
        # Initial values are drawn on the CPU, so that a seed means the same on every device.
        generator = torch.Generator().manual_seed(self.config.train.rng_seed)
        prior_C = torch.from_numpy(class_prior(graph)).to(self.dtype)
        model = self._new_model(graph.num_features, prior_C, generator)
        if self.config.encoder.standardise:
            model.encoder.first.standardise(task.inputs)
        if self.device.type != "cpu":
            generator = torch.Generator(self.device).manual_seed(self.config.train.rng_seed)
        return Trainer(model, task, self.config.train, generator)

    def fit(
        self,
        graph: Graph,
        *,
        observe: Callable[[EpochRecord], None] | None = None,
        trainer: Trainer | None = None,
    ) -> "GPNClassifier":
        """Trains on the graph's split, or on the configured one where it has none.

        Args:
            graph: With features and labels.
            observe: Called after every epoch; an exception from it ends training.
            trainer: One from `trainer()`, perhaps restored from a checkpoint.
        """
        trainer = trainer or self.trainer(graph)
        for record in trainer.records():
            if observe is not None:
                observe(record)
        trainer.restore_best()
        self._model = trainer.model
        return self

    @torch.no_grad()
    def predict(self, graph: Graph) -> Prediction:
        """Class probabilities and uncertainty of every node of `graph`.

        The graph may be another one than that of training, with the same feature columns.
        """
        if graph.num_features != self.model.encoder.first.shift_F.shape[0]:
            raise GraphError(
                f"graph {graph.name!r} has {graph.num_features} feature columns, the model was "
                f"trained on {self.model.encoder.first.shift_F.shape[0]}"
            )
        inputs = model_inputs(graph, self.config.data.feature_scaling, self.device, self.dtype)
        diffusion = exact_diffusion(graph, self.config.diffusion, self.device, self.dtype)
        return Prediction.from_output(self.model(inputs, diffusion))

    def save(self, path: Path | str) -> None:
        """Writes weights and configuration to one safetensors file."""
        facts = {
            "config": self.config.to_dict(),
            "num_features": self.model.encoder.first.shift_F.shape[0],
            "num_classes": self.model.flow.num_classes,
        }
        save_tensors(Path(path), self.model.state_dict(), facts)

    @classmethod
    def load(cls, path: Path | str, *, device: str = "auto") -> "GPNClassifier":
        """A classifier that predicts as the saved one did."""
        tensors, facts = load_tensors(Path(path))
        if "num_features" not in facts:
            raise RunError(f"{path} is a training checkpoint, expected a model file")
        dtype = tensors["encoder.first.weight"].dtype
        classifier = cls(RunConfig.from_dict(facts["config"]), device=device, dtype=dtype)
        prior_C = torch.full((facts["num_classes"],), 1.0 / facts["num_classes"])
        model = classifier._new_model(facts["num_features"], prior_C, torch.Generator())
        model.load_state_dict(tensors)
        classifier._model = model.eval()
        return classifier

    def _new_model(self, num_features: int, prior_C: torch.Tensor, source: torch.Generator) -> GPN:
        model = GPN(self.config, num_features=num_features, class_prior_C=prior_C, generator=source)
        return model.to(self.device, self.dtype)
