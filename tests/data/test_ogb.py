import gzip
import os
import pickle
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from gpn_scale import reading
from gpn_scale.data import ogb
from gpn_scale.data.ogb import load_ogb, ogb_url
from gpn_scale.data.ogb_files import read_ogb
from gpn_scale.errors import GraphError
from tests.data.raw_files import Marker
from tests.data.test_ogb_files import PAPERS, PRODUCTS, expected, put_dataset
from tests.strategies import assert_same_graph

FILES = {
    "raw/edge.csv.gz": "0,1\n1,2\n3,1\n",
    "raw/node-feat.csv.gz": "1,0.5\n2,0.25\n3,0\n4,-1e-3\n",
    "raw/node-label.csv.gz": "0\n1\n0\n1\n",
    "raw/num-node-list.csv.gz": "4\n",
    "raw/num-edge-list.csv.gz": "3\n",
    "split/time/train.csv.gz": "0\n1\n",
    "split/time/valid.csv.gz": "2\n",
    "split/time/test.csv.gz": "3\n",
}


def put_files(root: Path, **changed: str) -> Path:
    for name, text in FILES.items():
        path = root / "ogbn_arxiv" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        stem = path.name.removesuffix(".csv.gz").replace("-", "_")
        path.write_bytes(gzip.compress(changed.get(stem, text).encode()))
    return root


def zip_url(path: Path, prefix: str = "arxiv/") -> str:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("arxiv/RELEASE_v1.txt", "")
        for name, text in FILES.items():
            archive.writestr(prefix + name, gzip.compress(text.encode()))
    return path.as_uri()


def check(graph) -> None:
    assert repr(graph) == "Graph('ogbn-arxiv', nodes=4, edges=6, features=2, classes=2)"
    assert graph.indices.tolist() == [1, 0, 2, 3, 1, 1]
    assert graph.features[:, 0].tolist() == [1, 2, 3, 4]
    assert graph.features[3, 1] == pytest.approx(-1e-3)
    assert graph.labels.tolist() == [0, 1, 0, 1]
    assert graph.split.train.tolist() == [0, 1]
    assert graph.split.val.tolist() == [2]
    assert graph.split.test.tolist() == [3]


def test_raw_files_are_read(tmp_path):
    check(load_ogb("ogbn-arxiv", put_files(tmp_path), url="file:///nowhere"))


def test_the_zip_is_downloaded_once_and_leaves_nothing_else(tmp_path):
    root = tmp_path / "new" / "root"
    check(load_ogb("ogbn-arxiv", root, zip_url(tmp_path / "arxiv.zip")))
    assert os.listdir(root) == ["ogbn_arxiv"]
    check(load_ogb("ogbn-arxiv", root, "file:///nowhere"))


def test_the_address_is_read_without_importing_ogb():
    imported_before = "ogb" in sys.modules
    assert ogb_url("ogbn-arxiv").endswith("/arxiv.zip")
    assert ("ogb" in sys.modules) == imported_before


def test_the_address_is_the_default(tmp_path, monkeypatch):
    url = zip_url(tmp_path / "arxiv.zip")
    monkeypatch.setattr(ogb, "ogb_url", lambda name: url)
    check(load_ogb("ogbn-arxiv", tmp_path))


@pytest.mark.parametrize("places", [None, ["/nowhere"]])
def test_without_the_table_of_ogb_the_address_is_not_known(monkeypatch, places):
    class Spec:
        submodule_search_locations = places

    monkeypatch.setattr(ogb, "find_spec", lambda name: places and Spec)
    with pytest.raises(
        GraphError, match=r"the address of ogbn-arxiv is not known.*pip install ogb"
    ):
        ogb_url("ogbn-arxiv")


def test_a_failing_download_says_where_to_put_the_files(tmp_path):
    with pytest.raises(
        GraphError,
        match=r"ogbn-arxiv could not be downloaded from file:///nowhere/arxiv\.zip "
        r"\(.*No such file.*\): put raw/edge\.csv\.gz and the other files of arxiv\.zip into "
        r".*/ogbn_arxiv by hand",
    ):
        load_ogb("ogbn-arxiv", tmp_path, "file:///nowhere/arxiv.zip")
    assert os.listdir(tmp_path) == []


def test_a_download_that_is_no_zip_is_refused(tmp_path):
    (tmp_path / "arxiv.zip").write_bytes(b"<html>moved</html>")
    with pytest.raises(GraphError, match=r"could not be downloaded .*not a zip file"):
        load_ogb("ogbn-arxiv", tmp_path / "root", (tmp_path / "arxiv.zip").as_uri())
    assert os.listdir(tmp_path / "root") == []


def test_a_zip_with_damaged_contents_is_refused(tmp_path, monkeypatch):
    def fail(*_):
        raise zlib.error("invalid stored block lengths")

    monkeypatch.setattr(zipfile.ZipExtFile, "read", fail)
    with pytest.raises(GraphError, match=r"could not be downloaded .*invalid stored block"):
        load_ogb("ogbn-arxiv", tmp_path / "root", zip_url(tmp_path / "arxiv.zip"))
    assert os.listdir(tmp_path / "root") == []


@pytest.mark.parametrize("prefix", ["../", "/", "arxiv/../../", "other/"])
def test_a_zip_that_leaves_its_folder_is_refused(tmp_path, prefix):
    url = zip_url(tmp_path / "arxiv.zip", prefix)
    with pytest.raises(GraphError, match=r"the archive holds .*expected paths inside arxiv/ only"):
        load_ogb("ogbn-arxiv", tmp_path / "root", url)
    assert sorted(os.listdir(tmp_path)) == ["arxiv.zip", "root"]


def test_another_process_may_be_faster(tmp_path, monkeypatch):
    root = tmp_path / "root"
    extract = ogb._extract

    def extract_slowly(*arguments) -> None:
        extract(*arguments)
        put_files(root)

    monkeypatch.setattr(ogb, "_extract", extract_slowly)
    check(load_ogb("ogbn-arxiv", root, zip_url(tmp_path / "arxiv.zip")))
    assert os.listdir(root) == ["ogbn_arxiv"]


def test_an_incomplete_folder_is_refused_and_kept(tmp_path):
    put_files(tmp_path)
    (tmp_path / "ogbn_arxiv/raw/edge.csv.gz").unlink()
    with pytest.raises(GraphError, match=r"ogbn_arxiv has no raw/edge\.csv\.gz: add what is"):
        load_ogb("ogbn-arxiv", tmp_path, zip_url(tmp_path / "arxiv.zip"))
    assert (tmp_path / "ogbn_arxiv/raw/node-feat.csv.gz").exists()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"edge": "0,1\n"}, r"edge\.csv\.gz holds a table of 1 rows and 2 columns, expected 3 and"),
        ({"node_feat": "1,2\n"}, r"node-feat\.csv\.gz holds a table of 1 rows"),
        ({"node_label": "0,1\n0,1\n0,1\n0,1\n"}, r"node-label\.csv\.gz .* 2 columns, expected 4"),
        ({"node_label": '0\n""\n1\n1\n'}, r"node-label\.csv\.gz has an empty field"),
        ({"train": "0\nx\n"}, r"train\.csv\.gz cannot be read .*invalid value 'x'"),
        ({"test": ""}, r"test\.csv\.gz cannot be read .*Empty CSV"),
        ({"test": "4\n"}, "test holds node 4"),
    ],
)
def test_wrong_files_are_refused(tmp_path, changed, message):
    with pytest.raises(GraphError, match=message):
        load_ogb("ogbn-arxiv", put_files(tmp_path, **changed))


def test_a_file_that_is_not_gzip_is_refused(tmp_path):
    put_files(tmp_path)
    (tmp_path / "ogbn_arxiv/raw/edge.csv.gz").write_bytes(b"0,1\n")
    with pytest.raises(GraphError, match=r"edge\.csv\.gz cannot be read .*download the file again"):
        load_ogb("ogbn-arxiv", tmp_path)


def test_a_file_that_unpacks_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "UNPACKED_BYTES", 1 << 20)
    put_files(tmp_path, train="0\n" * (3 << 20))
    with pytest.raises(
        GraphError, match=r"train\.csv\.gz holds more than 1,2.* bytes when unpacked"
    ):
        load_ogb("ogbn-arxiv", tmp_path)


@pytest.mark.parametrize("name", FILES)
def test_no_file_is_run_and_a_pipe_is_refused(tmp_path, name):
    path = put_files(tmp_path) / "ogbn_arxiv" / name
    for content in (pickle.dumps(Marker(tmp_path / "marker")), b"\x1f\x8b\x08"):
        for packed in (content, gzip.compress(content)):
            path.write_bytes(packed)
            with pytest.raises(GraphError, match=r"cannot be read|expected|empty field"):
                load_ogb("ogbn-arxiv", tmp_path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(GraphError, match=f"has no {name}"):
        load_ogb("ogbn-arxiv", tmp_path)
    assert not (tmp_path / "marker").exists()


def test_caches_of_ogb_are_not_read(tmp_path):
    put_files(tmp_path)
    for folder in ("processed", "split/time"):
        (tmp_path / "ogbn_arxiv" / folder).mkdir(parents=True, exist_ok=True)
        for file in ("data_processed", "geometric_data_processed.pt", "split_dict.pt"):
            path = tmp_path / "ogbn_arxiv" / folder / file
            path.write_bytes(pickle.dumps(Marker(tmp_path / "marker")))
    check(load_ogb("ogbn-arxiv", tmp_path))
    assert not (tmp_path / "marker").exists()


def test_a_zip_that_unpacks_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "UNPACKED_BYTES", 1 << 20)
    with zipfile.ZipFile(tmp_path / "arxiv.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("arxiv/raw/edge.csv.gz", bytes(64 << 20))
    with pytest.raises(GraphError, match="the archive unpacks to 67,108,864 bytes"):
        load_ogb("ogbn-arxiv", tmp_path / "root", (tmp_path / "arxiv.zip").as_uri())


@pytest.mark.parametrize("dataset", [PRODUCTS, PAPERS])
def test_a_large_graph_is_kept_as_mapped_arrays_until_a_raw_file_changes(
    tmp_path, monkeypatch, dataset
):
    folder, reads = put_dataset(tmp_path, dataset), []

    def counting(*arguments):
        reads.append(arguments)
        return read_ogb(*arguments)

    monkeypatch.setattr(ogb, "read_ogb", counting)
    for _ in range(2):
        graph = load_ogb(dataset.name, tmp_path)
        assert_same_graph(graph, expected(dataset.name))
        assert isinstance(graph.features, np.memmap)
    assert len(reads) == 1
    next((folder / "processed/gpn_scale").glob("labels-*")).write_bytes(b"damage")
    assert_same_graph(load_ogb(dataset.name, tmp_path), graph)
    put_dataset(tmp_path, dataset)
    os.utime(folder / dataset.files[0], (1, 1))
    assert_same_graph(load_ogb(dataset.name, tmp_path), graph)
    assert len(reads) == 3


def test_a_large_graph_needs_a_folder_of_its_own(tmp_path):
    (put_dataset(tmp_path, PAPERS) / "processed").touch()
    with pytest.raises(GraphError, match=r"processed/gpn_scale cannot be written") as error:
        load_ogb(PAPERS.name, tmp_path)
    assert error.value.arguments == ("data_dir",)


def test_damaged_raw_files_leave_no_graph(tmp_path):
    folder = put_dataset(tmp_path, PAPERS)
    (folder / "raw/data.npz").write_bytes(pickle.dumps(Marker(tmp_path / "marker")))
    for _ in range(2):
        with pytest.raises(GraphError, match=r"data\.npz cannot be read"):
            load_ogb(PAPERS.name, tmp_path)
    assert not (tmp_path / "marker").exists()
    assert os.listdir(folder / "processed/gpn_scale") == [".lock"]
