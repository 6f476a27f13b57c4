"""Code shared by all commands: the option for the message format, errors and exit codes."""

import argparse
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

from gpn_scale.explained import as_user_error
from gpn_scale.mapped_files import bus_errors_explained
from gpn_scale.messages import (
    FORMAT_VARIABLE,
    FORMATS,
    formatted,
    message_format,
    say,
    silence,
)

FAULT = 1
"""Exit code of a bug in the program."""
BAD_INPUT = 2
"""Exit code of bad input, with one sentence on standard error."""
SIGNALLED = 128
"""A command that signal n ended has this exit code plus n."""
TRACEBACK_VARIABLE = "GPN_SCALE_TRACEBACK"
"""Environment variable that makes commands print the traceback of a bug in the program."""
_OPTION = "--log-format"
_INSTALLED = "gpn-"
_SHOWN_PLACES = 6


class CommandParser(argparse.ArgumentParser):
    """A parser with the option `--log-format`, which also applies to its own error messages.

    >>> CommandParser(prog="report.py").parse_args(["--log-format", "json"]).log_format
    'json'

    Args:
        settings: Arguments of `argparse.ArgumentParser`.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.add_argument_group("messages").add_argument(
            _OPTION,
            choices=FORMATS,
            help="format of messages: text for people, json for one JSON object per line (default: "
            f"the environment variable {FORMAT_VARIABLE}, else text)",
        )

    def error(self, message: str) -> NoReturn:
        """Print what is wrong with the options, and end the process with exit code 2."""
        if message_format() == "text":
            super().error(message)
        say("error", f"{message}; see --help", level="error", arguments=[])
        self.exit(BAD_INPUT)


def command_name(script: str) -> str:
    """Return the name under which this command was called.

    >>> command_name("train.py")  # in a process that no installed command has started
    'train.py'

    Args:
        script: Name of its script in the repository, for calls that use no installed command.
    """
    called = Path(sys.argv[0]).name
    return called if called.startswith(_INSTALLED) else script


def run_parsed(
    parser: Callable[[], argparse.ArgumentParser],
    run: Callable[[argparse.Namespace], int],
    arguments: Sequence[str] | None,
) -> int:
    """Parse the arguments of a command and run it, with messages in the format they ask for.

    >>> run_parsed(CommandParser, lambda options: 0, ["--log-format", "json"])
    0

    Args:
        parser: Function that returns a `CommandParser`.
        run: Function that runs the command with the parsed options and returns its exit code.
        arguments: The arguments; None for those of this process.

    Returns:
        The exit code.

    All errors are handled here. An error that the user can fix prints one sentence and returns exit
    code 2; a bug in the program prints one line and returns 1. If the reader of the results has
    gone, as in `gpn-report ... | head -1`, the command ends without a message.

    Raises:
        SystemExit: the options cannot be used, or ask for help.
    """
    with bus_errors_explained(_say_error, BAD_INPUT), _Outcome() as outcome:
        outcome.code = _run_parsed(parser, run, arguments)
    return outcome.code


def _say_error(message: str) -> None:
    say("error", message, level="error", arguments=[])


def _run_parsed(
    parser: Callable[[], argparse.ArgumentParser],
    run: Callable[[argparse.Namespace], int],
    arguments: Sequence[str] | None,
) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    variable = os.environ.get(FORMAT_VARIABLE, FORMATS[0])
    # Parsing may fail, so the format of its error messages is determined first.
    with formatted(_requested_format(arguments) or message_format()):
        command = parser()
        if variable not in FORMATS:
            expected = " or ".join(FORMATS)
            command.error(f"the variable {FORMAT_VARIABLE} is {variable!r}, expected {expected}")
        options, unknown = command.parse_known_args(arguments)
        if unknown:
            command.error(_unknown_text(command, unknown))
    with formatted(options.log_format or message_format()), _Outcome() as outcome:
        outcome.code = run(options)
    return outcome.code


def _unknown_text(command: argparse.ArgumentParser, unknown: Sequence[str]) -> str:
    """Return what is wrong with arguments that a command does not take, and the nearest options."""
    known = [name for action in command._actions for name in action.option_strings]
    asked = next((each for each in unknown if each.startswith("-")), "").partition("=")[0]
    near = get_close_matches(asked, known, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"unrecognized arguments: {' '.join(unknown)}{hint}"


def _requested_format(arguments: Sequence[str]) -> str | None:
    """Return the last valid message format among the arguments, or None."""
    requested = None
    for argument, following in pairwise([*arguments, ""]):
        value = following if argument == _OPTION else argument.partition(f"{_OPTION}=")[2]
        requested = value if value in FORMATS else requested
    return requested


class _Outcome:
    """Exit code of a block of code; turns errors into messages and exit codes."""

    def __init__(self) -> None:
        self.code = 0

    def __enter__(self) -> "_Outcome":
        _open_standard_streams()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> bool:
        if isinstance(error, BrokenPipeError) and error.filename is None:
            flush_standard_streams()
            self.code = SIGNALLED + signal.SIGPIPE
            return True
        if not isinstance(error, Exception):
            flush_standard_streams()
            return False
        problem = as_user_error(error)
        if problem is not None:
            say("error", problem.sentence, level="error", arguments=problem.arguments)
            self.code = BAD_INPUT
        else:
            say_fault(error)
            self.code = FAULT
        return True


def say_fault(error: BaseException, where: str = "", **fields: Any) -> None:
    """Print one line about a bug in the program, with instructions for reporting it.

    >>> say_fault(KeyError("epochs"))  # on standard error

    Args:
        error: The error that the bug has raised.
        where: Beginning of the message, such as the rank.
        fields: Further fields of the message.
    """
    trace = "".join(traceback.format_exception(error)).rstrip()
    places = " > ".join(_places(error)) or "unknown location"
    text = " ".join(f"{type(error).__name__}: {error}".split())
    message = (
        f"{where}{text} ({places}): this is a bug in gpn_scale; please report this line and the "
        f"command to its maintainers ({TRACEBACK_VARIABLE}=1 prints the traceback)"
    )
    shown = f"{trace}\nerror: {message}" if os.environ.get(TRACEBACK_VARIABLE) else None
    say("fault", message, level="error", text=shown, traceback=trace, **fields)


def _places(error: BaseException) -> list[str]:
    """Return the innermost locations in files of this project that an error has passed."""
    root = Path(__file__).parent.parent
    places = []
    for frame in traceback.extract_tb(error.__traceback__):
        path = Path(frame.filename)
        if path.is_relative_to(root) and "site-packages" not in path.relative_to(root).parts:
            places.append(f"{path.relative_to(root)}, line {frame.lineno}")
    return places[-_SHOWN_PLACES:]


def _open_standard_streams() -> None:
    """Reopen closed standard streams on /dev/null, so that no other file gets their number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one


def flush_standard_streams() -> None:
    """Flush standard output and standard error; redirect one that fails to /dev/null.

    >>> flush_standard_streams()
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            try:
                stream.flush()
            except OSError:
                silence(stream)
