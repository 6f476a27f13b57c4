"""Small stores whose content is known entry by entry."""

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from gpn_scale.ppr.rows import Rows
from gpn_scale.ppr.writer import StoreWriter

PARAMETERS = {"teleport": 0.2, "normalisation": "rw", "steps": None}


@dataclass
class Case:
    """Rows as lists: the slow truth that a store is compared with."""

    num_nodes: int
    roots: list[int] | None
    rows: list[list[tuple[int, float]]]
    num_clusters: int = 0
    rows_per_shard: int = 2
    parameters: dict | None = None

    @property
    def root_list(self):
        return list(range(self.num_nodes)) if self.roots is None else self.roots

    @property
    def clusters(self):
        return (np.arange(self.num_nodes) % max(self.num_clusters, 1)).astype(np.int32)

    @property
    def missing(self):
        return [np.float32(1 - sum(weight for _, weight in row)) for row in self.rows]

    @property
    def total_mass(self):
        """Some numbers: on node n all uncut rows together put n / 4."""
        return np.arange(self.num_nodes) / 4 if self.num_clusters else None

    @property
    def cut_mass_of_node(self):
        left = np.arange(self.num_nodes) / 4
        for row in self.rows:
            for node, weight in row:
                left[node] -= np.float32(weight)
        return np.maximum(left, 0.0).astype(np.float32)

    def cut_by_cluster(self, position):
        return [np.float16((position + c) / 64) for c in range(self.num_clusters)]

    def begin(self, path, existing="refuse"):
        return StoreWriter.begin(
            path,
            graph_fingerprint="f00d",
            parameters=self.parameters or PARAMETERS,
            num_nodes=self.num_nodes,
            roots=None if self.roots is None else np.array(self.roots, np.int64),
            num_clusters=self.num_clusters,
            rows_per_shard=self.rows_per_shard,
            k=4,
            existing=existing,
        )

    def write(self, writer, index, *, shared=False):
        start, stop = writer.shard_rows(index)
        rows = self.rows[start:stop]
        entries = [entry for row in rows for entry in row]
        cut = [self.cut_by_cluster(position) for position in range(start, stop)]
        written = Rows(
            row_ptr=np.cumsum([0, *map(len, rows)]),
            ids=np.array([node for node, _ in entries], np.int32),
            weights=np.array([weight for _, weight in entries], np.float32),
            missing_mass=np.array(self.missing[start:stop], np.float32),
            cut_mass=np.array(cut, np.float16).reshape(len(rows), self.num_clusters),
        )
        writer.write_shard(index, written, shared=shared)

    def build(self, path, existing="refuse"):
        """Write the shards that are not done yet, as a build does, and return their numbers."""
        writer = self.begin(path, existing)
        if self.num_clusters:
            writer.write_clusters(self.clusters)
        todo = [index for index in range(writer.num_shards) if not writer.is_done(index)]
        for index in todo:
            self.write(writer, index)
        writer.finish(self.total_mass)
        return todo


@st.composite
def cases(draw):
    num_nodes = draw(st.integers(0, 9))
    subset = st.sets(st.integers(0, num_nodes - 1)) if num_nodes else st.just(set())
    roots = draw(st.none() | subset.map(sorted))
    num_roots = num_nodes if roots is None else len(roots)
    weights = st.floats(0, 0.25, width=32)
    entry = st.tuples(st.integers(0, max(num_nodes - 1, 0)), weights)
    rows = draw(st.lists(st.lists(entry, max_size=4), min_size=num_roots, max_size=num_roots))
    return Case(num_nodes, roots, rows, draw(st.integers(0, 3)), draw(st.integers(1, 4)))


def example(**changes):
    rows = [[(i, 0.5), ((i + 1) % 7, 0.25)][: i % 3] for i in range(5)]
    return replace(Case(7, [0, 2, 3, 5, 6], rows, num_clusters=3), **changes)


def content(path):
    return {entry.name: entry.read_bytes() for entry in sorted(path.iterdir())}


def flip(path, position, bit=0):
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << bit
    path.write_bytes(data)
