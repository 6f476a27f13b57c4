import os
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from gpn_scale.data.planetoid import PARTS, read_planetoid
from gpn_scale.data.pyg import graph_from_pyg
from gpn_scale.errors import GraphError
from tests.data.raw_files import Marker, put_planetoid
from tests.strategies import assert_same_graph

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)  # PyG's import
    from torch_geometric.io import read_planetoid_data


def put_random(folder: Path, prefix: str, test_nodes: np.ndarray, rng: np.random.Generator) -> None:
    folder.mkdir()
    known, num_test, width = int(test_nodes.min()), len(test_nodes), 30
    features = scipy.sparse.random(known + num_test, width, 0.1, "csr", np.float64, rng)
    features = scipy.sparse.csr_matrix(features)
    classes = np.eye(4, dtype=np.int32)[rng.integers(0, 4, known + num_test)]
    nodes = np.concatenate([np.arange(known), test_nodes])
    graph = {int(v): rng.choice(nodes, rng.integers(0, 6)).tolist() for v in rng.permutation(nodes)}
    parts = {
        "x": features[:20],
        "allx": features[:known],
        "tx": features[known:],
        "y": classes[:20],
        "ally": classes[:known],
        "ty": classes[known:],
        "graph": graph,
    }
    for key, part in parts.items():
        (folder / f"ind.{prefix}.{key}").write_bytes(pickle.dumps(part, protocol=2))
    (folder / f"ind.{prefix}.test.index").write_text("".join(f"{node}\n" for node in test_nodes))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("prefix", "skipped"), [("citeseer", 9), ("pubmed", 0)])
def test_the_graph_is_that_of_pygs_reader(tmp_path, prefix, skipped, seed):
    rng = np.random.default_rng(seed)
    test_nodes = rng.permutation(np.arange(530, 570))
    ends = [530, 569]
    test_nodes = test_nodes[np.isin(test_nodes, ends) | (rng.permutation(40) >= skipped)]
    put_random(tmp_path / "raw", prefix, test_nodes, rng)
    expected = graph_from_pyg(read_planetoid_data(str(tmp_path / "raw"), prefix), "g")
    before = sorted(os.listdir(tmp_path / "raw"))
    graph = read_planetoid(tmp_path / "raw", prefix, "g")
    assert_same_graph(graph, expected)
    assert graph.fingerprint() == expected.fingerprint()
    assert sorted(os.listdir(tmp_path / "raw")) == before  # nothing is written


@pytest.mark.parametrize("part", PARTS)
def test_no_part_is_run(tmp_path, part):
    put_planetoid(tmp_path / "raw", "citeseer", [504, 502])
    path, marker = tmp_path / "raw" / f"ind.citeseer.{part}", tmp_path / "marker"
    path.write_bytes(pickle.dumps(Marker(marker), protocol=2))
    with pytest.raises(GraphError, match=rf"ind\.citeseer\.{part}"):
        read_planetoid(tmp_path / "raw", "citeseer", "g")
    assert not marker.exists()


@pytest.mark.parametrize("part", PARTS)
def test_a_pipe_is_refused_at_once(tmp_path, part):
    put_planetoid(tmp_path / "raw", "citeseer", [504, 502])
    path = tmp_path / "raw" / f"ind.citeseer.{part}"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(GraphError, match=rf"{part} is a pipe \(FIFO\), expected a regular file"):
        read_planetoid(tmp_path / "raw", "citeseer", "g")


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("x", [1], r"\.x holds a list, expected a matrix"),
        ("y", np.zeros(3), r"\.y holds no array of nodes by classes"),
        ("y", np.zeros((3, 2)), r"\.x has 2 rows, but .*\.y has 3"),
        ("allx", scipy.sparse.csr_matrix((502, 9)), "different numbers of columns"),
        ("graph", [1], r"\.graph holds a list, expected a dictionary"),
        ("graph", {0: 7}, "something else than a list of neighbours"),
        ("graph", {0: [-1]}, "something else than a list of neighbours"),
        ("graph", {0: [1 << 40]}, "something else than a list of neighbours"),
        ("graph", {0: [700]}, r"\.graph has the node 700, but there are only 505"),
        ("graph", dict.fromkeys(range(400), [1] * 400), "something else than a list of neighbours"),
    ],
)
def test_parts_that_do_not_fit_are_refused(tmp_path, part, value, message):
    put_planetoid(tmp_path / "raw", "citeseer", [504, 502])
    path = tmp_path / "raw" / f"ind.citeseer.{part}"
    path.write_bytes(pickle.dumps(value, protocol=2))
    with pytest.raises(GraphError, match=message):
        read_planetoid(tmp_path / "raw", "citeseer", "g")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("502\nx\n", "one node id per line"),
        ("502\n-3\n", "one node id per line"),
        ("502\n", "holds 1 ids, expected 2 different"),
        ("502\n502\n", "holds 2 ids, expected 2 different"),
        ("502\n999999999\n", "to begin at 502, .*, and to stay below 522"),
        ("400\n502\n", "ids from 400 to 502, expected them to begin at 502"),
    ],
)
def test_test_nodes_that_do_not_fit_are_refused(tmp_path, text, message):
    put_planetoid(tmp_path / "raw", "citeseer", [504, 502])
    (tmp_path / "raw" / "ind.citeseer.test.index").write_text(text)
    with pytest.raises(GraphError, match=message):
        read_planetoid(tmp_path / "raw", "citeseer", "g")


def test_too_few_nodes_for_validation_are_refused(tmp_path):
    put_planetoid(tmp_path / "raw", "citeseer", [500])
    with pytest.raises(GraphError, match="expected the 2 training nodes and 500 more"):
        read_planetoid(tmp_path / "raw", "citeseer", "g")
