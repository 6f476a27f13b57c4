"""Stores built through the command line: bytes, resuming, ranks, refusals."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from gpn_scale.data.npz import write_npz
from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph
from gpn_scale.errors import GraphError
from gpn_scale.ppr.store import PPRStore
from precompute.build import check_same_graph, rows_per_shard
from precompute.cli import main
from precompute.mpi import SingleProcess
from precompute.partition import split_by_cost, sweep_blocks
from tests.oracles import dense_diffusion, dense_ppr, dense_transition

REPOSITORY = Path(__file__).parents[2]
MPIEXEC = Path(sys.executable).parent / "mpiexec"


@pytest.fixture(scope="module")
def graph():
    return synthetic_graph(SyntheticConfig(nodes=700, classes=3, features=4, degree=6))


@pytest.fixture(scope="module")
def data(graph, tmp_path_factory):
    """A folder that holds the graph as g.npz."""
    folder = tmp_path_factory.mktemp("data")
    write_npz(graph, folder / "g.npz")
    return folder


def arguments(data, out, *more):
    return ["--dataset", "g", "--data-dir", str(data), "--out", str(out), "--k", "8", *more]


def build(data, out, *more):
    return main(arguments(data, out, *more))


def content(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(path.iterdir())}


METHODS = [
    ["--steps", "inf", "--normalisation", "rw"],
    ["--steps", "inf", "--normalisation", "sym", "--clusters", "4"],
    ["--steps", "3", "--clusters", "2"],
    ["--steps", "inf", "--method", "push", "--push-tolerance", "1e-5"],
    ["--steps", "3", "--method", "push", "--normalisation", "rw", "--clusters", "2"],
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
        np.testing.assert_allclose(rows.cluster_mass, (truth - dense) @ one_hot, atol=2e-3)
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
    assert "k is 100000, expected at most the 700 nodes" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "s" / "manifest.json").exists()


def test_a_killed_build_resumes_to_the_same_bytes(data, tmp_path):
    more = ["--method", "push", "--push-tolerance", "1e-7", "--threads", "1"]
    assert build(data, tmp_path / "whole", *more) == 0
    command = [sys.executable, "-m", "precompute", *arguments(data, tmp_path / "cut", *more)]
    with subprocess.Popen(command, cwd=REPOSITORY, stderr=subprocess.DEVNULL) as process:
        while not list((tmp_path / "cut").glob("shard-*")) and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    assert build(data, tmp_path / "cut", *more, "--resume") == 0
    assert content(tmp_path / "whole") == content(tmp_path / "cut")


def test_a_damaged_shard_is_named_and_only_it_is_rebuilt(data, tmp_path, capsys):
    out = tmp_path / "s"
    assert build(data, out, "--method", "push") == 0
    before = content(out)
    shards = sorted(out.glob("shard-*"))
    assert len(shards) == 3
    damaged = bytearray(shards[1].read_bytes())
    damaged[-5] ^= 1
    shards[1].write_bytes(damaged)
    untouched = shards[0].stat().st_mtime_ns
    capsys.readouterr()
    assert main(["verify", str(out)]) == 1
    assert shards[1].name in capsys.readouterr().err
    assert build(data, out, "--method", "push", "--resume") == 0
    assert content(out) == before
    assert shards[0].stat().st_mtime_ns == untouched
    assert main(["verify", str(out)]) == 0


def test_the_command_word_may_be_left_out_and_info_tells_all(data, tmp_path, capsys):
    assert main(["ppr", *arguments(data, tmp_path / "s", "--clusters", "3")]) == 0
    capsys.readouterr()
    assert main(["info", str(tmp_path / "s")]) == 0
    text = capsys.readouterr().out
    assert "700 rows of 700 nodes" in text
    for word in ("teleport", "normalisation", "steps", "missing mass", "clusters        3"):
        assert word in text
    manifest = json.loads((tmp_path / "s" / "manifest.json").read_text())
    assert manifest["k"] == 8


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
    assert 0 < PPRStore.open(tmp_path / "t").num_roots < 100


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--teleport", "0"], r"diffusion.teleport is 0.0, expected a number in \(0, 1\)"),
        (["--teleport", "1"], "diffusion.teleport is 1.0"),
        (["--k", "0"], "k is 0, expected at least 1"),
        (["--k", "701"], "k is 701, expected at most the 700 nodes"),
        (["--keep", "4"], "keep is 4, expected 0, or at least k"),
        (["--push-tolerance", "0"], "push_tolerance is 0.0, expected"),
        (["--sweeps", "-1"], "sweeps is -1, expected at least 0"),
        (["--clusters", "-1"], "clusters is -1, expected at least 0"),
        (["--steps", "few"], "--steps got 'few', expected a whole number or inf"),
        (["--roots", "nowhere.txt"], "--roots nowhere.txt cannot be read"),
        (["--threads", "0"], "--threads got 0, expected at least 1"),
        (["--memory-budget", "-1"], "--memory-budget got -1.0, expected gigabytes"),
        (["--memory-budget", "0.000001"], "leaves 0 MiB for scratch, expected at least 1 MiB"),
        (["--dataset", "absent"], "absent"),
    ],
)
def test_bad_options_give_one_sentence(data, tmp_path, capsys, more, message):
    assert build(data, tmp_path / "s", *more) == 2
    errors = capsys.readouterr().err
    assert re.search(rf"^error: .*{message}", errors, re.MULTILINE)
    assert not (tmp_path / "s" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ("1\n1\n", "holds node 1 more than once"),
        ("1\n700\n", r"holds node 700, expected ids in \[0, 700\)"),
        ("-1\n", "holds node -1"),
        ("one\n", "cannot be read"),
    ],
)
def test_bad_roots_are_refused(data, tmp_path, capsys, ids, message):
    (tmp_path / "roots.txt").write_text(ids)
    assert build(data, tmp_path / "s", "--roots", str(tmp_path / "roots.txt")) == 2
    assert re.search(message, capsys.readouterr().err)


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


def test_less_memory_means_fewer_threads(data, tmp_path, capsys):
    budget = 700 * 16 * 1.5 / 1e9
    assert build(data, tmp_path / "s", "--threads", "2", "--memory-budget", str(budget)) == 0
    assert "scratch memory allows 1 of 2 threads" in capsys.readouterr().err


def test_ranks_with_different_graphs_are_refused(graph):
    class Disagreeing(SingleProcess):
        def allgather(self, value):
            return [value, "another"]

    with pytest.raises(GraphError, match="rank 1 has another graph than rank 0"):
        check_same_graph(graph, Disagreeing())


def test_the_first_use_says_that_it_compiles(data, tmp_path):
    command = [sys.executable, "-m", "precompute", "--plan-only"]
    command += arguments(data, tmp_path / "s")
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    for expected in (True, False):
        result = subprocess.run(
            command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True
        )
        assert ("compiling the kernels: once" in result.stderr) is expected


def test_no_torch_is_loaded():
    code = "import sys, precompute.cli; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=REPOSITORY)


@pytest.mark.parametrize("num_nodes", [1, 1023, 5000, 10**6])
def test_sweep_blocks_cover_all_nodes(num_nodes):
    blocks = sweep_blocks(num_nodes)
    assert blocks[0][0] == 0
    assert blocks[-1][1] == num_nodes
    assert all(a[1] == b[0] for a, b in pairwise(blocks))


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_costs_are_split_evenly(parts):
    degree = np.random.default_rng(0).integers(0, 50, size=1000)
    indptr = np.concatenate([[0], np.cumsum(degree)])
    ranges = split_by_cost(100, 900, indptr, parts)
    assert ranges[0][0] == 100
    assert ranges[-1][1] == 900
    costs = [indptr[b] - indptr[a] + b - a for a, b in ranges]
    assert max(costs) - min(costs) <= 110
    assert split_by_cost(3, 3, indptr, parts) == [(3, 3)] * parts


def test_shard_sizes_are_bounded():
    assert rows_per_shard(1) == 256
    assert rows_per_shard(10**6) == 15625
    assert rows_per_shard(10**9) == 1 << 16
