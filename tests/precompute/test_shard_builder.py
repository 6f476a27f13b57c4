"""Shards of a builder are those of a build, and its clock adds up."""

import time

import numpy as np

from gpn_scale.ppr.example import example_store
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.writer import StoreWriter
from precompute.row_sums import row_totals
from precompute.shard_builder import BuildClock, ShardBuilder
from tests.precompute.engines import config_of, engine_of, random_graph
from tests.precompute.test_update import built


def test_shards_can_be_written_in_any_order(tmp_path):
    graph = random_graph(600)
    config = config_of("sym", 4, k=4, clusters=0, method="push")
    folder = built(tmp_path, graph, config)
    before = {path.name: path.read_bytes() for path in folder.glob("shard-*")}
    assert len(before) == 3
    writer, engine = StoreWriter.join(folder), engine_of(graph, config)
    clock = BuildClock(writer, time.monotonic(), active=False)
    builder = ShardBuilder(
        engine, "push", row_totals(engine), graph, writer, None, lambda text: None, clock
    )
    builder.write([2, 0])
    assert {path.name: path.read_bytes() for path in folder.glob("shard-*")} == before
    writer.finish()
    assert np.array_equal(PPRStore.open(folder).roots, np.arange(600))


def test_a_clock_adds_to_what_former_processes_took(tmp_path):
    writer = StoreWriter.join(example_store(tmp_path).path)
    for _ in range(2):
        BuildClock(writer, time.monotonic() - 5.0, active=True).record()
    assert writer.build_seconds >= 10.0
    BuildClock(writer, time.monotonic() - 500.0, active=False).record()
    assert writer.build_seconds < 500.0
