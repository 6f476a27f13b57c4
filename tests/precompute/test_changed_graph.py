"""The changed graph is saved once, and only where nothing else is."""

import pytest

from gpn_scale.data.building import build_graph
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.faults import TableFaults
from gpn_scale.data.import_record import read_record
from gpn_scale.errors import ConfigError, GraphError
from precompute.changed_graph import changed_graph

GRAPH = build_graph([0, 1], [1, 2])


@pytest.fixture
def changes(tmp_path):
    path = tmp_path / "changes.csv"
    path.write_text("source,target,change\n0,2,add\n0,1,remove\n")
    return path


def test_the_graph_is_saved_and_may_be_saved_again(tmp_path, changes):
    out = tmp_path / "graphs" / "new"
    for _ in range(2):
        graph = changed_graph(GRAPH, changes, out)
        assert graph.name == "new"
        assert graph.indices.tolist() == [2, 2, 0, 1]
        assert load_graph("new", out.parent).fingerprint() == graph.fingerprint()


def test_a_plan_writes_nothing(tmp_path, changes):
    assert changed_graph(GRAPH, changes, tmp_path / "new", plan_only=True).num_edges == 4
    assert not (tmp_path / "new").exists()


def test_other_folders_are_refused(tmp_path, changes):
    with pytest.raises(ConfigError, match="already exists and does not hold the graph") as error:
        changed_graph(GRAPH, changes, tmp_path)
    assert error.value.arguments == ("write_graph",)
    changed_graph(GRAPH, changes, tmp_path / "new")
    changes.write_text("source,target,change\n0,2,add\n")
    with pytest.raises(ConfigError, match="already exists and does not hold the graph"):
        changed_graph(GRAPH, changes, tmp_path / "new")
    with pytest.raises(GraphError, match="cannot be written"):
        changed_graph(GRAPH, changes, changes / "new")


def test_a_save_that_was_killed_is_repeated(tmp_path, changes):
    changed_graph(GRAPH, changes, tmp_path / "whole")
    (tmp_path / "new").mkdir()
    for path in (tmp_path / "whole").glob("*.npy"):
        (tmp_path / "new" / path.name).write_bytes(path.read_bytes())
    (tmp_path / "new" / ".graph.json.17.tmp").write_text("{")
    graph = changed_graph(GRAPH, changes, tmp_path / "new")
    assert load_graph("new", tmp_path).fingerprint() == graph.fingerprint()
    (tmp_path / "new" / "graph.json").unlink()
    (tmp_path / "new" / "notes.txt").touch()
    with pytest.raises(ConfigError, match="already exists and does not hold the graph"):
        changed_graph(GRAPH, changes, tmp_path / "new")


def test_faults_leave_nothing_behind(tmp_path, changes):
    changes.write_text("source,target,change\n0,1,add\n0,2,remove\n")
    with pytest.raises(TableFaults, match="2 faults in the tables"):
        changed_graph(GRAPH, changes, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_the_record_of_an_import_goes_along(tmp_path, changes):
    from gpn_scale.cli.import_graph import main as import_graph

    (tmp_path / "n.csv").write_text("ref,age\n0,1\n1,2\n2,4\n")
    (tmp_path / "e.csv").write_text("source,target\n0,1\n1,2\n")
    tables = ["--nodes", str(tmp_path / "n.csv"), "--edges", str(tmp_path / "e.csv")]
    assert import_graph([*tables, "--id", "ref", "--out", str(tmp_path / "old")]) == 0
    changed_graph(load_graph("old", tmp_path), changes, tmp_path / "new")
    assert read_record(tmp_path / "new").names.id == "ref"
    (tmp_path / "new" / "import.json").unlink()  # as if killed before it was written
    changed_graph(load_graph("old", tmp_path), changes, tmp_path / "new")
    assert read_record(tmp_path / "new").names.id == "ref"
    more = [*tables, "--like", str(tmp_path / "new"), "--out", str(tmp_path / "later")]
    assert import_graph(more) == 0
