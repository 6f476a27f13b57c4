import itertools
import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_file

from gpn_scale.config import RunConfig, TrainConfig
from gpn_scale.errors import RunError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.train.checkpoint import (
    load_tensors,
    restore_checkpoint,
    save_checkpoint,
    save_tensors,
)
from gpn_scale.train.metrics_log import MetricsLog, metrics_log, read_metrics
from gpn_scale.train.trainer import EpochRecord, Timing

CONFIG = RunConfig(train=TrainConfig(epochs=6, warmup_steps=2))


def final_weights(trainer):
    list(trainer.records())
    return trainer.model.state_dict()


@pytest.mark.parametrize("stop_after", [0, 1, 2, 3, 7])
def test_a_restored_trainer_ends_with_the_same_weights(small_graph, tmp_path, stop_after):
    undisturbed = GPNClassifier(CONFIG).trainer(small_graph)
    expected = final_weights(undisturbed)
    first = GPNClassifier(CONFIG).trainer(small_graph)
    list(itertools.islice(first.records(), stop_after))
    save_checkpoint(tmp_path / "c.safetensors", first, CONFIG, "graph")
    second = GPNClassifier(CONFIG).trainer(small_graph)
    restore_checkpoint(tmp_path / "c.safetensors", second, CONFIG, "graph")
    got = final_weights(second)
    assert all(torch.equal(got[name], expected[name]) for name in expected)
    assert second.progress.best_epoch == undisturbed.progress.best_epoch
    best = undisturbed.progress.best_state
    assert all(torch.equal(second.progress.best_state[name], best[name]) for name in best)


def test_more_epochs_go_on_where_fewer_ended(small_graph, tmp_path):
    longer = replace(CONFIG, train=replace(CONFIG.train, epochs=9))
    expected = final_weights(GPNClassifier(longer).trainer(small_graph))
    first = GPNClassifier(CONFIG).trainer(small_graph)
    list(first.records())
    save_checkpoint(tmp_path / "c", first, CONFIG, "graph")
    second = GPNClassifier(longer).trainer(small_graph)
    restore_checkpoint(tmp_path / "c", second, longer, "graph")
    got = final_weights(second)
    assert all(torch.equal(got[name], expected[name]) for name in expected)


def test_another_run_is_refused(small_graph, tmp_path):
    trainer = GPNClassifier(CONFIG).trainer(small_graph)
    save_checkpoint(tmp_path / "c", trainer, CONFIG, "graph")
    with pytest.raises(RunError, match="another graph, split or store"):
        restore_checkpoint(tmp_path / "c", trainer, CONFIG, "other")
    other = replace(CONFIG, train=replace(CONFIG.train, learning_rate=0.5))
    with pytest.raises(RunError, match=r"train.learning_rate=0.01, now it is 0.5"):
        restore_checkpoint(tmp_path / "c", trainer, other, "graph")


def test_files_that_are_no_checkpoints_are_refused(tmp_path):
    with pytest.raises(RunError, match="does not exist"):
        load_tensors(tmp_path / "none")
    (tmp_path / "text").write_text("not tensors")
    with pytest.raises(RunError, match="cannot be read"):
        load_tensors(tmp_path / "text")
    save_file({"a": torch.zeros(1)}, tmp_path / "foreign")
    with pytest.raises(RunError, match="format None, expected 1"):
        load_tensors(tmp_path / "foreign")


def test_a_truncated_checkpoint_is_refused(small_graph, tmp_path):
    trainer = GPNClassifier(CONFIG).trainer(small_graph)
    save_checkpoint(tmp_path / "c", trainer, CONFIG, "graph")
    content = (tmp_path / "c").read_bytes()
    (tmp_path / "c").write_bytes(content[: len(content) // 2])
    with pytest.raises(RunError, match="cannot be read"):
        restore_checkpoint(tmp_path / "c", trainer, CONFIG, "graph")


def record(epoch):
    return EpochRecord(
        epoch=epoch,
        phase="main",
        loss=1.0,
        val_cross_entropy=0.5,
        val_accuracy=0.9,
        best_epoch=1,
    )


def test_the_log_goes_on_after_the_last_checkpoint(tmp_path):
    path = tmp_path / "metrics.jsonl"
    with metrics_log(path, tmp_path / "tb", done_epochs=0) as log:
        for epoch in (1, 2, 3):
            log.write(record(epoch), Timing(forward=epoch))
    with path.open("a") as file:
        file.write('{"epoch": 4, "loss')  # a line cut off by a crash
    with metrics_log(path, tmp_path / "tb", done_epochs=2) as log:
        log.write(record(3), Timing(forward=1.0))
    assert [line["epoch"] for line in read_metrics(path)] == [1, 2, 3]
    assert [json.loads(line)["epoch"] for line in path.read_text().splitlines()] == [1, 2, 3]
    assert list((tmp_path / "tb").glob("events*"))


class RecordingWriter:
    """Keeps what TensorBoard would be given."""

    def __init__(self):
        self.scalars = {}

    def add_scalar(self, name, value, step):
        self.scalars[name, step] = value

    def close(self):
        pass


def test_tensorboard_is_given_the_speed_and_times_of_each_epoch(tmp_path):
    writer, timing = RecordingWriter(), Timing()
    log = MetricsLog(tmp_path / "metrics.jsonl", writer)
    for epoch, (roots, forward, validation) in enumerate(
        [(100, 2.0, 9.0), (50, 5.0, 9.0)], start=1
    ):
        timing.roots += roots
        timing.forward += forward
        timing.validation += validation
        log.write(record(epoch), timing)
    log.close()
    assert [writer.scalars["roots_per_second", epoch] for epoch in (1, 2)] == [50.0, 10.0]
    assert [writer.scalars["seconds/forward", epoch] for epoch in (1, 2)] == [2.0, 5.0]
    assert "forward" not in (tmp_path / "metrics.jsonl").read_text()


def test_equal_contents_are_equal_bytes(tmp_path):
    tensors, facts = {"b": torch.ones(2), "a": torch.zeros(3)}, {"config": {"x": 1}, "epoch": 4}
    for number in range(8):
        save_tensors(tmp_path / str(number), tensors, facts)
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1
    assert load_tensors(tmp_path / "0")[1] == facts
