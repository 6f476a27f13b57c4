"""Entry point of training: `python launch/train.py --dataset NAME --mode exact --out RUN`."""

import argparse
import os
import sys
import time
from collections.abc import Sequence

import torch

from gpn_scale.data.datasets import load_graph
from gpn_scale.errors import ConfigError
from gpn_scale.estimator import GPNClassifier, prepare_graph
from gpn_scale.evaluation.report import make_report, write_predictions
from gpn_scale.files import write_json
from gpn_scale.progress import ProgressMeter
from gpn_scale.train.checkpoint import restore_checkpoint, save_checkpoint
from gpn_scale.train.log import metrics_log
from gpn_scale.train.run_directory import RunDirectory
from gpn_scale.train.trainer import EpochRecord
from launch.arguments import run_config, training_parser
from launch.console import Stopped, exit_code_of, print_summary, stop_requests


def train(options: argparse.Namespace) -> None:
    """Loads, trains, predicts, reports."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigError("--mode exact runs in one process, got several ranks: use plain python")
    if options.threads is not None:
        if options.threads < 1:
            raise ConfigError(f"--threads got {options.threads}, expected at least 1")
        torch.set_num_threads(options.threads)
    directory = RunDirectory(options.out)
    directory.claim(overwrite=options.overwrite, resume=options.resume)
    graph = load_graph(options.dataset, options.data_dir)
    config = run_config(options, graph)
    graph = prepare_graph(graph, config)
    fingerprint = graph.fingerprint()
    classifier = GPNClassifier(config, device=options.device)
    trainer = classifier.trainer(graph)
    if options.overwrite:
        directory.clear()
    elif directory.checkpoint.exists():
        restore_checkpoint(directory.checkpoint, trainer, config, fingerprint)
    write_json(directory.config, config.to_dict())
    done = trainer.progress.epoch
    limit = config.train.warmup_epochs + config.train.epochs
    saved_at = began = time.monotonic()
    with (
        stop_requests() as stop,
        metrics_log(directory.metrics, directory.tensorboard, done_epochs=done) as log,
        ProgressMeter("train", "epoch", limit if limit <= 10_000 else None, done=done) as meter,
    ):

        def observe(record: EpochRecord) -> None:
            nonlocal saved_at
            log.write(record)
            note = f"val accuracy {record.val_accuracy:.3f}, best epoch {record.best_epoch}"
            meter.update(record.epoch, note)
            number = stop()
            if (
                number
                or trainer.finished
                or time.monotonic() - saved_at >= options.checkpoint_seconds
            ):
                save_checkpoint(directory.checkpoint, trainer, config, fingerprint)
                saved_at = time.monotonic()
            if number:
                meter.update(record.epoch, "stopped; go on with --resume")
                raise Stopped(number)

        classifier.fit(graph, observe=observe, trainer=trainer)
    trained = time.monotonic()
    classifier.save(directory.model)
    inference = time.monotonic()
    prediction = classifier.predict(graph)
    seconds = {
        "precompute": 0.0,
        "train": trained - began,
        "inference": time.monotonic() - inference,
    }
    report = make_report(
        prediction,
        graph,
        config,
        seconds=seconds,
        epochs=trainer.progress.epoch,
        best_epoch=trainer.progress.best_epoch,
    )
    write_predictions(directory.predictions, prediction, graph)
    report.write(directory.report, directory.report_markdown)
    print_summary(report, directory)


def main(arguments: Sequence[str] | None = None) -> int:
    """Parses the command line and runs; the exit code is 2 for bad input."""
    options = training_parser().parse_args(arguments)
    return exit_code_of(lambda: train(options))


if __name__ == "__main__":
    sys.exit(main())
