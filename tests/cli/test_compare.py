"""Comparisons from the command line: a scored month against training, runs, and refusals."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from gpn_scale.cli.predict import main as predict
from gpn_scale.cli.report import main
from gpn_scale.cli.train import main as train
from gpn_scale.cli.triage import main as triage
from gpn_scale.data.graph_folder import save_graph
from tests.drift.samples import raw_graph

COUNT = 400


def bank(country=None, labels=True, count=COUNT):
    """A graph whose classes depend on the age; nodes of even numbers have labels."""
    changed = {} if country is None else {"country": country}
    age = np.where(np.arange(count) % 4 < 2, 30, 60) + np.arange(count) % 7
    label = [("young" if i % 4 < 2 else "old") if i % 2 == 0 else "" for i in range(count)]
    changed |= {"label": label if labels else [""] * (count - 2) + ["young", "old"]}
    return raw_graph(count, age=age, **changed)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two months of graphs, a run on the first, and tables of the second."""
    folder = tmp_path_factory.mktemp("bank")
    graphs = folder / "graphs"
    save_graph(bank(), graphs / "october")
    strange = np.where(np.arange(COUNT + 50) % 3 == 0, "XK", "DE")
    save_graph(bank(strange, labels=False, count=COUNT + 50), graphs / "november")
    run = ["--dataset", "october", "--data-dir", str(graphs), "--epochs", "20"]
    assert train([*run, "--out", str(folder / "run")]) == 0
    assert train([*run, "--out", str(folder / "run_2"), "--seed", "2"]) == 0
    for name in ("november.parquet", "november.csv"):
        options = ["--run", str(folder / "run"), "--dataset", "november"]
        assert predict([*options, "--out", str(folder / name)]) == 0
    return folder


def compare(a, b, *more):
    return main(["--compare", str(a), str(b), *map(str, more)])


def assert_refused(capsys, message):
    errors = capsys.readouterr().err
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1
    assert re.search(message, errors), errors


def test_a_scored_month_against_training(folder, tmp_path, capsys):
    out = tmp_path / "drift"
    assert compare(folder / "run", folder / "november.parquet", "--out", out) == 0
    text = capsys.readouterr().out
    record = json.loads((out / "drift.json").read_text())
    assert text.startswith(record["verdict"])
    assert record["columns"]["columns"][0]["column"] == "country"
    assert list(record["columns"]["columns"][0]["new_values"]) == ["XK"]
    assert record["most_moved_part"] in (None, "features", "neighbourhood", "opinion")
    assert not any("different models" in each for each in record["reference"])
    assert any("only A has p_labels" in each for each in record["left_out"])
    assert record["nodes"]["joined"] == 50
    split = pq.read_table(folder / "run" / "predictions.parquet")["split"].to_pylist()
    assert record["nodes_a"] == sum(each not in ("train", "val") for each in split)
    assert record["nodes_b"] == record["nodes_a"] + 50
    assert "drift.html" in text
    assert (out / "drift.html").read_text().startswith("<!DOCTYPE html>")
    assert (out / "drift.csv").read_text().startswith('"id","status","movement"')


def test_csv_says_the_same_if_graphs_are_named(folder, tmp_path, capsys):
    assert compare(folder / "run", folder / "november.parquet", "--out", tmp_path / "a") == 0
    graphs = ["--graphs", "october", "november"]
    assert compare(folder / "run", folder / "november.csv", *graphs, "--out", tmp_path / "b") == 0
    a, b = (json.loads((tmp_path / name / "drift.json").read_text()) for name in "ab")
    for name in ("parts", "classes", "columns", "nodes", "verdict"):
        assert a[name] == b[name]
    assert (tmp_path / "a/drift.csv").read_bytes() == (tmp_path / "b/drift.csv").read_bytes()


def test_without_graphs_columns_are_left_out(folder, tmp_path, capsys):
    assert compare(folder / "run", folder / "november.csv") == 0
    output = capsys.readouterr().out
    assert "B does not record its graph" in output
    assert "Add --out FOLDER to write drift.html" in output
    assert compare(folder / "run", folder / "november.parquet", "--data-dir", tmp_path) == 0
    assert "A's graph 'october' is missing" in capsys.readouterr().out
    save_graph(bank(count=300), tmp_path / "october")
    assert compare(folder / "run", folder / "november.parquet", "--data-dir", tmp_path) == 0
    assert "A's graph 'october' has changed" in capsys.readouterr().out


def test_a_run_has_not_moved_against_itself(folder, capsys):
    assert compare(folder / "run", folder / "run") == 0
    assert capsys.readouterr().out.startswith("Nothing has moved beyond what chance explains")


def test_two_runs_are_two_models(folder, capsys):
    assert compare(folder / "run", folder / "run_2") == 0
    assert "predicted by different models" in capsys.readouterr().out


def test_a_promise_tells_which_nodes_are_not_answered(folder, tmp_path, capsys):
    run = Path(shutil.copytree(folder / "run", tmp_path / "run"))
    promise = ["--error-among-answered", "0.4", "--confidence", "0.6", "--label-next", "1"]
    assert triage(["--run", str(run), *promise, "--out", str(tmp_path / "lists")]) == 0
    capsys.readouterr()
    assert compare(run, folder / "november.csv") == 0
    assert "Not answered, by the promise:" in capsys.readouterr().out
    assert compare(run, folder / "run_2") == 0  # a promise holds for its own model alone
    assert "Not answered" not in capsys.readouterr().out


def test_messages_are_json_lines(folder, tmp_path, capsys):
    more = ["--out", tmp_path, "--log-format", "json"]
    assert compare(folder / "run", folder / "november.parquet", *more) == 0
    drift, written = map(json.loads, capsys.readouterr().out.splitlines())
    assert (drift["event"], written["event"]) == ("drift", "written")
    record = json.loads((tmp_path / "drift.json").read_text())
    assert drift["message"] == record["verdict"]
    assert drift["parts"] == record["parts"]
    assert [Path(path).name for path in written["written"]] == [
        "drift.html",
        "drift.json",
        "drift.csv",
    ]


def test_files_are_not_overwritten_by_accident(folder, tmp_path, capsys):
    month = folder / "run", folder / "november.csv"
    assert compare(*month, "--out", tmp_path) == 0
    capsys.readouterr()
    assert compare(*month, "--out", tmp_path) == 2
    assert_refused(capsys, "drift.html already exists: use --overwrite")
    assert compare(*month, "--out", tmp_path, "--overwrite") == 0
    capsys.readouterr()
    assert compare(*month, "--overwrite") == 2
    assert_refused(capsys, "add --out FOLDER")
    (tmp_path / "file").touch()
    assert compare(*month, "--out", tmp_path / "file" / "below") == 2
    assert_refused(capsys, "cannot be created")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "exactly one of them, but neither is given"),
        (["--run", "x", "--compare", "x", "y"], "exactly one of them, but both are given"),
        (["--run", "x", "--out", "y"], "--out only applies to a comparison"),
        (["--run", "x", "--overwrite"], "--overwrite only applies to a comparison"),
        (["--run", "x", "--graphs", "a", "b"], "--graphs only applies to a comparison"),
        (["--compare", "x", "y", "--png"], "--png only applies to the page of a run"),
        (["--compare", "x", "y", "--ppr", "s"], "--ppr only applies to the page of a run"),
        (["--compare", "x", "y"], "x does not exist, expected a run or a table"),
    ],
)
def test_options_that_do_not_go_together(options, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(options) == 2
    assert_refused(capsys, message)


def test_what_cannot_be_compared_is_refused(folder, tmp_path, capsys):
    table = folder / "november.csv"
    (tmp_path / "other.csv").write_text("account,age\n1,2\n")
    (tmp_path / "x.parquet").write_bytes((folder / "november.parquet").read_bytes()[:500])
    (tmp_path / "nothing").mkdir()
    for b, message in (
        (tmp_path / "other.csv", "not a table of predictions: it has no column 'node'"),
        (tmp_path / "x.parquet", "cannot be read as a table of predictions"),
        (tmp_path / "nothing", "holds no run"),
    ):
        assert compare(table, b) == 2
        assert_refused(capsys, message)
    unfinished = Path(shutil.copytree(folder / "run", tmp_path / "run"))
    (unfinished / "predictions.parquet").unlink()
    assert compare(unfinished, table) == 2
    assert_refused(capsys, "has no predictions.parquet, so the run is not finished")
    graphs = ["--graphs", "november", "october"]
    assert compare(folder / "run", table, *graphs) == 2
    assert_refused(capsys, r"graph .october. is not the graph of .*--graphs DATASET_A DATASET_B")
    assert compare(folder / "run", table, "--graphs", "october", "absent") == 2
    assert_refused(capsys, "no dataset 'absent'")


def test_damaged_predictions_of_a_run_are_refused(folder, tmp_path, capsys):
    shutil.copytree(folder / "run", tmp_path / "run")
    path = tmp_path / "run" / "predictions.parquet"
    table = pq.read_table(path)
    place = table.column_names.index("p_known")
    swapped = table.set_column(place, "p_known", table["p_features"])
    pq.write_table(swapped, path)
    assert compare(tmp_path / "run", folder / "run_2") == 2
    assert_refused(capsys, r"predictions.parquet is damaged: its checksum is another one")
