"""Stores built through the command line: rows, bytes, resuming and ranks."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from gpn_scale.data.npz import write_npz
from gpn_scale.data.splits import prepare_graph
from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph
from gpn_scale.ppr.store import PPRStore
from gpn_scale.recipes import recipe_for
from precompute.build import build_store, plan_store, rows_per_shard
from tests.oracles import dense_diffusion, dense_ppr, dense_transition
from tests.precompute.command import PUSH, REPOSITORY, arguments, build, content
from tests.precompute.engines import config_of, random_graph

MPIEXEC = Path(sys.executable).parent / "mpiexec"


METHODS = [
    ["--steps", "inf", "--normalisation", "rw", "--clusters", "0"],
    ["--steps", "inf", "--normalisation", "sym", "--clusters", "4"],
    ["--steps", "3", "--clusters", "2"],
    ["--steps", "inf", *PUSH, "--clusters", "3"],
    ["--steps", "3", *PUSH, "--normalisation", "rw", "--clusters", "2"],
]


@pytest.mark.parametrize("more", METHODS, ids=" ".join)
def test_a_store_holds_the_rows_of_the_diffusion(graph, data, tmp_path, more):
    assert build(data, tmp_path / "s", "--teleport", "0.2", *more) == 0
    store = PPRStore.open(tmp_path / "s", graph_fingerprint=graph.structure_fingerprint())
    normalisation = store.parameters["normalisation"]
    transition = dense_transition(graph, normalisation, True)
    if store.parameters["steps"] == "inf":
        truth = dense_ppr(transition, 0.2)
    else:
        truth = dense_diffusion(transition, 0.2, int(store.parameters["steps"]))
    rows = store.rows(np.arange(graph.num_nodes))
    dense = np.zeros_like(truth)
    dense[np.repeat(np.arange(graph.num_nodes), np.diff(rows.row_ptr)), rows.ids] = rows.weights
    assert (dense <= truth + 1e-5).all()
    np.testing.assert_allclose(dense.sum(1) + rows.missing_mass, truth.sum(1), atol=2e-5)
    best = -np.sort(-truth, axis=1)[:, :8].sum(1)
    assert (dense.sum(1) >= 0.8 * best).mean() > 0.9
    if store.num_clusters:
        one_hot = np.eye(store.num_clusters)[store.cluster_of_node]
        np.testing.assert_allclose(rows.cut_mass, (truth - dense) @ one_hot, atol=2e-3)
        np.testing.assert_allclose(store.cut_mass_of_node, (truth - dense).sum(0), atol=1e-4)


@pytest.mark.parametrize("more", METHODS[1:4], ids=" ".join)
def test_equal_bytes_for_any_number_of_threads(data, tmp_path, more):
    assert build(data, tmp_path / "one", "--threads", "1", *more) == 0
    assert build(data, tmp_path / "two", "--threads", "2", *more) == 0
    assert content(tmp_path / "one") == content(tmp_path / "two")


@pytest.mark.mpi
@pytest.mark.skipif(not MPIEXEC.exists(), reason="no mpiexec beside this Python")
@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("more", METHODS[1:4], ids=" ".join)
def test_equal_bytes_for_any_number_of_ranks(data, tmp_path, more, ranks):
    more = [*more, "--dataset", "synthetic:nodes=4000,features=1"]  # several blocks a sweep
    assert build(data, tmp_path / "one", *more) == 0
    command = [MPIEXEC, "-n", str(ranks), sys.executable, "-m", "precompute"]
    command += arguments(data, tmp_path / "many", "--threads", "1", *more)
    result = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert content(tmp_path / "one") == content(tmp_path / "many")


@pytest.mark.mpi
@pytest.mark.skipif(not MPIEXEC.exists(), reason="no mpiexec beside this Python")
@pytest.mark.parametrize("method", ["sweep", "push"])
def test_another_number_of_ranks_may_resume(data, tmp_path, method):
    out = tmp_path / "s"
    assert build(data, out, "--method", method, "--clusters", "2") == 0
    before = content(out)
    (out / "manifest.json").unlink()
    (out / "shard-00001.ppr").unlink()
    command = [MPIEXEC, "-n", "2", sys.executable, "-m", "precompute"]
    command += arguments(data, out, "--method", method, "--clusters", "2", "--resume")
    subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=True)
    assert content(out) == before


@pytest.mark.mpi
@pytest.mark.skipif(not MPIEXEC.exists(), reason="no mpiexec beside this Python")
def test_a_failing_job_leaves_one_sentence_and_no_manifest(data, tmp_path):
    command = [MPIEXEC, "-n", "2", sys.executable, "-m", "precompute"]
    command += arguments(data, tmp_path / "s", "--k", "100000")
    result = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert result.returncode == 2
    assert "k is 100000, expected at most 700, the number of nodes" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "s" / "manifest.json").exists()


def test_a_killed_build_resumes_to_the_same_bytes(data, tmp_path, sized):
    tolerance = sized("1e-7", "1e-3")
    more = ["--method", "push", "--push-tolerance", tolerance, "--threads", "1"]
    assert build(data, tmp_path / "whole", *more) == 0
    command = [sys.executable, "-m", "precompute", *arguments(data, tmp_path / "cut", *more)]
    with subprocess.Popen(command, cwd=REPOSITORY, stderr=subprocess.DEVNULL) as process:
        while not list((tmp_path / "cut").glob("shard-*")) and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    former = json.loads((tmp_path / "cut" / "build_seconds.json").read_text())["seconds"]
    assert build(data, tmp_path / "cut", *more, "--resume") == 0
    assert PPRStore.open(tmp_path / "cut").build_seconds > former > 0.0
    assert content(tmp_path / "whole") == content(tmp_path / "cut")


def test_roots_from_a_file_or_a_set(graph, data, tmp_path):
    (tmp_path / "roots.txt").write_text("5\n3\n600\n")
    assert build(data, tmp_path / "s", "--roots", str(tmp_path / "roots.txt")) == 0
    store = PPRStore.open(tmp_path / "s")
    assert store.roots.tolist() == [3, 5, 600]
    assert store.parameters["method"] == "push"
    assert 5 in store.row(5)[0]
    assert build(data, tmp_path / "l", "--roots", "labelled") == 0
    assert PPRStore.open(tmp_path / "l").num_roots == (graph.labels >= 0).sum()
    assert build(data, tmp_path / "t", "--roots", "train") == 0
    split = prepare_graph(graph, recipe_for("g", graph)).split
    expected = sorted([*split.train, *split.val])
    assert PPRStore.open(tmp_path / "t").roots.tolist() == expected


def test_a_directory_of_something_else_is_refused(data, tmp_path, capsys):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "thesis.txt").write_text("mine")
    assert build(data, tmp_path / "s", "--overwrite") == 2
    assert "error: " in capsys.readouterr().err
    assert (tmp_path / "s" / "thesis.txt").read_text() == "mine"


def test_a_store_is_not_written_over_or_resumed_with_other_parameters(data, tmp_path, capsys):
    assert build(data, tmp_path / "s") == 0
    assert build(data, tmp_path / "s") == 2
    assert build(data, tmp_path / "s", "--resume", "--teleport", "0.3") == 2
    assert "teleport" in capsys.readouterr().err
    assert build(data, tmp_path / "s", "--overwrite", "--teleport", "0.3") == 0


def test_a_store_of_another_graph_is_refused(data, tmp_path, capsys):
    other = synthetic_graph(SyntheticConfig(nodes=600, classes=3, features=4, rng_seed=2))
    write_npz(other, tmp_path / "g.npz")
    assert build(data, tmp_path / "s") == 0
    assert build(tmp_path, tmp_path / "s", "--resume") == 2
    assert "graph" in capsys.readouterr().err


def test_shard_sizes_are_bounded():
    assert rows_per_shard(1) == 256
    assert rows_per_shard(10**6) == 15625
    assert rows_per_shard(10**9) == 1 << 16


def test_the_time_of_a_build_is_recorded_and_summed(tmp_path, monkeypatch):
    graph, config, out = random_graph(300), config_of(k=4, clusters=2), tmp_path / "s"
    build_store(graph, config, out)
    first = PPRStore.open(out).build_seconds
    assert first > 0.0
    before = content(out)
    build_store(graph, config, out, existing="resume")  # finds nothing to do
    assert PPRStore.open(out).build_seconds == first
    (out / "shard-00001.ppr").unlink()
    build_store(graph, config, out, existing="resume")
    assert PPRStore.open(out).build_seconds > first
    assert content(out) == before
    (out / "build_seconds.json").write_text('{"seconds": 1e6}')
    build_store(graph, config, out, existing="overwrite")
    assert PPRStore.open(out).build_seconds < 1e6


def test_a_plan_is_the_one_of_the_build_and_writes_nothing(tmp_path):
    graph, config, messages = random_graph(300), config_of(k=4, clusters=2), []
    plan = plan_store(graph, config, say=messages.append)
    assert messages[-1] == plan.table()
    assert list(tmp_path.iterdir()) == []
    built = build_store(graph, config, tmp_path / "s")
    assert (plan.config, plan.mean_kept_mass, plan.disk_bytes) == (
        built.config,
        built.mean_kept_mass,
        built.disk_bytes,
    )
