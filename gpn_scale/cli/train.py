"""The command `gpn-train`: train a model, predict all nodes and write a report.

It runs as one process, or as several ranks under torchrun.
"""

import argparse
import time
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from torch.distributed.elastic.multiprocessing.errors import record

from gpn_scale.block_checksums import file_hash
from gpn_scale.cli.arguments import (
    checked_pause,
    checked_timeout,
    completed,
    dataset_of,
    run_config,
    training_parser,
    unused_seed,
)
from gpn_scale.cli.code_fingerprint import code_fingerprint
from gpn_scale.cli.config_file import ConfigFile
from gpn_scale.cli.console import Stopped, leave, print_summary, run_command, stop_requests
from gpn_scale.cli.opening import print_opening
from gpn_scale.cli.optional_parts import has_extra
from gpn_scale.cli.remembered import remember_inputs
from gpn_scale.cli.run_choice import RunChoice, chosen_run
from gpn_scale.cli.run_inputs import build_rows, has_rows_for, shared_graph
from gpn_scale.cli.shared_options import memory_bytes, use_threads
from gpn_scale.cli.torchrun import launch_id
from gpn_scale.cli.warm_start import StartRun, check_finished, start_run
from gpn_scale.config import RunConfig
from gpn_scale.data.graph import Graph
from gpn_scale.data.splits import prepare_graph
from gpn_scale.data.summary import GraphSummary
from gpn_scale.device import pick_device
from gpn_scale.distributed import World, connected
from gpn_scale.errors import ElsewhereError, NumericalError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.evaluation.prediction_table import write_predictions
from gpn_scale.evaluation.report import Report, make_report
from gpn_scale.extras import check_extra
from gpn_scale.files import write_json
from gpn_scale.inference.evidence import EvidenceSummary
from gpn_scale.inference.stored_rows import open_rows
from gpn_scale.interop.tracking import log_run
from gpn_scale.memory import KEPT_BLOCK_BYTES, anonymous_bytes, keep_freed_blocks
from gpn_scale.messages import say
from gpn_scale.nn.radial_compiled import has_compiler
from gpn_scale.page.run_facts import run_facts
from gpn_scale.page.run_record import read_run
from gpn_scale.ppr.store import PPRStore
from gpn_scale.progress import ProgressMeter
from gpn_scale.recipes import is_own_graph
from gpn_scale.train.checkpoint import restore_checkpoint
from gpn_scale.train.checkpoint_schedule import CheckpointSchedule
from gpn_scale.train.metrics_log import metrics_log
from gpn_scale.train.model_size import check_model_size
from gpn_scale.train.run_directory import RunDirectory
from gpn_scale.train.trainer import EpochRecord, Interrupted, Trainer

_COMPILING = (
    "flow.compiled is set: the first training step compiles the flows, which takes a minute or two"
)


def train(options: argparse.Namespace) -> None:
    """Load the graph, train, predict and report, in one process or in each of several ranks."""
    if options.mlflow is not None:
        check_extra("mlflow", "--mlflow")  # before hours of training
    use_threads(options.threads)
    device = pick_device(options.device)
    checked_pause(options.checkpoint_seconds)
    with connected(device, timeout_seconds=checked_timeout(options.timeout_seconds)) as world:
        _train_in_world(options, world)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Run:
    """Everything that a prepared run consists of."""

    directory: RunDirectory
    graph: Graph
    classifier: GPNClassifier
    store: PPRStore | None
    """The rows of minibatch mode; they do not change even if the store is updated meanwhile."""
    trainers: tuple[Trainer, ...]
    """Trainers of the parts of the model, starting with the feature evidence."""
    fingerprint: str
    """Fingerprint of the graph and the rows."""
    summary: GraphSummary | None
    """Summary of the user's own graph; None for known datasets and on all ranks but the first."""
    start: StartRun | None
    """The run whose weights training starts from; None for random weights."""

    @property
    def config(self) -> RunConfig:
        return self.classifier.config

    @property
    def world(self) -> World:
        return self.trainers[0].world


def _train_in_world(options: argparse.Namespace, world: World) -> None:
    with world.all_or_none():
        budget = memory_bytes(options.memory_budget)
        base = _base(options)
    requested = RunChoice(out=options.out, resume=options.resume, overwrite=options.overwrite)
    choice = chosen_run(requested, dataset_of(options, base), world)
    directory = choice.directory
    with ExitStack() as stack:
        with world.all_or_none():
            options = completed(options, choice, base)
            if world.is_first:
                stack.enter_context(directory.reserved())
                # Another process may have trained there since the directory was chosen.
                directory.claim(overwrite=choice.overwrite, resume=choice.resume)
        _train_in_directory(options, directory, budget, world)


def _train_in_directory(
    options: argparse.Namespace, directory: RunDirectory, budget: int, world: World
) -> None:
    """Train in a reserved directory, and predict all nodes within `budget` bytes of memory."""
    run = _prepare(options, directory, world)
    with world.all_or_none():
        if world.is_first:
            directory.begin(overwrite=options.overwrite, launch=launch_id())
            if run.start is not None:
                run.start.write(directory)
            write_json(directory.config, run.config.to_dict())
            store = None if run.store is None else run.store.path
            remember_inputs(directory, options.data_dir, store)
            has_extra(
                "tensorboard", f"{directory.tensorboard} is not written", "a file for TensorBoard"
            )
    for trainer in run.trainers:
        _run_epochs(run, trainer, options.checkpoint_seconds)
    trained = time.monotonic()
    prediction, evidence = _predict_all(run, budget)
    seconds = _spent_seconds(run.trainers) | {"inference": time.monotonic() - trained}
    ranks = _rank_facts(run.trainers[0])
    if world.is_first:
        report = _write_results(run, prediction, seconds, ranks)
        _write_page(run, prediction, evidence)
        print_summary(report, directory)
        if options.mlflow is not None:
            _log_to_mlflow(directory, options.mlflow)


def _log_to_mlflow(directory: RunDirectory, experiment: str) -> None:
    run_id = log_run(directory.path, experiment=experiment)
    text = f"\nlogged to MLflow, experiment {experiment!r}: run {run_id}"
    say("mlflow", text.strip(), text=text, result=True, experiment=experiment, run_id=run_id)


def _base(options: argparse.Namespace) -> ConfigFile | None:
    """Return the configuration to start from: that of `--config`, or of the warm start's run."""
    run = options.warm_start
    parent = None if run is None else check_finished(run, options.out)
    if options.config is not None:
        return ConfigFile(options.config)
    return None if parent is None else ConfigFile(parent.config)


def _prepare(options: argparse.Namespace, directory: RunDirectory, world: World) -> _Run:
    """Load the inputs, and restore the checkpoint of an earlier run if there is one."""
    graph = shared_graph(options.dataset, options.data_dir, directory.graph, world)
    with world.all_or_none():
        config = run_config(options, graph)
        keep_freed_blocks(KEPT_BLOCK_BYTES[config.mode])
        start = start_run(directory, options.warm_start, graph, config, overwrite=options.overwrite)
        if start is None:
            graph = prepare_graph(graph, config)
        else:
            graph, config = start.graph, start.config
        classifier = GPNClassifier(config, device=options.device, world=world)
        classifier.check(graph)
        # Checked before rows are computed, which may take long.
        check_model_size(config, graph.num_features, graph.num_classes)
        summary = _open(options, graph, config, start) if world.is_first else None
    store = _store(options, directory, graph, config, world)
    with world.all_or_none():
        rows = None if store is None else open_rows(store, graph, config.diffusion)
        warm_start = None if start is None else start.start
        trainers = classifier.trainers(graph, rows, warm_start=warm_start)
        fingerprint = f"{graph.fingerprint()}{trainers[0].task.rows_fingerprint}"
        for trainer in () if options.overwrite else trainers:
            checkpoint = directory.checkpoint_of(trainer.part)
            if checkpoint.exists():
                restore_checkpoint(checkpoint, trainer, config, fingerprint)
    world.require_same(
        code=code_fingerprint(),
        configuration=config.fingerprint(),
        graph=fingerprint,
        checkpoint=" ".join(f"{each.state.epoch}.{each.state.step}" for each in trainers),
    )
    return _Run(
        directory=directory,
        graph=graph,
        classifier=classifier,
        store=rows,
        trainers=trainers,
        fingerprint=fingerprint,
        summary=summary,
        start=start,
    )


def _open(
    options: argparse.Namespace, graph: Graph, config: RunConfig, start: StartRun | None
) -> GraphSummary | None:
    """Print notes, the graph and its label counts; return the summary of the user's own graph."""
    unused = unused_seed(options, config)
    notes = () if start is None else start.notes
    compiling = [_COMPILING] if config.flow.compiled and has_compiler() else []
    for note in (*notes, *([] if unused is None else [unused]), *compiling):
        say("note", note, text=f"note: {note}")
    summary = GraphSummary.of(graph) if is_own_graph(options.dataset) else None
    print_opening(graph, config.split, summary)
    return summary


def _store(
    options: argparse.Namespace,
    directory: RunDirectory,
    graph: Graph,
    config: RunConfig,
    world: World,
) -> Path | None:
    """Return the rows of minibatch mode, which are given, recorded or built; None in exact mode."""
    given: Path | None = options.ppr
    if config.mode == "exact" or given is not None:
        return given
    remembered: Path | None = options.remembered_store
    if remembered is not None and has_rows_for(remembered, graph, config.diffusion):
        return remembered
    build_rows(
        graph,
        options.dataset,
        options.data_dir,
        directory.store,
        config.diffusion,
        world,
        overwrite=options.overwrite,
    )
    return directory.store


def _run_epochs(run: _Run, trainer: Trainer, checkpoint_seconds: float) -> None:
    """Train one part of the model; write checkpoints and metrics, and show the progress."""
    directory, part = run.directory, trainer.part
    done, silent = trainer.state.epoch, not run.world.is_first
    limit = trainer.warmup_epochs + trainer.config.epochs
    total = limit if limit <= 10_000 else None  # such a limit is never reached
    tensorboard = directory.tensorboard / ("" if part == "features" else part)
    curves = metrics_log(directory.metrics, tensorboard, done_epochs=done, part=part)
    title = "train" if len(run.trainers) == 1 else f"train {part}"
    with (
        stop_requests() as stop,
        nullcontext() if silent else curves as log,
        ProgressMeter(title, "epoch", total, done=done, silent=silent) as meter,
    ):
        sync = None if log is None else log.sync
        schedule = CheckpointSchedule(
            trainer, run.config, directory, run.fingerprint, checkpoint_seconds, sync
        )

        def observe(record: EpochRecord) -> None:
            if log is not None:
                log.write(record, trainer.timing)
            note = f"val accuracy {record.val_accuracy:.3f}, best epoch {record.best_epoch}"
            meter.update(record.epoch, note, **_numbers(record))
            schedule.save(now=trainer.finished)

        def observe_step(epoch: int, step: int, steps: int) -> None:
            if step < steps:
                meter.update(epoch - 1, f"step {step} of {steps}")
                schedule.save(now=False)

        trainer.observe_step, trainer.stop_asked = observe_step, stop
        try:
            run.classifier.fit_trainer(trainer, observe=observe)
        except Interrupted as interrupted:
            schedule.save(now=True)
            meter.update(trainer.state.epoch, "stopped; continue with --resume")
            raise Stopped(interrupted.number) from None
        except NumericalError as error:
            if silent:
                raise ElsewhereError(str(error)) from error
            raise NumericalError(f"{error}; {schedule.last_checkpoint()}") from error


def _numbers(record: EpochRecord) -> dict[str, float]:
    """Return the numbers of an epoch that messages contain."""
    names = ("loss", "val_cross_entropy", "val_accuracy", "best_epoch")
    return {name: getattr(record, name) for name in names}


def _predict_all(run: _Run, budget: int) -> tuple[Prediction, EvidenceSummary]:
    silent = not run.world.is_first
    with ProgressMeter("predict", "node", run.graph.num_nodes, silent=silent) as meter:
        return run.classifier.predict_with_evidence(
            run.graph,
            store=run.store,
            memory_bytes=budget,
            scratch=run.directory.path,
            progress=meter.update,
            calibrate=True,
        )


def _rank_facts(trainer: Trainer) -> dict[str, Any]:
    """Return the memory of every rank, their joint speed, and the first rank's time by phase."""
    world, timing = trainer.world, trainer.timing
    own = [0.0] * world.size
    own[world.rank] = float(anonymous_bytes())
    return {
        "count": world.size,
        "anonymous_bytes": [int(value) for value in world.totals(own)],
        "roots_per_second": timing.roots_per_second,
        "seconds": timing.seconds,
    }


def _spent_seconds(trainers: tuple[Trainer, ...]) -> dict[str, float]:
    """Return the times of building rows and of training, summed over all pieces of the run."""
    parts = {f"train_{trainer.part}": trainer.state.seconds for trainer in trainers}
    precompute = trainers[0].task.precompute_seconds
    return {"precompute": precompute, "train": sum(parts.values()), **parts}


def _part_facts(trainers: tuple[Trainer, ...]) -> dict[str, dict[str, int]]:
    """Return the epochs of every part of the model; {} if it has only one."""
    if len(trainers) == 1:
        return {}
    return {
        trainer.part: {"epochs": trainer.state.epoch, "best_epoch": trainer.state.best_epoch}
        for trainer in trainers
    }


def _write_results(
    run: _Run, prediction: Prediction, seconds: dict[str, float], ranks: dict[str, Any]
) -> Report:
    """Write model, predictions and report; return the report."""
    run.classifier.save(run.directory.model)
    report = make_report(
        prediction,
        run.graph,
        run.config,
        seconds=seconds,
        epochs=run.trainers[0].state.epoch,
        best_epoch=run.trainers[0].state.best_epoch,
        minibatch=run.trainers[0].task.facts(),
        ranks=ranks,
        parts=_part_facts(run.trainers),
        calibration=run.classifier.trained.calibration,
        summary=run.summary,
        warm_start=None if run.start is None else run.start.change(prediction),
    )
    write_predictions(run.directory.predictions, prediction, run.graph)
    checked = (run.directory.metrics, run.directory.predictions)
    files = {file.name: file_hash(file) for file in checked if file.exists()}
    report = replace(report, files=files)
    report.write(run.directory.report, run.directory.report_markdown)
    return report


def _write_page(run: _Run, prediction: Prediction, evidence: EvidenceSummary) -> None:
    page = run.directory.page
    if not has_extra("charts", f"{page} is not written", "a page"):
        return
    from gpn_scale.page.run_page import write_page

    record = read_run(run.directory)
    facts = run_facts(record, run.classifier, run.graph, prediction, run.store, evidence)
    write_page(run.directory, facts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, run the command, and return its exit code."""
    return run_command(training_parser, train, arguments)


def start() -> NoReturn:
    """Run the command and end the process; `record` reports to torchrun why a rank failed."""
    leave(record(main)() or 0)
