"""Entry point of training: `python launch/train.py --dataset NAME --mode exact --out RUN`."""

import argparse
import os
import sys
import time
from collections.abc import Sequence

import torch

from gpn_scale.config import RunConfig
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph import Graph
from gpn_scale.data.splits import prepare_graph
from gpn_scale.errors import ConfigError, NumericalError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.evaluation.prediction_table import write_predictions
from gpn_scale.evaluation.report import make_report
from gpn_scale.files import write_json
from gpn_scale.memory import return_freed_memory
from gpn_scale.progress import ProgressMeter
from gpn_scale.train.checkpoint import restore_checkpoint, save_checkpoint
from gpn_scale.train.log import metrics_log
from gpn_scale.train.run_directory import RunDirectory
from gpn_scale.train.trainer import EpochRecord, Trainer
from launch.arguments import checked_threads, memory_bytes, run_config, training_parser
from launch.console import Stopped, exit_code_of, print_summary, stop_requests


def train(options: argparse.Namespace) -> None:
    """Loads, trains, predicts, reports."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigError("training runs in one process, got several ranks: use plain python")
    return_freed_memory()
    if options.threads is not None:
        torch.set_num_threads(checked_threads(options.threads))
    budget = memory_bytes(options.memory_budget)
    directory = RunDirectory(options.out)
    directory.claim(overwrite=options.overwrite, resume=options.resume)
    graph = load_graph(options.dataset, options.data_dir)
    config = run_config(options, graph)
    graph = prepare_graph(graph, config)
    classifier = GPNClassifier(config, device=options.device)
    trainer = classifier.trainer(graph, options.ppr)
    fingerprint = f"{graph.fingerprint()}{trainer.task.rows_fingerprint}"
    if options.overwrite:
        directory.clear()
    elif directory.checkpoint.exists():
        restore_checkpoint(directory.checkpoint, trainer, config, fingerprint)
    write_json(directory.config, config.to_dict())
    began = time.monotonic()
    keeper = _Keeper(trainer, config, directory, fingerprint, options.checkpoint_seconds)
    _run_epochs(classifier, graph, trainer, keeper)
    trained = time.monotonic()
    prediction = _predict_all(classifier, graph, budget, directory)
    seconds = {
        "precompute": trainer.task.precompute_seconds,
        "train": trained - began,
        "inference": time.monotonic() - trained,
    }
    classifier.save(directory.model)
    report = make_report(
        prediction,
        graph,
        config,
        seconds=seconds,
        epochs=trainer.progress.epoch,
        best_epoch=trainer.progress.best_epoch,
        minibatch=trainer.task.facts(),
    )
    write_predictions(directory.predictions, prediction, graph)
    report.write(directory.report, directory.report_markdown)
    print_summary(report, directory)


class _Keeper:
    """Writes checkpoints, at most as often as asked for."""

    def __init__(
        self,
        trainer: Trainer,
        config: RunConfig,
        directory: RunDirectory,
        fingerprint: str,
        pause: float,
    ) -> None:
        self.trainer, self.config, self.directory = trainer, config, directory
        self.fingerprint, self.pause = fingerprint, pause
        self.saved_at, self.saved_epoch = time.monotonic(), trainer.progress.epoch

    def keep(self, *, now: bool) -> None:
        """Saves if it is time to, or `now`."""
        if now or time.monotonic() - self.saved_at >= self.pause:
            save_checkpoint(self.directory.checkpoint, self.trainer, self.config, self.fingerprint)
            self.saved_at, self.saved_epoch = time.monotonic(), self.trainer.progress.epoch

    def last_good(self) -> str:
        """Where to go back to, as the end of a sentence."""
        if not self.directory.checkpoint.exists():
            return "there is no checkpoint yet"
        return f"the last good checkpoint is {self.directory.checkpoint}, epoch {self.saved_epoch}"


def _run_epochs(classifier: GPNClassifier, graph: Graph, trainer: Trainer, keeper: _Keeper) -> None:
    done, config = trainer.progress.epoch, keeper.config.train
    limit = trainer.warmup_epochs + config.epochs
    total = limit if limit <= 10_000 else None
    directory = keeper.directory
    with (
        stop_requests() as stop,
        metrics_log(directory.metrics, directory.tensorboard, done_epochs=done) as log,
        ProgressMeter("train", "epoch", total, done=done) as meter,
    ):

        def observe(record: EpochRecord) -> None:
            log.write(record)
            note = f"val accuracy {record.val_accuracy:.3f}, best epoch {record.best_epoch}"
            meter.update(record.epoch, note)
            number = stop()
            keeper.keep(now=bool(number) or trainer.finished)
            if number:
                meter.update(record.epoch, "stopped; go on with --resume")
                raise Stopped(number)

        def observe_step(epoch: int, step: int, steps: int) -> None:
            if step < steps:
                meter.update(epoch - 1, f"step {step} of {steps}")

        trainer.observe_step = observe_step
        try:
            classifier.fit(graph, observe=observe, trainer=trainer)
        except NumericalError as error:
            raise NumericalError(f"{error}; {keeper.last_good()}") from error


def _predict_all(
    classifier: GPNClassifier, graph: Graph, budget: int, directory: RunDirectory
) -> Prediction:
    with ProgressMeter("predict", "node", graph.num_nodes) as meter:
        return classifier.predict(
            graph, memory_bytes=budget, scratch=directory.path, progress=meter.update
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Parses the command line and runs; the exit code is 2 for bad input."""
    options = training_parser().parse_args(arguments)
    return exit_code_of(lambda: train(options))


if __name__ == "__main__":
    sys.exit(main())
