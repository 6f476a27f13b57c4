"""Long trainings hold no more at their end than near their beginning.

`benchmarks/bench_long_run.py` does the same with as many steps as twelve hours have.
"""

import gc
import os
import sys
import threading
from typing import NamedTuple

import pytest

from gpn_scale.config import PPRConfig, RunConfig, override
from gpn_scale.data.splits import stratified_split
from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph
from gpn_scale.estimator import GPNClassifier
from gpn_scale.train.checkpoint_schedule import CheckpointSchedule
from gpn_scale.train.metrics_log import metrics_log
from gpn_scale.train.run_directory import RunDirectory
from gpn_scale.train.trainer import EpochRecord
from precompute.build import build_store

EPOCHS, FIRST = 300, 100
CONFIG = override(
    RunConfig(),
    [
        ("encoder.hidden", "4"),
        ("encoder.latent", "2"),
        ("flow.radial_layers", "1"),
        ("train.epochs", str(EPOCHS)),
        ("train.patience", "1000"),
        ("train.warmup_steps", "0"),
        ("opinion.patience", "1000"),
        ("minibatch.batch_size", "10"),
    ],
)
BLOCKS_PER_EPOCH = 4
"""Python's blocks of memory that an epoch may leave behind, since caches still fill; one kept
record of an epoch takes more."""


class Held(NamedTuple):
    """What this process holds at one moment."""

    files: int
    threads: int
    blocks: int

    @classmethod
    def now(cls):
        gc.collect()
        files = len(os.listdir("/proc/self/fd"))
        return cls(files, threading.active_count(), sys.getallocatedblocks())


@pytest.fixture(scope="module")
def tiny_graph():
    graph = synthetic_graph(SyntheticConfig(nodes=100, classes=2, features=4, separation=4.0))
    return stratified_split(graph, train=0.2, val=0.2, rng_seed=1)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files are counted in /proc")
@pytest.mark.parametrize("mode", ["exact", "minibatch", "opinion"])
def test_a_training_holds_no_more_as_it_goes_on(tiny_graph, tmp_path, mode):
    config, store = CONFIG, None
    if mode == "minibatch":
        config, store = override(CONFIG, [("mode", mode)]), tmp_path / "store"
        build_store(tiny_graph, PPRConfig(k=4, clusters=2, diffusion=config.diffusion), store)
    trainer = GPNClassifier(config).trainers(tiny_graph, store)[mode == "opinion"]
    directory = RunDirectory(tmp_path)
    schedule = CheckpointSchedule(trainer, config, directory, "graph", pause=0.0)
    held = {}
    with metrics_log(directory.metrics, directory.tensorboard, done_epochs=0) as log:
        for record in trainer.records():
            log.write(record, trainer.timing)
            schedule.save(now=record.epoch % FIRST == 0)
            if record.epoch in (FIRST, EPOCHS):
                held[record.epoch] = Held.now()
    first, last = held[FIRST], held[EPOCHS]
    assert (last.files, last.threads) == (first.files, first.threads)
    assert last.blocks - first.blocks < BLOCKS_PER_EPOCH * (EPOCHS - FIRST)


def test_a_kept_record_of_every_epoch_would_be_noticed():
    before = Held.now()
    kept = [
        EpochRecord(
            epoch=1000 + epoch,
            phase="main",
            loss=epoch + 0.5,
            val_cross_entropy=epoch + 0.25,
            val_accuracy=epoch / 1000,
            best_epoch=2000 + epoch,
        )
        for epoch in range(EPOCHS - FIRST)
    ]
    assert Held.now().blocks - before.blocks > BLOCKS_PER_EPOCH * len(kept)
