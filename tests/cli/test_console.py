"""Exit codes, signals and the summary of a run."""

import errno
import os
import re
import signal
from types import SimpleNamespace

import pytest

from gpn_scale.cli.console import Stopped, exit_code_of, print_summary, stop_requests
from gpn_scale.errors import ConfigError, ElsewhereError
from gpn_scale.evaluation.report import Report
from gpn_scale.train.run_directory import RunDirectory


def raising(error):
    def run():
        raise error

    return run


def test_bad_input_is_one_sentence_with_the_flags_to_change(capsys):
    error = ConfigError("k is 0, expected at least 1", arguments=("k",))
    assert exit_code_of(raising(error)) == 2
    assert capsys.readouterr().err == (
        "error: k is 0, expected at least 1 (on the command line: --k K)\n"
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [(ElsewhereError("rank 1 stopped"), 2), (Stopped(15), 143), (KeyboardInterrupt(), 130)],
)
def test_other_ends_have_a_code_and_say_nothing(capsys, error, code):
    assert exit_code_of(raising(error)) == code
    assert capsys.readouterr().err == ""


def test_errors_of_the_machine_are_one_sentence(capsys):
    error = OSError(errno.EROFS, "Read-only file system", "run/config.json")
    assert exit_code_of(raising(error)) == 2
    assert capsys.readouterr().err == (
        "error: run/config.json: Read-only file system: choose a folder that can be written\n"
    )


def test_success_is_zero_and_other_errors_are_not_hidden():
    assert exit_code_of(lambda: None) == 0
    with pytest.raises(ZeroDivisionError):
        exit_code_of(raising(ZeroDivisionError()))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_first_signal_is_a_request_and_a_second_one_ends(number):
    before = signal.getsignal(number)
    with stop_requests() as stop:
        assert stop() is None
        os.kill(os.getpid(), number)
        assert stop() == number
        with pytest.raises(Stopped):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before


TEST = {"accuracy": 0.912, "accuracy_largest_class": 0.75, "ece": 0.034}
INTERVALS = {"accuracy": [0.9, 0.95], "ece": [0.0, 0.0512]}


def summary_of(
    tmp_path, capsys, intervals=INTERVALS, left_out=(), ood=None, ood_intervals=None, **more
):
    facts = {
        "dataset": "mine",
        "graph": {"nodes": 1234},
        "epochs": 7,
        "seconds": {"train": 1.0, "inference": 0.5},
        "metrics": {"test": TEST},
        "intervals": {"test": intervals, "ood": ood_intervals or {}},
        "ood": ood or {},
        "warnings": ["Expect wide intervals."] if left_out else [],
        "left_out": list(left_out),
        "warm_start": {},
        **more,
    }
    report: Report = SimpleNamespace(**facts)
    directory = RunDirectory(tmp_path)
    directory.model.touch()
    print_summary(report, directory)
    return capsys.readouterr().out


def test_the_summary_tells_what_a_warm_start_has_changed(tmp_path, capsys):
    change = {
        "run": "runs/october",
        "model": "4f",
        "nodes": {"test": 120},
        "before": {"test": {"accuracy": 0.81}},
        "after": {"test": {"accuracy": 0.845}},
    }
    text = summary_of(tmp_path, capsys, warm_start=change)
    assert "before (runs/october) and after, on the same nodes:" in text
    assert re.search(r"test accuracy +81\.0 % -> 84\.5 %", text)
    text = summary_of(tmp_path, capsys, warm_start=change | {"nodes": {}, "after": {}})
    assert "on the same nodes:\n  nothing" in text


def test_the_summary_names_results_and_files(tmp_path, capsys):
    text = summary_of(tmp_path, capsys)
    assert "mine: 1,234 nodes, 7 epochs, 1.0 s training, 0.50 s inference" in text
    assert "test accuracy            91.2 % (95 % interval: 90.0 to 95.0 %)" in text
    assert "always largest class   75.0 %" in text
    assert "calibration error (ECE)  3.4 % (95 % interval: 0.0 to 5.1 %)" in text
    assert text.endswith(f"written:\n  {tmp_path / 'model.safetensors'}\n")
    assert "AUC-ROC" not in text
    assert "too few" not in text


def test_the_summary_leaves_out_what_rests_on_few_nodes(tmp_path, capsys):
    text = summary_of(tmp_path, capsys, {"accuracy": [0.1, 1.0]}, ["Curves are not drawn."])
    assert "calibration error (ECE)  n.a." in text
    assert "not shown, because of too few nodes:\n  Curves are not drawn.\n" in text
    assert "few labelled nodes:\n  Expect wide intervals.\n" in text


def test_the_summary_has_a_line_per_set_of_unknown_nodes(tmp_path, capsys):
    scores = ("aleatoric", "epistemic", "epistemic_no_network")
    values = {f"auroc_{score}": 0.5 + i / 10 for i, score in enumerate(scores)}
    marks = {name: values | {"ood_nodes": 12} for name in ("left_out_classes", "odd")}
    ends = {f"auroc_{score}": [0.25, 0.75] for score in scores[:2]}
    intervals = {"id_accuracy": [0.7, 0.9], "marks": {"left_out_classes": ends, "odd": {}}}
    ood = {"id_accuracy": 0.8, "marks": marks}
    text = summary_of(tmp_path, capsys, ood=ood, ood_intervals=intervals)
    assert "accuracy on known nodes  80.0 % (95 % interval: 70.0 to 90.0 %)" in text
    lines = [line.split() for line in text.splitlines()]
    (line,) = ["".join(parts) for parts in lines if parts[:2] == ["left", "out"]]
    assert line == "leftoutclasses1250.0%(25to75)60.0%(25to75)n.a."
    assert ["odd", "12", "n.a.", "n.a.", "n.a."] in lines
