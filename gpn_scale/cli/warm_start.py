"""`gpn-train --warm-start RUN`: the earlier run that training starts from, and its quality.

When training begins, everything that it needs from the earlier run is copied to its own directory,
so that it can be resumed even if the earlier run is changed or removed.
"""

import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from gpn_scale.config import RunConfig
from gpn_scale.data.earlier_nodes import EarlierNodes
from gpn_scale.data.graph import Graph, NodeIds, Split
from gpn_scale.data.splits import hide_classes, prepare_graph
from gpn_scale.errors import ConfigError, RunError
from gpn_scale.evaluation.earlier_predictions import EarlierPredictions
from gpn_scale.evaluation.prediction import AbstractPrediction
from gpn_scale.evaluation.quality_change import (
    Quality,
    QualityChange,
    compared_graph,
    compared_nodes,
    quality,
)
from gpn_scale.files import replacing, write_json
from gpn_scale.reading import open_file, read_json
from gpn_scale.train.run_directory import RunDirectory
from gpn_scale.train.run_graph import read_splits, with_left_out, write_splits
from gpn_scale.train.warm_start import WarmStart
from gpn_scale.triage.promise_file import model_fingerprint

_NO_NODES = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Splits:
    """The split of a run, and the split of the earlier run that it starts from."""

    own: Split
    """The split of the run, before classes are left out."""
    earlier: Split
    marked: NodeIds
    """Marked nodes of the earlier graph."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StartRun:
    """The earlier run that training starts from, and the graph to train on."""

    run: str
    """Directory of the earlier run, for messages."""
    fingerprint: str
    """Fingerprint of the earlier run's model."""
    model_path: Path
    """File of that model, in the earlier run's directory or copied to that of the new one."""
    start: WarmStart
    graph: Graph
    """The graph to train on, with its split and with the columns and classes of the model."""
    config: RunConfig
    """Configuration of the training."""
    splits: _Splits | None
    """None if the graph is not a later version of the earlier one, so nothing is compared."""
    before: Quality
    """Quality of the earlier run on the compared nodes."""
    notes: tuple[str, ...] = field(default=())

    def write(self, directory: RunDirectory) -> None:
        """Write what a resumed training needs; the file that names the run is written last."""
        if directory.warm_start.exists():
            return
        with open_file(self.model_path) as source, replacing(directory.start_model) as copy:
            shutil.copyfileobj(source, copy)
        _check_unchanged(directory.start_model, self.fingerprint)
        if self.splits is not None:
            splits = (self.splits.own, self.splits.earlier, self.splits.marked)
            write_splits(directory.split, self.graph.num_nodes, *splits)
        values = {"run": self.run, "model": self.fingerprint, "before": self.before}
        write_json(directory.warm_start, values)

    def change(self, prediction: AbstractPrediction) -> QualityChange:
        """Return how the new model's prediction of all nodes compares with the earlier one's."""
        nodes: dict[str, int] = {}
        after: Quality = {}
        if self.splits is not None:
            compared = compared_graph(self.graph, self.splits.earlier, self.splits.marked)
            nodes, after = compared_nodes(compared), quality(prediction, compared)
        return QualityChange(
            run=self.run,
            model=self.fingerprint,
            nodes=nodes,
            before=self.before,
            after=after,
        )


def check_finished(run: Path, out: Path | None) -> RunDirectory:
    """Return the directory of the finished run to start from.

    Raises:
        RunError: the directory does not hold a finished run.
        ConfigError: the directory is also that of `--out`.
    """
    directory = RunDirectory(run)
    for path in (directory.config, directory.model, directory.predictions):
        if not path.is_file():
            raise RunError(
                f"{run} does not hold a finished run: {path.name} is missing, expected the "
                "directory of a run whose training has ended",
                arguments=("warm_start",),
            )
    if out is not None and out.resolve() == run.resolve():
        raise ConfigError(
            f"--out {out} is also the run of --warm-start: choose another directory for the new run"
        )
    return directory


def start_run(
    directory: RunDirectory,
    given: Path | None,
    graph: Graph,
    config: RunConfig,
    *,
    overwrite: bool,
) -> StartRun | None:
    """Return the run that training starts from, or None if it starts from random weights.

    Args:
        directory: Directory of the training.
        given: The value of `--warm-start`; None for the run that a resumed training started from.
        graph: The graph of the training, as it was loaded.
        config: Configuration of the training.
        overwrite: Whether a run in the directory is replaced.

    Raises:
        RunError: the run cannot be used, or is not the one that a resumed training started from.
        ConfigError: the configuration does not match the weights.
        GraphError: the graph has other classes or features.
    """
    resumed = not overwrite and directory.warm_start.exists()
    if given is not None and not overwrite:
        _check_same_start(directory, given)
    if resumed:
        return _resumed(directory, graph, config)
    return None if given is None else _new(RunDirectory(given), graph, config)


def _check_same_start(directory: RunDirectory, given: Path) -> None:
    """Refuse to resume a training that did not start from the given run."""
    if not directory.config.exists():
        return
    began_with = _record(directory)["model"] if directory.warm_start.exists() else "none"
    if began_with != model_fingerprint(RunDirectory(given).model):
        raise RunError(
            f"{directory.path} did not start from the weights of {given} but from those with the "
            f"fingerprint {began_with}: resume it without a warm start, or overwrite it",
            arguments=("warm_start", "overwrite"),
        )


def _new(parent: RunDirectory, graph: Graph, config: RunConfig) -> StartRun:
    fingerprint, start = model_fingerprint(parent.model), WarmStart.loaded(parent.model)
    predictions = EarlierPredictions(parent.predictions)
    nodes = predictions.nodes()
    splits, notes = _new_splits(nodes, graph, config, start)
    prepared, config, more = _prepared(graph, config, splits, start)
    before: Quality = {}
    if splits is not None:
        compared = compared_graph(prepared, splits.earlier, splits.marked)
        before = quality(predictions.prediction(), compared)
    return StartRun(
        run=str(parent.path),
        fingerprint=fingerprint,
        model_path=parent.model,
        start=start,
        graph=prepared,
        config=config,
        splits=splits,
        before=before,
        notes=(*notes, *more),
    )


def _resumed(directory: RunDirectory, graph: Graph, config: RunConfig) -> StartRun:
    record = _record(directory)
    _check_unchanged(directory.start_model, record["model"])
    start, splits = WarmStart.loaded(directory.start_model), None
    if directory.split.exists():
        own, earlier, marked = read_splits(directory.split, graph.num_nodes)
        splits = _Splits(own=own, earlier=earlier, marked=marked)
    prepared, config, notes = _prepared(graph, config, splits, start)
    return StartRun(
        run=record["run"],
        fingerprint=record["model"],
        model_path=directory.start_model,
        start=start,
        graph=prepared,
        config=config,
        splits=splits,
        before=record["before"],
        notes=notes,
    )


def _prepared(
    graph: Graph, config: RunConfig, splits: _Splits | None, start: WarmStart
) -> tuple[Graph, RunConfig, tuple[str, ...]]:
    """Return the graph and configuration to train with, and notes on changes to the graph."""
    if splits is None:
        graph = prepare_graph(graph, config)
    else:
        graph = with_left_out(graph.with_split(splits.own), config)
    aligned, config = start.prepared(graph, config)
    return aligned.graph, config, aligned.notes


def _new_splits(
    nodes: EarlierNodes, graph: Graph, config: RunConfig, start: WarmStart
) -> tuple[_Splits | None, tuple[str, ...]]:
    """Return the splits for a later version of the graph (None for another graph), and notes."""
    count, class_set = config.data.left_out_classes, config.data.left_out_set
    empty = replace(graph, split=Split(**dict.fromkeys(("train", "val", "test"), _NO_NODES)))
    hidden = hide_classes(empty, count, class_set) if count else graph
    difference = nodes.difference(start.model.contract.with_classes(hidden).graph)
    if difference is not None:
        note = (
            f"{graph.name} is not a later version of the graph of the warm start "
            f"({difference}): it gets its own split, and quality is not compared."
        )
        return None, (note,)
    has_own = config.split.kind == "public" and graph.split is not None
    if has_own and graph.split is not None:
        splits = _Splits(own=graph.split, earlier=nodes.split, marked=nodes.marked)
        return splits, _notes_on_own_split(splits)
    section = config.split
    own = nodes.grown_split_of(
        graph, train=section.train, val=section.val, rng_seed=section.rng_seed
    )
    splits = _Splits(own=own, earlier=nodes.split, marked=nodes.marked)
    return splits, (_note_on_drawn_split(splits),)


def _note_on_drawn_split(splits: _Splits) -> str:
    before, now = (_num_members(split) for split in (splits.earlier, splits.own))
    return (
        "Nodes that already had a label keep their roles from the run of the warm start; "
        f"{max(now - before, 0):,} nodes with new labels were divided at random."
    )


def _num_members(split: Split) -> int:
    return len(split.train) + len(split.val) + len(split.test)


def _notes_on_own_split(splits: _Splits) -> tuple[str, ...]:
    seen = np.intersect1d(np.concatenate([splits.own.val, splits.own.test]), splits.earlier.train)
    if not len(seen):
        return ()
    return (
        f"{len(seen):,} validation or test nodes were training nodes of the run of the warm start, "
        "so the metrics of these nodes are too good.",
    )


def _record(directory: RunDirectory) -> dict[str, Any]:
    try:
        values = read_json(directory.warm_start)
        run, model, before = values["run"], values["model"], values["before"]
        if not isinstance(before, dict):
            raise TypeError("its entry 'before' is not an object")
        return {"run": str(run), "model": str(model), "before": before}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(
            f"{directory.warm_start} cannot be read ({type(error).__name__}: {error}), expected "
            "the file that training with a warm start writes: overwrite the run",
            arguments=("overwrite",),
        ) from error


def _check_unchanged(model: Path, fingerprint: str) -> None:
    if (actual := model_fingerprint(model)) != fingerprint:
        raise RunError(
            f"{model} has changed since training started from it (fingerprint {actual}, expected "
            f"{fingerprint}): start the training again",
            arguments=("overwrite",),
        )
