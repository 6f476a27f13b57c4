"""Prediction from the command line: all nodes, some with reasons, and refusals."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gpn_scale import predictor
from gpn_scale.cli.predict import _print_nodes, main
from gpn_scale.cli.report import main as report
from gpn_scale.cli.train import main as train
from gpn_scale.data.building import build_graph
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph_folder import save_graph
from gpn_scale.data.npz import write_npz
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.evaluation.table_writers import table_facts
from gpn_scale.inference.contributors import Contributors
from gpn_scale.inference.some_nodes import NodesPrediction
from gpn_scale.triage.promise_file import model_fingerprint
from precompute.cli import main as precompute
from tests.prepared import prepared, raw_table

SMALL = "synthetic:nodes=300,classes=3,features=8,separation=4"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a store of rows and a minibatch run that leaves a class out."""
    folder = tmp_path_factory.mktemp("trained")
    rows = ["--dataset", SMALL, "--out", str(folder / "store"), "--threads", "1"]
    assert precompute([*rows, "--k", "8", "--clusters", "4", "--steps", "10"]) == 0
    options = ["--dataset", SMALL, "--mode", "minibatch", "--ppr", str(folder / "store")]
    options += ["--epochs", "3", "--left-out-classes", "1", "--out", str(folder / "run")]
    assert train(options) == 0
    return folder


@pytest.fixture
def nodes(tmp_path):
    """A file of eleven node ids, one of them twice."""
    path = tmp_path / "nodes.txt"
    path.write_text("\n".join(map(str, [7, 0, 299, 7, *range(20, 27)])) + "\n")
    return path


def predict(folder, out, *more):
    return main(["--run", str(folder / "run"), "--out", str(out), *more])


def some(folder, nodes):
    return ["--nodes", str(nodes), "--ppr", str(folder / "store")]


def assert_one_sentence(capsys, message):
    errors = capsys.readouterr().err
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1
    assert "Traceback" not in errors
    assert re.search(message, errors), errors


def test_all_nodes_are_what_training_wrote(folder, tmp_path, capsys):
    assert predict(folder, tmp_path / "all.parquet") == 0
    assert f"written: {tmp_path / 'all.parquet'}" in capsys.readouterr().out
    table = pq.read_table(tmp_path / "all.parquet")
    assert table.equals(pq.read_table(folder / "run" / "predictions.parquet"))
    assert table["split"].null_count < 300


def test_a_parquet_table_remembers_graph_and_model(folder, tmp_path, nodes, capsys):
    nodes.write_text("3\n5\n")
    for name, more in (("all.parquet", []), ("some.parquet", some(folder, nodes))):
        assert predict(folder, tmp_path / name, *more) == 0
        facts = table_facts(pq.read_schema(tmp_path / name))
        assert facts["dataset"] == SMALL
        assert facts["data_dir"] == str(Path("data").resolve())
        assert facts["model"] == model_fingerprint(folder / "run" / "model.safetensors")


def test_another_graph_has_no_split_of_the_run(folder, tmp_path, capsys):
    other = SMALL.replace("nodes=300", "nodes=200")
    assert predict(folder, tmp_path / "other.parquet", "--dataset", other) == 0
    assert "no rate of false alarms is promised" in capsys.readouterr().out
    table = pq.read_table(tmp_path / "other.parquet")
    assert table.num_rows == 200
    assert table["split"].null_count == 200


def test_some_nodes_come_with_intervals_and_reasons(folder, nodes, tmp_path, capsys, monkeypatch):
    def no_summary(*_, **__):
        raise AssertionError("the run has summarised its clusters already")

    monkeypatch.setattr(predictor, "summarise_model", no_summary)
    out = tmp_path / "some.parquet"
    assert predict(folder, out, *some(folder, nodes), "--explain", "2") == 0
    table = pq.read_table(out)
    assert table["node"].to_pylist() == [7, 0, 299, 7, *range(20, 27)]
    exact = pq.read_table(folder / "run" / "predictions.parquet").take(table["node"])
    for name in ("label", "split", "mark_unseen_class", "mark_left_out_classes"):
        assert table[name].to_pylist() == exact[name].to_pylist()
    value = exact["alpha_0"].to_numpy()
    assert (table["alpha_0_lower"].to_numpy() <= value).all()
    assert (value <= table["alpha_0_upper"].to_numpy()).all()
    names = ["contributor", "contributor_share", "contributor_weight", "contributor_class"]
    for row in table.select([*names, "tail_share"]).to_pylist():
        assert all(len(row[name]) == 2 for name in names)
        assert sum(row["contributor_share"]) + row["tail_share"] <= 1 + 1e-5
        assert 0 <= row["contributor"][0] < 300
    lines = capsys.readouterr().out.splitlines()
    assert "certified interval of alpha_0" in lines[0]
    assert re.fullmatch(r" +7 +\d +[\d.]+ +\S+  \S+ to \S+", lines[1])
    assert re.fullmatch(r" +evidence from \d+ \(\d+%, class \d\).*; tail \d+%", lines[2])
    assert sum("evidence from" in line for line in lines) == 10
    assert lines[-2] == "  ... and 1 more in the file"
    assert lines[-1] == f"written: {out}"


def test_nodes_and_classes_are_printed_by_their_names(capsys):
    names = {"node_names": np.array(["ann", "bob"]), "class_names": np.array(["good", "doubtful"])}
    graph = build_graph([0], [1], labels=[0, 1], **names)
    p, alpha_0 = np.array([[0.25, 0.75]]), np.array([8.0])
    result = NodesPrediction(
        node=np.array([0]),
        prediction=Prediction(
            probabilities=p,
            probabilities_no_network=p,
            alpha_0=alpha_0,
            alpha_0_no_network=alpha_0,
        ),
        alpha_0_lower=alpha_0,
        alpha_0_upper=alpha_0,
        contributors=Contributors(
            node=np.array([[1, -1]]),
            share=np.array([[0.5, 0.0]]),
            weight=np.array([[0.5, 0.0]]),
            leading_class=np.array([[1, -1]]),
            tail_share=np.array([0.5]),
        ),
    )
    _print_nodes(result, graph)
    assert [line.split() for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["ann", "doubtful", "0.750", "8", "8", "to", "8"],
        ["evidence", "from", "bob", "(50%,", "class", "doubtful);", "tail", "50%"],
    ]


def test_without_explain_there_are_no_reasons(folder, nodes, tmp_path, capsys):
    assert predict(folder, tmp_path / "some.parquet", *some(folder, nodes)) == 0
    columns = pq.read_table(tmp_path / "some.parquet").column_names
    assert "alpha_0_upper" in columns
    assert not [name for name in columns if name.startswith(("contributor", "tail"))]
    assert "evidence from" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, r"nodes.txt cannot be read \(.*\), expected one node id per line"),
        ("0\n300\n", r"holds node 300, expected ids in \[0, 300\)"),
        ("-1\n", r"holds node -1, expected ids in \[0, 300\)"),
        ("a\n", "cannot be read"),
        ("1.5\n", "cannot be read"),
        ("1 2\n3 4\n", r"cannot be read \(line 1 is .1 2.\), expected one node id per line"),
        ("", r"cannot be read \(.*no data.*\), expected one node id per line"),
    ],
)
def test_node_files_that_do_not_fit_are_refused(folder, tmp_path, capsys, text, message):
    path = tmp_path / "nodes.txt"
    if text is not None:
        path.write_text(text)
    assert predict(folder, tmp_path / "some.parquet", *some(folder, path)) == 2
    assert_one_sentence(capsys, message)
    assert not (tmp_path / "some.parquet").exists()


def test_one_id_and_rows_of_two_lines_are_read(folder, tmp_path):
    for number, text in enumerate(["5", "5\n6\n"]):
        (tmp_path / "nodes.txt").write_text(text)
        out = tmp_path / f"{number}.parquet"
        assert predict(folder, out, *some(folder, tmp_path / "nodes.txt")) == 0
        assert pq.read_table(out).num_rows == number + 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--explain", "3"], "--ppr and --explain only apply to single nodes: add --nodes"),
        (["--ppr", "store"], "--ppr and --explain only apply to single nodes"),
        (
            ["--nodes", "nodes.txt", "--ppr", "store", "--explain", "-1"],
            "--explain is -1, expected at least 0",
        ),
        (["--threads", "0"], "--threads is 0, expected at least 1"),
        (
            ["--memory-budget", "0"],
            "--memory-budget is 0.0, expected a number of gigabytes above 0",
        ),
        (["--dataset", "CoraMl"], "did you mean 'CoraML'"),
        (
            ["--dataset", SMALL.replace("features=8", "features=5")],
            "has 5 feature columns, but the model was trained on 8",
        ),
    ],
)
def test_bad_options_are_refused(folder, tmp_path, capsys, options, message):
    more = ["--data-dir", str(tmp_path), *options]
    assert predict(folder, tmp_path / "out.parquet", *more) == 2
    assert_one_sentence(capsys, message)


def test_stores_that_do_not_fit_are_refused(folder, nodes, tmp_path, capsys):
    more = ["--nodes", str(nodes), "--ppr", str(tmp_path)]
    assert predict(folder, tmp_path / "out.parquet", *more) == 2
    assert_one_sentence(capsys, "is not a PPR store")
    more = [*some(folder, nodes), "--dataset", SMALL.replace("nodes=300", "nodes=310")]
    assert predict(folder, tmp_path / "out.parquet", *more) == 2
    assert_one_sentence(capsys, "is not the requested store: graph fingerprint")


def test_the_output_is_not_written_over_and_has_a_place(folder, nodes, tmp_path, capsys):
    out = tmp_path / "out.parquet"
    out.write_text("mine")
    assert predict(folder, out, *some(folder, nodes)) == 2
    assert_one_sentence(capsys, "already exists: use --overwrite to replace it")
    assert out.read_text() == "mine"
    assert predict(folder, out, *some(folder, nodes), "--overwrite") == 0
    assert pq.read_table(out).num_rows == 11
    capsys.readouterr()
    assert predict(folder, tmp_path / "none" / "out.parquet") == 2
    assert_one_sentence(capsys, "is not a file in an existing folder")
    assert predict(folder, tmp_path, "--overwrite") == 2
    assert_one_sentence(capsys, "is not a file in an existing folder")


def test_a_run_without_a_model_is_refused(tmp_path, capsys):
    assert predict(tmp_path, tmp_path / "out.parquet") == 2
    assert_one_sentence(capsys, r"run/model.safetensors does not exist, expected a file written by")
    (tmp_path / "run").mkdir()
    np.save(tmp_path / "run" / "model.npy", np.zeros(1))
    (tmp_path / "run" / "model.npy").rename(tmp_path / "run" / "model.safetensors")
    assert predict(tmp_path, tmp_path / "out.parquet") == 2
    assert_one_sentence(capsys, "cannot be read")


def test_some_nodes_need_rows_which_the_run_remembers(folder, nodes, tmp_path, capsys):
    out = tmp_path / "some.csv"
    assert predict(folder, out, "--nodes", str(nodes)) == 0
    run = tmp_path / "run"
    run.mkdir()
    (run / "model.safetensors").write_bytes((folder / "run" / "model.safetensors").read_bytes())
    capsys.readouterr()
    assert main(["--run", str(run), "--nodes", str(nodes), "--out", str(out), "--overwrite"]) == 2
    assert "--nodes needs the rows of these nodes: add --ppr STORE" in capsys.readouterr().err


def test_own_ids_are_read_and_written_and_the_suffix_decides_the_format(tmp_path, capsys):
    """Two tables with text ids: train, then predict some nodes as CSV, all as JSON lines."""
    rng = np.random.default_rng(4)
    folder = tmp_path / "shops"
    folder.mkdir()
    labels = [("sea", "land")[i % 2] for i in range(120)]
    lines = [f"n/{i},{labels[i]},{i % 2 * 3 + rng.normal():.3f}" for i in range(120)]
    (folder / "nodes.csv").write_text("\n".join(["id,label,size", *lines]) + "\n")
    edges = [f"n/{i},n/{(i + 2) % 120}" for i in range(120)]
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n")
    where = ["--dataset", "shops", "--data-dir", str(tmp_path)]
    options = ["--epochs", "2", "--threads", "1", "--set", "split.train=0.3"]
    assert train([*where, *options, "--mode", "minibatch", "--out", str(tmp_path / "run")]) == 0
    run = ["--run", str(tmp_path / "run"), *where]
    out = tmp_path / "all.jsonl"
    assert main([*run, "--out", str(out)]) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["node_name"] for row in rows] == [f"n/{i}" for i in range(120)]
    assert {row["predicted_class_name"] for row in rows} <= {"sea", "land"}
    chosen = tmp_path / "nodes.txt"
    chosen.write_text("n/7\nn/100\n")
    rows_of_run = ["--ppr", str(tmp_path / "run" / "store")]
    some_csv = [*run, "--nodes", str(chosen), *rows_of_run, "--out", str(tmp_path / "some.csv")]
    assert main(some_csv) == 0
    with (tmp_path / "some.csv").open(newline="") as file:
        assert [row["node_name"] for row in csv.DictReader(file)] == ["n/7", "n/100"]
    assert "n/7" in capsys.readouterr().out
    chosen.write_text("n/1000\n")
    assert main([*some_csv, "--overwrite"]) == 2
    assert "holds 'n/1000', which is not an id of the graph" in capsys.readouterr().err


def test_the_next_table_is_prepared_by_the_model_and_its_surprises_are_counted(tmp_path, capsys):
    """Next month has other columns, one new country, and a class that has been renamed."""
    table = raw_table()
    save_graph(prepared(table), tmp_path / "may")
    countries = pa.array(["XK", "XK", *table["country"].to_pylist()[2:]])
    later = table.set_column(1, "country", countries).select(table.column_names[::-1])
    renamed = prepared(later.append_column("extra", later["amount"]), class_names=["fine", "fraud"])
    save_graph(renamed, tmp_path / "june")
    save_graph(prepared(later.drop_columns(["opened", "note"])), tmp_path / "july")
    where = ["--data-dir", str(tmp_path), "--threads", "1"]
    options = ["--dataset", "may", "--epochs", "3", "--set", "split.train=0.3"]
    assert train([*options, *where, "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    out = tmp_path / "june.parquet"
    assert predict(tmp_path, out, "--dataset", "june", *where) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "note: The column 'extra' was not in training and was ignored.",
        "note: 2 values of 'country' are not among those of training (first: 'XK'); they count as "
        "no category.",
        "note: The model does not know the class 'fine'; the labels of 80 nodes were ignored.",
    ]
    names = set(pq.read_table(out)["predicted_class_name"].to_pylist())
    assert names <= {"legit", "fraud"}
    assert predict(tmp_path, tmp_path / "july.parquet", "--dataset", "july", *where) == 2
    errors = capsys.readouterr().err
    assert "2 faults in the tables" in errors
    assert all(f"july  all  {name} " in errors for name in ("opened", "note"))


def test_a_run_remembers_graph_and_rows_wherever_it_is_called_from(tmp_path, nodes, monkeypatch):
    graph = load_graph(SMALL)
    (tmp_path / "graphs").mkdir()
    write_npz(graph, tmp_path / "graphs" / "mine.npz")
    monkeypatch.chdir(tmp_path)
    data = ["--dataset", "mine", "--data-dir", "graphs"]
    rows = ["--k", "8", "--steps", "10", "--teleport", "0.1", "--threads", "1"]
    assert precompute([*data, *rows, "--out", "rows"]) == 0
    assert (
        train([*data, "--epochs", "2", "--mode", "minibatch", "--ppr", "rows", "--out", "run"]) == 0
    )
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert main(["--run", "../run", "--out", "all.parquet"]) == 0
    assert main(["--run", "../run", "--out", "some.csv", "--nodes", str(nodes)]) == 0
    assert report(["--run", "../run"]) == 0
    table = pq.read_table("all.parquet")
    assert table.equals(pq.read_table("../run/predictions.parquet"))
    assert len((tmp_path / "elsewhere" / "some.csv").read_text().splitlines()) == 1 + 11
