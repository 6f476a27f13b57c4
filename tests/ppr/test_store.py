import json
import pickle
from tempfile import TemporaryDirectory
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.errors import StoreError
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.verification import verify_store
from tests.ppr.cases import PARAMETERS, Case, cases, content, example


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk():
    with mock.patch("os.fsync"):
        yield


@pytest.fixture
def built(tmp_path):
    example().build(tmp_path / "s")
    return tmp_path / "s"


@given(case=cases(), data=st.data())
def test_rows_are_the_ones_written_in_any_order(case, data):
    with TemporaryDirectory() as folder:
        case.build(folder)
        assert verify_store(folder) == []
        store = PPRStore.open(folder, graph_fingerprint="f00d", parameters={"teleport": 0.2})
        nodes = data.draw(st.lists(st.sampled_from(case.root_list))) if case.root_list else []
        rows = store.rows(nodes)
        assert (len(rows.row_ptr), rows.row_ptr[-1]) == (len(nodes) + 1, len(rows.ids))
        assert rows.cut_mass.shape == (len(nodes), case.num_clusters)
        dtypes = [array.dtype for array in (rows.row_ptr, rows.ids, rows.weights)]
        assert dtypes == [np.int64, np.int32, np.float32]
        assert rows.missing_mass.dtype == rows.cut_mass.dtype == np.float32
        for i, node in enumerate(nodes):
            position = case.root_list.index(node)
            part = slice(rows.row_ptr[i], rows.row_ptr[i + 1])
            entries = list(zip(rows.ids[part].tolist(), rows.weights[part].tolist(), strict=True))
            assert entries == case.rows[position]
            assert rows.missing_mass[i] == case.missing[position]
            assert rows.cut_mass[i].tolist() == case.cut_by_cluster(position)
            ids, weights = store.row(node)
            assert list(zip(ids.tolist(), weights.tolist(), strict=True)) == entries
        assert store.missing_mass.tolist() == case.missing
        assert store.roots.tolist() == case.root_list


def test_a_store_tells_its_facts(built):
    store = PPRStore.open(str(built))
    assert (store.num_nodes, store.num_roots, store.k, store.num_clusters) == (7, 5, 4, 3)
    assert store.parameters == PARAMETERS
    assert store.graph_fingerprint == "f00d"
    assert store.cluster_of_node.tolist() == [0, 1, 2, 0, 1, 2, 0]
    np.testing.assert_array_equal(store.cut_mass_of_node, example().cut_mass_of_node)
    assert 0.0 in example().cut_mass_of_node
    assert example().cut_mass_of_node.max() > 0
    manifest = json.loads((built / "manifest.json").read_text())
    assert manifest["entries"] == sum(map(len, example().rows)) == 4
    assert manifest["mean_missing_mass"] == pytest.approx(1 - (0.5 + 0.75 + 0.5) / 5)
    assert [shard["first"] for shard in manifest["shards"]] == [0, 2, 4]
    for shard in manifest["shards"]:
        assert (built / shard["file"]).stat().st_size == shard["bytes"]
    assert pickle.loads(pickle.dumps(store)).row(6)[0].tolist() == store.row(6)[0].tolist()


def test_without_clusters_and_with_all_roots_there_are_no_such_files(tmp_path):
    example(roots=None, rows=[[]] * 7, num_clusters=0).build(tmp_path / "all")
    example(roots=list(range(7)), rows=[[]] * 7, num_clusters=0).build(tmp_path / "listed")
    assert content(tmp_path / "all") == content(tmp_path / "listed")
    assert not {"roots.npy", "clusters.npy", "cut.npy"} & content(tmp_path / "all").keys()
    assert PPRStore.open(tmp_path / "all").cluster_of_node is None
    assert PPRStore.open(tmp_path / "all").cut_mass_of_node is None


def test_a_shard_can_be_read_by_its_header_alone(built):
    data = (built / "shard-00001.ppr").read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    arrays = {
        name: np.frombuffer(
            data, place["dtype"], int(np.prod(place["shape"])), start + place["offset"]
        )
        for name, place in header["arrays"].items()
    }
    assert all((start + place["offset"]) % 64 == 0 for place in header["arrays"].values())
    assert arrays["row_ptr"].tolist() == [0, 2, 2]
    assert arrays["ids"].tolist() == [2, 3]
    assert arrays["weights"].tolist() == [0.5, 0.25]
    assert (header["first"], header["rows"]) == (2, 2)


def test_more_shards_than_may_be_mapped_at_once(tmp_path):
    case = Case(300, None, [[(i, 0.5)] for i in range(300)], rows_per_shard=1)
    case.build(tmp_path)
    rows = PPRStore.open(tmp_path).rows(np.arange(300)[::-1])
    assert rows.ids.tolist() == list(range(300))[::-1]


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (
            [0, 7],
            r"node 7 is out of range: .*s belongs to a graph of 7 nodes, expected ids in \[0, 7\)",
        ),
        ([-1], "node -1 is out of range"),
        ([2, 4], "node 4 is not among the 5 roots of .*; .*with roots=None"),
        ([0.5], "vector of integer ids, got float64"),
        ([True], "vector of integer ids, got bool"),
        (3, r"vector of integer ids, got int64 of shape \(\)"),
    ],
)
def test_nodes_that_are_no_roots_are_refused(built, nodes, message):
    with pytest.raises(StoreError, match=message):
        PPRStore.open(built).rows(nodes)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"graph_fingerprint": "beef"}, "graph fingerprint: stored 'f00d', wanted 'beef'"),
        ({"parameters": {"teleport": 0.1}}, "parameter teleport: stored 0.2, wanted 0.1"),
        ({"parameters": {"depth": 2}}, "parameter depth: stored nothing, wanted 2"),
    ],
)
def test_a_store_of_something_else_is_refused(built, wanted, message):
    with pytest.raises(StoreError, match=f"{message}.*existing='overwrite'"):
        PPRStore.open(built, **wanted)


def test_an_equal_number_is_the_same_parameter(tmp_path):
    example(parameters={"a": 1.0}).build(tmp_path)
    PPRStore.open(tmp_path, parameters={"a": 1})


def test_a_directory_that_is_no_store_is_not_opened(tmp_path):
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(StoreError, match=r"is not a PPR store \(no manifest.json\)"):
            PPRStore.open(path)
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(StoreError, match=r"manifest.json is corrupt or not part of a PPR store"):
        PPRStore.open(tmp_path)


def test_an_unfinished_store_is_not_opened(tmp_path):
    example().begin(tmp_path)
    with pytest.raises(StoreError, match=r"is an unfinished PPR store .*existing='resume'"):
        PPRStore.open(tmp_path)
    assert "unfinished" in verify_store(tmp_path)[0]


def test_another_format_version_is_refused(built):
    for name in ("manifest.json", "build.json"):
        text = (built / name).read_text()
        (built / name).write_text(text.replace('"format_version": 4', '"format_version": 3'))
    with pytest.raises(
        StoreError, match=r"format version: stored 3, wanted 4; .*existing='overwrite'"
    ):
        PPRStore.open(built)
    with pytest.raises(StoreError, match=r"cannot be resumed .*format version: stored 3"):
        example().begin(built, "resume")
    example().build(built, "overwrite")
    assert verify_store(built) == []


@pytest.mark.parametrize("name", ["shard-00001.ppr", "roots.npy", "clusters.npy", "cut.npy"])
@pytest.mark.parametrize("size", [None, 0, 4, 70, -1])
def test_a_missing_or_short_file_is_named_at_opening(built, name, size):
    path = built / name
    if size is None:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(StoreError, match=f"{name} is (missing|truncated).*existing='resume'"):
        PPRStore.open(built)
