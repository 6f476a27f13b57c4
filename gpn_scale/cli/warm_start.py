"""`gpn-train --warm-start RUN`: the run that a training goes on from, and what it was like.

All that the training needs of that run is copied to its own directory when it begins, so that it
can be resumed whatever happens to the other run.
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
    """The split of a run, and that of the run that it goes on from."""

    own: Split
    """Before classes are left out."""
    earlier: Split
    marked: NodeIds
    """Marked nodes of the earlier graph."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StartRun:
    """The run that a training goes on from, with the graph of the training."""

    run: str
    """Directory of that run, for texts."""
    fingerprint: str
    """Fingerprint of its model."""
    model_path: Path
    """File of the model, in that directory or in that of the training."""
    start: WarmStart
    graph: Graph
    """The graph of the training, with its split and with the columns and classes of the model."""
    config: RunConfig
    """Configuration of the training."""
    splits: _Splits | None
    """None if the graph is no later version of that run's, so that nothing is compared."""
    before: Quality
    """Quality of that run on the nodes that are compared."""
    notes: tuple[str, ...] = field(default=())

    def write(self, directory: RunDirectory) -> None:
        """Write what a resumed training needs; the file that names the run comes last."""
        if directory.warm_start.exists():
            return
        with open_file(self.model_path) as source, replacing(directory.start_model) as copy:
            shutil.copyfileobj(source, copy)
        _check_unchanged(directory.start_model, self.fingerprint, self.run)
        if self.splits is not None:
            splits = (self.splits.own, self.splits.earlier, self.splits.marked)
            write_splits(directory.split, self.graph.num_nodes, *splits)
        values = {"run": self.run, "model": self.fingerprint, "before": self.before}
        write_json(directory.warm_start, values)

    def change(self, prediction: AbstractPrediction) -> QualityChange:
        """Return what the prediction of all nodes by the new model has gained or lost."""
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
    """Return the directory of a finished run to go on from.

    Raises:
        RunError: it holds no such run.
        ConfigError: it is the directory of the training itself.
    """
    directory = RunDirectory(run)
    for path in (directory.config, directory.model, directory.predictions):
        if not path.is_file():
            raise RunError(
                f"{run} holds no finished run: {path.name} is missing, expected a directory in "
                "which a training has ended",
                arguments=("warm_start",),
            )
    if out is not None and out.resolve() == run.resolve():
        raise ConfigError(
            f"--out {out} is the run that training is to go on from, expected another directory"
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
    """Return the run that a training goes on from; None if it starts with random weights.

    Args:
        directory: Directory of the training.
        given: The value of `--warm-start`; None for the one that a resumed run has begun with.
        graph: The graph of the training, as it was loaded.
        config: Configuration of the training.
        overwrite: Whether a run in the directory is replaced.

    Raises:
        RunError: the run cannot be gone on from, or is not the one that a resumed run began with.
        ConfigError: the configuration gives its weights another meaning.
        GraphError: the graph has other classes or features.
    """
    resumed = not overwrite and directory.warm_start.exists()
    if given is not None and not overwrite:
        _check_same_start(directory, given)
    if resumed:
        return _resumed(directory, graph, config)
    return None if given is None else _new(RunDirectory(given), graph, config)


def _check_same_start(directory: RunDirectory, given: Path) -> None:
    """Refuse to resume a run that has not begun with the given run."""
    if not directory.config.exists():
        return
    began_with = _record(directory)["model"] if directory.warm_start.exists() else "none"
    if began_with != model_fingerprint(RunDirectory(given).model):
        raise RunError(
            f"{directory.path} did not begin with the weights of {given} (fingerprint "
            f"{began_with}): resume it without a warm start, or overwrite it",
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
    _check_unchanged(directory.start_model, record["model"], str(directory.path))
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
    """Return graph and configuration of the training, and what was done to the graph."""
    if splits is None:
        graph = prepare_graph(graph, config)
    else:
        graph = with_left_out(graph.with_split(splits.own), config)
    aligned, config = start.prepared(graph, config)
    return aligned.graph, config, aligned.notes


def _new_splits(
    nodes: EarlierNodes, graph: Graph, config: RunConfig, start: WarmStart
) -> tuple[_Splits | None, tuple[str, ...]]:
    """Return the splits of a training on a later graph, and notes; None for another graph."""
    count, class_set = config.data.left_out_classes, config.data.left_out_set
    empty = replace(graph, split=Split(**dict.fromkeys(("train", "val", "test"), _NO_NODES)))
    hidden = hide_classes(empty, count, class_set) if count else graph
    difference = nodes.difference(start.model.contract.with_classes(hidden).graph)
    if difference is not None:
        note = (
            f"{graph.name} is not a later version of the graph that training goes on from "
            f"({difference}): it has a split of its own, and quality is not compared."
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
        "Nodes that had a label keep the roles of the run that training goes on from; "
        f"{max(now - before, 0):,} with new labels were divided at random."
    )


def _num_members(split: Split) -> int:
    return len(split.train) + len(split.val) + len(split.test)


def _notes_on_own_split(splits: _Splits) -> tuple[str, ...]:
    seen = np.intersect1d(np.concatenate([splits.own.val, splits.own.test]), splits.earlier.train)
    if not len(seen):
        return ()
    return (
        f"{len(seen):,} validation or test nodes were training nodes of the run that training goes "
        "on from, so that figures of these nodes are too good.",
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
            "what a training with a warm start has written: overwrite the run",
            arguments=("overwrite",),
        ) from error


def _check_unchanged(model: Path, fingerprint: str, run: str) -> None:
    if (actual := model_fingerprint(model)) != fingerprint:
        raise RunError(
            f"the model that {run} goes on from has changed (fingerprint {actual}, expected "
            f"{fingerprint}): start again",
            arguments=("overwrite",),
        )
