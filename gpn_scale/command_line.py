"""What the command lines of all commands share: the format of messages, and errors of options."""

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from itertools import pairwise
from types import TracebackType
from typing import Any, NoReturn

from gpn_scale.messages import FORMAT_VARIABLE, FORMATS, formatted, message_format, say

FAULT = 1
"""Exit code of a fault of the program."""
BAD_INPUT = 2
"""Exit code of bad input, with one sentence on standard error."""
SIGNALLED = 128
"""A command that signal n ended has this exit code plus n."""
_OPTION = "--log-format"


class CommandParser(argparse.ArgumentParser):
    """A parser with the option `--log-format`, whose errors are messages in this format.

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
            help="text for people, json for one JSON object per line (default: the environment "
            f"variable {FORMAT_VARIABLE}, or text)",
        )

    def error(self, message: str) -> NoReturn:
        """Print what is wrong with the options, and end the process with exit code 2."""
        if message_format() == "text":
            super().error(message)
        say("error", f"{message}; see --help", level="error", arguments=[])
        self.exit(BAD_INPUT)


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

    Raises:
        SystemExit: the options cannot be used, or ask for help.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    variable = os.environ.get(FORMAT_VARIABLE, FORMATS[0])
    # Errors of options are printed before there are options, so the format is looked up first.
    with formatted(_asked_format(arguments) or message_format()):
        command = parser()
        if variable not in FORMATS:
            expected = " or ".join(FORMATS)
            command.error(f"the variable {FORMAT_VARIABLE} is {variable!r}, expected {expected}")
        options = command.parse_args(arguments)
    with formatted(options.log_format or message_format()), _FaultsAsMessages():
        return run(options)


def _asked_format(arguments: Sequence[str]) -> str | None:
    """Return the last format among the arguments; None if there is none."""
    asked = None
    for argument, following in pairwise([*arguments, ""]):
        value = following if argument == _OPTION else argument.partition(f"{_OPTION}=")[2]
        asked = value if value in FORMATS else asked
    return asked


class _FaultsAsMessages:
    """Turns a fault of the program into a message with a traceback, in the format `json`.

    In the format `text`, Python prints the traceback itself.
    """

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if isinstance(error, Exception) and message_format() == "json":
            text = "".join(traceback.format_exception(error))
            message = f"{type(error).__name__}: {error}"
            say("fault", message, level="error", traceback=text)
            raise SystemExit(FAULT) from error
