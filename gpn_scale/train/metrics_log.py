"""Training curves on disk: JSON lines always, and TensorBoard files if it is installed."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from gpn_scale.errors import FileError, MissingExtraError, RunError
from gpn_scale.files import write_text
from gpn_scale.growing_file import GrowingFile
from gpn_scale.reading import parse_json, read_text
from gpn_scale.train.event_file import EventFile
from gpn_scale.train.trainer import EpochRecord, Timing


class MetricsLog:
    """Writes one line per epoch to `metrics.jsonl`; speed and times go to TensorBoard only.

    Since it contains no times, the file is equal for equal runs.

    Args:
        path: File of JSON lines, which is appended to.
        events: The file for TensorBoard, or None.
    """

    def __init__(self, path: Path, events: EventFile | None = None) -> None:
        self._file = GrowingFile(path)
        self._events = events
        self._before = Timing()

    def write(self, record: EpochRecord, timing: Timing) -> None:
        """Add one epoch; `timing` is that of all epochs so far."""
        values = asdict(record)
        self._file.append(f"{json.dumps(values)}\n".encode())
        if self._events is None:
            return
        spent, self._before = timing.since(self._before), replace(timing)
        scalars = {name: values[name] for name in ("loss", "val_cross_entropy", "val_accuracy")}
        scalars["roots_per_second"] = spent.roots_per_second
        scalars |= {f"seconds/{name}": value for name, value in spent.seconds.items()}
        self._events.add(record.epoch, scalars)

    def sync(self) -> None:
        """Flush all lines to disk, which must happen before a checkpoint counts them."""
        self._file.sync()

    def close(self) -> None:
        """Close both files."""
        self._file.close()
        if self._events is not None:
            self._events.close()


@contextmanager
def metrics_log(
    path: Path, tensorboard: Path, *, done_epochs: int, part: str = "features"
) -> Iterator[MetricsLog]:
    """Open a log that continues after `done_epochs`; later lines of an interrupted run are dropped.

    Args:
        path: File of JSON lines, which all parts of the model share.
        tensorboard: Directory of TensorBoard files of this part.
        done_epochs: Number of epochs of this part that are done.
        part: Part of the model that is trained, `features` or `opinion`.
    """
    kept = [
        line
        for line in read_metrics(path)
        if line.get("part", "features") != part or line["epoch"] <= done_epochs
    ]
    write_text(path, "".join(json.dumps(line) + "\n" for line in kept))
    log = MetricsLog(path, _event_file(tensorboard, done_epochs))
    try:
        yield log
    finally:
        log.close()


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a metrics log, without a last line that a crash has truncated.

    Raises:
        RunError: a line is not the record of an epoch.
        FileError: the file cannot be read as text.
    """
    if not path.exists():
        return []
    records: list[dict[str, Any]] = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        try:
            record = parse_json(line, f"{path}, line {number}")
        except FileError:
            break
        if not isinstance(record, dict) or not isinstance(record.get("epoch"), int):
            raise RunError(
                f"{path}, line {number}, is not the record of an epoch: remove the file, or train "
                "again"
            )
        records.append(record)
    return records


def _event_file(folder: Path, done_epochs: int) -> EventFile | None:
    try:
        return EventFile(folder, first_step=done_epochs + 1)
    except MissingExtraError:
        return None
