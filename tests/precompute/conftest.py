"""Fixtures of the tests of precompute, which also run with NUMBA_DISABLE_JIT=1."""

import os

import pytest

import precompute.build
from gpn_scale.data.npz import write_npz
from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph
from precompute import accuracy_targets
from precompute.build import build_store
from tests.precompute.command import INTERPRETED, content
from tests.precompute.parted import GRAPH, ONE_THREAD, ROWS_PER_SHARD, SINGLE, compute


@pytest.fixture(scope="session")
def sized():
    """A function that returns its first argument, or its second if kernels are not compiled."""
    return lambda compiled, interpreted: interpreted if INTERPRETED else compiled


@pytest.fixture(autouse=True)
def _plan_quickly_without_compiler(monkeypatch):
    """Limit the edges that plans visit: without the compiler, each takes 100 times as long."""
    if INTERPRETED:
        monkeypatch.setattr(accuracy_targets, "PLAN_WORK", 3e5)
        monkeypatch.setattr(accuracy_targets, "TARGET_WORK", 3e6)


@pytest.fixture(scope="session")
def hub_nodes(sized):
    """Number of nodes of `hub_graph`; several blocks a sweep, if compiled."""
    return sized(3000, 200)


@pytest.fixture(scope="session")
def graph(sized):
    """A graph whose store has three shards."""
    degree = sized(6, 3)
    return synthetic_graph(SyntheticConfig(nodes=700, classes=3, features=4, degree=degree))


@pytest.fixture(scope="session")
def data(graph, tmp_path_factory):
    """A folder that holds the graph as g.npz."""
    folder = tmp_path_factory.mktemp("data")
    write_npz(graph, folder / "g.npz")
    return folder


@pytest.fixture(scope="session")
def compiling_environment():
    """Environment of a process that compiles kernels whatever this one does."""
    return {name: value for name, value in os.environ.items() if name != "NUMBA_DISABLE_JIT"}


@pytest.fixture
def small_shards(monkeypatch):
    """Shards of a few rows, and a disk that does not wait."""
    monkeypatch.setattr(precompute.build, "rows_per_shard", lambda num_roots: ROWS_PER_SHARD)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def wanted(small_shards, tmp_path):
    """The files of a single build of the small store."""
    build_store(GRAPH, SINGLE, tmp_path / "single", resources=ONE_THREAD)
    return content(tmp_path / "single")


@pytest.fixture
def three(small_shards, tmp_path):
    """The folder of the small store with three parts; it is not finished."""
    for index in (2, 3, 1):
        compute(tmp_path / "three", index, 3)
    return tmp_path / "three"
