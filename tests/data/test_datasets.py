import pickle
import socket
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from aiohttp import ClientPayloadError

from gpn_scale.data import datasets
from gpn_scale.data.building import build_graph
from gpn_scale.data.datasets import DATASET_NAMES, load_graph
from gpn_scale.data.graph import CSRFeatures, Graph
from gpn_scale.data.graph_folder import save_graph
from gpn_scale.data.npz import write_npz
from gpn_scale.errors import ConfigError, GraphError
from tests.data.test_ogb import put_files

BAG = scipy.sparse.csr_array(np.array([[0, 0, 0, 0, 0, 2], [0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0]]))


def path_graph(num_nodes: int, name: str = "g") -> Graph:
    return build_graph(np.arange(num_nodes - 1), np.arange(1, num_nodes), name=name)


def put_tables(folder: Path) -> None:
    folder.mkdir()
    (folder / "nodes.csv").write_text("id\na\nb\n")
    (folder / "edges.csv").write_text("source,target\na,b\n")


def put_shchur(path: Path) -> None:
    """The layout of the graph2gauss and gnn-benchmark files: two CSR matrices and labels."""
    adjacency = scipy.sparse.csr_array(np.array([[1, 1, 0], [0, 0, 1], [0, 0, 0]], np.float32))
    arrays = {"labels": np.array([0, 1, 1])}
    for key, matrix in (("adj", adjacency), ("attr", BAG.astype(np.float32))):
        arrays[f"{key}_data"] = matrix.data
        arrays[f"{key}_indices"] = matrix.indices
        arrays[f"{key}_indptr"] = matrix.indptr
        arrays[f"{key}_shape"] = np.array(matrix.shape)
    path.parent.mkdir(parents=True)
    np.savez(path, **arrays)


def put_planetoid(folder: Path, prefix: str, test_nodes: list[int]) -> int:
    """Two training nodes, 500 validation nodes, and test nodes in an order of their own."""
    folder.mkdir(parents=True)
    count = min(test_nodes)
    features = scipy.sparse.csr_matrix(np.eye(count, 8, dtype=np.float32))
    classes = np.eye(2, dtype=np.int32)[np.arange(count) % 2]
    test_features = scipy.sparse.csr_matrix(np.eye(len(test_nodes), 8, dtype=np.float32))
    test_classes = np.eye(2, dtype=np.int32)[np.ones(len(test_nodes), int)]
    parts = {
        "x": features[:2],
        "tx": test_features,
        "allx": features,
        "y": classes[:2],
        "ty": test_classes,
        "ally": classes,
        "graph": {0: [1, 1, 0], 1: [0], test_nodes[0]: [1]},
    }
    for key, part in parts.items():
        (folder / f"ind.{prefix}.{key}").write_bytes(pickle.dumps(part, protocol=2))
    (folder / f"ind.{prefix}.test.index").write_text("".join(f"{node}\n" for node in test_nodes))
    return max(test_nodes) + 1


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("CoraML", "cora_ml/raw/cora_ml.npz"),
        ("AmazonPhotos", "Photo/raw/amazon_electronics_photo.npz"),
        ("AmazonComputers", "Computers/raw/amazon_electronics_computers.npz"),
        ("CoauthorCS", "CS/raw/ms_academic_cs.npz"),
        ("CoauthorPhysics", "Physics/raw/ms_academic_phy.npz"),
    ],
)
def test_pyg_reads_its_raw_npz(tmp_path, name, raw):
    put_shchur(tmp_path / raw)
    for _ in range(2):  # processed, then from PyG's cache
        graph = load_graph(name, tmp_path)
        assert repr(graph) == f"Graph({name!r}, nodes=3, edges=4, features=6, classes=2)"
        assert graph.indices.tolist() == [1, 0, 2, 1]
        assert isinstance(graph.features, CSRFeatures)
        np.testing.assert_array_equal(graph.features.to_dense(), BAG.toarray() > 0)
        assert graph.split is None


@pytest.mark.parametrize(
    ("name", "test_nodes"), [("CiteSeer", [505, 503, 502]), ("PubMed", [503, 504, 502])]
)
def test_pyg_reads_planetoid_with_its_public_split(tmp_path, name, test_nodes):
    count = put_planetoid(tmp_path / name / "raw", name.lower(), test_nodes)
    graph = load_graph(name, tmp_path)
    assert graph.name == name
    assert graph.num_nodes == count  # CiteSeer: 504 is in no file, and isolated
    assert graph.num_edges == 4
    assert isinstance(graph.features, CSRFeatures)
    assert graph.split.train.tolist() == [0, 1]
    assert graph.split.val.tolist() == list(range(2, 502))
    assert graph.split.test.tolist() == sorted(test_nodes)


def test_ogbn_arxiv_is_read_from_raw_files(tmp_path):
    assert load_graph("ogbn-arxiv", put_files(tmp_path)).num_nodes == 4


def test_a_synthetic_name_is_generated(tmp_path):
    assert load_graph("synthetic:nodes=200", tmp_path).num_nodes == 200
    assert load_graph("synthetic:", tmp_path).name == "synthetic"
    with pytest.raises(ConfigError, match="nodes must be a whole number, got '1e4'"):
        load_graph("synthetic:nodes=1e4", tmp_path)


def test_the_data_folder_comes_before_pyg_and_ogb(tmp_path):
    for name in DATASET_NAMES:
        write_npz(path_graph(3), tmp_path / f"{name}.npz")
        graph = load_graph(name, tmp_path)
        assert (graph.name, graph.num_nodes) == (name, 3)


def test_the_order_inside_the_data_folder(tmp_path):
    put_tables(tmp_path / "mine")
    graph = load_graph("mine", tmp_path)
    assert (graph.name, graph.num_nodes) == ("mine", 2)
    save_graph(path_graph(3, "inner name"), tmp_path / "mine")
    graph = load_graph("mine", tmp_path)
    assert (graph.name, graph.num_nodes) == ("mine", 3)
    write_npz(path_graph(4), tmp_path / "mine.npz")
    assert load_graph("mine", tmp_path).num_nodes == 4
    assert load_graph("mine.npz", tmp_path).name == "mine"


def test_a_path_is_a_name(tmp_path, monkeypatch):
    write_npz(path_graph(4), tmp_path / "a.npz")
    save_graph(path_graph(3), tmp_path / "b.v2")
    put_tables(tmp_path / "c")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    named = {"../a.npz": ("a", 4), "../b.v2": ("b.v2", 3), str(tmp_path / "c"): ("c", 2)}
    for path, expected in named.items():
        graph = load_graph(path, Path("nowhere"))
        assert (graph.name, graph.num_nodes) == expected
    monkeypatch.chdir(tmp_path / "c")
    assert load_graph(".", Path("nowhere")).name == "c"


@pytest.mark.parametrize("name", ["../secret", "sub/../../secret", "..", ".", "", "/nowhere/x"])
def test_a_name_does_not_lead_out_of_the_data_folder(tmp_path, monkeypatch, name):
    write_npz(path_graph(4), tmp_path / "secret.npz")
    save_graph(path_graph(4), tmp_path)
    (tmp_path / "data" / "sub").mkdir(parents=True)
    (tmp_path / "elsewhere" / "empty").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "elsewhere" / "empty")
    with pytest.raises(GraphError, match=r"no dataset .*; a path must be that of a file X\.npz, "):
        load_graph(name, tmp_path / "data")


def test_a_wrong_name_lists_the_right_ones(tmp_path):
    put_tables(tmp_path / "my-tables")
    write_npz(path_graph(4), tmp_path / "my-graph.npz")
    with pytest.raises(GraphError, match="no dataset 'coauthorcs': did you mean 'CoauthorCS'") as e:
        load_graph("coauthorcs", tmp_path)
    message = str(e.value)
    assert message.index("CoauthorCS, ") < message.index("CoraML")
    assert all(name in message for name in (*DATASET_NAMES, "synthetic", "my-graph", "my-tables"))
    assert f"also looked for a file {tmp_path}/coauthorcs.npz, a folder " in message


def test_only_files_are_offered(tmp_path):
    (tmp_path / "mine.npz").mkdir()
    (tmp_path / "yours.npz").symlink_to(tmp_path / "nowhere")
    with pytest.raises(GraphError, match=r"'mine': Available datasets are .*, synthetic; also"):
        load_graph("mine", tmp_path)


@pytest.mark.parametrize("name", ["mine", "CoraML", "ogbn-arxiv", "a/path"])
def test_a_data_folder_that_is_a_file_is_refused(tmp_path, name):
    (tmp_path / "mine.npz").touch()
    with pytest.raises(GraphError, match=r"data folder .*mine\.npz is a file, expected a folder"):
        load_graph(name, tmp_path / "mine.npz")


def test_a_data_folder_that_is_missing_is_named(tmp_path):
    with pytest.raises(GraphError, match=r"'mine': .*but the folder .*/none does not exist"):
        load_graph("mine", tmp_path / "none")


def test_edges_without_nodes_are_refused(tmp_path):
    put_tables(tmp_path / "mine")
    (tmp_path / "mine" / "nodes.csv").unlink()
    with pytest.raises(GraphError, match=r"mine holds 0 of nodes\.parquet and nodes\.csv"):
        load_graph("mine", tmp_path)


@pytest.mark.parametrize("name", ["zzzzzz", "a\0b", "x" * 5000])
def test_a_name_like_no_other_has_no_near_miss(tmp_path, name):
    with pytest.raises(GraphError, match=r"no dataset .*: Available datasets are CoraML, CiteSeer"):
        load_graph(name, tmp_path)


@pytest.mark.parametrize(
    "error",
    [
        OSError("no route"),
        ConnectionResetError("reset"),
        ClientPayloadError("not complete"),
    ],
)
def test_a_failing_download_is_one_sentence(tmp_path, monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr(datasets, "_pyg_data", fail)
    with pytest.raises(
        GraphError,
        match=rf"PubMed could not be downloaded into .* \({type(error).__name__}: {error}\): "
        r"put PubMed\.npz into .*, or run once with a network connection",
    ):
        load_graph("PubMed", tmp_path)


@pytest.mark.parametrize("name", ["CoraML", "PubMed"])
def test_without_a_network_pyg_fails_in_one_sentence(tmp_path, monkeypatch, name):
    def no_network(*_, **__):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    with pytest.raises(GraphError, match=rf"{name} could not be downloaded .*service not known"):
        load_graph(name, tmp_path)


def test_a_raw_file_cut_short_is_one_sentence(tmp_path):
    put_planetoid(tmp_path / "PubMed" / "raw", "pubmed", [502])
    path = tmp_path / "PubMed" / "raw" / "ind.pubmed.allx"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(
        GraphError,
        match=r"PubMed: PyG cannot read its files in .* \(UnpicklingError: .*\): remove its folder "
        r"there to download again, or put PubMed\.npz into",
    ):
        load_graph("PubMed", tmp_path)


def test_a_processed_file_cut_short_is_one_sentence(tmp_path):
    put_shchur(tmp_path / "CS/raw/ms_academic_cs.npz")
    load_graph("CoauthorCS", tmp_path)
    path = tmp_path / "CS" / "processed" / "data.pt"
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(GraphError, match=r"CoauthorCS: PyG cannot read its files in"):
        load_graph("CoauthorCS", tmp_path)
