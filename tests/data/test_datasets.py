from pathlib import Path

import numpy as np
import pytest

from gpn_scale.data.building import build_graph
from gpn_scale.data.datasets import DATASET_NAMES, DOWNLOADED_NAMES, load_graph
from gpn_scale.data.graph import Graph
from gpn_scale.data.graph_folder import save_graph
from gpn_scale.data.npz import write_npz
from gpn_scale.errors import ConfigError, GraphError
from tests.data.raw_files import put_shchur
from tests.data.test_ogb import put_files
from tests.data.test_ogb_files import PAPERS, PRODUCTS, put_dataset


def path_graph(num_nodes: int, name: str = "g") -> Graph:
    return build_graph(np.arange(num_nodes - 1), np.arange(1, num_nodes), name=name)


def put_tables(folder: Path) -> None:
    folder.mkdir()
    (folder / "nodes.csv").write_text("id\na\nb\n")
    (folder / "edges.csv").write_text("source,target\na,b\n")


def test_the_papers_datasets_are_read_from_raw_files(tmp_path):
    put_shchur(tmp_path / "cora_ml" / "raw" / "cora_ml.npz")
    assert load_graph("CoraML", tmp_path).num_nodes == 3


def test_ogbn_arxiv_is_read_from_raw_files(tmp_path):
    assert load_graph("ogbn-arxiv", put_files(tmp_path)).num_nodes == 4


def test_larger_datasets_of_ogb_are_read_from_raw_files(tmp_path):
    assert set(DATASET_NAMES) < set(DOWNLOADED_NAMES)
    for dataset in (PRODUCTS, PAPERS):
        put_dataset(tmp_path, dataset)
        assert load_graph(dataset.name, tmp_path).num_nodes == 4


def test_a_synthetic_name_is_generated(tmp_path):
    assert load_graph("synthetic:nodes=200", tmp_path).num_nodes == 200
    assert load_graph("synthetic:", tmp_path).name == "synthetic"
    with pytest.raises(ConfigError, match="nodes must be a whole number, got '1e4'"):
        load_graph("synthetic:nodes=1e4", tmp_path)


def test_the_data_folder_comes_before_pyg_and_ogb(tmp_path):
    for name in DOWNLOADED_NAMES:
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
    assert all(
        name in message for name in (*DOWNLOADED_NAMES, "synthetic", "my-graph", "my-tables")
    )
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
