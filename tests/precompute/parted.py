"""A small store in parts, which tests of parts share."""

from precompute.build import build_store
from precompute.resources import Resources
from tests.precompute.engines import config_of, random_graph

ONE_THREAD = Resources(threads=1, memory_bytes=1 << 30)
GRAPH = random_graph(40)
CONFIG = config_of("sym", 3, k=3, clusters=3, push_tolerance=1e-3)
SINGLE = config_of("sym", 3, k=3, clusters=3, push_tolerance=1e-3, method="push")
"""The same settings for a single build."""
ROWS_PER_SHARD = 6
"""Small enough for 7 shards; the fixture `small_shards` sets it."""


def compute(out, index, num_parts, graph=GRAPH, config=CONFIG, **options):
    """Compute one part."""
    part = (index, num_parts)
    return build_store(graph, config, out, part=part, resources=ONE_THREAD, **options)
