"""A matrix of runs on disk: every cell once, by any number of processes, resumed after any kill.

A cell is one training: a graph, a model, whether classes are left out, the seeds of split and
initial values. Its model file comes first, then one result after the other joins its JSON file, so
that a matrix asked for more experiments later trains nothing again.
"""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from gpn_scale import __version__
from gpn_scale.baselines.model import AbstractBaseline
from gpn_scale.baselines.registry import BaselineSetting
from gpn_scale.config import DiffusionConfig, RunConfig
from gpn_scale.data.graph import Graph
from gpn_scale.data.splits import prepare_graph
from gpn_scale.errors import ConfigError, NumericalError, RunError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.prediction_metrics import Metrics
from gpn_scale.experiments.measures import EXPERIMENTS, FRACTIONS, LEFT_OUT, Trained, is_complete
from gpn_scale.files import write_json
from gpn_scale.inference.encoder_inputs import required_features
from gpn_scale.train.checkpoint import load_tensors, save_tensors


class Cell(NamedTuple):
    """One training of the matrix."""

    dataset: str
    model: str
    left_out: bool
    split: int
    init: int

    @property
    def name(self) -> str:
        """Of its files."""
        kind = "left_out" if self.left_out else "all_classes"
        return f"{self.dataset}/{self.model}/{kind}/split{self.split}_init{self.init}"

    def wanted(self, experiments: Iterable[str]) -> list[str]:
        """Those of the experiments that use this training."""
        return [name for name in experiments if (name == LEFT_OUT) == self.left_out]

    def lacking(
        self,
        known: "CellResult | None",
        experiments: Iterable[str],
        fractions: Sequence[float] = FRACTIONS,
    ) -> list[str]:
        """Those of them that have no result, or a shift's that has not all fractions."""
        results = {} if known is None else known.results
        return [
            name
            for name in self.wanted(experiments)
            if name not in results or not is_complete(name, results[name], fractions)
        ]


@dataclass(frozen=True)
class Setting:
    """How a GPN is trained, and which diffusion it predicts with."""

    config: RunConfig
    predicts_with: DiffusionConfig

    @property
    def fingerprint(self) -> str:
        """Of both."""
        return replace(self.config, diffusion=self.predicts_with).fingerprint() + (
            "" if self.predicts_with == self.config.diffusion else f" {self.config.fingerprint()}"
        )

    def check(self, graph: Graph) -> None:
        """Refuses a dataset that a GPN cannot be trained on.

        Raises:
            GraphError: it has no features.
        """
        required_features(graph)


AnySetting = Setting | BaselineSetting


@dataclass(frozen=True)
class CellResult:
    """What is known of a cell; `results` has the metrics of each finished experiment."""

    fingerprint: str
    """Of the setting."""
    results: dict[str, Metrics] = field(default_factory=dict)


def cells_of(
    datasets: Sequence[str],
    models: Sequence[str],
    experiments: Sequence[str],
    splits: int,
    inits: int,
) -> list[Cell]:
    """All cells that the experiments need; seeds first, so that a part of them is a fair sample.

    Raises:
        ConfigError: there would be none.
    """
    if splits < 1 or inits < 1:
        raise ConfigError(f"got {splits} splits and {inits} inits, expected at least one of each")
    kinds = sorted({name == LEFT_OUT for name in experiments})
    return [
        Cell(dataset, model, left_out, split, init)
        for split in range(1, splits + 1)
        for init in range(1, inits + 1)
        for dataset in datasets
        for model in models
        for left_out in kinds
    ]


class Matrix:
    """The cells' files in a directory.

    Args:
        path: The directory; made if it is not there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def result(self, cell: Cell) -> CellResult | None:
        """What is known of a cell; None before its first experiment.

        Raises:
            RunError: the file is damaged or of another version.
        """
        path = self._file(cell, ".json")
        if not path.exists():
            return None
        try:
            stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            version, fingerprint, results = (
                stored[name] for name in ("version", "fingerprint", "results")
            )
        except (ValueError, KeyError, TypeError) as error:
            raise RunError(f"{path} is damaged ({error}): delete it and run again") from error
        if version != __version__:
            raise RunError(
                f"{path} was written by version {version}, this is {__version__}: evaluate into "
                "another directory, or delete it and run again"
            )
        # JSON has no word for what is not a number, such as a detection without positives.
        numbers = {
            name: {key: math.nan if value is None else value for key, value in metrics.items()}
            for name, metrics in results.items()
        }
        return CellResult(fingerprint, numbers)

    def missing(
        self,
        cell: Cell,
        experiments: Iterable[str],
        setting: AnySetting,
        fractions: Sequence[float] = FRACTIONS,
    ) -> list[str]:
        """Those of the experiments that the cell wants and that have no or half a result yet.

        Raises:
            RunError: what is there was made with another configuration or version.
        """
        return cell.lacking(self._result_of(cell, setting), experiments, fractions)

    def run(
        self,
        cell: Cell,
        experiments: Sequence[str],
        setting: AnySetting,
        load: Callable[[], Graph],
        *,
        store: Path | None = None,
        fractions: tuple[float, ...] = FRACTIONS,
    ) -> CellResult:
        """Trains the cell unless it is trained, and adds the results that it lacks.

        Args:
            cell: Which one.
            experiments: Names; those that need another training are left out.
            setting: Of the run, with the cell's seeds and left-out classes in it.
            load: Gives the graph.
            store: Rows of all nodes: to train on in minibatch mode, and for `epistemic_local`.
            fractions: Of the shifts.

        Raises:
            NumericalError: the trained model's prediction is not finite.
            RunError: what is there was made with another configuration or version.
        """
        known = self._result_of(cell, setting) or CellResult(setting.fingerprint)
        missing = cell.lacking(known, experiments, fractions)
        if not missing:
            return known
        graph = prepare_graph(load(), setting.config)
        rng_seed = cell.split * 1000 + cell.init
        classifier = self._trained(cell, setting, graph, store)
        trained = Trained(classifier, graph, rng_seed, store, fractions)
        for name in missing:
            try:
                found = EXPERIMENTS[name](trained)
            except NumericalError as error:
                raise NumericalError(f"{cell.name}, {name}: {error}") from error
            known.results[name] = known.results.get(name, {}) | found
            self._write(cell, known)
        return known

    def _result_of(self, cell: Cell, setting: AnySetting) -> CellResult | None:
        """`result`, if it is the setting's."""
        known = self.result(cell)
        if known is not None and known.fingerprint != setting.fingerprint:
            raise RunError(
                f"{self._file(cell, '.json')} was made with another configuration: evaluate into "
                "another directory, or delete it and run again"
            )
        return known

    def _trained(
        self, cell: Cell, setting: AnySetting, graph: Graph, store: Path | None
    ) -> GPNClassifier | AbstractBaseline:
        path = self._file_to_write(cell, ".safetensors")
        if isinstance(setting, BaselineSetting):
            return _fitted(path, setting, graph, store)
        return _fitted_gpn(path, setting, graph, store)

    def _write(self, cell: Cell, known: CellResult) -> None:
        results = {
            name: {key: None if math.isnan(value) else value for key, value in metrics.items()}
            for name, metrics in known.results.items()
        }
        content = {"version": __version__, "fingerprint": known.fingerprint, "results": results}
        write_json(self._file_to_write(cell, ".json"), content)

    def _file_to_write(self, cell: Cell, suffix: str) -> Path:
        path = self._file(cell, suffix)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def _file(self, cell: Cell, suffix: str) -> Path:
        return self.path / "cells" / (cell.name + suffix)


def _fitted_gpn(path: Path, setting: Setting, graph: Graph, store: Path | None) -> GPNClassifier:
    """The classifier in `path`; trained now if there is none of this configuration."""
    classifier = GPNClassifier(setting.config, predicts_with=setting.predicts_with)
    if path.exists():
        tensors, facts = load_tensors(path)
        if RunConfig.from_dict(facts["config"]).fingerprint() == setting.config.fingerprint():
            classifier.load_state(graph, tensors, path)
            return classifier
    rows = store if setting.config.mode == "minibatch" else None
    classifier.fit(graph, store=rows).save(path)
    return classifier


def _fitted(
    path: Path, setting: BaselineSetting, graph: Graph, store: Path | None
) -> AbstractBaseline:
    """The comparison model whose tensors are in `path`; fitted now if there are none of it."""
    model = setting.new()
    if path.exists():
        tensors, facts = load_tensors(path)
        if facts.get("fingerprint") == setting.fingerprint:
            model.load(graph, tensors, path)
            return model
    model.fit(graph, store=store)
    if tensors := model.state():
        save_tensors(path, tensors, {"model": setting.kind, "fingerprint": setting.fingerprint})
    return model
