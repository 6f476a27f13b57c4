"""Training curves on disk and in TensorBoard."""

import json

from gpn_scale import disk
from gpn_scale.train.metrics_log import MetricsLog, metrics_log, read_metrics
from gpn_scale.train.trainer import EpochRecord, Timing
from tests.faults.recording_disk import RecordingDisk


def record(epoch):
    return EpochRecord(
        epoch=epoch,
        phase="main",
        loss=1.0,
        val_cross_entropy=0.5,
        val_accuracy=0.9,
        best_epoch=1,
    )


def test_the_log_continues_after_the_last_checkpoint(tmp_path):
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

    def add(self, step, values):
        self.scalars |= {(name, step): value for name, value in values.items()}

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


def test_a_file_that_is_missing_has_no_lines(tmp_path):
    assert read_metrics(tmp_path / "none") == []


def test_lines_are_on_the_disk_after_a_sync(tmp_path, monkeypatch):
    record_of_disk = RecordingDisk(tmp_path)
    monkeypatch.setattr(disk, "system", record_of_disk)
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.write(record(1), Timing())
    assert dict(record_of_disk.root.tree("none", "none")) == {}
    log.sync()
    log.write(record(2), Timing())
    log.close()
    safe = dict(record_of_disk.root.tree("none", "none"))["metrics.jsonl"]
    assert [json.loads(line)["epoch"] for line in safe.splitlines()] == [1]
