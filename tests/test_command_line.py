"""The format of messages on the command line, and errors of options."""

import json

import pytest

from gpn_scale.command_line import CommandParser, run_parsed
from gpn_scale.messages import FORMAT_VARIABLE, message_format


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


def test_faults_are_messages_in_json_and_exceptions_in_text(capsys):
    with pytest.raises(ZeroDivisionError):
        run_parsed(parser, failing, [])
    with pytest.raises(SystemExit) as caught:
        run_parsed(parser, failing, ["--log-format", "json"])
    assert caught.value.code == 1
    message = json.loads(capsys.readouterr().err)
    assert message["message"] == "ZeroDivisionError: a fault"
    assert "in failing" in message["traceback"]
