"""The format of messages on the command line, and errors of options."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpn_scale.command_line import (
    TRACEBACK_VARIABLE,
    CommandParser,
    command_name,
    run_parsed,
)
from gpn_scale.errors import GraphError
from gpn_scale.messages import FORMAT_VARIABLE, message_format

REPOSITORY = Path(__file__).parents[1]

MAPPED = """
import os, sys
import numpy as np
from gpn_scale.command_line import CommandParser, run_parsed

def run(options):
    mapped = np.memmap(sys.argv[1], np.uint8, "r")
    os.truncate(sys.argv[1], 0)
    return int(mapped.sum())

sys.exit(run_parsed(CommandParser, run, []))
"""


def parser():
    command = CommandParser(prog="some.py")
    command.add_argument("--count", type=int, default=0)
    return command


def format_with(*arguments):
    formats = []

    def run(options):
        formats.append(message_format())
        return 7

    assert run_parsed(parser, run, arguments) == 7
    return formats[0]


@pytest.mark.parametrize(
    ("arguments", "variable", "expected"),
    [
        ([], None, "text"),
        (["--log-format", "json"], None, "json"),
        (["--log-format=json"], None, "json"),
        (["--log", "json"], None, "json"),  # argparse takes abbreviations
        (["--log-format", "json", "--log-format", "text"], None, "text"),
        ([], "json", "json"),
        (["--log-format", "text"], "json", "text"),
    ],
)
def test_the_option_counts_before_the_variable(monkeypatch, arguments, variable, expected):
    monkeypatch.delenv(FORMAT_VARIABLE, raising=False)
    if variable is not None:
        monkeypatch.setenv(FORMAT_VARIABLE, variable)
    assert format_with(*arguments) == expected


@pytest.mark.parametrize(
    "arguments", [["--count", "many"], ["--unknown"], ["--count=many", "--log-format=json"]]
)
def test_errors_of_options_have_the_format_and_code_2(capsys, arguments):
    for flag in ("text", "json"):
        with pytest.raises(SystemExit) as caught:
            run_parsed(parser, lambda options: 0, ["--log-format", flag, *arguments])
        assert caught.value.code == 2
        errors = capsys.readouterr().err
        if flag == "text" and "--log-format=json" not in arguments:
            assert "usage: some.py" in errors
        else:
            message = json.loads(errors)
            assert (message["level"], message["event"]) == ("error", "error")
            assert "see --help" in message["message"]


def test_an_unknown_format_is_refused(capsys, monkeypatch):
    with pytest.raises(SystemExit) as caught:
        run_parsed(parser, lambda options: 0, ["--log-format", "xml"])
    assert caught.value.code == 2
    assert "invalid choice: 'xml'" in capsys.readouterr().err
    monkeypatch.setenv(FORMAT_VARIABLE, "xml")
    with pytest.raises(SystemExit) as caught:
        run_parsed(parser, lambda options: 0, [])
    assert caught.value.code == 2
    assert f"{FORMAT_VARIABLE} is 'xml', expected text or json" in capsys.readouterr().err


def failing(options):
    raise ZeroDivisionError("a fault")


def test_a_fault_of_the_program_is_one_line_with_how_to_report_it(capsys, monkeypatch):
    assert run_parsed(parser, failing, []) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ZeroDivisionError: a fault (")
    assert "gpn_scale/command_line.py, line" in line
    assert "this is a bug in gpn_scale; please report this line" in line
    assert run_parsed(parser, failing, ["--log-format", "json"]) == 1
    message = json.loads(capsys.readouterr().err)
    assert message["event"] == "fault"
    assert message["message"].startswith("ZeroDivisionError: a fault (")
    assert "in failing" in message["traceback"]
    monkeypatch.setenv(TRACEBACK_VARIABLE, "1")
    assert run_parsed(parser, failing, []) == 1
    assert "in failing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "run/x"), "run/x: No space left on dev"),
        (MemoryError("8 TiB"), "not enough memory (8 TiB)"),
        (GraphError("graph 'g' is empty"), "graph 'g' is empty"),
        (RecursionError(), "the data is nested too deeply"),
        ("\udcff".encode, "a name or a text is not valid UTF-8"),
    ],
)
def test_what_the_user_can_change_is_one_sentence_with_code_2(capsys, error, sentence):
    def run(options):
        if callable(error):
            error()
        raise error

    assert run_parsed(parser, run, []) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {sentence}")


COMMAND = """
import sys
from gpn_scale.command_line import CommandParser, flush_standard_streams, run_parsed
from gpn_scale.messages import say

def run(options):
    for number in range(20_000):
        say("note", f"line {number} \\u2013 \\udcff", result=True)
    return 0

sys.exit(run_parsed(CommandParser, run, sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("redirection", "code", "errors"),
    [
        ("| head -1", 141, ""),
        ("> /dev/null", 0, ""),
        (">&-", 0, ""),
        ("2>&-", 0, ""),
        (">&- 2>&- <&-", 0, ""),
        ("> /dev/full 2> /dev/full", 2, ""),
        ("> /dev/full", 2, "error: standard output: No space left on device: free space on this "),
        ("--help | true", 0, ""),
        ("--help > /dev/full", 0, ""),
    ],
)
def test_standard_streams_may_be_closed_or_full(tmp_path, redirection, code, errors):
    script = tmp_path / "script.py"
    script.write_text(COMMAND)
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    command = f"{sys.executable} {script} {redirection}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, env=environment)
    assert done.returncode == code
    assert done.stderr[: len(errors) or None].decode() == errors


def test_a_mapped_file_that_is_cut_short_is_one_sentence(tmp_path):
    (tmp_path / "mapped").write_bytes(bytes(10_000))
    script = tmp_path / "script.py"
    script.write_text(MAPPED)
    done = subprocess.run(
        [sys.executable, script, tmp_path / "mapped"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {tmp_path / 'mapped'} was truncated while it was in use")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("unknown", "hint"),
    [("--cuont=3", "; did you mean --count?"), ("--zzz", ""), ("extra", "")],
)
def test_an_unknown_option_comes_with_the_nearest_known_one(capsys, unknown, hint):
    with pytest.raises(SystemExit) as caught:
        run_parsed(parser, lambda options: 0, [unknown])
    assert caught.value.code == 2
    assert capsys.readouterr().err.endswith(f"error: unrecognized arguments: {unknown}{hint}\n")


@pytest.mark.parametrize(
    ("called", "name"), [("bin/gpn-train", "gpn-train"), ("launch/train.py", "train.py")]
)
def test_a_command_has_the_name_under_which_it_was_called(monkeypatch, called, name):
    monkeypatch.setattr(sys, "argv", [called, "--help"])
    assert command_name("train.py") == name
