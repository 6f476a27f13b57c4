"""Entry point of training: `python launch/train.py ...` or `torchrun ... launch/train.py ...`."""

import argparse
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch.distributed.elastic.multiprocessing.errors import record

from gpn_scale.cli.arguments import (
    checked_threads,
    completed,
    memory_bytes,
    run_config,
    training_parser,
)
from gpn_scale.cli.code_fingerprint import code_fingerprint
from gpn_scale.cli.console import Stopped, exit_code_of, leave, print_summary, stop_requests
from gpn_scale.cli.run_inputs import build_rows, shared_graph
from gpn_scale.data.graph import Graph
from gpn_scale.data.splits import prepare_graph
from gpn_scale.device import pick_device
from gpn_scale.distributed import World, connected
from gpn_scale.errors import ElsewhereError, NumericalError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.evaluation.prediction_table import write_predictions
from gpn_scale.evaluation.report import Report, make_report
from gpn_scale.files import write_json
from gpn_scale.inference.evidence import EvidenceSummary
from gpn_scale.memory import KEPT_BLOCK_BYTES, anonymous_bytes, keep_freed_blocks
from gpn_scale.page.run_facts import run_facts
from gpn_scale.page.run_page import write_page
from gpn_scale.page.run_record import read_run
from gpn_scale.progress import ProgressMeter
from gpn_scale.train.checkpoint import restore_checkpoint
from gpn_scale.train.checkpoint_schedule import CheckpointSchedule
from gpn_scale.train.metrics_log import metrics_log
from gpn_scale.train.run_directory import RunDirectory
from gpn_scale.train.trainer import EpochRecord, Interrupted, Trainer


def train(options: argparse.Namespace) -> None:
    """Loads, trains, predicts, reports; in one process or in every rank of several."""
    options = completed(options)
    if options.threads is not None:
        torch.set_num_threads(checked_threads(options.threads))
    device = pick_device(options.device)
    with connected(device, timeout_seconds=options.timeout_seconds) as world:
        _train_together(options, world)


def _train_together(options: argparse.Namespace, world: World) -> None:
    directory = RunDirectory(options.out)
    with world.all_or_none():
        budget = memory_bytes(options.memory_budget)
        if world.is_first:
            directory.claim(overwrite=options.overwrite, resume=options.resume)
    graph = shared_graph(options.dataset, options.data_dir, directory.graph, world)
    with world.all_or_none():
        config = run_config(options, graph)
        keep_freed_blocks(KEPT_BLOCK_BYTES[config.mode])
        graph = prepare_graph(graph, config)
        classifier = GPNClassifier(config, device=options.device, world=world)
    store = options.ppr
    if config.mode == "minibatch" and store is None:
        store = directory.store
        build_rows(graph, options.dataset, options.data_dir, store, config.diffusion, world)
    with world.all_or_none():
        trainer = classifier.trainer(graph, store)
        fingerprint = f"{graph.fingerprint()}{trainer.task.rows_fingerprint}"
        if options.overwrite and world.is_first:
            directory.clear()
        elif not options.overwrite and directory.checkpoint.exists():
            restore_checkpoint(directory.checkpoint, trainer, config, fingerprint)
    state = trainer.state
    world.require_same(
        code=code_fingerprint(),
        configuration=config.fingerprint(),
        graph=fingerprint,
        checkpoint=f"{state.epoch}.{state.step}",
    )
    if world.is_first:
        write_json(directory.config, config.to_dict())
    began = time.monotonic()
    schedule = CheckpointSchedule(
        trainer, config, directory, fingerprint, options.checkpoint_seconds
    )
    _run_epochs(classifier, trainer, schedule)
    trained = time.monotonic()
    rows = store if config.mode == "minibatch" else None
    prediction, evidence = _predict_all(classifier, graph, rows, budget, directory)
    seconds = {
        "precompute": trainer.task.precompute_seconds,
        "train": trained - began,
        "inference": time.monotonic() - trained,
    }
    ranks = _ranks(trainer)
    if world.is_first:
        report = _write(classifier, trainer, prediction, graph, seconds, ranks, directory)
        opened = None if store is None else classifier.open_store(store, graph)
        facts = run_facts(read_run(directory), classifier, graph, prediction, opened, evidence)
        write_page(directory, facts)
        print_summary(report, directory)


def _write(
    classifier: GPNClassifier,
    trainer: Trainer,
    prediction: Prediction,
    graph: Graph,
    seconds: dict[str, float],
    ranks: dict[str, Any],
    directory: RunDirectory,
) -> Report:
    classifier.save(directory.model)
    report = make_report(
        prediction,
        graph,
        classifier.config,
        seconds=seconds,
        epochs=trainer.state.epoch,
        best_epoch=trainer.state.best_epoch,
        minibatch=trainer.task.facts(),
        ranks=ranks,
    )
    write_predictions(directory.predictions, prediction, graph)
    report.write(directory.report, directory.report_markdown)
    return report


def _ranks(trainer: Trainer) -> dict[str, Any]:
    """What the ranks did and took: memory of each, speed of all, where the first's time went."""
    world, timing = trainer.world, trainer.timing
    own = [0.0] * world.size
    own[world.rank] = float(anonymous_bytes())
    return {
        "count": world.size,
        "anonymous_bytes": [int(value) for value in world.totals(own)],
        "roots_per_second": timing.roots_per_second,
        "seconds": timing.seconds,
    }


def _run_epochs(classifier: GPNClassifier, trainer: Trainer, schedule: CheckpointSchedule) -> None:
    done, config = trainer.state.epoch, schedule.config.train
    limit = trainer.warmup_epochs + config.epochs
    total = limit if limit <= 10_000 else None
    directory, silent = schedule.directory, not trainer.world.is_first
    curves = metrics_log(directory.metrics, directory.tensorboard, done_epochs=done)
    with (
        stop_requests() as stop,
        nullcontext() if silent else curves as log,
        ProgressMeter("train", "epoch", total, done=done, silent=silent) as meter,
    ):

        def observe(record: EpochRecord) -> None:
            if log is not None:
                log.write(record, trainer.timing)
            note = f"val accuracy {record.val_accuracy:.3f}, best epoch {record.best_epoch}"
            meter.update(record.epoch, note)
            schedule.save(now=trainer.finished)

        def observe_step(epoch: int, step: int, steps: int) -> None:
            if step < steps:
                meter.update(epoch - 1, f"step {step} of {steps}")
                schedule.save(now=False)

        trainer.observe_step, trainer.stop_asked = observe_step, stop
        try:
            classifier.fit_trainer(trainer, observe=observe)
        except Interrupted as interrupted:
            schedule.save(now=True)
            meter.update(trainer.state.epoch, "stopped; go on with --resume")
            raise Stopped(interrupted.number) from None
        except NumericalError as error:
            if silent:
                raise ElsewhereError(str(error)) from error
            raise NumericalError(f"{error}; {schedule.last_checkpoint()}") from error


def _predict_all(
    classifier: GPNClassifier,
    graph: Graph,
    store: Path | None,
    budget: int,
    directory: RunDirectory,
) -> tuple[Prediction, EvidenceSummary]:
    silent = not classifier.world.is_first
    with ProgressMeter("predict", "node", graph.num_nodes, silent=silent) as meter:
        return classifier.predict_with_evidence(
            graph,
            store=store,
            memory_bytes=budget,
            scratch=directory.path,
            progress=meter.update,
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Parses the command line and runs; the exit code is 2 for bad input."""
    options = training_parser().parse_args(arguments)
    return exit_code_of(lambda: train(options))


def start() -> NoReturn:
    """Run the command as a process of its own; `record` tells torchrun why a rank failed."""
    leave(record(main)() or 0)
