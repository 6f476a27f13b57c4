"""Estimates of memory and disk space against arrays, files and whole builds."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.ppr.store import PPRStore
from precompute import memory_estimate
from precompute.build import build_store
from precompute.memory_estimate import estimate_memory
from precompute.resources import Resources
from tests.precompute.engines import config_of, engine_of, random_graph


def test_the_pieces_of_memory(monkeypatch):
    monkeypatch.setattr(memory_estimate, "resident_bytes", lambda: (1000, 2000))
    graph = random_graph(2048)
    config = config_of(k=8, clusters=0)
    engine = engine_of(graph, config, threads=2)
    engine.release_exact_weight()
    edges = len(engine.indices)
    memory = estimate_memory(engine, config, "sweep", 256)
    assert memory.transition == 8 * 2049 + (4 + 4) * edges
    assert memory.totals == 8 * 2048
    ordered = (4 + 4) * 2048 + 8 * 2048 + (4 + 4) * edges  # order, places; offsets; entries
    assert memory.rows == (8 * 16 + 4) * 2048 + ordered
    longest = int(np.diff(engine.indptr).max()) * 16 + 17
    assert memory.scratch == 2 * (4 * 2048 + 12 * longest)
    assert memory.buffers == (8 * 16 + 4) * 1024 + 8 * 2048  # two blocks of 1024 nodes
    assert memory.mass_by_cluster == memory.partition == 0
    assert memory.peak == 1000 + memory.rows + memory.scratch + memory.buffers

    hops = config_of(k=8, steps=3, clusters=0)
    holding = engine_of(graph, hops, 2)
    twice = estimate_memory(holding, hops, "sweep", 256)
    assert twice.freed == 8 * edges
    assert twice.peak == memory.peak + memory.rows - ordered - twice.freed

    push = estimate_memory(engine, config, "push", 256)
    assert (push.rows, push.scratch) == (0, 36 * 2048 * 2)

    clusters = estimate_memory(engine, replace(config, clusters=32), "sweep", 256)
    assert clusters.mass_by_cluster == 4 * 2048 * 33
    assert clusters.partition >= clusters.mass_by_cluster + 2 * 4 * 16 * 2048
    part = estimate_memory(engine, replace(config, clusters=32), "push", 256, part_rows=500)
    assert part.mass_by_cluster == 4 * (500 * 32 + 2048)
    columns = 8 * 2048 * (2 * 8 + 4)  # two of float64 and one of float32 per step
    assert part.partition >= part.mass_by_cluster + columns
    assert replace(memory, reached=10**9).peak == 10**9


@pytest.mark.parametrize(
    "options", [{}, {"clusters": 4}, {"push_tolerance": 1e-4, "method": "push"}, {"steps": 3}]
)
@pytest.mark.parametrize("some_roots", [False, True])
def test_the_size_of_the_store_is_predicted(tmp_path, sized, options, some_roots):
    num_nodes = sized(3000, 300)
    graph = random_graph(num_nodes, degree=10)
    plan = build_store(
        graph,
        config_of(k=24, **{"clusters": 8, **options}),
        tmp_path / "store",
        roots=np.arange(0, num_nodes, 3) if some_roots else None,
        resources=Resources(threads=1, memory_bytes=1 << 30),
    )
    size = sum(path.stat().st_size for path in (tmp_path / "store").iterdir())
    assert plan.disk_bytes == pytest.approx(size, rel=0.05)
    kept = 1 - PPRStore.open(tmp_path / "store").missing_mass.mean()
    assert plan.mean_kept_mass == pytest.approx(kept, abs=0.05)


MEASURED = """
import sys
from pathlib import Path
import numpy as np
from precompute.build import build_store
from precompute.resources import Resources
from gpn_scale.memory import resident_bytes
from tests.precompute.engines import config_of, random_graph

options = eval(sys.argv[2])
plan = build_store(
    random_graph(60_000, degree=10), config_of(**options), Path(sys.argv[1]),
    resources=Resources(threads=2, memory_bytes=1 << 30))
print(plan.memory.peak / resident_bytes()[1])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"k": 128, "sweeps": 1}, {"k": 64, "steps": 2}, {"k": 4, "clusters": 32}]
)
def test_peak_memory_is_predicted(tmp_path, options):
    command = [sys.executable, "-c", MEASURED, str(tmp_path / "store"), repr(options)]
    environment = os.environ | {"PYTHONPATH": os.getcwd()}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    assert 1 / 1.2 < float(done.stdout) < 1.2
