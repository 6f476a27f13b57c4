"""Output of commands: lines of text for people, or JSON lines for programs.

Results go to standard output, everything else to standard error. In the format `json`, every line
is an object with at least `time`, `level`, `event` and `message`; numbers are fields of their own.
"""

import json
import math
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TextIO

FORMATS = ("text", "json")
"""Formats of messages."""
FORMAT_VARIABLE = "GPN_SCALE_LOG_FORMAT"
"""Environment variable with the format, which child processes inherit."""

_CONTROLS = {
    code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"
}
"""Control characters that names and paths may contain, with the escapes that replace them."""

Level = Literal["info", "warning", "error"]


def message_format() -> str:
    """Return the format of messages, `text` or `json`.

    >>> message_format()
    'text'
    """
    return "json" if os.environ.get(FORMAT_VARIABLE) == "json" else "text"


@contextmanager
def formatted(kind: str) -> Iterator[None]:
    """Let this process and its children print messages in the format `kind` within the block.

    In the format `json`, Python's warnings are messages too.

    >>> with formatted("json"):
    ...     message_format()
    'json'
    """
    before, show = os.environ.get(FORMAT_VARIABLE), warnings.showwarning
    os.environ[FORMAT_VARIABLE] = kind
    if kind == "json":
        warnings.showwarning = _say_warning
    try:
        yield
    finally:
        warnings.showwarning = show
        if before is None:
            del os.environ[FORMAT_VARIABLE]
        else:
            os.environ[FORMAT_VARIABLE] = before


def say(
    event: str,
    message: str,
    *,
    level: Level = "info",
    text: str | None = None,
    result: bool = False,
    stream: TextIO | None = None,
    **fields: Any,
) -> None:
    """Print one message.

    >>> say("written", "written: a.csv", result=True, path="a.csv", rows=3)
    written: a.csv
    >>> with formatted("json"):
    ...     say("written", "written: a.csv", result=True, rows=3)  # doctest: +ELLIPSIS
    {"time": "...", "level": "info", "event": "written", "message": "written: a.csv", "rows": 3}

    Args:
        event: What happened, in one word.
        message: The message in one sentence.
        level: Severity; the format `text` shows it in front of warnings and errors.
        text: Text for the format `text`; the message by default.
        result: Whether the message is a result, which goes to standard output.
        stream: Stream to write to; None for standard output or standard error.
        fields: Further fields of the JSON object; NaN and infinity become null.
    """
    if stream is None:
        stream = sys.stdout if result else sys.stderr
    if message_format() == "json":
        line = json_line(event, message, level=level, **fields)
    else:
        prefix = "" if level == "info" else f"{level}: "
        line = f"{prefix}{message}" if text is None else text
    write_line(stream, line)


def write_line(stream: TextIO | None, line: str) -> None:
    """Write one line to a stream of this process, which may be closed or full.

    If standard error cannot be written, the program continues without it. If standard output cannot
    be written, results would be lost, so this is an error; a closed one is ignored.

    >>> write_line(sys.stdout, "written: a.csv")
    written: a.csv

    Raises:
        BrokenPipeError: the reader of standard output has gone.
        OSError: standard output cannot be written, for example to a full disk.
    """
    if stream is None or stream.closed:
        return
    line = line.translate(_CONTROLS)
    try:
        try:
            stream.write(f"{line}\n")
        except UnicodeEncodeError:  # such as of a path that is not UTF-8
            coding = stream.encoding or "ascii"
            stream.write(f"{line.encode(coding, 'backslashreplace').decode(coding)}\n")
        stream.flush()
    except OSError as error:
        silence(stream)
        if stream is sys.stderr:
            return
        if isinstance(error, BrokenPipeError):
            raise
        raise OSError(error.errno, error.strerror, "standard output") from error


def silence(stream: TextIO) -> None:
    """Redirect a stream of this process to /dev/null, including its buffered content.

    >>> with open(os.devnull, "w") as stream:
    ...     silence(stream)
    """
    with suppress(OSError, ValueError):  # a stream that is no file
        number = stream.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(nowhere, number)
        os.close(nowhere)


def json_line(event: str, message: str, *, level: Level = "info", **fields: Any) -> str:
    """Return a message as one line of JSON, in ASCII characters.

    >>> json_line("progress", "train: epoch 3", loss=float("nan")).partition('"level"')[2]
    ': "info", "event": "progress", "message": "train: epoch 3", "loss": null}'

    Args:
        event: What happened, in one word.
        message: The message in one sentence.
        level: Severity.
        fields: Further fields.
    """
    time = datetime.now(UTC).isoformat(timespec="milliseconds")
    facts = {"time": time, "level": level, "event": event, "message": message, **fields}
    return json.dumps(_plain(facts), allow_nan=False)


def _plain(value: Any) -> Any:
    """Convert a value for JSON: to plain numbers, texts, lists and objects."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, str | bool | int | None):
        return value
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):  # numbers and arrays of NumPy
        return _plain(value.tolist())
    if isinstance(value, Sequence):
        return [_plain(each) for each in value]
    number = float(value)
    return number if math.isfinite(number) else None


def _say_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a Python warning as a message; replaces `warnings.showwarning`."""
    say("warning", str(message), level="warning", category=category.__name__, stream=file)
