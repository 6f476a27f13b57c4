"""One flipped bit in any file that a command reads: it ends with a sentence or with what it said.

Never with another answer, and never with a traceback.
"""

import shutil

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpn_scale.cli.predict import main as predict
from gpn_scale.cli.train import main as train
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph_folder import save_graph
from gpn_scale.train.checkpoint import load_tensors
from precompute.cli import main as precompute
from tests.ppr.cases import flip

SMALL = "synthetic:nodes=120,classes=3,features=8,separation=4"
NODES = [7, 0, 119, 7, 20, 21]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A graph folder, a store and a minibatch run, and what is predicted from them."""
    folder = tmp_path_factory.mktemp("whole")
    save_graph(load_graph(SMALL), folder / "g")
    graph = ["--dataset", "g", "--data-dir", str(folder)]
    store = ["--k", "8", "--clusters", "4", "--steps", "10", "--teleport", "0.1", "--threads", "1"]
    assert precompute([*graph, "--out", str(folder / "store"), *store]) == 0
    assert train([*graph, *training(folder), "--out", str(folder / "run")]) == 0
    (folder / "nodes.txt").write_text("".join(f"{node}\n" for node in NODES))
    assert predicted(folder, folder / "some.parquet") == 0
    return folder


def training(folder):
    options = ["--mode", "minibatch", "--ppr", str(folder / "store"), "--epochs", "1"]
    return [*options, "--threads", "1", "--set", "minibatch.tail_nodes=64", "--device", "cpu"]


def predicted(folder, out):
    options = ["--dataset", "g", "--data-dir", str(folder), "--run", str(folder / "run")]
    options += ["--nodes", str(folder / "nodes.txt"), "--ppr", str(folder / "store")]
    return predict([*options, "--device", "cpu", "--out", str(out)])


def damaged_copy(folder, target, data, patterns):
    """A copy of the folder with one flipped bit in a file that matches a pattern."""
    shutil.copytree(folder, target)
    files = sorted(path for pattern in patterns for path in target.glob(pattern))
    path = data.draw(st.sampled_from(files), label="file")
    place = data.draw(st.integers(0, path.stat().st_size - 1), label="byte")
    flip(path, place, data.draw(st.integers(0, 7), label="bit"))
    return target


STORE = ["store/*.ppr", "store/*.npy", "store/manifest.json"]


@settings(max_examples=40)
@given(data=st.data())
def test_a_prediction_of_some_nodes(folder, tmp_path_factory, data):
    target = tmp_path_factory.mktemp("flipped") / "copy"
    damaged_copy(folder, target, data, [*STORE, "run/model.safetensors", "g/*"])
    code = predicted(target, target / "again.parquet")
    assert code in (0, 2)
    if code == 0:
        again, before = (
            pq.read_table(path) for path in (target / "again.parquet", folder / "some.parquet")
        )
        assert again.equals(before)


@settings(max_examples=10)
@given(data=st.data())
def test_a_training(folder, tmp_path_factory, data):
    target = tmp_path_factory.mktemp("flipped") / "copy"
    damaged_copy(folder, target, data, STORE)
    graph = ["--dataset", "g", "--data-dir", str(folder)]
    code = train([*graph, *training(target), "--out", str(target / "again")])
    assert code in (0, 2)
    if code == 0:
        again, before = (
            load_tensors(path / "model.safetensors")[0]
            for path in (target / "again", folder / "run")
        )
        assert again.keys() == before.keys()
        assert all(again[name].equal(before[name]) for name in before)
