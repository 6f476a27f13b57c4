import hashlib
import os
import subprocess
import sys

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph
from gpn_scale.diffusion.transition import transition_matrix
from precompute import exact_mass
from precompute.clusters import partition_nodes
from precompute.exact_mass import (
    arriving_mass,
    diffused_columns,
    mass_by_cluster,
    summed_columns,
)
from precompute.mpi import SingleProcess
from tests.oracles import dense_diffusion, dense_transition
from tests.precompute.test_mpi import MPIEXEC, REPOSITORY
from tests.strategies import graphs


def large_graph(num_nodes):
    return synthetic_graph(SyntheticConfig(nodes=num_nodes, features=2))


def matrix_of(graph, normalisation="rw", self_loops=True):
    transition = transition_matrix(graph, normalisation, self_loops)
    return transition.indptr, transition.indices, transition.weight.astype(np.float32)


def masses_of(graph, cluster, num_clusters, **options):
    options = {"teleport": 0.2, "steps": 5, "comm": SingleProcess(), **options}
    return mass_by_cluster(*matrix_of(graph), cluster, num_clusters, **options)


@given(graph=graphs(), num_clusters=st.integers(1, 20), data=st.data())
def test_rows_of_some_nodes_have_the_bytes_of_all_rows(graph, num_clusters, data):
    cluster = (np.arange(graph.num_nodes) * 7 % num_clusters).astype(np.int32)
    node = st.integers(0, graph.num_nodes - 1)
    nodes = np.array(sorted(data.draw(st.sets(node))), np.int64)
    everything = masses_of(graph, cluster, num_clusters)
    some = masses_of(graph, cluster, num_clusters, nodes=nodes)
    assert some.shape == (len(nodes), num_clusters)
    assert some.tobytes() == everything[nodes].tobytes()
    assert summed_columns(some).tobytes() == summed_columns(everything)[nodes].tobytes()
    np.testing.assert_allclose(summed_columns(some), some.sum(1, dtype=np.float64))


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
    assert got.dtype == np.float64
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


@given(graph=graphs(), num_clusters=st.integers(1, 20), steps=st.integers(0, 12))
def test_mass_by_cluster_is_a_sum_over_nodes_and_adds_up_to_one(graph, num_clusters, steps):
    cluster = (
        np.random.default_rng(num_clusters)
        .integers(0, num_clusters, graph.num_nodes)
        .astype(np.int32)
    )
    got = masses_of(graph, cluster, num_clusters, steps=steps)
    dense = dense_diffusion(dense_transition(graph, "rw", True), 0.2, steps)
    np.testing.assert_allclose(got, dense @ np.eye(num_clusters)[cluster], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(got.sum(1), 1.0, rtol=1e-6)


def test_a_hub_of_many_small_weights_loses_nothing(sized):
    # A sum of 200,000 equal float32 numbers in float32 would be off by 1e-3.
    leaves = sized(200_000, 20_000)
    graph = build_graph(
        np.zeros(leaves, np.int64), np.arange(1, leaves + 1), name="star", num_nodes=leaves + 1
    )
    cluster = np.ones(leaves + 1, np.int32)
    cluster[0] = 0
    masses = masses_of(graph, cluster, 2, steps=9)
    np.testing.assert_allclose(masses.sum(1, dtype=np.float64), 1.0, rtol=1e-6)


def test_bytes_do_not_depend_on_threads_or_blocks(sized, monkeypatch):
    graph = large_graph(sized(2000, 200))
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
        monkeypatch.setattr(exact_mass, "COLUMNS_AT_A_TIME", block)
        monkeypatch.setattr(exact_mass, "_NUM_TASKS", tasks)
        np.testing.assert_array_equal(masses_of(graph, cluster, 21), expected)


@pytest.mark.mpi
@pytest.mark.skipif(not MPIEXEC.exists(), reason="the mpich wheel is not installed")
@pytest.mark.parametrize(("num_ranks", "ranks_per_machine"), [(2, None), (2, 1), (4, 2)])
def test_ranks_get_the_same_bytes_as_one_process(num_ranks, ranks_per_machine):
    graph = large_graph(2000)
    code = f"""
import hashlib, sys
import numpy as np
from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph
from gpn_scale.diffusion.transition import transition_matrix
from precompute.clusters import partition_nodes
from precompute.exact_mass import mass_by_cluster
from precompute.mpi import MPIComm
graph = synthetic_graph(SyntheticConfig(nodes=2000, features=2))
step = transition_matrix(graph, "rw", True)
matrix = (step.indptr, step.indices, step.weight.astype(np.float32))
comm = MPIComm({ranks_per_machine})
for num_clusters in (21, 1):
    cluster = partition_nodes(graph, num_clusters)
    masses = mass_by_cluster(*matrix, cluster, num_clusters, teleport=0.2, steps=5, comm=comm)
    sys.stdout.write(f"{{num_clusters}} {{hashlib.sha256(masses.tobytes()).hexdigest()}}\\n")
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
    for num_clusters in (21, 1):
        masses = masses_of(graph, partition_nodes(graph, num_clusters), num_clusters)
        digest = hashlib.sha256(masses.tobytes()).hexdigest()
        expected += num_ranks * [f"{num_clusters} {digest}"]
    assert sorted(done.stdout.splitlines()) == sorted(expected)
