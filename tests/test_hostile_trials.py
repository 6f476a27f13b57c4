"""The trials of benchmarks/hostile_trials.py: some of them, and that each bad outcome is seen."""

import faulthandler
import importlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]


def test_trials_end_as_promised():
    """A small part of the trials; `python benchmarks/hostile_trials.py` runs 5,000."""
    command = [sys.executable, "benchmarks/hostile_trials.py", "--quick", "--trials", "260"]
    done = subprocess.run(
        [*command, "--processes", "1", "--seconds", "120", "--seed", "3"],
        cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    sections, trials, promised, *bad = done.stdout.splitlines()[-1].strip("| ").split(" | ")
    assert sections == "all"
    assert int(trials) == int(promised) > 100
    assert set(bad) == {"0"}


@pytest.fixture
def parts(monkeypatch):
    """The modules of the trials, by name."""
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks"))
    names = ("runner", "judge", "trial", "commands")
    return {name: importlib.import_module(f"hostile.{name}") for name in names}


@pytest.fixture
def outcome(parts, tmp_path):
    """Run a function in the place of a command; return the outcome of this trial."""
    (tmp_path / "workshop").mkdir()
    commands = {"none": parts["commands"].Command(None, ("-c", "pass"), None)}
    runner = parts["runner"].Runner(tmp_path / "workshop", commands, 1, 1.5)

    def run(call, **settings):
        settings["job"] = parts["trial"].Job(command="none", arguments=(), uses=())
        trial = parts["trial"].Trial(section="s", number=0, call=call, **settings)
        (ending,) = runner.run([trial])
        return parts["judge"].judged(ending, {"x": "1"}).outcome

    yield run
    assert os.listdir(tmp_path) == ["workshop"]


def say(text, code=2):
    def call(_):
        os.write(2, f"{text}\n".encode())
        return code

    return call


def crash(_):
    faulthandler.disable()  # pytest's, which prints pages
    os.kill(os.getpid(), signal.SIGSEGV)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda _: 0, "as promised"),
        (say("error: k is 0, expected at least 1"), "as promised"),
        (say("train.py: error: argument --k: invalid int value"), "as promised"),
        (lambda _: os.mkdir("CANARY") or 0, "code runs"),
        (crash, "crash"),
        (lambda _: time.sleep(60), "hang"),
        (lambda _: 1 // 0, "traceback"),
        (lambda _: 1, "traceback"),
        (say("error: x (y): this is a bug in gpn_scale", 1), "traceback"),
        (lambda _: 2, "unclear"),
        (say("error: no"), "unclear"),
        (say("error: one sentence about it\nerror: another one about it"), "unclear"),
        (say("error: one sentence about it\nand one more line"), "unclear"),
        (lambda _: 3, "unclear"),
        (say("\x1b[2J", 0), "unclear"),
        (lambda _: os._exit(0), "as promised"),
    ],
)
def test_each_outcome_is_seen(outcome, call, expected):
    assert outcome(call) == expected


def test_other_results_are_silent_unless_a_warning_tells(outcome):
    assert outcome(lambda _: 0, is_compared=True) == "silent"
    assert outcome(say("warning: a file was made again", 0), is_compared=True) == "as promised"
    assert outcome(lambda _: 0, check=lambda folder: "a file was removed") == "silent"


def test_a_trial_that_is_broken_itself_is_no_success(outcome):
    assert outcome(lambda _: 0, prepare=lambda folder: 1 // 0) == "unclear"


def test_the_same_seed_draws_the_same_trials(parts):
    trials = importlib.import_module("hostile.file_trials")
    first, again, longer = (trials.file_trials({}, 7, count) for count in (50, 50, 80))
    described = [[(each.job, each.note) for each in drawn] for drawn in (first, again, longer)]
    assert described[0] == described[1] == described[2][:50]
    assert described[0] != [(each.job, each.note) for each in trials.file_trials({}, 8, 50)]
