"""Lists from the command line: what is written and printed, the promise, and refusals."""

import csv
import json
import os
import re
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gpn_scale.checked_json import read_checked_json, write_checked_json
from gpn_scale.cli import triage as command
from gpn_scale.cli.predict import main as predict
from gpn_scale.cli.train import main as train
from gpn_scale.cli.triage import list_lines, main
from gpn_scale.data.building import build_graph
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph import Split
from gpn_scale.data.npz import write_npz

SMALL = "synthetic:nodes=300,classes=3,features=8,separation=4"
OPTIONS = ["--mode", "exact", "--epochs", "15", "--threads", "1"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run."""
    run = tmp_path_factory.mktemp("trained") / "run"
    assert train(["--dataset", SMALL, *OPTIONS, "--out", str(run)]) == 0
    return run


@pytest.fixture
def own_run(run, tmp_path):
    """A copy of the run that may be changed."""
    return shutil.copytree(run, tmp_path / "own_run")


def triage(run, out, *more):
    return main(["--run", str(run), "--out", str(out), "--threads", "1", *more])


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def assert_one_sentence(capsys, message):
    errors = capsys.readouterr().err
    errors = errors[errors.index("error: ") :]  # a bar of progress may come first
    assert errors.count("\n") == 1
    assert "Traceback" not in errors
    assert re.search(message, errors), errors


def test_both_lists_are_written_and_their_beginnings_printed(run, tmp_path, capsys):
    out = tmp_path / "new" / "lists"
    assert triage(run, out, "--review", "12", "--label-next", "4") == 0
    review, label_next = rows_of(out / "review.csv"), rows_of(out / "label_next.csv")
    assert (len(review), len(label_next)) == (12, 4)
    assert all(row["reason"] and row["evidence_from"] for row in review)
    table = pq.read_table(run / "predictions.parquet").to_pylist()
    for row in review:
        predicted = table[int(row["id"])]
        assert predicted["split"] not in ("train", "val")
        assert float(row["p_known"]) == pytest.approx(predicted["p_known"])
        assert int(row["predicted_class"]) == predicted["predicted_class"]
    for row in label_next:
        assert table[int(row["id"])]["label"] is None
    lines = capsys.readouterr().out.splitlines()
    first = lines.index("least trusted:")
    assert lines[first + 1].split()[:3] == ["id", "predicted", "class"]
    assert lines[first + 2].split()[0] == review[0]["id"]
    assert lines[first + 12] == "  ... and 2 more in the file"
    assert lines[-3:] == ["written:", f"  {out / 'review.csv'}", f"  {out / 'label_next.csv'}"]
    assert not (run / "promise.json").exists()


def test_lists_are_replaced_only_when_that_is_wanted(run, tmp_path, capsys):
    few = ["--review", "2", "--label-next", "1"]
    assert triage(run, tmp_path, *few) == 0
    assert triage(run, tmp_path, *few) == 2
    assert_one_sentence(capsys, "review.csv already exists: use --overwrite to replace it")
    assert triage(run, tmp_path, *few, "--overwrite") == 0


def test_a_folder_that_another_call_removes_is_made_again(run, tmp_path, monkeypatch):
    out, real = tmp_path / "new", command.store_of

    def removed(*arguments):
        out.rmdir()
        return real(*arguments)

    monkeypatch.setattr(command, "store_of", removed)
    assert triage(run, out) == 0
    assert sorted(path.name for path in out.iterdir()) == ["label_next.csv", "review.csv"]


def test_a_promise_is_kept_in_the_run_and_predictions_abstain(own_run, tmp_path, capsys):
    promise = ["--error-among-answered", "0.2", "--confidence", "0.8"]
    assert triage(own_run, tmp_path / "lists", "--review", "5", *promise) == 0
    printed = capsys.readouterr().out
    assert "promise: with a confidence of 80 %, at most 20 % of the answered nodes" in printed
    assert "It does not hold for nodes of other classes" in printed
    assert f"  {own_run / 'promise.json'}" in printed
    values = json.loads((own_run / "promise.json").read_text())
    assert predict(["--run", str(own_run), "--out", str(tmp_path / "p.parquet")]) == 0
    assert "Do not use predictions whose column abstain is true" in capsys.readouterr().out
    table = pq.read_table(tmp_path / "p.parquet")
    classes = [name for name in table.column_names if re.fullmatch(r"probability_\d", name)]
    probability = np.stack([table[name].to_numpy() for name in classes]).max(0)
    trust = probability * np.sqrt(table["p_known"].to_numpy().astype(float))
    assert table["abstain"].to_pylist() == (trust < values["threshold"]).tolist()
    test = np.array(table["split"].to_pylist()) == "test"
    marked = np.any([table[n].to_numpy() for n in table.column_names if n.startswith("mark_")], 0)
    answered = test & ~marked & ~np.array(table["abstain"].to_pylist())
    assert answered.sum() == values["answered_nodes"]


def test_training_again_removes_a_promise(own_run, tmp_path):
    assert triage(own_run, tmp_path, "--error-among-answered", "0.2", "--confidence", "0.8") == 0
    assert train(["--dataset", SMALL, *OPTIONS, "--overwrite", "--out", str(own_run)]) == 0
    assert not (own_run / "promise.json").exists()


def test_a_promise_of_another_run_is_refused(own_run, tmp_path, capsys):
    assert triage(own_run, tmp_path, "--error-among-answered", "0.2", "--confidence", "0.8") == 0
    path = own_run / "promise.json"
    write_checked_json(path, read_checked_json(path) | {"model": "0" * 32})
    capsys.readouterr()
    assert predict(["--run", str(own_run), "--out", str(tmp_path / "p.parquet")]) == 2
    assert_one_sentence(capsys, "promise.json is a promise for another model than")


def test_predictions_of_another_run_do_not_matter(run, own_run, tmp_path):
    table = pq.read_table(own_run / "predictions.parquet")
    pq.write_table(table.slice(10), own_run / "predictions.parquet")
    for each, out in ((run, "a"), (own_run, "b")):
        assert triage(each, tmp_path / out, "--review", "5", "--label-next", "2") == 0
    for name in ("review.csv", "label_next.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--review", "5000"],
            r"review is 5,000, expected 0 to \d+, the number of nodes outside training and "
            r"validation \(on the command line: --review N\)",
        ),
        (["--review", "-1"], "review is -1, expected 0 to"),
        (["--label-next", "301"], r"label_next is 301, .* \(on the command line: --label-next B\)"),
        (
            ["--error-among-answered", "1.5"],
            "error_among_answered is 1.5, expected a number between 0 and 1",
        ),
        (
            ["--error-among-answered", "0.001"],
            r"needs at least 2,302, even if none of them is wrong: label more nodes .*"
            r"\(on the command line: --error-among-answered E, --confidence C\)",
        ),
        (["--ppr", "nowhere"], "nowhere is not a PPR store"),
        (["--threads", "0"], "threads"),
    ],
)
def test_bad_options_are_refused(run, tmp_path, capsys, options, message):
    assert triage(run, tmp_path / "lists", *options) == 2
    assert_one_sentence(capsys, message)
    assert not list(tmp_path.rglob("*.csv"))


def test_a_graph_without_labels_to_spare_gets_no_promise(tmp_path, capsys):
    rng = np.random.default_rng(1)
    labels = np.full(200, -1)
    labels[:60] = rng.integers(2, size=60)
    features = rng.normal(size=(200, 4)) + labels[:, None]
    split = Split(train=np.arange(20), val=np.arange(20, 60), test=np.array([], np.int64))
    graph = build_graph(*rng.integers(200, size=(2, 400)), labels=labels, features=features)
    write_npz(graph.with_split(split), tmp_path / "mine.npz")
    options = ["--dataset", "mine", "--data-dir", str(tmp_path), "--set", "split.kind=public"]
    assert train([*options, *OPTIONS, "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    assert triage(tmp_path / "run", tmp_path / "lists", "--error-among-answered", "0.05") == 2
    assert_one_sentence(capsys, "the graph has 0 labelled test nodes, .* needs at least 45")
    assert triage(tmp_path / "run", tmp_path / "lists") == 0
    assert len(rows_of(tmp_path / "lists" / "review.csv")) == 140


def test_a_run_whose_graph_is_gone_or_has_changed_is_refused(tmp_path, capsys):
    write_npz(load_graph(SMALL), tmp_path / "mine.npz")
    options = ["--dataset", "mine", "--data-dir", str(tmp_path), *OPTIONS]
    assert train([*options, "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    write_npz(load_graph(SMALL.replace("nodes=300", "nodes=301")), tmp_path / "mine.npz")
    assert triage(tmp_path / "run", tmp_path / "lists") == 2
    assert_one_sentence(capsys, "mine in .* is not the graph that .*run was trained on")
    (tmp_path / "mine.npz").unlink()
    assert triage(tmp_path / "run", tmp_path / "lists") == 2
    assert_one_sentence(capsys, "mine")


def test_no_run_and_an_unfinished_one_are_refused(own_run, tmp_path, capsys):
    assert triage(tmp_path / "nothing", tmp_path / "lists") == 2
    assert_one_sentence(capsys, "nothing holds no run")
    (own_run / "report.json").unlink()
    assert triage(own_run, tmp_path / "lists") == 2
    assert_one_sentence(capsys, "own_run is not finished: continue it with gpn-train --resume")


def test_a_folder_that_cannot_be_made_is_refused(run, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert triage(run, tmp_path / "file" / "lists") == 2
    assert_one_sentence(capsys, "cannot be created")


def test_a_folder_that_cannot_be_written_is_refused(run, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert triage(run, tmp_path) == 2
    assert_one_sentence(capsys, "is not writable: choose another folder")


def test_a_gpn_works_with_what_it_has(tmp_path, capsys):
    assert (
        train(["--dataset", SMALL, "--model", "GPN", *OPTIONS, "--out", str(tmp_path / "r")]) == 0
    )
    capsys.readouterr()
    assert triage(tmp_path / "r", tmp_path / "lists", "--review", "3", "--label-next", "2") == 0
    assert "note: The model has no p-values" in capsys.readouterr().out
    review = rows_of(tmp_path / "lists" / "review.csv")
    assert [row["p_known"] for row in review] == [""] * 3
    assert all(row["reason"] for row in review)


def test_printed_tables_are_aligned_and_show_marks_as_escapes():
    table = pa.table({"id": ["a\u202eb\x1b[31m", "c" * 60], "p_known": [0.12345, None]})
    lines = list_lines(table)
    assert lines[0].split() == ["id", "p", "known"]
    assert lines[1].split() == ["a\\u202eb\\x1b[31m", "0.123"]
    assert lines[2].split() == ["c" * 39 + "…", "-"]
    assert lines[1].index("0.123") == lines[2].index("-") == lines[0].index("p known")
