"""Training that starts from the weights of another run, on the command line."""

import json
import re
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest

from gpn_scale.cli import train as training
from gpn_scale.cli.console import Stopped
from gpn_scale.cli.predict import main as predict
from gpn_scale.cli.report import main as report
from gpn_scale.cli.train import main as train
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.npz import write_npz
from gpn_scale.evaluation.metrics import accuracy
from gpn_scale.train.run_directory import RunDirectory
from gpn_scale.triage.promise_file import model_fingerprint
from precompute.cli import main as precompute
from tests.later_graphs import later_graph

SMALL = "synthetic:nodes=300,classes=3,features=8,separation=4"
SETTINGS = ["--set", "encoder.hidden=8", "--set", "encoder.latent=4", "--threads", "1"]
SETTINGS += ["--set", "opinion.epochs=3", "--epochs", "3"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A graph that has changed since a run was trained on it; `old` and `new` are its versions."""
    folder = tmp_path_factory.mktemp("warm")
    graph = load_graph(SMALL)
    write_npz(graph, folder / "old.npz")
    write_npz(later_graph(graph, nodes=30), folder / "new.npz")
    options = ["--dataset", "old", "--data-dir", str(folder), *SETTINGS]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(training, "_write_page", no_page)
        assert train([*options, "--out", str(folder / "run")]) == 0
    return folder


def no_page(*_):
    """Instead of the page of a run, which takes longer than the rest."""


@pytest.fixture
def _without_page(monkeypatch):
    monkeypatch.setattr(training, "_write_page", no_page)


def warm(folder, out, *more):
    return train(["--warm-start", str(folder / "run"), "--out", str(out), "--threads", "1", *more])


def assert_one_sentence(capsys, message):
    errors = capsys.readouterr().err.splitlines()
    assert errors[-1].startswith("error: ")
    assert "Traceback" not in "".join(errors)
    assert re.search(message, errors[-1]), errors


def table_of(run):
    return pq.read_table(run / "predictions.parquet").to_pandas()


@pytest.fixture(scope="module")
def warm_run(folder):
    assert warm(folder, folder / "warm", "--dataset", "new") == 0
    return folder / "warm"


def test_the_configuration_is_that_of_the_earlier_run(folder, warm_run):
    runs = (folder / "run", warm_run)
    before, after = (json.loads((run / "config.json").read_text()) for run in runs)
    assert after["data"]["dataset"] == "new"
    assert after["train"]["warmup_steps"] == 0
    before["data"]["dataset"], before["train"]["warmup_steps"] = "new", 0
    assert after == before


def test_roles_of_nodes_stay_and_new_labels_are_divided(folder, warm_run):
    before, after = table_of(folder / "run"), table_of(warm_run)
    had_label = before["label"].notna().to_numpy()
    old = after[: len(before)]
    assert old["split"][had_label].tolist() == before["split"][had_label].tolist()
    new = after[len(before) :]
    assert set(new["split"]) == {"train", "val", "test"}


def test_the_report_compares_the_same_nodes(folder, warm_run):
    values = json.loads((warm_run / "report.json").read_text())["warm_start"]
    assert values["model"] == model_fingerprint(folder / "run" / "model.safetensors")
    before, after = table_of(folder / "run"), table_of(warm_run)
    marks = before.filter(like="mark_").any(axis=1)
    nodes = np.flatnonzero((before["split"] == "test") & ~marks)
    assert values["nodes"]["test"] == len(nodes)
    for name, table in (("before", before), ("after", after)):
        chosen = table.loc[nodes]
        probabilities = chosen.filter(like="probability_").to_numpy()
        expected = accuracy(probabilities, chosen["label"].to_numpy(int))
        assert values[name]["test"]["accuracy"] == pytest.approx(expected)
    assert "auroc_p_known" in values["before"]["unknown"]
    assert "auroc_p_known" in values["after"]["unknown"]
    text = (warm_run / "report.md").read_text()
    assert "## Compared with the run that training started from" in text
    assert "| test | accuracy |" in text
    assert "started from the weights of" in (warm_run / "report.html").read_text()


def test_later_commands_find_the_split_of_the_run(warm_run, tmp_path, capsys):
    out = tmp_path / "all.parquet"
    assert predict(["--run", str(warm_run), "--out", str(out), "--threads", "1"]) == 0
    assert "later version" not in capsys.readouterr().out
    assert pq.read_table(out).equals(pq.read_table(warm_run / "predictions.parquet"))
    copy = shutil.copytree(warm_run, tmp_path / "copy")
    (copy / "report.html").unlink()
    assert report(["--run", str(copy), "--threads", "1"]) == 0
    assert (copy / "report.html").exists()


@pytest.mark.usefixtures("_without_page")
def test_a_stopped_training_resumes_without_the_earlier_run(
    folder, warm_run, tmp_path, monkeypatch
):
    moved = tmp_path / "moved"
    moved.mkdir()
    for name in ("old.npz", "new.npz"):
        shutil.copy(folder / name, moved / name)
    shutil.copytree(folder / "run", moved / "run")
    options = ["--dataset", "new", "--data-dir", str(moved)]

    def stopped(*_):
        raise Stopped(15)

    with monkeypatch.context() as patched:
        patched.setattr(training, "_run_epochs", stopped)
        assert warm(moved, moved / "warm", *options) == 143
    shutil.rmtree(moved / "run")
    assert train(["--resume", "--out", str(moved / "warm"), "--threads", "1"]) == 0
    expected, got = table_of(warm_run), table_of(moved / "warm")
    assert got.equals(expected)
    values = [json.loads((run / "report.json").read_text()) for run in (warm_run, moved / "warm")]
    assert values[0]["warm_start"]["before"] == values[1]["warm_start"]["before"]
    assert values[0]["warm_start"]["after"] == values[1]["warm_start"]["after"]


@pytest.mark.usefixtures("_without_page")
def test_minibatch_training_goes_on_with_an_updated_store(folder, tmp_path, capsys):
    store, where = str(tmp_path / "store"), ["--data-dir", str(folder)]
    rows = ["--k", "8", "--clusters", "4", "--threads", "1", "--teleport", "0.1", "--steps", "10"]
    assert precompute(["--dataset", "old", *where, *rows, "--out", store]) == 0
    options = ["--dataset", "old", *where, "--mode", "minibatch", "--ppr", store, *SETTINGS]
    assert train([*options, "--model", "GPN", "--out", str(tmp_path / "run")]) == 0
    assert precompute(["update", store, "--dataset", "new", *where, "--threads", "1"]) == 0
    capsys.readouterr()
    assert warm(tmp_path, tmp_path / "warm", "--dataset", "new") == 0
    assert "before (" in capsys.readouterr().out
    inputs = json.loads((tmp_path / "warm" / "inputs.json").read_text())
    assert inputs["ppr"] == store  # the run's own, which fits again
    values = json.loads((tmp_path / "warm" / "report.json").read_text())
    assert values["config"]["model"] == "GPN"
    assert set(values["warm_start"]["after"]) == {"test", "val", "unknown"}


@pytest.mark.usefixtures("_without_page")
def test_another_graph_has_a_split_of_its_own(folder, tmp_path, capsys):
    other = SMALL.replace("nodes=300", "nodes=200")
    assert warm(folder, tmp_path / "warm", "--dataset", other) == 0
    captured = capsys.readouterr()
    assert "is not a later version of the graph of the warm start" in captured.err
    values = json.loads((tmp_path / "warm" / "report.json").read_text())["warm_start"]
    assert values["nodes"] == values["after"] == {}
    assert not RunDirectory(tmp_path / "warm").split.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--dataset", "new", "--set", "encoder.hidden=9"],
            r"encoder\.hidden=8, got .*--warm-start",
        ),
        (["--dataset", "new", "--model", "GPN"], r"trained with model=GPN\+, got model=GPN"),
        (["--dataset", SMALL.replace("classes=3", "classes=4")], "has other classes"),
        (["--dataset", SMALL.replace("features=8", "features=7")], r"other feature columns \(7\)"),
    ],
)
def test_what_does_not_fit_is_refused(folder, tmp_path, capsys, options, message):
    assert warm(folder, tmp_path / "warm", *options) == 2
    assert_one_sentence(capsys, message)
    assert not (tmp_path / "warm" / "config.json").exists()


def test_runs_to_go_on_from_must_be_finished_and_elsewhere(folder, warm_run, tmp_path, capsys):
    assert train(["--warm-start", str(tmp_path), "--out", str(tmp_path / "x")]) == 2
    assert_one_sentence(capsys, "does not hold a finished run: config.json is missing")
    run = str(folder / "run")
    assert train(["--warm-start", run, "--out", run, "--overwrite"]) == 2
    assert_one_sentence(capsys, "is also the run of --warm-start")
    copy = shutil.copytree(folder / "run", tmp_path / "copy")
    assert warm(folder, copy, "--resume") == 2
    assert_one_sentence(capsys, "did not start from the weights of")
    damaged = shutil.copytree(warm_run, tmp_path / "damaged")
    (damaged / "warm_start.json").write_text("{}")
    assert train(["--resume", "--out", str(damaged)]) == 2
    assert_one_sentence(capsys, r"warm_start\.json cannot be read")
    other = shutil.copytree(warm_run, tmp_path / "other")
    shutil.copy(warm_run / "model.safetensors", other / "start.safetensors")
    assert train(["--resume", "--out", str(other)]) == 2
    assert_one_sentence(capsys, "has changed .*: start the training again")
