"""When checkpoints are written, and what is said of the last one."""

import pytest

from gpn_scale.config import RunConfig, TrainConfig
from gpn_scale.distributed import World
from gpn_scale.estimator import GPNClassifier
from gpn_scale.rank_part import RankPart
from gpn_scale.train import checkpoint_schedule as module
from gpn_scale.train.checkpoint import load_tensors
from gpn_scale.train.checkpoint_schedule import CheckpointSchedule
from gpn_scale.train.run_directory import RunDirectory

CONFIG = RunConfig(model="GPN", train=TrainConfig(epochs=4, warmup_steps=0))


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass when the test says so."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def schedule(small_graph, tmp_path, clock):
    trainer = GPNClassifier(CONFIG, device="cpu").trainer(small_graph)
    return CheckpointSchedule(trainer, CONFIG, RunDirectory(tmp_path), "graph", pause=10.0)


def saved_epoch(schedule):
    return load_tensors(schedule.path)[1]["epoch"]


def test_checkpoints_are_written_after_the_pause_or_now(schedule, clock, tmp_path):
    records = schedule.trainer.records()
    next(records)
    clock[0] += 9.0
    schedule.save(now=False)
    assert schedule.last_checkpoint() == "there is no checkpoint yet"
    clock[0] += 1.0
    schedule.save(now=False)
    assert saved_epoch(schedule) == 1
    next(records)
    schedule.save(now=False)
    assert saved_epoch(schedule) == 1
    schedule.save(now=True)
    assert saved_epoch(schedule) == 2
    path = RunDirectory(tmp_path).checkpoint
    assert schedule.path == path
    assert schedule.last_checkpoint() == f"the last good checkpoint is {path}, epoch 2"


def test_only_the_first_process_writes(schedule):
    schedule.trainer.world = World(part=RankPart(1, 2))
    schedule.save(now=True)
    assert not schedule.path.exists()


def test_what_a_checkpoint_relies_on_is_flushed_before_it_is_written(schedule):
    next(schedule.trainer.records())
    present = []
    schedule.before = lambda: present.append(schedule.path.exists())
    schedule.save(now=False)
    assert present == []
    schedule.save(now=True)
    schedule.save(now=True)
    assert present == [False, True]
