"""What docs/commands.md promises of every command: exit codes, messages, and files of a run."""

import json
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import precompute.cli
from gpn_scale.cli import evaluate, import_graph, predict, report, serve, train, triage
from gpn_scale.errors import ConfigError
from gpn_scale.messages import FORMAT_VARIABLE
from gpn_scale.train.run_directory import RunDirectory

REPOSITORY = Path(__file__).parents[1]
DOCUMENT = (REPOSITORY / "docs" / "commands.md").read_text()
SMALL = "synthetic:nodes=150,classes=4,unseen_classes=0,features=6"
TABLES = ["--nodes", "n.csv", "--edges", "e.csv", "--out", "graphs/g"]
MODULES = {
    "import": (import_graph, "import_graph", TABLES),
    "train": (train, "train", ["--out", "out"]),
    "predict": (predict, "predict", ["--run", "out", "--out", "x.csv"]),
    "triage": (triage, "triage", ["--run", "out", "--out", "lists"]),
    "report": (report, "report", ["--run", "out"]),
    "serve": (serve, "serve", ["--run", "out"]),
    "evaluate": (evaluate, "evaluate", ["--out", "out"]),
    "precompute": (precompute.cli, "_ppr", ["--out", "out"]),
    "precompute finish": (precompute.cli, "_finish", ["out"]),
    "precompute info": (precompute.cli, "_info", ["out"]),
    "precompute verify": (precompute.cli, "_verify", ["out"]),
}
"""Module of each command, the function that does its work, and arguments that can be parsed."""
BAD_INPUT = {
    "train": ["--out", "out", "--dataset", "absent"],
    "predict": ["--run", "absent", "--out", "x.csv"],
    "triage": ["--run", "absent", "--out", "lists"],
    "report": ["--run", "absent"],
    "serve": ["--run", "absent"],
    "evaluate": ["--out", "out", "--models", "absent"],
    "precompute": ["--out", "out", "--k", "0"],
    "precompute finish": ["absent"],
    "precompute info": ["absent"],
}
"""Arguments that are refused with one sentence.

`import` lists all faults of its tables; `verify` has a code of its own for a store that is absent.
"""
EVERY_COMMAND = pytest.mark.parametrize("command", MODULES)


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def arguments_of(command, *arguments):
    return [*command.split()[1:], *arguments]


def run(command, *arguments):
    return MODULES[command][0].main(arguments_of(command, *arguments))


def exit_code(command, *arguments):
    with pytest.raises(SystemExit) as ended:
        run(command, *arguments)
    return ended.value.code


def replace_work(monkeypatch, command, work):
    module, name, _ = MODULES[command]
    monkeypatch.setattr(module, name, work)


def raising(error):
    def work(_):
        raise error

    return work


@EVERY_COMMAND
def test_help_is_0_and_names_the_format_of_messages(command, capsys):
    assert exit_code(command, "--help") == 0
    assert "--log-format" in capsys.readouterr().out


@EVERY_COMMAND
@pytest.mark.parametrize("kind", ["text", "json"])
def test_an_option_that_does_not_exist_is_2(command, kind, capsys):
    assert exit_code(command, "--no-such-option", "--log-format", kind) == 2
    errors = capsys.readouterr().err
    assert "Traceback" not in errors
    if kind == "json":
        assert json.loads(errors)["level"] == "error"


def test_a_store_that_is_damaged_or_not_there_is_1(capsys):
    assert run("precompute verify", "absent") == 1
    output = capsys.readouterr()
    assert output.err.startswith("absent is not a PPR store")
    assert output.out == "absent: 1 problem(s)\n"
    assert "to repair" not in output.err


@pytest.mark.parametrize("command", BAD_INPUT)
def test_bad_input_is_2_and_one_sentence(command, capsys):
    assert run(command, *BAD_INPUT[command]) == 2
    output = capsys.readouterr()
    errors = output.err.splitlines()
    assert errors[-1].startswith("error: ")
    assert "Traceback" not in output.err
    assert run(command, *BAD_INPUT[command], "--log-format", "json") == 2
    message = json.loads(capsys.readouterr().err.splitlines()[-1])
    assert (message["level"], message["event"]) == ("error", "error")
    assert f"error: {message['message']}" == errors[-1]
    assert isinstance(message["arguments"], list)


@EVERY_COMMAND
def test_an_error_of_the_library_names_arguments_and_flags(command, capsys, monkeypatch):
    replace_work(monkeypatch, command, raising(ConfigError("k is bad", arguments=("k",))))
    assert run(command, *MODULES[command][2], "--log-format", "json") == 2
    message = json.loads(capsys.readouterr().err)
    assert message["message"] == "k is bad (on the command line: --k K)"
    assert message["arguments"] == ["k"]


@EVERY_COMMAND
def test_a_fault_is_1(command, capsys, monkeypatch):
    replace_work(monkeypatch, command, raising(ZeroDivisionError("a fault")))
    assert run(command, *MODULES[command][2]) == 1
    error = capsys.readouterr().err
    assert "a fault" in error
    assert "Traceback" not in error
    assert run(command, *MODULES[command][2], "--log-format", "json") == 1
    message = json.loads(capsys.readouterr().err)
    assert (message["level"], message["event"]) == ("error", "fault")


@EVERY_COMMAND
def test_ctrl_c_is_130(command, capsys, monkeypatch):
    replace_work(monkeypatch, command, raising(KeyboardInterrupt()))
    assert run(command, *MODULES[command][2]) == 128 + signal.SIGINT
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.slow
@EVERY_COMMAND
def test_sigterm_is_143_as_a_shell_shows_it(command):
    module, name, arguments = MODULES[command]
    code = (
        f"import sys, time\nimport {module.__name__} as command\n"
        "def work(_):\n    print('working', flush=True)\n    time.sleep(600)\n"
        f"command.{name} = work\nsys.exit(command.main(sys.argv[1:]))"
    )
    words = [sys.executable, "-c", code, *arguments_of(command, *arguments)]
    with subprocess.Popen(words, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "working\n"
        process.send_signal(signal.SIGTERM)
        code = process.wait()
    assert (128 - code if code < 0 else code) == 128 + signal.SIGTERM


def messages(text):
    return [json.loads(line) for line in text.splitlines()]


def test_every_line_of_every_command_is_json(capsys):
    kind = ["--log-format", "json"]
    Path("nodes.txt").write_text("3\n5\n")
    Path("n.csv").write_text("id,label,size\na,x,1\nb,y,2\nc,x,4\n")
    Path("e.csv").write_text("source,target\na,b\nb,c\n")
    minibatch = ["--mode", "minibatch", "--epochs", "2", "--dataset", SMALL]
    matrix = ["--datasets", SMALL, "--models", "LP", "--splits", "1", "--inits", "1"]
    calls = {
        "import": TABLES,
        "train": [*minibatch, "--out", "run"],
        "predict": ["--run", "run", "--out", "x.csv", "--nodes", "nodes.txt"],
        "triage": ["--run", "run", "--out", "lists", "--review", "3", "--label-next", "2"],
        "report": ["--run", "run"],
        "evaluate": ["--out", "matrix", *matrix, "--experiment", "clean"],
        "precompute": ["--dataset", SMALL, "--k", "8", "--out", "rows", "--part", "1/1"],
        "precompute finish": ["rows"],
        "precompute info": ["rows"],
        "precompute verify": ["rows"],
    }
    results = {
        **{"import": ["graph", "written", "next"], "train": ["labels", "summary"]},
        **{"predict": ["nodes", "written"], "report": ["written"]},
        "triage": ["review", "label_next", "written"],
        **{"evaluate": ["tables"], "precompute": ["part"], "precompute info": ["store"]},
        "precompute finish": ["store"],
        "precompute verify": ["verified"],
    }
    # The service answers until it is stopped: tests/serve/test_server.py reads its lines.
    assert calls.keys() == MODULES.keys() - {"serve"}
    events = set()
    for command, arguments in calls.items():
        assert run(command, *arguments, *kind) == 0
        output = capsys.readouterr()
        assert [message["event"] for message in messages(output.out)] == results[command]
        for message in messages(output.out) + messages(output.err):
            assert {"time", "level", "event", "message"} <= message.keys()
            events.add(message["event"])
    assert events == {"progress", "rows", *(name for names in results.values() for name in names)}
    for event in events:
        assert f"| `{event}` |" in DOCUMENT


def test_numbers_of_a_training_are_fields(capsys):
    assert (
        run("train", "--dataset", SMALL, "--epochs", "3", "--out", "run", "--log-format=json") == 0
    )
    output = capsys.readouterr()
    labels, summary = messages(output.out)
    assert all(len(counts) == 3 for counts in labels["labels"].values())
    report_file = json.loads(Path("run/report.json").read_text())
    assert summary["test"]["accuracy"] == report_file["metrics"]["test"]["accuracy"]
    assert summary["seconds"] == report_file["seconds"]
    assert "run/model.safetensors" in summary["written"]
    epochs = [message for message in messages(output.err) if message.get("unit") == "epoch"]
    assert epochs
    assert {"loss", "val_accuracy", "best_epoch", "done", "total"} <= epochs[-1].keys()


def test_the_page_names_every_command_code_variable_and_file():
    scripts = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["scripts"]
    for name in scripts:
        assert f"| `{name}` |" in DOCUMENT
    for code in ("0", "1", "2", "128 + n"):
        assert f"| {code} |" in DOCUMENT
    assert f"`{FORMAT_VARIABLE}`" in DOCUMENT
    directory = RunDirectory(Path("run"))
    for file in (*directory.files, directory.graph, directory.store):
        assert f"`{file.name}`" in DOCUMENT
    for line in re.findall(r"^\{.*\}$", DOCUMENT, re.MULTILINE):
        assert json.loads(line)
