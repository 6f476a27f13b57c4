import os
import pickle
import socket
import warnings
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from gpn_scale.data import benchmark_files
from gpn_scale.data.benchmark_files import BENCHMARKS, load_benchmark
from gpn_scale.data.graph import CSRFeatures
from gpn_scale.errors import GraphError
from tests.data.raw_files import BAG, Marker, put_planetoid, put_shchur

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)  # PyG's import
    from torch_geometric import datasets as pyg_datasets

PYG = {
    "CoraML": ("CitationFull", "Cora_ML"),
    "CiteSeer": ("Planetoid", "CiteSeer"),
    "PubMed": ("Planetoid", "PubMed"),
    "AmazonComputers": ("Amazon", "Computers"),
    "AmazonPhotos": ("Amazon", "Photo"),
    "CoauthorCS": ("Coauthor", "CS"),
    "CoauthorPhysics": ("Coauthor", "Physics"),
}
MATRICES = [name for name in BENCHMARKS if BENCHMARKS[name].dataset != "Planetoid"]


def put(name: str, root: Path) -> None:
    if name in MATRICES:
        put_shchur(BENCHMARKS[name].paths(root)[0])
    else:
        put_planetoid(root / BENCHMARKS[name].folder, name.lower(), [503, 502])


@pytest.mark.parametrize("name", BENCHMARKS)
def test_the_files_lie_where_pyg_puts_them(tmp_path, name):
    put(name, tmp_path)
    dataset, part = PYG[name]
    assert len(getattr(pyg_datasets, dataset)(str(tmp_path), part)[0].y)  # finds all of them
    assert BENCHMARKS[name].dataset == dataset


@pytest.mark.parametrize("name", BENCHMARKS)
def test_nothing_is_written_and_processed_files_are_not_read(tmp_path, name):
    put(name, tmp_path)
    processed = (tmp_path / BENCHMARKS[name].folder).with_name("processed")
    processed.mkdir()
    for file in ("data.pt", "data_undirected.pt", "pre_transform.pt", "pre_filter.pt"):
        (processed / file).write_bytes(pickle.dumps(Marker(tmp_path / "marker")))
    before = sorted(tmp_path.rglob("*"))
    assert load_benchmark(name, tmp_path).name == name
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", BENCHMARKS)
def test_no_raw_file_is_run(tmp_path, name):
    put(name, tmp_path)
    for path in BENCHMARKS[name].paths(tmp_path):
        whole = path.read_bytes()
        path.write_bytes(pickle.dumps(Marker(tmp_path / "marker"), protocol=2))
        with pytest.raises(GraphError, match=rf"{name} cannot be read from its raw files \(.*"):
            load_benchmark(name, tmp_path)
        path.write_bytes(whole)
    assert load_benchmark(name, tmp_path).num_nodes
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize("name", MATRICES)
def test_matrices_are_read(tmp_path, name):
    put(name, tmp_path)
    graph = load_benchmark(name, tmp_path)
    assert repr(graph) == f"Graph({name!r}, nodes=3, edges=4, features=6, classes=2)"
    assert graph.indices.tolist() == [1, 0, 2, 1]
    assert isinstance(graph.features, CSRFeatures)
    np.testing.assert_array_equal(graph.features.to_dense(), BAG.toarray() > 0)
    assert graph.split is None


@pytest.mark.parametrize(
    ("name", "test_nodes"), [("CiteSeer", [505, 503, 502]), ("PubMed", [503, 504, 502])]
)
def test_planetoid_is_read_with_its_public_split(tmp_path, name, test_nodes):
    count = put_planetoid(tmp_path / name / "raw", name.lower(), test_nodes)
    graph = load_benchmark(name, tmp_path)
    assert graph.name == name
    assert graph.num_nodes == count  # CiteSeer: 504 is in no file, and isolated
    assert graph.num_edges == 4
    assert isinstance(graph.features, CSRFeatures)
    assert graph.split.train.tolist() == [0, 1]
    assert graph.split.val.tolist() == list(range(2, 502))
    assert graph.split.test.tolist() == sorted(test_nodes)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_missing_files_are_downloaded_from_pygs_addresses(tmp_path, monkeypatch, name):
    put(name, tmp_path / "there")
    wanted = []

    def fetch(url, timeout):
        wanted.append(url)
        (path,) = (tmp_path / "there").rglob(url.rpartition("/")[2])
        return BytesIO(path.read_bytes())

    monkeypatch.setattr(benchmark_files, "urlopen", fetch)
    assert load_benchmark(name, tmp_path / "here").num_nodes
    assert [Path(url).name for url in wanted] == list(BENCHMARKS[name].names)
    assert all(url.startswith("https://github.com/") and "{}" not in url for url in wanted)
    assert sorted(os.listdir(tmp_path / "here" / BENCHMARKS[name].folder)) == sorted(
        BENCHMARKS[name].names
    )
    load_benchmark(name, tmp_path / "here")
    assert len(wanted) == len(BENCHMARKS[name].names)  # once


@pytest.mark.parametrize("error", [OSError("no route"), ConnectionResetError("reset")])
def test_a_failing_download_is_one_sentence(tmp_path, monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(benchmark_files, "urlopen", fail)
    with pytest.raises(
        GraphError,
        match=rf"PubMed could not be downloaded into .* \({type(error).__name__}: {error}\): "
        r"put PubMed\.npz into .*, or run once with a network connection",
    ):
        load_benchmark("PubMed", tmp_path)
    assert not list((tmp_path / "PubMed" / "raw").iterdir())


@pytest.mark.parametrize("name", ["CoraML", "PubMed"])
def test_without_a_network_it_fails_in_one_sentence(tmp_path, monkeypatch, name):
    def no_network(*_, **__):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    with pytest.raises(GraphError, match=rf"{name} could not be downloaded .*service not known"):
        load_benchmark(name, tmp_path)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_raw_file_cut_short_is_one_sentence(tmp_path, name):
    put(name, tmp_path)
    for path in BENCHMARKS[name].paths(tmp_path):
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(
            GraphError,
            match=rf"{name} cannot be read from its raw files \(.*\): remove .*/raw to download "
            rf"them again, or put {name}\.npz into",
        ):
            load_benchmark(name, tmp_path)
        path.write_bytes(whole)
