import json
import pickle
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpn_scale.errors import StoreError
from gpn_scale.ppr.store import PPRStore, verify_store
from gpn_scale.ppr.writer import StoreWriter

PARAMETERS = {"teleport": 0.2, "normalisation": "rw", "steps": None}


@dataclass
class Case:
    """Rows as lists: the slow truth that a store is compared with."""

    num_nodes: int
    roots: list[int] | None
    rows: list[list[tuple[int, float]]]
    num_clusters: int = 0
    rows_per_shard: int = 2
    parameters: dict | None = None

    @property
    def root_list(self):
        return list(range(self.num_nodes)) if self.roots is None else self.roots

    @property
    def clusters(self):
        return (np.arange(self.num_nodes) % max(self.num_clusters, 1)).astype(np.int32)

    @property
    def missing(self):
        return [np.float32(1 - sum(weight for _, weight in row)) for row in self.rows]

    @property
    def total_mass(self):
        """Some numbers: on node n all uncut rows together put n / 4."""
        return np.arange(self.num_nodes) / 4 if self.num_clusters else None

    @property
    def cut_mass(self):
        left = np.arange(self.num_nodes) / 4
        for row in self.rows:
            for node, weight in row:
                left[node] -= np.float32(weight)
        return np.maximum(left, 0.0).astype(np.float32)

    def cluster_mass(self, position):
        return [np.float16((position + c) / 64) for c in range(self.num_clusters)]

    def begin(self, path, *, resume=False, overwrite=False):
        return StoreWriter.begin(
            path,
            graph_fingerprint="f00d",
            parameters=self.parameters or PARAMETERS,
            num_nodes=self.num_nodes,
            roots=None if self.roots is None else np.array(self.roots, np.int64),
            num_clusters=self.num_clusters,
            rows_per_shard=self.rows_per_shard,
            k=4,
            resume=resume,
            overwrite=overwrite,
        )

    def write(self, writer, index):
        start, stop = writer.shard_rows(index)
        rows = self.rows[start:stop]
        entries = [entry for row in rows for entry in row]
        mass = np.array([self.cluster_mass(p) for p in range(start, stop)], np.float16)
        writer.write_shard(
            index,
            np.cumsum([0, *map(len, rows)]),
            np.array([node for node, _ in entries], np.int32),
            np.array([weight for _, weight in entries], np.float32),
            np.array(self.missing[start:stop], np.float32),
            mass if self.num_clusters else None,
        )

    def build(self, path, **flags):
        """As a driver would: what is done is left alone. Returns the shards it had to write."""
        writer = self.begin(path, **flags)
        if self.num_clusters:
            writer.write_clusters(self.clusters)
        todo = [index for index in range(writer.num_shards) if not writer.is_done(index)]
        for index in todo:
            self.write(writer, index)
        writer.finish(self.total_mass)
        return todo


@st.composite
def cases(draw):
    num_nodes = draw(st.integers(0, 9))
    subset = st.sets(st.integers(0, num_nodes - 1)) if num_nodes else st.just(set())
    roots = draw(st.none() | subset.map(sorted))
    num_roots = num_nodes if roots is None else len(roots)
    weights = st.floats(0, 0.25, width=32)
    entry = st.tuples(st.integers(0, max(num_nodes - 1, 0)), weights)
    rows = draw(st.lists(st.lists(entry, max_size=4), min_size=num_roots, max_size=num_roots))
    return Case(num_nodes, roots, rows, draw(st.integers(0, 3)), draw(st.integers(1, 4)))


def example(**changes):
    rows = [[(i, 0.5), ((i + 1) % 7, 0.25)][: i % 3] for i in range(5)]
    return replace(Case(7, [0, 2, 3, 5, 6], rows, num_clusters=3), **changes)


def content(path):
    return {entry.name: entry.read_bytes() for entry in sorted(path.iterdir())}


def flip(path, position, bit=0):
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << bit
    path.write_bytes(data)


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
        assert rows.cluster_mass.shape == (len(nodes), case.num_clusters)
        dtypes = [array.dtype for array in (rows.row_ptr, rows.ids, rows.weights)]
        assert dtypes == [np.int64, np.int32, np.float32]
        assert rows.missing_mass.dtype == rows.cluster_mass.dtype == np.float32
        for i, node in enumerate(nodes):
            position = case.root_list.index(node)
            part = slice(rows.row_ptr[i], rows.row_ptr[i + 1])
            found = list(zip(rows.ids[part].tolist(), rows.weights[part].tolist(), strict=True))
            assert found == case.rows[position]
            assert rows.missing_mass[i] == case.missing[position]
            assert rows.cluster_mass[i].tolist() == case.cluster_mass(position)
            ids, weights = store.row(node)
            assert list(zip(ids.tolist(), weights.tolist(), strict=True)) == found
        assert store.missing_mass.tolist() == case.missing
        assert store.roots.tolist() == case.root_list


def test_a_store_tells_its_facts(built):
    store = PPRStore.open(str(built))
    assert (store.num_nodes, store.num_roots, store.k, store.num_clusters) == (7, 5, 4, 3)
    assert store.parameters == PARAMETERS
    assert store.graph_fingerprint == "f00d"
    assert store.cluster_of_node.tolist() == [0, 1, 2, 0, 1, 2, 0]
    np.testing.assert_array_equal(store.cut_mass_of_node, example().cut_mass)
    assert 0.0 in example().cut_mass
    assert example().cut_mass.max() > 0
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
        ([0, 7], r"node 7 is out of range: .*s is of a graph of 7 nodes, expected ids in \[0, 7\)"),
        ([-1], "node -1 is out of range"),
        ([2, 4], "node 4 is not among the 5 roots of .*--roots all --overwrite"),
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
    with pytest.raises(StoreError, match=f"{message}.* `python -m precompute ... --overwrite`"):
        PPRStore.open(built, **wanted)


def test_an_equal_number_is_the_same_parameter(tmp_path):
    example(parameters={"a": 1.0}).build(tmp_path)
    PPRStore.open(tmp_path, parameters={"a": 1})


def test_a_directory_that_is_no_store_is_not_opened(tmp_path):
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(StoreError, match=r"is not a PPR store \(no manifest.json\)"):
            PPRStore.open(path)
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(StoreError, match=r"manifest.json is corrupt or not of a PPR store"):
        PPRStore.open(tmp_path)


def test_an_unfinished_store_is_not_opened(tmp_path):
    example().begin(tmp_path)
    with pytest.raises(StoreError, match=r"is an unfinished PPR store .* --resume"):
        PPRStore.open(tmp_path)
    assert "unfinished" in verify_store(tmp_path)[0]


def test_another_format_version_is_refused(built):
    for name in ("manifest.json", "build.json"):
        text = (built / name).read_text()
        (built / name).write_text(text.replace('"format_version": 2', '"format_version": 1'))
    with pytest.raises(StoreError, match=r"format version: stored 1, wanted 2; .*--overwrite"):
        PPRStore.open(built)
    with pytest.raises(StoreError, match=r"cannot be resumed .*format version: stored 1"):
        example().begin(built, resume=True)
    example().build(built, overwrite=True)
    assert verify_store(built) == []


@pytest.mark.parametrize("name", ["shard-00001.ppr", "roots.npy", "clusters.npy", "cut.npy"])
@pytest.mark.parametrize("size", [None, 0, 4, 70, -1])
def test_a_missing_or_short_file_is_named_at_opening(built, name, size):
    path = built / name
    if size is None:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(StoreError, match=f"{name} is (missing|truncated).* --resume"):
        PPRStore.open(built)


@settings(max_examples=100)
@given(data=st.data())
def test_no_flipped_bit_escapes_and_only_that_file_is_rebuilt(data):
    with TemporaryDirectory() as folder:
        path = Path(folder)
        example().build(path)
        before = content(path)
        name = data.draw(st.sampled_from(sorted(before)))
        flip(
            path / name,
            data.draw(st.integers(0, len(before[name]) - 1)),
            data.draw(st.integers(0, 7)),
        )
        (problem,) = verify_store(path)
        assert problem.startswith(str(path / name))
        todo = example().build(path, resume=True)
        assert todo == ([int(name[6:11])] if name.startswith("shard") else [])
        assert content(path) == before


def test_verify_names_every_bad_file(built):
    (built / "shard-00000.ppr").unlink()
    (built / "build.json").unlink()
    flip(built / "clusters.npy", -1)
    flip(built / "shard-00002.ppr", -1)
    problems = verify_store(built)
    names = ["build.json", "clusters.npy", "shard-00000.ppr", "shard-00002.ppr"]
    assert [str(built / name) in line for name, line in zip(names, problems, strict=True)] == [
        True
    ] * 4
    flip(built / "manifest.json", 5)
    assert len(verify_store(built)) == 2  # neither JSON file is left to tell of the others


def test_a_damaged_manifest_does_not_hide_a_damaged_shard(built):
    flip(built / "manifest.json", 40)
    flip(built / "shard-00002.ppr", -1)
    first, second = verify_store(built)
    assert "manifest.json" in first
    assert "shard-00002.ppr is corrupt: its checksum is" in second
