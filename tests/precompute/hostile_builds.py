"""Builds stores of random and hostile graphs; `test_kernel_bounds` runs it with bounds checks.

NUMBA_BOUNDSCHECK=1 python tests/precompute/hostile_builds.py COUNT
"""

import sys
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from gpn_scale.config import DiffusionConfig, PPRConfig
from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import Graph
from gpn_scale.errors import ConfigError
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.verification import verify_store
from precompute import coarsening
from precompute.build import build_store
from precompute.clusters import partition_nodes
from precompute.resources import Resources

TELEPORTS = (1e-6, 2e-4, 0.1, 0.999999)
STEPS = (0, 1, 3, 40, "inf")
WEIGHTS = (None, 1e-38, 1e-30, 1e-3, 1e3, 1e30, 1e37)


def hostile_graph(rng: np.random.Generator) -> Graph:
    """A graph with hubs, isolated nodes or dead ends, and weights of one or two sizes."""
    num_nodes = int(rng.integers(1, 40))
    source, target = rng.integers(num_nodes, size=(2, int(rng.integers(0, 4 * num_nodes))))
    if rng.random() < 0.3:
        source = np.zeros_like(source)  # a hub
    sizes = [WEIGHTS[int(rng.integers(len(WEIGHTS)))] for _ in range(2)]
    weight = None
    if None not in sizes:
        weight = np.where(rng.random(len(source)) < 0.5, *sizes)
    directed = bool(rng.random() < 0.4)
    return build_graph(source, target, num_nodes=num_nodes, edge_weight=weight, directed=directed)


def hostile_config(rng: np.random.Generator, num_nodes: int) -> PPRConfig:
    """Settings from the ends of their ranges."""
    k = int(rng.choice([1, 2, num_nodes]))
    return PPRConfig(
        diffusion=DiffusionConfig(
            teleport=float(rng.choice(TELEPORTS)),
            steps=STEPS[int(rng.integers(len(STEPS)))],
            normalisation=str(rng.choice(["sym", "rw"])),
            self_loops=bool(rng.random() < 0.5),
        ),
        k=min(k, num_nodes),
        keep=int(rng.choice([0, min(k, num_nodes), 2 * num_nodes])),
        clusters=int(rng.choice([0, 1, 2, 7, 80])),
        method=str(rng.choice(["sweep", "push"])),
        sweeps=int(rng.choice([0, 1, 30])),
        push_tolerance=float(rng.choice([1e-3, 1e-6])),
    )


def main(count: int) -> None:
    """Build and read `count` stores, and partition graphs that are coarsened first."""
    refusals = 0
    for rng_seed in range(count):
        rng = np.random.default_rng(rng_seed)
        graph = hostile_graph(rng)
        resources = Resources(threads=1 + rng_seed % 2, memory_bytes=1 << 30)
        try:
            config = hostile_config(rng, graph.num_nodes)
            with TemporaryDirectory() as folder:
                build_store(graph, config, folder, resources=resources)
                assert verify_store(folder) == []
                PPRStore.open(folder).rows(np.arange(graph.num_nodes))
        except ConfigError:
            refusals += 1
    coarsening.METIS_EDGES = 20
    for rng_seed, clusters in product(range(count // 10), (2, 5)):
        graph = hostile_graph(np.random.default_rng(rng_seed))
        assert partition_nodes(graph, clusters).max() < clusters
    print(f"{count} builds, {refusals} refusals")  # noqa: T201 - read by the test
    assert refusals < count / 2


if __name__ == "__main__":
    main(int(sys.argv[1]))
