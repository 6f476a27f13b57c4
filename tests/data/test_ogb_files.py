"""Tiny files in the layouts of OGB's datasets become the graphs that are built in memory."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from gpn_scale.data import ogb_files
from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import Split
from gpn_scale.data.ogb_files import OGB_DATASETS, read_ogb
from gpn_scale.errors import GraphError
from tests.strategies import assert_same_graph

PRODUCTS, PAPERS = OGB_DATASETS["ogbn-products"], OGB_DATASETS["ogbn-papers100M"]
EDGES = np.array([[0, 1, 3, 2, 1], [1, 2, 1, 2, 0]])
FEATURES = np.array([[1, 0.5], [2, 0.25], [3, 0], [4, -1e-3]], np.float32)
LABELS = [0, 1, 0, 1]
SPLIT = {"train": [0, 1], "valid": [2], "test": [3]}


def put_gzip(path: Path, rows) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(",".join(map(repr, row)) + "\n" for row in np.asarray(rows).tolist())
    path.write_bytes(gzip.compress(text.encode()))


def put_dataset(root: Path, dataset, save=np.savez_compressed, **changed) -> Path:
    """Write the files of a dataset; return its folder."""
    folder = root / dataset.folder
    for subset, nodes in SPLIT.items():
        put_gzip(folder / "split" / dataset.split / f"{subset}.csv.gz", [[node] for node in nodes])
    labels = np.array([[label] for label in LABELS])
    if not dataset.is_binary:
        tables = {"edge": EDGES.T, "node-feat": FEATURES.astype(float), "node-label": labels}
        tables |= {"num-node-list": [[4]], "num-edge-list": [[5]]} | changed
        for name, rows in tables.items():
            put_gzip(folder / "raw" / f"{name}.csv.gz", rows)
        return folder
    (folder / "raw").mkdir(parents=True, exist_ok=True)
    arrays = {"edge_index": EDGES, "node_feat": FEATURES, "node_year": np.full((4, 1), 2020)}
    arrays |= {"num_nodes_list": np.array([4]), "num_edges_list": np.array([5])} | changed
    label = arrays.pop("node_label", np.array([[0.0], [1.0], [0.0], [1.0]], np.float32))
    save(folder / "raw" / "data.npz", **arrays)
    save(folder / "raw" / "node-label.npz", node_label=label)
    return folder


def expected(name, labels=LABELS):
    split = Split(train=SPLIT["train"], val=SPLIT["valid"], test=SPLIT["test"])
    return build_graph(*EDGES, name=name, features=FEATURES, labels=labels, split=split)


@pytest.mark.parametrize("memory_bytes", [0, 1 << 20])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_files_are_read(tmp_path, save, memory_bytes):
    graph = read_ogb(put_dataset(tmp_path, PAPERS, save), PAPERS, tmp_path, memory_bytes)
    assert_same_graph(graph, expected(PAPERS.name))
    assert isinstance(graph.features, np.memmap) == (save is np.savez or memory_bytes == 0)
    assert [path.name for path in tmp_path.iterdir()] == [PAPERS.folder]


@pytest.mark.parametrize("memory_bytes", [0, 1 << 20])
def test_csv_files_are_read_in_blocks(tmp_path, monkeypatch, memory_bytes):
    monkeypatch.setattr(ogb_files, "_BLOCK_BYTES", 32)
    graph = read_ogb(put_dataset(tmp_path, PRODUCTS), PRODUCTS, tmp_path, memory_bytes)
    assert_same_graph(graph, expected(PRODUCTS.name))
    assert isinstance(graph.features, np.memmap) == (memory_bytes == 0)


def test_a_node_without_a_label_stays_in_the_graph(tmp_path):
    folder = put_dataset(tmp_path, PAPERS, node_label=np.array([[0.0], [1.0], [np.nan], [0.0]]))
    with pytest.raises(GraphError, match="val holds node 2, which has no label"):
        read_ogb(folder, PAPERS, None, 0)
    put_gzip(folder / "split" / "time" / "valid.csv.gz", [[3]])
    put_gzip(folder / "split" / "time" / "test.csv.gz", [[1]])
    with pytest.raises(GraphError, match="more than one of train, val and test"):
        read_ogb(folder, PAPERS, None, 0)
    put_gzip(folder / "split" / "time" / "train.csv.gz", [[0]])
    with pytest.raises(GraphError, match="class 1 has no node in the training set"):
        read_ogb(folder, PAPERS, None, 0)
    put_gzip(folder / "split" / "time" / "train.csv.gz", [[0], [1]])
    put_gzip(folder / "split" / "time" / "test.csv.gz", [[3]])
    np.savez(folder / "raw" / "node-label.npz", node_label=[[0], [0], [-1], [0]])
    put_gzip(folder / "split" / "time" / "valid.csv.gz", [[1]])
    put_gzip(folder / "split" / "time" / "train.csv.gz", [[0]])
    assert read_ogb(folder, PAPERS, None, 0).labels.tolist() == [0, 0, -1, 0]
    np.savez(folder / "raw" / "node-label.npz", node_label=[[0.0], [0.0], [np.nan], [0.0]])
    assert read_ogb(folder, PAPERS, None, 0).labels.tolist() == [0, 0, -1, 0]


@pytest.mark.parametrize(
    ("dataset", "changed", "message"),
    [
        (PRODUCTS, {"edge": [[0, 1]]}, r"edge\.csv\.gz holds a table of 1 rows and 2 columns"),
        (PRODUCTS, {"edge": [[0, 9]] * 5}, r"'ogbn-products': an edge names node 9, expected"),
        (PRODUCTS, {"node-feat": [[1.0]]}, r"node-feat\.csv\.gz holds a table of 1 rows"),
        (PRODUCTS, {"node-label": [[0]]}, r"node-label\.csv\.gz holds a table of 1 rows"),
        (PAPERS, {"edge_index": EDGES.T}, r"edge_index is int64 of shape \(5, 2\), expected"),
        (PAPERS, {"edge_index": EDGES - 1}, r"an edge names node -1, expected nodes in \[0, 4\)"),
        (PAPERS, {"edge_index": EDGES * 1.0}, r"edge_index is float64 of shape"),
        (PAPERS, {"node_feat": FEATURES[:3]}, r"node_feat is float32 of shape \(3, 2\)"),
        (PAPERS, {"node_feat": FEATURES * np.nan}, r"features hold NaN or infinity at node 0"),
        (PAPERS, {"num_nodes_list": np.array([4, 5])}, r"num_nodes_list is int64 of shape \(2,"),
        (PAPERS, {"node_label": np.array([[0.5]] * 4)}, r"a label that is no whole number"),
        (PAPERS, {"node_label": np.array([0.0] * 4)}, r"node_label is float64 of shape \(4,\)"),
    ],
)
def test_files_that_do_not_fit_together_are_refused(tmp_path, dataset, changed, message):
    with pytest.raises(GraphError, match=message):
        read_ogb(put_dataset(tmp_path, dataset, **changed), dataset, tmp_path, 0)


def test_the_folders_and_splits_are_those_of_ogb():
    """OGB's own table of datasets, and the names that its reader derives from it."""
    from importlib.util import find_spec

    master = Path(find_spec("ogb").submodule_search_locations[0]) / "nodeproppred" / "master.csv"
    header, *rows = [line.split(",") for line in master.read_text().splitlines()]
    for dataset in OGB_DATASETS.values():
        facts = {row[0]: row[header.index(dataset.name)] for row in rows}
        assert (facts["download_name"], facts["split"]) == (dataset.archive, dataset.split)
        assert facts["binary"] == str(dataset.is_binary)
