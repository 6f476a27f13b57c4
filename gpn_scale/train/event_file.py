"""`EventFile`: writes training metrics for TensorBoard immediately.

TensorBoard's own writer uses a background thread, which notices a full disk too late. A file that a
crash has truncated is read up to its last complete record; nothing is ever appended to it.
"""

import os
import socket
import time
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

from gpn_scale.extras import check_extra
from gpn_scale.files import make_folder
from gpn_scale.growing_file import GrowingFile

_VERSION = "brain.Event:2"


class EventFile:
    """A new file of events in a folder, which is created if it is missing.

    Args:
        folder: The folder.
        first_step: TensorBoard ignores records of earlier files from this step on.

    Raises:
        MissingExtraError: TensorBoard is not installed.
    """

    def __init__(self, folder: Path, first_step: int) -> None:
        check_extra("tensorboard", "a file for TensorBoard")
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._event, self._summary = Event, Summary
        make_folder(folder)
        self._file = GrowingFile(_new_path(folder))
        self._records = RecordWriter(_Appending(self._file))
        self._write(file_version=_VERSION)
        self._write(step=first_step, session_log=SessionLog(status=SessionLog.START))

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Write numbers of a step, by their names."""
        numbers = [
            self._summary.Value(tag=name, simple_value=value) for name, value in values.items()
        ]
        self._write(step=step, summary=self._summary(value=numbers))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, **fields: Any) -> None:
        event = self._event(wall_time=time.time(), **fields)
        self._records.write(event.SerializeToString())


class _Appending:
    """File object to which TensorBoard's record writer writes."""

    def __init__(self, file: GrowingFile) -> None:
        self._file = file

    def write(self, record: bytes) -> None:
        self._file.append(record)


def _new_path(folder: Path) -> Path:
    """Return the path of a file that does not exist, with a name that TensorBoard recognises."""
    start = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}"
    paths = (folder / f"{start}.{number}" for number in count())
    return next(path for path in paths if not path.exists())
