import json
import re

import pytest

from gpn_scale.errors import StoreError
from gpn_scale.ppr.manifest import BUILD, MANIFEST, read_build, read_manifest
from gpn_scale.ppr.manifest_schema import check_build, check_lists
from gpn_scale.ppr.sealed import sealed
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.verification import verify_store
from gpn_scale.ppr.writer import StoreWriter
from tests.ppr.cases import example

NODE_FILE = {"bytes": 1, "checksum": "f00d"}


@pytest.fixture
def store(tmp_path):
    example().build(tmp_path)
    return tmp_path


def rewrite(path, **changes):
    """Change entries of a sealed file, with a checksum that fits; None removes an entry."""
    value = json.loads(path.read_text()) | changes
    path.write_text(sealed({key: each for key, each in value.items() if each != "removed"}))


def test_what_a_build_writes_is_accepted(store):
    manifest = json.loads((store / MANIFEST).read_text())
    check_build("manifest.json", manifest)
    check_build("build.json", json.loads((store / BUILD).read_text()))
    build = read_build(store / BUILD)
    check_lists("manifest.json", manifest, build.node_files, build.num_shards)
    assert build.node_files == manifest["files"].keys()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_nodes": "removed"}, "has no entry 'num_nodes'"),
        ({"num_nodes": "7"}, "has '7' for 'num_nodes'"),
        ({"num_nodes": True}, "has True for 'num_nodes'"),
        ({"num_nodes": -1}, "has -1 for 'num_nodes', expected 0 to 2,147,483,648"),
        ({"rows_per_shard": 0}, "has 0 for 'rows_per_shard', expected 1 to"),
        ({"num_clusters": 10**30}, r"has 10+ for 'num_clusters'"),
        ({"num_clusters": 10**8}, "has 100000000 for 'num_clusters', expected 0 to 4,096"),
        ({"k": 1.0}, r"has 1.0 for 'k'"),
        ({"parameters": []}, r"has \[\] for 'parameters'"),
        ({"roots": 3}, "has 3 for 'roots'"),
        ({"num_roots": 2**31}, "has 2,147,483,648 roots of"),
        (
            {"num_nodes": 2**31, "num_roots": 2**31, "roots": None, "rows_per_shard": 1},
            "has 2,147,483,648 shards, expected at most",
        ),
    ],
)
@pytest.mark.parametrize("name", [BUILD, MANIFEST])
def test_a_build_that_no_build_writes(store, name, changes, message):
    rewrite(store / name, **changes)
    with pytest.raises(StoreError, match=f"{name} .*{message}"):
        read_build(store / name)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"files": "removed"}, "lists other files than"),
        ({"files": {"../graph.npz": NODE_FILE}}, "lists other files than"),
        ({"shards": "removed"}, "does not list the 3 shards"),
        ({"shards": []}, "does not list the 3 shards"),
        ({"entries": "removed"}, "has None for 'entries'"),
        ({"entries": -1}, "has -1 for 'entries'"),
    ],
)
def test_a_manifest_that_no_build_writes(store, changes, message):
    rewrite(store / MANIFEST, **changes)
    with pytest.raises(StoreError, match=message):
        read_manifest(store)
    with pytest.raises(StoreError, match=message):
        PPRStore.open(store)
    assert message in verify_store(store)[0]


@pytest.mark.parametrize("facts", [None, {}, {"bytes": 1}, {**NODE_FILE, "bytes": 1.5}, []])
def test_the_facts_of_a_file(facts):
    with pytest.raises(StoreError, match=r"for the file cut.npy: it is damaged or made up"):
        check_lists("m", {"files": {"cut.npy": facts}, "shards": []}, {"cut.npy"}, 0)


def test_a_build_that_is_made_up_is_not_joined(store):
    rewrite(store / BUILD, num_nodes=None)
    with pytest.raises(StoreError, match="has None for 'num_nodes'"):
        StoreWriter.join(store)


def test_verifying_a_build_of_endless_shards_ends(store):
    (store / MANIFEST).write_text("")
    rewrite(store / BUILD, num_nodes=2**20, num_roots=2**20, rows_per_shard=1, roots=None)
    problems = verify_store(store)
    assert len(problems) < 1100
    assert problems[-1].startswith("the shards after shard-")
    assert problems[-1].endswith(" were not checked")


ENTRY = {"folder": ".", "manifest": {}}


@pytest.mark.parametrize(
    ("generations", "history", "message"),
    [
        ([], [], "has [] for 'generations'"),
        ({}, [], "has {} for 'generations'"),
        ([None], [], "has [None] for 'generations'"),
        ([{**ENTRY, "folder": "../other"}], [], "for the folder of a generation"),
        ([{**ENTRY, "folder": 3}], [], "for the folder of a generation"),
        ([ENTRY, ENTRY], [], "lists a generation twice"),
        ([ENTRY], None, "has None for 'history'"),
        ([ENTRY], [3], "has [3] for 'history'"),
        ([ENTRY], [{"edges_added": "x"}], "has [{'edges_added': 'x'}] for 'history'"),
        ([ENTRY], [], "has no entry 'format'"),
    ],
)
def test_a_list_of_generations_that_no_update_writes(store, generations, history, message):
    rewrite(store / MANIFEST, generations=generations, history=history)
    with pytest.raises(StoreError, match=re.escape(message)):
        PPRStore.open(store)


@pytest.mark.parametrize(
    "graph", [{}, {"directed": 1, "edges": 3, "node_names": None, "weighted": False}, 5]
)
def test_facts_about_a_graph_that_no_build_writes(store, graph):
    rewrite(store / MANIFEST, graph=graph)
    with pytest.raises(StoreError, match="for 'graph'"):
        PPRStore.open(store)
