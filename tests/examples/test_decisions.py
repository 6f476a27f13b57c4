"""The commands of docs/decisions.md, on a smaller bank."""

import csv
import json
import runpy
import shlex
import sys

import pytest

from gpn_scale.cli.import_graph import main as import_graph
from gpn_scale.cli.predict import main as predict
from gpn_scale.cli.report import main as report
from gpn_scale.cli.train import main as train
from gpn_scale.cli.triage import main as triage
from tests.examples import EXAMPLES, example

COMMANDS = {
    "gpn-import": import_graph,
    "gpn-train": train,
    "gpn-predict": predict,
    "gpn-triage": triage,
    "gpn-report": report,
}
PAGE = EXAMPLES.parent / "docs" / "decisions.md"
ACCOUNTS = 2000


def commands_of_the_page():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    return [shlex.split(line) for line in lines if line.startswith(("gpn-", "python "))]


def run(name, arguments):
    """Run a command of the page in this process; few labels can promise little."""
    if name == "python":
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", arguments)
            runpy.run_path(str(EXAMPLES.parent / arguments[0]), run_name="__main__")
        return
    more = {"gpn-train": ["--epochs", "40", "--threads", "1"]}.get(name, [])
    arguments = ["0.6" if each == "0.1" else each for each in arguments]
    assert COMMANDS[name]([*arguments, *more]) == 0, arguments


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    """The folder after all commands but that of the service, which does not end."""
    folder = tmp_path_factory.mktemp("decisions")
    example("bank").write_bank(folder, ACCOUNTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, *arguments in commands_of_the_page():
            if name != "gpn-serve":
                run(name, arguments)
    return folder


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_lists_are_as_long_as_the_page_says(bank):
    assert len(rows_of(bank / "lists" / "review.csv")) == 100
    assert len(rows_of(bank / "lists" / "label_next.csv")) == 50


def test_labelled_accounts_have_50_more_verdicts(bank):
    before, after = (
        sum(bool(row["verdict"]) for row in rows_of(bank / name))
        for name in ("accounts_october.csv", "accounts_labelled.csv")
    )
    assert after == before + 50


def test_promised_answers_abstain_somewhere(bank):
    abstain = {row["abstain"].lower() for row in rows_of(bank / "october.csv")}
    assert abstain <= {"true", "false"}
    assert (bank / "run" / "promise.json").exists()


def test_the_new_country_is_named_in_the_drift(bank):
    drift = json.loads((bank / "drift" / "drift.json").read_text(encoding="utf-8"))
    assert "XK" in json.dumps(drift)
    assert (bank / "drift" / "drift.html").exists()
