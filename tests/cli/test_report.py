"""The page from the command line: runs in both modes, unfinished ones, and refusals."""

import json
import re
import shutil
from pathlib import Path

import pytest

from gpn_scale import __version__
from gpn_scale.checked_json import read_checked_json
from gpn_scale.cli.report import main
from gpn_scale.cli.train import main as train
from gpn_scale.page.chart import PNG_SCALE
from precompute.cli import main as precompute
from tests.page.browser import chromium, opened

SMALL = "synthetic:nodes=300,classes=3,features=8,separation=4"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with rows, an exact run, and a minibatch run of these rows."""
    folder = tmp_path_factory.mktemp("runs")
    rows = ["--dataset", SMALL, "--out", str(folder / "store"), "--threads", "1"]
    assert precompute([*rows, "--k", "8", "--clusters", "4", "--steps", "10"]) == 0
    common = ["--dataset", SMALL, "--epochs", "3"]
    assert train([*common, "--out", str(folder / "exact"), "--left-out-classes", "1"]) == 0
    batches = ["--mode", "minibatch", "--ppr", str(folder / "store")]
    assert train([*common, *batches, "--out", str(folder / "minibatch")]) == 0
    return folder


@pytest.fixture
def copy(runs, tmp_path):
    """The exact run, to be damaged."""
    return Path(shutil.copytree(runs / "exact", tmp_path / "run"))


def report(run, *more):
    return main(["--run", str(run), *map(str, more)])


def assert_refused(capsys, run, message, *more):
    assert report(run, *more) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1
    assert re.search(message, errors), errors


def test_training_makes_the_page(runs):
    exact, minibatch = ((runs / run / "report.html").read_text() for run in ("exact", "minibatch"))
    for text in (exact, minibatch):
        assert "left out classes" in text or "unseen class" in text
        assert "What is missing here" not in text
    assert "What do stored rows leave out?" in minibatch
    assert "What do stored rows leave out?" not in exact
    assert (runs / "minibatch" / "plots" / "missing-mass.svg").exists()


def test_a_page_made_again_is_the_same(runs, copy, capsys):
    before = (copy / "report.html").read_text()
    (copy / "report.html").unlink()
    shutil.rmtree(copy / "plots")
    assert report(copy) == 0
    assert f"written: {copy / 'report.html'}" in capsys.readouterr().out
    assert (copy / "report.html").read_text() == before
    minibatch = Path(shutil.copytree(runs / "minibatch", copy.parent / "minibatch"))
    before = (minibatch / "report.html").read_text()
    assert report(minibatch, "--ppr", runs / "store") == 0
    assert (minibatch / "report.html").read_text() == before


def test_rows_that_are_not_found_are_said_to_be_missing(runs, tmp_path):
    run = Path(shutil.copytree(runs / "minibatch", tmp_path / "run"))
    assert report(run) == 0
    assert "What do stored rows leave out?" in (run / "report.html").read_text()
    (run / "inputs.json").unlink()
    assert report(run) == 0
    text = (run / "report.html").read_text()
    assert "run gpn-report with --ppr STORE" in text
    assert "What do stored rows leave out?" not in text


@pytest.mark.parametrize("absent", ["report.json", "model.safetensors"])
def test_an_unfinished_run_has_a_page_of_what_is_there(copy, absent):
    (copy / absent).unlink()
    with (copy / "metrics.jsonl").open("a") as file:
        file.write('{"epoch": 9, "lo')
    assert report(copy) == 0
    text = (copy / "report.html").read_text()
    assert "Training has not finished" in text
    assert "Validation cross-entropy" in text
    (copy / "metrics.jsonl").unlink()
    assert report(copy) == 0
    assert "No epoch is recorded" in (copy / "report.html").read_text()


def test_what_is_no_run_is_refused(tmp_path, capsys):
    assert_refused(capsys, tmp_path, "holds no run: config.json is missing")
    assert_refused(capsys, tmp_path / "nothing", "holds no run")


def changed(path, **values):
    path.write_text(json.dumps(read_checked_json(path) | values))


def test_runs_of_other_versions_are_refused(copy, capsys):
    changed(copy / "report.json", version="0.0.1")
    assert_refused(capsys, copy, "was written by version 0.0.1, this is version .*: train again")
    changed(copy / "report.json", version=None)
    assert_refused(capsys, copy, "was written by version None")
    changed(copy / "config.json", colour="red")
    (copy / "report.json").unlink()
    assert_refused(capsys, copy, "not a configuration of version .*'colour'.*another version")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.json", "{", "config.json cannot be read"),
        ("config.json", "[]", "config.json holds list, expected an object"),
        ("report.json", "nonsense", "report.json is not JSON that can be read"),
        (
            "report.json",
            json.dumps({"version": __version__}),
            "report.json is damaged or of another version",
        ),
        ("report.json", '{"version": "0.1.0"}', "was written by version 0.1.0, this is version"),
        ("metrics.jsonl", '{"epoch": 1}\n', "metrics.jsonl is damaged: its checksum is another"),
        ("model.safetensors", "nonsense", "model.safetensors cannot be read"),
    ],
)
def test_damaged_files_are_refused(copy, capsys, name, content, message):
    (copy / name).write_text(content)
    assert_refused(capsys, copy, message)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"epoch": 1}\n', "metrics.jsonl cannot be read .KeyError"),
        ("5\n", "metrics.jsonl, line 1, is not the record of an epoch"),
    ],
)
def test_damaged_epochs_of_an_unfinished_run_are_refused(copy, capsys, content, message):
    (copy / "report.json").unlink()
    (copy / "metrics.jsonl").write_text(content)
    assert_refused(capsys, copy, message)


def test_another_graph_is_refused(copy, capsys):
    values = read_checked_json(copy / "report.json")
    values["graph"]["fingerprint"] = "another"
    (copy / "report.json").write_text(json.dumps(values))
    assert_refused(
        capsys, copy, "has changed since .* was trained on it: gpn-predict and gpn-triage accept"
    )


def test_rows_of_another_diffusion_are_refused(runs, tmp_path, capsys):
    run = Path(shutil.copytree(runs / "minibatch", tmp_path / "run"))
    assert_refused(capsys, run, "does not exist|no finished store|manifest", "--ppr", tmp_path)


def test_bad_options_give_one_sentence(runs, capsys):
    assert_refused(capsys, runs / "exact", "--threads is 0", "--threads", "0")
    assert_refused(capsys, runs / "exact", "--memory-budget is 0.0", "--memory-budget", "0")


@pytest.mark.slow
def test_charts_are_png_files_too(copy):
    assert report(copy, "--png") == 0
    plots = copy / "plots"
    assert {p.stem for p in plots.glob("*.png")} == {p.stem for p in plots.glob("*.svg")}
    content = (plots / "reliability.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    width = int.from_bytes(content[16:20], "big")
    assert f'viewBox="0 0 {width // PNG_SCALE} ' in (plots / "reliability.svg").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("run", ["exact", "minibatch"])
def test_a_browser_shows_the_page_without_complaint(runs, run):
    with chromium() as browser, opened(browser, runs / run / "report.html") as tab:
        tab.wait_until_drawn()  # by Vega
        assert tab.page.locator("#tip").count() == 1  # the page's own script has run
