"""Progress of long work: a bar with rate and time left on a terminal, lines elsewhere."""

import sys
import time
from typing import Any, TextIO

from tqdm import tqdm

from gpn_scale.messages import message_format, say


class ProgressMeter:
    """Shows the progress of a task; used as a context manager.

    >>> from io import StringIO
    >>> with ProgressMeter("train", "epoch", total=10, stream=(lines := StringIO())) as meter:
    ...     meter.update(3, "loss 0.25")
    >>> print(lines.getvalue())  # doctest: +ELLIPSIS
    train: epoch 3/10, ... epoch/s, ... s left at most, loss 0.25
    <BLANKLINE>

    In the message format `json` there is no bar, and lines are objects with the event `progress`.

    Args:
        what: Name of the task, e.g. `train`.
        unit: Unit that is counted, e.g. `epoch`.
        total: Upper limit of the count; None if unknown.
        done: Count at the start, if an earlier run is continued.
        seconds: Minimum time between two lines.
        stream: Stream to write to; standard error by default.
        silent: Show nothing (for all ranks but the first).
    """

    def __init__(
        self,
        what: str,
        unit: str,
        total: int | None,
        *,
        done: int = 0,
        seconds: float = 10.0,
        stream: TextIO | None = None,
        silent: bool = False,
    ) -> None:
        self._what, self._unit, self._total = what, unit, total
        self._start = self._done = self._reported = done
        self._stream = stream if stream is not None else sys.stderr
        silent = silent or self._stream is None  # standard error may be closed
        self._seconds, self._silent = seconds, silent
        self._started_at = self._reported_at = time.monotonic()
        self._note, self._numbers = "", dict[str, Any]()
        self._bar: tqdm | None = None  # type: ignore[type-arg]
        if not silent and self._stream.isatty() and message_format() == "text":
            self._bar = tqdm(
                desc=what, unit=f" {unit}", total=total, initial=done, file=self._stream
            )

    def __enter__(self) -> "ProgressMeter":
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
        elif not self._silent and self._done > self._reported:
            self._write_line()

    def update(self, done: int, note: str = "", **numbers: float) -> None:
        """Set the count to `done`, and the text shown beside it to `note`.

        `numbers` are those in the note, for fields of the format `json`.
        """
        advanced, self._done, self._note = done - self._done, done, note
        self._numbers = numbers
        if self._bar is not None:
            self._bar.set_postfix_str(note, refresh=False)
            self._bar.update(advanced)
        elif not self._silent and time.monotonic() - self._reported_at >= self._seconds:
            self._write_line()

    def _write_line(self) -> None:
        self._reported_at, self._reported = time.monotonic(), self._done
        seconds = max(self._reported_at - self._started_at, 1e-9)
        rate = (self._done - self._start) / seconds
        of_total = "" if self._total is None else f"/{self._total}"
        parts = [f"{self._what}: {self._unit} {self._done}{of_total}", f"{rate:.3g} {self._unit}/s"]
        left = None
        if self._total is not None and rate > 0 and self._done < self._total:
            left = (self._total - self._done) / rate
            parts.append(f"{left:.0f} s left at most")
        parts += [self._note] if self._note else []
        say(
            "progress",
            ", ".join(parts),
            stream=self._stream,
            task=self._what,
            unit=self._unit,
            done=self._done,
            total=self._total,
            per_second=rate,
            seconds_left=left,
            **self._numbers,
        )
