"""Decisions of a person about nodes: one JSON line each, in an append-only file.

The first line names the run, so that decisions are never mixed with those of another run. Lines
are appended under a lock and flushed to disk before they count. A process that is killed while it
writes leaves an incomplete line, which the next writer removes.
"""

import hashlib
import json
import os
import threading
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Literal, get_args

from gpn_scale.checked_json import CHECKSUM, json_checksum
from gpn_scale.errors import FileError, RunError
from gpn_scale.growing_file import GrowingFile
from gpn_scale.json_shapes import check_shape
from gpn_scale.messages import say
from gpn_scale.reading import open_file, parse_json

Kind = Literal["accept", "relabel", "skip"]
"""Kinds of decisions: accept the prediction, give the node another label, or decide later."""
_FORMAT = 1
_HEADER = "gpn_scale_decisions"
_LINE_BYTES = 1 << 24
"""Largest length of a line in bytes; requests have bodies of at most 8 MB by default."""
_SHAPE: dict[str, Any] = {"id": str, "decision": str, "time": str, "model": str}
_SHAPE |= {"label": (str, None), "note": (str, None)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A person's decision about a node."""

    id: str
    decision: Kind
    label: str | None = None
    """Name of the class that the node gets; None unless it is relabelled."""
    note: str | None = None
    time: str
    """Time of the decision, in UTC."""
    model: str
    """Fingerprint of the model whose prediction was shown."""


def run_fingerprint(config: str, graph: str) -> str:
    """Return the fingerprint of a run, from those of its configuration and its graph.

    A model that is swapped for a better one of the same run keeps its decisions.
    """
    return hashlib.blake2b(f"{config}\n{graph}".encode(), digest_size=12).hexdigest()


class DecisionLog:
    """The decisions of a run, on disk and in memory.

    Args:
        path: The file, which is created when the first decision is stored.
        run: Fingerprint of the run.
        graph: Name of its graph, for people who read the file.

    Raises:
        RunError: the file cannot be read, is damaged, or belongs to another run.
    """

    def __init__(self, path: Path, run: str, graph: str) -> None:
        self.path, self._run, self._graph = path, run, graph
        self._lock = threading.Lock()
        self._offset, self._inode = 0, -1
        self._decisions: list[Decision] = []
        self._latest: dict[str, Decision] = {}
        if not path.parent.is_dir():
            raise RunError(
                f"{path} cannot be written: its folder does not exist", arguments=("decisions",)
            )
        with self._lock:
            self._refresh()

    def append(
        self, node_id: str, decision: Kind, *, label: str | None, note: str | None, model: str
    ) -> Decision:
        """Store a decision durably, and return it.

        Raises:
            RunError: the file cannot be written, or was replaced by that of another run.
        """
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        made = Decision(
            id=node_id, decision=decision, label=label, note=note, time=time, model=model
        )
        with self._lock:
            try:
                self._write(made)
            except OSError as error:
                raise RunError(
                    f"the decision was not stored, because {self.path.name} cannot be written "
                    f"({error.strerror})",
                    arguments=("decisions",),
                ) from error
            self._refresh()
        return made

    def page(
        self, offset: int, limit: int, node_id: str | None = None
    ) -> tuple[int, list[Decision]]:
        """Return the number of all decisions, and some of them, the latest one first.

        With an id, those about this node alone.
        """
        with self._lock:
            self._refresh()
            chosen = self._decisions
            if node_id is not None:
                chosen = [each for each in chosen if each.id == node_id]
            last = max(len(chosen) - offset, 0)
            return len(chosen), chosen[max(last - limit, 0) : last][::-1]

    def latest(self, node_id: str) -> Decision | None:
        """Return the last decision about a node among those read so far, or None."""
        return self._latest.get(node_id)

    def decided_ids(self) -> list[str]:
        """Return the ids of all nodes with a decision, among those that were read."""
        return list(self._latest)

    def refresh(self) -> None:
        """Read what other processes have appended."""
        with self._lock:
            self._refresh()

    def _write(self, decision: Decision) -> None:
        with GrowingFile(self.path, 0o600) as file:
            file.lock()
            end = self._cut_torn_line(file)
            lines = []
            if end == 0:
                header = {_HEADER: _FORMAT, "run": self._run, "graph": self._graph}
                lines.append(json.dumps(header))
            else:
                file.seek(0)
                self._check_header(file.readline())
            values = asdict(decision)
            lines.append(json.dumps({**values, CHECKSUM: json_checksum(values)}))
            file.append("".join(f"{line}\n" for line in lines).encode())
            try:
                file.sync()
            except OSError:
                # Whether it is on the disk is not known, and it is not to be counted as stored.
                file.truncate(end)
                raise

    def _cut_torn_line(self, file: GrowingFile) -> int:
        """Cut off a last line that has no end; return the length of the file."""
        size = file.seek(0, os.SEEK_END)
        end = _end_of_lines(file, size)
        if end < size:
            file.truncate(end)
            sentence = (
                f"the last line of {self.path.name} was incomplete ({size - end} bytes), as after "
                "a crash, and was cut off"
            )
            say("warning", sentence, level="warning")
        return end

    def _refresh(self) -> None:
        """Read complete lines that were appended since; start over if the file was replaced."""
        try:
            with open_file(self.path) as file:
                facts = os.fstat(file.fileno())
                if facts.st_ino != self._inode or facts.st_size < self._offset:
                    self._offset, self._inode = 0, facts.st_ino
                    self._decisions, self._latest = [], {}
                if facts.st_size > self._offset:
                    self._read(file)
        except FileNotFoundError:
            self._offset, self._inode = 0, -1
            self._decisions, self._latest = [], {}
        except (OSError, FileError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise RunError(
                f"{self.path} cannot be read ({reason})", arguments=("decisions",)
            ) from error

    def _read(self, file: BinaryIO) -> None:
        file.seek(self._offset)
        while line := file.readline(_LINE_BYTES):
            if len(line) == _LINE_BYTES:
                raise self._damage(f"it has more than {_LINE_BYTES:,} bytes")
            if not line.endswith(b"\n"):
                return  # another process is writing it, or was killed
            if self._offset == 0:
                self._check_header(line)
            else:
                decision = self._parsed(line)
                self._decisions.append(decision)
                self._latest[decision.id] = decision
            self._offset += len(line)

    def _parsed(self, line: bytes) -> Decision:
        try:
            values: dict[str, Any] = parse_json(line, self.path.name)
            check_shape(values, dict, "the decision")
            check_shape({"label": None, "note": None, **values}, _SHAPE, "the decision")
            if values["decision"] not in get_args(Kind):
                raise ValueError(f"decision is {values['decision']!r}")
            if values.pop(CHECKSUM, None) not in (None, json_checksum(values)):
                raise ValueError("its checksum does not match")
            texts: dict[str, Any] = {
                field.name: values.get(field.name) for field in fields(Decision)
            }
            return Decision(**texts)
        except ValueError as error:
            raise self._damage(str(error)) from error

    def _damage(self, problem: str) -> RunError:
        return RunError(
            f"{self.path} is damaged in line {len(self._decisions) + 2} ({problem}): repair this "
            "line and remove its checksum, remove the line, or keep decisions in another file",
            arguments=("decisions",),
        )

    def _check_header(self, line: bytes) -> None:
        try:
            header = parse_json(line, self.path.name)
            run, version = header["run"], header[_HEADER]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise RunError(
                f"{self.path} is not a file of decisions: its first line does not name a run; move "
                "it away, or keep decisions in another file",
                arguments=("decisions",),
            ) from error
        if run != self._run or version != _FORMAT:
            raise RunError(
                f"{self.path} holds decisions about another run (graph {header.get('graph')!r}), "
                "and these must not be mixed: move it away, or keep decisions in another file",
                arguments=("decisions",),
            )


def _end_of_lines(file: GrowingFile, size: int) -> int:
    """Return where the last complete line of a file ends; 0 if there is none."""
    step, end = 1 << 16, size
    while end > 0:
        start = max(end - step, 0)
        file.seek(start)
        place = file.read(end - start).rfind(b"\n")
        if place >= 0:
            return start + place + 1
        end = start
    return 0
