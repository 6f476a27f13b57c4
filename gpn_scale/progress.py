"""Progress of long work: a bar with rate and time left on a terminal, plain lines elsewhere."""

import sys
import time
from typing import TextIO

from tqdm import tqdm


class ProgressMeter:
    """Shows how far work has come. Use as a context manager.

    Args:
        what: What is being done, e.g. `train`.
        unit: What is counted, e.g. `epoch`.
        total: How many there are at most; None when nobody knows.
        done: How many were done before, by an earlier run.
        seconds: Pause between plain lines.
        stream: Where to; by default standard error.
        silent: Show nothing (any rank but 0).
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
        self._start = self._done = self._told = done
        self._seconds, self._silent = seconds, silent
        self._stream = stream if stream is not None else sys.stderr
        self._began = self._spoke = time.monotonic()
        self._note = ""
        self._bar: tqdm | None = None  # type: ignore[type-arg]
        if not silent and self._stream.isatty():
            self._bar = tqdm(
                desc=what, unit=f" {unit}", total=total, initial=done, file=self._stream
            )

    def __enter__(self) -> "ProgressMeter":
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
        elif not self._silent and self._done > self._told:
            self._say()

    def update(self, done: int, note: str = "") -> None:
        """`done` of the total are finished; `note` says how it goes."""
        advanced, self._done, self._note = done - self._done, done, note
        if self._bar is not None:
            self._bar.set_postfix_str(note, refresh=False)
            self._bar.update(advanced)
        elif not self._silent and time.monotonic() - self._spoke >= self._seconds:
            self._say()

    def _say(self) -> None:
        self._spoke, self._told = time.monotonic(), self._done
        seconds = max(self._spoke - self._began, 1e-9)
        rate = (self._done - self._start) / seconds
        of_total = "" if self._total is None else f"/{self._total}"
        parts = [f"{self._what}: {self._unit} {self._done}{of_total}", f"{rate:.3g} {self._unit}/s"]
        if self._total is not None and rate > 0 and self._done < self._total:
            parts.append(f"{(self._total - self._done) / rate:.0f} s left at most")
        parts += [self._note] if self._note else []
        self._stream.write(", ".join(parts) + "\n")
        self._stream.flush()
