import hashlib
import logging
import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph
from gpn_scale.diffusion.transition import transition_matrix
from gpn_scale.errors import ConfigError
from precompute import clusters, coarsening
from precompute.clusters import (
    arriving_mass,
    cluster_masses,
    diffused_columns,
    partition_nodes,
)
from precompute.mpi import SingleProcess
from tests.oracles import dense_diffusion, dense_transition
from tests.strategies import graphs

REPOSITORY = Path(__file__).parents[2]
MPIEXEC = Path(sys.executable).parent / "mpiexec"


def ring(num_nodes, *, isolated=0, directed=False):
    source = np.arange(num_nodes)
    return build_graph(
        source,
        (source + 1) % max(num_nodes, 1),
        name="ring",
        num_nodes=num_nodes + isolated,
        directed=directed,
    )


def matrix_of(graph, normalisation="rw", self_loops=True):
    transition = transition_matrix(graph, normalisation, self_loops)
    return transition.indptr, transition.indices, transition.weight.astype(np.float32)


def masses_of(graph, cluster, parts, **options):
    options = {"teleport": 0.2, "steps": 5, "comm": SingleProcess(), **options}
    return cluster_masses(*matrix_of(graph), cluster, parts, **options)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("parts", [2, 5, 12])
def test_clusters_are_of_like_size_and_cut_few_edges(parts, directed):
    graph = ring(600, directed=directed)
    cluster = partition_nodes(graph, parts)
    assert cluster.dtype == np.int32
    sizes = np.bincount(cluster, minlength=parts)
    assert sizes.max() <= 2 * 600 / parts
    assert np.count_nonzero(cluster != np.roll(cluster, 1)) <= 3 * parts
    np.testing.assert_array_equal(cluster, partition_nodes(graph, parts), strict=True)


@pytest.mark.parametrize("isolated", [1, 90, 5000])
def test_isolated_nodes_fill_the_smaller_clusters(isolated):
    cluster = partition_nodes(ring(100, isolated=isolated), 10)
    sizes = np.bincount(cluster, minlength=10)
    assert sizes.sum() == 100 + isolated
    assert len(np.unique(cluster[:100])) == 10  # the ring is divided as if it were alone
    assert sizes.max() <= max(-(-(100 + isolated) // 10), np.bincount(cluster[:100]).max())


@settings(max_examples=200)
@given(graph=graphs(), parts=st.integers(1, 12))
def test_every_graph_has_clusters(graph, parts):
    cluster = partition_nodes(graph, parts)
    assert cluster.shape == (graph.num_nodes,)
    assert cluster.dtype == np.int32
    assert ((cluster >= 0) & (cluster < parts)).all()


@pytest.mark.parametrize(("num_nodes", "parts"), [(1, 1), (1, 4), (5, 1), (40, 39), (3, 99)])
def test_more_clusters_than_nodes_and_other_corners(num_nodes, parts):
    graph = build_graph(
        np.arange(num_nodes), np.zeros(num_nodes, np.int64), name="star", num_nodes=num_nodes
    )
    cluster = partition_nodes(graph, parts)
    assert cluster.shape == (num_nodes,)
    assert ((cluster >= 0) & (cluster < parts)).all()
    if parts == 1:
        assert not cluster.any()


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("isolated", [0, 40, 5000])
def test_clusters_of_a_coarsened_graph(isolated, directed, monkeypatch):
    graph = ring(1000, isolated=isolated, directed=directed)
    monkeypatch.setattr(coarsening, "METIS_EDGES", 100)
    cluster = partition_nodes(graph, 5)
    on_ring = cluster[:1000]
    assert cluster.dtype == np.int32
    assert ((cluster >= 0) & (cluster < 5)).all()
    assert len(np.unique(on_ring)) == 5
    assert np.count_nonzero(on_ring != np.roll(on_ring, 1)) <= 3 * 5
    largest = max(-(-(1000 + isolated) // 5), np.bincount(on_ring).max())
    assert np.bincount(cluster).max() <= largest


def test_coarsened_clusters_do_not_depend_on_threads_and_cut_about_what_metis_cuts(
    graph, monkeypatch
):
    def cut(cluster):
        source = np.repeat(cluster, np.diff(graph.indptr))
        return np.mean(source != cluster[graph.indices])

    whole = partition_nodes(graph, 4)
    monkeypatch.setattr(coarsening, "METIS_EDGES", graph.num_edges // 4)
    expected = partition_nodes(graph, 4)
    assert (expected != whole).any()
    assert cut(expected) <= 1.3 * cut(whole)
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        np.testing.assert_array_equal(partition_nodes(graph, 4), expected, strict=True)
    finally:
        numba.set_num_threads(before)


@pytest.mark.parametrize("parts", [0, -3])
def test_no_clusters_are_refused(parts):
    with pytest.raises(ConfigError, match=f"clusters is {parts}, expected at least 1"):
        partition_nodes(ring(4), parts)


def test_without_pymetis_clusters_are_blocks_and_it_says_so(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with caplog.at_level(logging.WARNING):
        cluster = partition_nodes(ring(7), 3)
    np.testing.assert_array_equal(cluster, np.array([0, 0, 0, 1, 1, 2, 2], np.int32), strict=True)
    assert "pymetis is not installed" in caplog.text


@given(
    graph=graphs(),
    normalisation=st.sampled_from(["rw", "sym"]),
    self_loops=st.booleans(),
    teleport=st.sampled_from([0.05, 0.2, 0.9]),
    steps=st.integers(0, 12),
    num_columns=st.integers(0, 20),
)
def test_diffused_columns_are_those_of_the_dense_matrix(
    graph, normalisation, self_loops, teleport, steps, num_columns
):
    rng = np.random.default_rng(steps)
    columns = rng.standard_normal((graph.num_nodes, num_columns)).astype(np.float32)
    before = columns.copy()
    matrix = matrix_of(graph, normalisation, self_loops)
    got = diffused_columns(*matrix, columns, teleport=teleport, steps=steps)
    dense = dense_diffusion(dense_transition(graph, normalisation, self_loops), teleport, steps)
    assert got.dtype == np.float32
    assert got.shape == columns.shape
    # Rows of sym can sum to more than 1, up to the root of the largest ratio of weights.
    np.testing.assert_allclose(
        got, dense @ columns, rtol=1e-5, atol=1e-5 * (1 + dense.sum(1).max())
    )
    np.testing.assert_array_equal(columns, before)


@given(
    graph=graphs(),
    normalisation=st.sampled_from(["rw", "sym"]),
    teleport=st.sampled_from([0.05, 0.2, 0.9]),
    steps=st.integers(0, 12),
)
def test_arriving_mass_is_the_sum_of_dense_rows(graph, normalisation, teleport, steps):
    start = np.random.default_rng(steps).random(graph.num_nodes)
    before = start.copy()
    matrix = matrix_of(graph, normalisation, True)
    got = arriving_mass(*matrix, start, teleport=teleport, steps=steps)
    dense = dense_diffusion(dense_transition(graph, normalisation, True), teleport, steps)
    np.testing.assert_allclose(got, start @ dense, rtol=1e-6)
    np.testing.assert_array_equal(start, before)


@given(graph=graphs(), parts=st.integers(1, 20), steps=st.integers(0, 12))
def test_cluster_masses_are_sums_over_clusters_and_add_up_to_one(graph, parts, steps):
    cluster = np.random.default_rng(parts).integers(0, parts, graph.num_nodes).astype(np.int32)
    got = masses_of(graph, cluster, parts, steps=steps)
    dense = dense_diffusion(dense_transition(graph, "rw", True), 0.2, steps)
    np.testing.assert_allclose(got, dense @ np.eye(parts)[cluster], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(got.sum(1), 1.0, rtol=1e-6)


def test_a_hub_of_many_small_weights_loses_nothing():
    # A sum of 200,000 equal float32 numbers in float32 would be off by 1e-3.
    leaves = 200_000
    graph = build_graph(
        np.zeros(leaves, np.int64), np.arange(1, leaves + 1), name="star", num_nodes=leaves + 1
    )
    cluster = np.ones(leaves + 1, np.int32)
    cluster[0] = 0
    masses = masses_of(graph, cluster, 2, steps=9)
    np.testing.assert_allclose(masses.sum(1, dtype=np.float64), 1.0, rtol=1e-6)


@pytest.fixture(scope="module")
def graph():
    return synthetic_graph(SyntheticConfig(nodes=2000, features=2))


def test_bytes_do_not_depend_on_threads_or_blocks(graph, monkeypatch):
    cluster = partition_nodes(graph, 21)
    expected = masses_of(graph, cluster, 21)
    before = numba.get_num_threads()
    try:
        for num_threads in range(1, numba.config.NUMBA_NUM_THREADS + 1):
            numba.set_num_threads(num_threads)
            np.testing.assert_array_equal(masses_of(graph, cluster, 21), expected)
    finally:
        numba.set_num_threads(before)
    for block, tasks in [(1, 1), (7, 3), (64, 5000)]:
        monkeypatch.setattr(clusters, "COLUMNS_AT_A_TIME", block)
        monkeypatch.setattr(clusters, "_NUM_TASKS", tasks)
        np.testing.assert_array_equal(masses_of(graph, cluster, 21), expected)


@pytest.mark.mpi
@pytest.mark.skipif(not MPIEXEC.exists(), reason="the mpich wheel is not installed")
@pytest.mark.parametrize(("num_ranks", "ranks_per_machine"), [(2, None), (2, 1), (4, 2)])
def test_ranks_get_the_same_bytes_as_one_process(graph, num_ranks, ranks_per_machine):
    code = f"""
import hashlib, sys
import numpy as np
from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph
from gpn_scale.diffusion.transition import transition_matrix
from precompute.clusters import cluster_masses, partition_nodes
from precompute.mpi import MPIComm
graph = synthetic_graph(SyntheticConfig(nodes=2000, features=2))
step = transition_matrix(graph, "rw", True)
matrix = (step.indptr, step.indices, step.weight.astype(np.float32))
comm = MPIComm({ranks_per_machine})
for parts in (21, 1):
    cluster = partition_nodes(graph, parts)
    masses = cluster_masses(*matrix, cluster, parts, teleport=0.2, steps=5, comm=comm)
    sys.stdout.write(f"{{parts}} {{hashlib.sha256(masses.tobytes()).hexdigest()}}\\n")
assert "torch" not in sys.modules
"""
    done = subprocess.run(
        [str(MPIEXEC), "-n", str(num_ranks), sys.executable, "-c", code],
        cwd=REPOSITORY,
        env={**os.environ, "NUMBA_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    expected = []
    for parts in (21, 1):
        masses = masses_of(graph, partition_nodes(graph, parts), parts)
        digest = hashlib.sha256(masses.tobytes()).hexdigest()
        expected += num_ranks * [f"{parts} {digest}"]
    assert sorted(done.stdout.splitlines()) == sorted(expected)
