"""`gpn-serve` from the command line: what is refused before anything is served."""

import re
import shutil
import socket

import pytest

from gpn_scale.cli import serve as command
from gpn_scale.cli.serve import main, serve_parser
from gpn_scale.cli.train import main as train
from gpn_scale.serve import server
from gpn_scale.train.run_directory import RunDirectory

SMALL = "synthetic:nodes=150,classes=3,features=6"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run."""
    run = tmp_path_factory.mktemp("trained") / "run"
    options = ["--mode", "exact", "--epochs", "3", "--threads", "1"]
    assert train(["--dataset", SMALL, *options, "--out", str(run)]) == 0
    return run


@pytest.fixture
def own_run(run, tmp_path):
    """A copy of the run that may be changed."""
    return shutil.copytree(run, tmp_path / "own_run")


@pytest.fixture
def served(monkeypatch):
    """What would be served, instead of serving it."""
    requests = []
    monkeypatch.setattr(server, "serve", lambda request, graph: requests.append(request))
    return requests


def assert_one_sentence(capsys, message):
    errors = capsys.readouterr().err
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1
    assert re.search(message, errors), errors


def test_defaults_are_those_of_the_settings(run, served):
    assert main(["--run", str(run)]) == 0
    [request] = served
    assert request.settings.host == "127.0.0.1"
    assert request.settings.token is None
    assert request.settings.max_body == 8_000_000
    assert request.decisions == run / "decisions.jsonl"
    assert request.source.folder == run / "served"
    assert request.source.store is None
    assert request.source.load_graph().num_nodes == 150
    assert request.threads == 1


def test_options_reach_the_settings(run, served, tmp_path):
    token = tmp_path / "token"
    token.write_text("0123456789abcdef\n")
    options = ["--host", "0.0.0.0", "--token-file", str(token), "--max-body", "1KB"]
    options += ["--max-nodes", "5", "--max-new-nodes", "6", "--request-seconds", "7"]
    options += ["--workers", "2", "--decisions", str(tmp_path / "d.jsonl"), "--port", "0"]
    assert main(["--run", str(run), *options]) == 0
    settings = served[0].settings
    assert (settings.host, settings.token) == ("0.0.0.0", "0123456789abcdef")
    assert (settings.max_body, settings.max_nodes, settings.max_new_nodes) == (1000, 5, 6)
    assert (settings.request_seconds, settings.workers, settings.port) == (7.0, 2, 0)
    assert served[0].decisions == tmp_path / "d.jsonl"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--host", "0.0.0.0"], r"a token is needed.*--token-file FILE"),
        (["--port", "70000"], r"expected 0 to 65535.*--port PORT"),
        (["--max-body", "much"], r"expected a size such as 8MB.*--max-body SIZE"),
        (["--workers", "0"], r"workers is 0.*--workers W"),
        (["--threads", "0"], "--threads is 0"),
        (["--request-seconds", "0"], "--request-seconds S"),
        (["--token-file", "absent"], r"absent cannot be read.*--token-file FILE"),
    ],
)
def test_wrong_options_are_one_sentence(run, served, options, message, capsys):
    assert main(["--run", str(run), *options]) == 2
    assert_one_sentence(capsys, message)
    assert not served


def test_an_unfinished_run_is_refused(own_run, served, capsys):
    RunDirectory(own_run).report.unlink()
    assert main(["--run", str(own_run)]) == 2
    assert_one_sentence(capsys, "is not finished")


def test_a_run_whose_graph_is_gone_is_refused(own_run, served, capsys):
    config = RunDirectory(own_run).config
    config.write_text(config.read_text().replace(SMALL, "gone"))
    assert main(["--run", str(own_run)]) == 2
    assert_one_sentence(capsys, "gone")


def test_a_port_in_use_is_refused(run, capsys):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        assert main(["--run", str(run), "--port", str(other.getsockname()[1])]) == 2
    assert_one_sentence(capsys, r"cannot be used \(Address already in use\).*--port PORT")


def test_decisions_of_another_run_are_refused(own_run, capsys):
    decisions = own_run / "decisions.jsonl"
    decisions.write_text('{"gpn_scale_decisions": 1, "run": "other", "graph": "shop"}\n')
    assert main(["--run", str(own_run), "--port", "0"]) == 2
    assert_one_sentence(capsys, r"decisions about another run \(graph 'shop'\).*--decisions FILE")
    assert not (own_run / "served").exists()


def test_a_store_that_does_not_fit_is_refused(own_run, tmp_path, capsys):
    assert main(["--run", str(own_run), "--port", "0", "--ppr", str(tmp_path)]) == 2
    assert_one_sentence(capsys, "is not a PPR store")


def test_a_folder_elsewhere_is_used_if_the_run_is_read_only(own_run, monkeypatch, capsys):
    monkeypatch.setattr(command.os, "access", lambda *_: False)
    folder = command._folder(RunDirectory(own_run))
    assert folder.name.startswith("gpn_served_")
    assert "is read-only" in capsys.readouterr().err
    folder.rmdir()


def test_files_of_the_service_are_removed_with_the_run_and_decisions_are_kept(own_run, served):
    assert main(["--run", str(own_run)]) == 0
    directory = RunDirectory(own_run)
    directory.served.mkdir()
    (directory.served / "key.arrow").write_text("")
    directory.decisions.write_text("mine")
    options = ["--mode", "exact", "--epochs", "1", "--threads", "1", "--overwrite"]
    assert train(["--dataset", SMALL, *options, "--out", str(own_run)]) == 0
    assert not directory.served.exists()
    assert directory.decisions.read_text() == "mine"


def test_help_has_every_limit():
    text = serve_parser().format_help()
    for flag in ("--max-body", "--max-nodes", "--max-new-nodes", "--request-seconds"):
        assert flag in text
