"""Messages as text and as JSON lines."""

import io
import json
import os
import warnings
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.messages import FORMAT_VARIABLE, formatted, json_line, message_format, say


def test_results_go_to_standard_output_and_all_else_to_standard_error(capsys):
    for kind in ("text", "json"):
        with formatted(kind):
            say("written", "a result", result=True)
            say("note", "a note")
        output = capsys.readouterr()
        assert "a result" in output.out
        assert "a note" in output.err
        assert output.out.count("\n") == output.err.count("\n") == 1


@pytest.mark.parametrize(
    ("level", "line"),
    [("info", "text"), ("warning", "warning: text"), ("error", "error: text")],
)
def test_text_names_the_level(level, line):
    stream = io.StringIO()
    say("event", "text", level=level, stream=stream)
    assert stream.getvalue() == f"{line}\n"
    stream = io.StringIO()
    say("event", "text", level=level, text="other", stream=stream, number=3)
    assert stream.getvalue() == "other\n"


def test_json_has_the_fields_that_programs_rely_on():
    stream = io.StringIO()
    with formatted("json"):
        say(
            *("event", 'a "message"\nof two lines'),
            level="error",
            text="not shown",
            stream=stream,
            path=Path("a/b"),
            count=np.int64(3),
            mean=np.float32(0.5),
            missing=float("nan"),
            values=np.array([1.0, np.inf]),
            nested={"flag": True, "none": None, "names": ("a", "b")},
        )
    (line,) = stream.getvalue().splitlines()
    message = json.loads(line)
    assert datetime.fromisoformat(message.pop("time")).tzinfo is not None
    assert message == {
        "level": "error",
        "event": "event",
        "message": 'a "message"\nof two lines',
        "path": "a/b",
        "count": 3,
        "mean": 0.5,
        "missing": None,
        "values": [1.0, None],
        "nested": {"flag": True, "none": None, "names": ["a", "b"]},
    }


@given(message=st.text(), number=st.floats())
def test_any_message_is_one_line_that_reads_back(message, number):
    line = json_line("event", message, number=number)
    assert len(line.splitlines()) == 1
    values = json.loads(line)
    assert values["message"] == message
    assert values["number"] == (number if np.isfinite(number) else None)


def test_the_format_ends_with_its_block(monkeypatch):
    monkeypatch.delenv(FORMAT_VARIABLE, raising=False)
    show = warnings.showwarning
    with formatted("json"):
        with formatted("text"):
            assert message_format() == "text"
        assert message_format() == "json"
        assert os.environ[FORMAT_VARIABLE] == "json", "so that child processes have it"
        assert warnings.showwarning is not show
    assert message_format() == "text"
    assert FORMAT_VARIABLE not in os.environ
    assert warnings.showwarning is show


def test_warnings_of_python_are_messages(capsys):
    with formatted("json"), warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("something is odd", RuntimeWarning, stacklevel=1)
    message = json.loads(capsys.readouterr().err)
    assert (message["level"], message["message"]) == ("warning", "something is odd")
    assert message["category"] == "RuntimeWarning"
