import json
import os
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpn_scale import disk, files
from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import Graph, Split
from gpn_scale.data.graph_folder import MANIFEST, open_graph, save_graph
from gpn_scale.data.preparation import Preparation
from gpn_scale.data.raw_columns import RawColumns
from gpn_scale.errors import GraphError
from tests.ppr.cases import flip
from tests.strategies import assert_same_graph, graphs


def small(
    num_nodes: int = 4, names: list[str] | None = None, class_name: str | None = None
) -> Graph:
    ids = np.arange(num_nodes - 1)
    return build_graph(
        ids,
        ids + 1,
        name="small",
        features=np.eye(num_nodes, dtype=np.float32),
        labels=np.zeros(num_nodes, int),
        marks={"a/b": [0]},
        node_names=names,
        class_names=None if class_name is None else [class_name],
    )


@settings(deadline=None)  # it waits for the disk
@given(graph=graphs())
def test_a_saved_graph_is_opened_again(graph: Graph):
    with TemporaryDirectory() as folder:
        save_graph(graph, Path(folder) / "new" / "g")
        opened = open_graph(Path(folder) / "new" / "g")
        assert_same_graph(opened, graph)
        assert opened.name == graph.name


def test_arrays_are_mapped_and_not_read(tmp_path):
    save_graph(small(), tmp_path)
    opened = open_graph(tmp_path)
    for array in (opened.indptr, opened.indices, opened.features, opened.labels):
        assert isinstance(array, np.memmap)
        assert not array.flags.writeable


def test_graph_json_tells_the_facts(tmp_path):
    graph = small()
    save_graph(graph, tmp_path)
    manifest = json.loads((tmp_path / MANIFEST).read_text())
    assert manifest["fingerprint"] == graph.fingerprint()
    assert manifest["arrays"]["x"]["shape"] == [4, 4]
    assert manifest["marks"] == {"a/b": "mark_0"}


def test_a_second_save_removes_the_files_of_the_first(tmp_path):
    (tmp_path / "mine.npy").write_bytes(b"not ours")
    save_graph(small(4), tmp_path)
    count = len(list(tmp_path.iterdir()))
    save_graph(small(5), tmp_path)
    assert open_graph(tmp_path).num_nodes == 5
    assert len(list(tmp_path.iterdir())) == count
    assert (tmp_path / "mine.npy").exists()


def test_a_graph_can_be_saved_over_itself(tmp_path):
    save_graph(small(), tmp_path)
    opened = open_graph(tmp_path)
    save_graph(replace(opened, directed=True), tmp_path)
    again = open_graph(tmp_path)
    assert again.directed
    np.testing.assert_array_equal(again.indices, small().indices)


OLD_NAMES = ["w", "x", "y", "longer"]


@pytest.mark.parametrize(
    "new",
    [small(5), small(names=list("abcd"), class_name="c"), small(names=OLD_NAMES, class_name="d")],
    ids=["larger", "other names", "another class name"],
)
def test_a_save_killed_at_any_write_leaves_a_whole_graph(tmp_path, monkeypatch, new):
    old = small(names=OLD_NAMES, class_name="c")
    real, states = os.replace, []
    for survived in range(20):
        directory = tmp_path / str(survived)
        save_graph(old, directory)
        left = iter(range(survived))

        def replace_or_die(source, target, left=left):
            if next(left, None) is None:
                raise KeyboardInterrupt
            real(source, target)

        with monkeypatch.context() as patched:
            patched.setattr(files.os, "replace", replace_or_die)
            try:
                save_graph(new, directory)
            except KeyboardInterrupt:
                states.append("old")
                assert_same_graph(open_graph(directory), old)
            else:
                states.append("new")
                assert_same_graph(open_graph(directory), new)
                break
    assert states[-1] == "new"
    assert len(states) > 5


def test_a_save_killed_before_the_old_files_are_removed_is_new(tmp_path, monkeypatch):
    save_graph(small(4), tmp_path)

    def die(path: Path) -> None:
        if path.suffix == ".npy":
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(disk.system, "unlink", die)
        with pytest.raises(KeyboardInterrupt):
            save_graph(small(5), tmp_path)
    assert_same_graph(open_graph(tmp_path), small(5))


def only(tmp_path: Path, pattern: str) -> Path:
    (path,) = tmp_path.glob(pattern)
    return path


def test_a_folder_without_graph_json_is_refused(tmp_path):
    with pytest.raises(GraphError, match=r"graph\.json cannot be read .*expected a saved graph"):
        open_graph(tmp_path)


def test_a_missing_array_is_refused(tmp_path):
    save_graph(small(), tmp_path)
    only(tmp_path, "labels-*").unlink()
    with pytest.raises(GraphError, match=r"labels-.*\.npy is missing or damaged"):
        open_graph(tmp_path)


@pytest.mark.parametrize("size", [0, 20, 140])
def test_a_cut_array_is_refused(tmp_path, size):
    save_graph(small(), tmp_path)
    path = only(tmp_path, "x-*")
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(GraphError, match=r"x-.*\.npy is damaged: its checksum"):
        open_graph(tmp_path)
    remove_checksums(tmp_path)
    with pytest.raises(GraphError, match=r"x-.*\.npy is missing or damaged"):
        open_graph(tmp_path)


@pytest.mark.parametrize("array", [np.zeros(3, np.int32), np.zeros(4, np.int64)])
def test_an_array_of_another_shape_or_type_is_refused(tmp_path, array):
    save_graph(small(), tmp_path)
    np.save(only(tmp_path, "labels-*"), array)
    with pytest.raises(GraphError, match=r"labels-.* is damaged: its checksum is"):
        open_graph(tmp_path)
    remove_checksums(tmp_path)
    with pytest.raises(GraphError, match=r"labels-.* holds <i. of shape .*graph\.json says <i4"):
        open_graph(tmp_path)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda m: "no json", "is not JSON"),
        (lambda m: "[]", "has format version None, expected 1"),
        (lambda m: json.dumps(m | {"format_version": 2}), "has format version 2, expected 1"),
        (
            lambda m: json.dumps(m | {"arrays": {}, "marks": {}}),
            r"is incomplete \(KeyError\('indptr'\)\): save",
        ),
        (
            lambda m: json.dumps(m | {"marks": {"a": "mark_9"}}),
            "is damaged: it has a mark without an array: save",
        ),
        (lambda m: json.dumps(m | {"num_columns": 4}), r"is incomplete \(KeyError\('x_indptr'\)"),
        (
            lambda m: json.dumps(m | {"arrays": {"x": 1}, "marks": {}}),
            "is damaged: it has 1 for the file of 'x'",
        ),
        (lambda m: json.dumps(m | {"marks": []}), r"is damaged: it has \[\] for 'marks'"),
    ],
)
def test_a_wrong_graph_json_is_refused(tmp_path, edit, message):
    save_graph(small(), tmp_path)
    path = tmp_path / MANIFEST
    manifest = json.loads(path.read_text())
    del manifest["checksum"]  # as an earlier version wrote it
    path.write_text(edit(manifest))
    with pytest.raises(GraphError, match=f"graph.json {message}"):
        open_graph(tmp_path)


def remove_checksums(folder):
    """Make a folder what an earlier version wrote."""
    manifest = json.loads((folder / MANIFEST).read_text())
    del manifest["checksum"]
    for entry in manifest["arrays"].values():
        del entry["checksum"]
    (folder / MANIFEST).write_text(json.dumps(manifest))


def test_a_folder_of_an_earlier_version_is_opened(tmp_path):
    save_graph(small(), tmp_path)
    remove_checksums(tmp_path)
    assert_same_graph(open_graph(tmp_path), small())


@given(data=st.data())
def test_no_flipped_bit_escapes(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("graph")
    graph = with_columns()
    save_graph(graph, folder)
    path = data.draw(st.sampled_from(sorted(folder.iterdir())))
    flip(path, data.draw(st.integers(0, path.stat().st_size - 1)), data.draw(st.integers(0, 7)))
    try:
        opened = open_graph(folder)
    except GraphError as error:
        message = str(error)
        assert path.name in message
    else:
        assert path.name == MANIFEST  # the name of its own checksum, or space
        assert_same_graph(opened, graph)


TABLE = pa.table({"size": ["1", "2", "", "7"], "kind": ["a", "b", "a", None]})


def with_columns(table: pa.Table = TABLE) -> Graph:
    preparation = Preparation.fit(table)
    features = preparation.apply(table).features
    graph = replace(small(), features=features, feature_names=np.array(preparation.feature_names))
    return replace(graph, preparation=preparation, raw_columns=RawColumns(table))


def test_preparation_and_raw_columns_are_kept(tmp_path):
    graph = with_columns()
    save_graph(graph, tmp_path)
    opened = open_graph(tmp_path)
    assert_same_graph(opened, graph)
    assert opened.preparation == graph.preparation
    assert opened.raw_columns.table().equals(TABLE)
    save_graph(opened, tmp_path)
    assert open_graph(tmp_path).raw_columns.table().equals(TABLE)


def test_a_graph_without_them_is_saved_as_before(tmp_path):
    save_graph(small(), tmp_path)
    assert not {"preparation", "raw_columns"} & json.loads((tmp_path / MANIFEST).read_text()).keys()
    opened = open_graph(tmp_path)
    assert (opened.preparation, opened.raw_columns) == (None, None)


def test_raw_columns_of_an_earlier_save_are_removed(tmp_path):
    (tmp_path / "mine.parquet").write_bytes(b"not ours")
    save_graph(with_columns(), tmp_path)
    old = only(tmp_path, "raw_columns-*.parquet")
    save_graph(with_columns(TABLE.set_column(0, "size", pa.array(list("3456")))), tmp_path)
    assert only(tmp_path, "raw_columns-*.parquet") != old
    save_graph(small(), tmp_path)
    assert [path.name for path in tmp_path.glob("*.parquet")] == ["mine.parquet"]


def test_damaged_columns_and_preparations_are_refused(tmp_path):
    save_graph(with_columns(), tmp_path)
    path = tmp_path / MANIFEST
    whole = path.read_text()
    manifest = {key: value for key, value in json.loads(whole).items() if key != "checksum"}
    path.write_text(json.dumps(manifest | {"preparation": {"missing": "flag"}}))
    with pytest.raises(GraphError, match=r"graph\.json: the preparation of columns is damaged"):
        open_graph(tmp_path)
    path.write_text(json.dumps(manifest | {"raw_columns": {}}))
    with pytest.raises(GraphError, match=r"is incomplete \(KeyError\('file'\)\)"):
        open_graph(tmp_path)
    path.write_text(whole)
    only(tmp_path, "raw_columns-*.parquet").write_bytes(b"PAR1")
    with pytest.raises(GraphError, match=r"raw_columns-.*\.parquet is (missing or )?damaged"):
        open_graph(tmp_path)


def test_a_wrong_bit_in_any_array_is_found(tmp_path):
    rng = np.random.default_rng(1)
    graph = build_graph(
        rng.integers(0, 9, 20),
        rng.integers(0, 9, 20),
        features=rng.normal(size=(9, 3)),
        labels=np.arange(9) % 3,
        node_names=[f"node {index}" for index in range(9)],
        class_names=["a", "b", "c"],
        feature_names=["x", "y", "z"],
        split=Split(train=[0, 1, 2], val=[3], test=[4]),
        marks={"odd": [7]},
    )
    save_graph(graph, tmp_path)
    assert_same_graph(open_graph(tmp_path), graph)
    for path in sorted(tmp_path.glob("*.npy")):
        whole = path.read_bytes()
        for _ in range(10):
            content = bytearray(whole)
            content[rng.integers(128, len(whole))] ^= 1 << int(rng.integers(8))
            path.write_bytes(content)
            with pytest.raises(GraphError, match=r"damaged|split|node"):
                open_graph(tmp_path)
        path.write_bytes(whole)
    assert open_graph(tmp_path).num_nodes == 9
