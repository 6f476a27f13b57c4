"""What is left out is said once, in the format of the command."""

import json
import sys

from gpn_scale.cli.optional_parts import has_extra
from gpn_scale.messages import formatted


def test_nothing_is_said_about_what_is_installed(capsys):
    assert has_extra("charts", "report.html is not written", "a page")
    assert capsys.readouterr().err == ""


def test_what_is_missing_is_one_line(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    assert not has_extra("charts", "report.html is not written", "a page")
    line = capsys.readouterr().err
    assert line.startswith("report.html is not written, since a page needs the package vl_convert")
    with formatted("json"):
        assert not has_extra("charts", "report.html is not written", "a page")
    message = json.loads(capsys.readouterr().err)
    assert (message["event"], message["extra"]) == ("note", "charts")
