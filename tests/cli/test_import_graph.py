"""The command makes a folder that other commands take, or lists all faults and writes nothing."""

import json
import os
import re

import pytest

from gpn_scale.cli.import_graph import main
from gpn_scale.data.building import build_graph
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph_folder import MANIFEST, save_graph
from gpn_scale.data.npz import write_npz
from tests.data.tables import EDGES, NAMES, NODES, by_name, write_csv

COLUMNS = [word for name, column in NAMES.items() for word in (f"--{name}", column)]


@pytest.fixture
def tables(tmp_path):
    nodes = write_csv(tmp_path / "things.csv", NODES)
    edges = write_csv(tmp_path / "links.csv", EDGES)
    return ["--nodes", str(nodes), "--edges", str(edges)]


def run(tables, out, *more, columns=COLUMNS):
    return main([*tables, "--out", str(out), *columns, *more])


def refused(capsys, message):
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ")
    assert "Traceback" not in captured.err
    assert re.search(message, captured.err), captured.err
    assert captured.out == ""


def test_the_folder_is_a_dataset(tables, tmp_path, capsys):
    out = tmp_path / "graphs" / "bank"
    assert run(tables, out, "--weight", "sum") == 0
    graph = load_graph("bank", tmp_path / "graphs")
    assert by_name(graph)["edges"]["a", "b"] == 6.0
    assert graph.name == "bank"
    assert graph.raw_columns.names == ("age", "country")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "bank"
    assert "as listed       5; 1 duplicate merged" in lines
    assert "edges           4, without direction, with weight (column 'sum')" in lines
    assert lines[-2:] == [
        f"written: {out}", f"next: gpn-train --dataset bank --data-dir {tmp_path / 'graphs'}",
    ]  # fmt: skip
    record = json.loads((out / "import.json").read_text())
    assert record["columns"]["weight"] == "sum"
    assert record["files"]["nodes"] == str(tmp_path / "things.csv")


def test_without_labels_the_next_step_is_prediction(tables, tmp_path, capsys):
    assert run(tables, tmp_path / "new month", "--drop", "verdict") == 0
    printed = capsys.readouterr().out
    assert "note: No column holds labels" in printed
    assert "next: gpn-predict --run RUN --dataset 'new month' --data-dir" in printed


def test_notes_are_printed(tables, tmp_path, capsys):
    assert run(tables, tmp_path / "g", "--drop", "age,country") == 0
    assert "note: No column became a feature, so features of the" in capsys.readouterr().out


def test_next_month_is_imported_like_this_one(tables, tmp_path):
    assert run(tables, tmp_path / "one", "--weight", "sum", "--directed") == 0
    nodes = {name: NODES[name] for name in ("country", "age", "ref")}
    later = ["--nodes", str(write_csv(tmp_path / "later.csv", nodes)), *tables[2:]]
    assert run(later, tmp_path / "two", "--like", str(tmp_path / "one"), columns=[]) == 0
    graph = load_graph("two", tmp_path)
    assert graph.directed
    assert graph.num_classes == 0
    assert graph.edge_weight is not None


def test_a_renamed_column_is_noticed_at_the_import(tables, tmp_path, capsys):
    assert run(tables, tmp_path / "one") == 0
    nodes = tmp_path / "things.csv"
    head, rows = nodes.read_text().split("\n", 1)
    nodes.write_text("\n".join([head.replace("age", "years"), rows]))
    assert run(tables, tmp_path / "two", "--like", str(tmp_path / "one"), columns=[]) == 0
    assert (
        "note: The table of nodes no longer has 'age' (new: 'years'; if a column was renamed, "
        "rename it back); a model that was trained on one needs all of its columns."
    ) in capsys.readouterr().out


@pytest.mark.parametrize("order", [[], ["--order", "like"], ["--order", "table"]])
def test_old_nodes_keep_their_places_unless_the_table_counts(tables, tmp_path, capsys, order):
    assert run(tables, tmp_path / "one") == 0
    nodes = {name: ["new" if value == "a" else value for value in NODES[name]] for name in NODES}
    edges = EDGES | {"from": ["b", "b", "c", "d", "new"]}
    write_csv(tmp_path / "things.csv", nodes)
    write_csv(tmp_path / "links.csv", edges)
    capsys.readouterr()
    assert run(tables, tmp_path / "two", "--like", str(tmp_path / "one"), *order) == 0
    graph = load_graph("two", tmp_path)
    kept = "nodes           7, of which 1 is gone and keeps its place"
    if "table" in order:
        assert graph.node_names.tolist() == ["new", "b", "c", "d", "e", "f"]
        assert kept not in capsys.readouterr().out
    else:
        assert graph.node_names.tolist() == ["a", "b", "c", "d", "e", "f", "new"]
        assert kept in capsys.readouterr().out


def test_an_order_needs_an_earlier_graph(tables, tmp_path, capsys):
    assert run(tables, tmp_path / "g", "--order", "like") == 2
    refused(capsys, "--order like needs the graph to follow: add --like DIR/OLD")


def test_all_faults_are_listed_and_nothing_is_written(tables, tmp_path, capsys):
    write_csv(tmp_path / "links.csv", EDGES | {"to": ["nobody", "c", "d", "e", "b"]})
    write_csv(tmp_path / "things.csv", NODES | {"ref": ["a", "b", "c", "d", "e", "a"]})
    assert run(tables, tmp_path / "g") == 2
    refused(
        capsys,
        r"2 faults in the tables:\n.*\n +things\.csv +6 +ref +'a' .*\n +links\.csv +1 +to "
        r"+'nobody' .*\n\(on the command line: --id COL, --unknown-ids refuse\|add\|drop\)\n",
    )
    assert not (tmp_path / "g").exists()


def test_a_graph_is_replaced_only_on_request(tables, tmp_path, capsys):
    out = tmp_path / "g"
    assert run(tables, out) == 0
    capsys.readouterr()
    assert run(tables, out, "--directed") == 2
    refused(capsys, "already holds a graph: use --overwrite to replace it")
    assert not load_graph("g", tmp_path).directed
    assert run(tables, out, "--directed", "--overwrite") == 0
    assert load_graph("g", tmp_path).directed
    assert len(list(out.glob("labels-*.npy"))) == 1


def test_faults_leave_the_old_graph(tables, tmp_path):
    assert run(tables, tmp_path / "g") == 0
    write_csv(tmp_path / "links.csv", EDGES | {"to": ["nobody"] * 5})
    assert run(tables, tmp_path / "g", "--overwrite") == 2
    assert load_graph("g", tmp_path).num_edges == 8


def test_other_content_is_never_replaced(tables, tmp_path, capsys):
    out = tmp_path / "g"
    out.mkdir()
    (out / "thesis.txt").write_text("years of work")
    assert run(tables, out, "--overwrite") == 2
    refused(capsys, "holds 'thesis.txt' but no graph, and is not replaced: choose a new folder")
    assert run(tables, out / "thesis.txt", "--overwrite") == 2
    refused(capsys, "is a file, expected a folder to write the graph to")


def test_what_a_stopped_import_left_is_no_obstacle(tables, tmp_path):
    assert run(tables, tmp_path / "g") == 0
    (tmp_path / "g" / MANIFEST).unlink()
    (tmp_path / "g" / ".graph.json.123.tmp").touch()
    assert run(tables, tmp_path / "g") == 0
    assert load_graph("g", tmp_path).num_nodes == 6


def test_a_name_that_others_would_hide_is_refused(tables, tmp_path, capsys):
    write_npz(build_graph([0], [1]), tmp_path / "taken.npz")
    assert run(tables, tmp_path / "taken") == 2
    refused(
        capsys, r"taken\.npz has the same name and would be loaded instead, choose another name"
    )
    assert run(tables, tmp_path / "synthetic") == 2
    refused(capsys, "the name 'synthetic' is reserved for another graph")


def test_a_folder_that_cannot_be_written_is_refused(tables, tmp_path, capsys):
    (tmp_path / "file").touch()
    assert run(tables, tmp_path / "file" / "g") == 2
    refused(capsys, "cannot be written")


def test_wrong_rules_are_refused(tables, tmp_path, capsys):
    assert run(tables, tmp_path / "g", "--missing", "refuse", "--unknown-ids", "add") == 2
    refused(capsys, r"\(on the command line: --unknown-ids .*, --missing flag\|fill\|refuse\)")


def test_an_import_that_is_stopped_anywhere_leaves_the_old_graph_or_the_new_one(
    tables, tmp_path, monkeypatch
):
    real, sizes = os.replace, []
    for allowed in range(40):
        save_graph(build_graph([0], [1]), tmp_path / "g")
        files = iter(range(allowed))

        def replace(*paths, files=files):
            if next(files, None) is None:
                raise KeyboardInterrupt
            real(*paths)

        monkeypatch.setattr(os, "replace", replace)
        code = run(tables, tmp_path / "g", "--overwrite")
        monkeypatch.undo()
        sizes.append(load_graph("g", tmp_path).num_nodes)
        if code == 0:
            break
        assert code == 130
    assert sizes == [2] * allowed + [6]
    assert allowed > 5
