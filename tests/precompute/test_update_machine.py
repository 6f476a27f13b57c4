"""A store under updates, kills, folding, damage, repairs and readers, and a model in memory.

The model knows the graph that the store on disk belongs to, and the rows that each open reader must
see. The number of runs is set by STORE_MACHINE_RUNS; `make machine` runs many.
"""

import os
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from unittest import mock

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gpn_scale.data.building import build_graph
from gpn_scale.errors import StoreError
from gpn_scale.ppr.generations import listed_generations
from gpn_scale.ppr.manifest import read_manifest
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.verification import verify_store
from precompute.compact import compact_store
from precompute.repair import repair_store
from precompute.stored_settings import FOLDED
from tests.precompute.engines import config_of
from tests.precompute.test_update import ONE_THREAD, assert_certified, built, updated

RUNS = int(os.environ.get("STORE_MACHINE_RUNS", "15"))
CONFIG = config_of("sym", 3, k=4, clusters=2)


class KilledError(BaseException):
    """Stands for the end of the process."""


class KilledAfter:
    """Renames some files, and ends the process instead of renaming the next one."""

    def __init__(self, renames):
        self.left = renames
        self.rename = os.replace

    def __call__(self, source, target):
        if self.left == 0:
            raise KilledError
        self.left -= 1
        self.rename(source, target)


def graph_of(edges, num_nodes):
    return build_graph(*np.array(sorted(edges)).T, num_nodes=num_nodes)


@cache
def first_build():
    """A store of a ring of 12 nodes, and its edges."""
    folder, edges = Path(mkdtemp()), {(node, (node + 1) % 12) for node in range(12)}
    built(folder, graph_of(edges, 12), CONFIG)
    return folder, edges


class UpdateMachine(RuleBasedStateMachine):
    """The model: edges and nodes of the graph on disk, and what readers saw when they opened it."""

    def __init__(self):
        super().__init__()
        self.flush = mock.patch("os.fsync")
        self.flush.start()
        folder, edges = first_build()
        self.path = Path(mkdtemp()) / "store"
        shutil.copytree(folder, self.path)
        self.edges, self.num_nodes = set(edges), 12
        self.readers = []
        self.damaged = False

    def teardown(self):
        self.flush.stop()
        shutil.rmtree(self.path.parent)

    def changed(self, pairs, added):
        """Edges and number of nodes after each pair of nodes lost or gained its edge."""
        edges, num_nodes = set(self.edges), self.num_nodes + added
        for a, b in pairs:
            edge = (a % num_nodes, b % num_nodes)
            if edge[0] != edge[1]:
                edges ^= {edge}
        return edges or {(0, 1)}, num_nodes

    pairs = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=3)

    @precondition(lambda self: not self.damaged)
    @rule(pairs=pairs, added=st.integers(0, 2), tolerance=st.sampled_from([0.0, 0.1, 0.5]))
    def update(self, pairs, added, tolerance):
        self.edges, self.num_nodes = self.changed(pairs, added)
        updated(self.path, graph_of(self.edges, self.num_nodes), tolerance)

    @precondition(lambda self: not self.damaged)
    @rule(pairs=pairs, added=st.integers(0, 2), renames=st.integers(0, 12))
    def update_and_kill(self, pairs, added, renames):
        edges, num_nodes = self.changed(pairs, added)
        graph = graph_of(edges, num_nodes)
        try:
            with mock.patch("os.replace", KilledAfter(renames)):
                updated(self.path, graph, 0.1)
        except KilledError:
            pass
        # Either state is fine, but nothing between them.
        store = PPRStore.open(self.path)
        if store.graph_fingerprint == graph.structure_fingerprint():
            self.edges, self.num_nodes = edges, num_nodes

    @precondition(lambda self: not self.damaged)
    @rule(renames=st.none() | st.integers(0, 10))
    def compact(self, renames):
        before = len(PPRStore.open(self.path).history)
        try:
            with mock.patch("os.replace", KilledAfter(-1 if renames is None else renames)):
                compact_store(self.path)
        except KilledError:
            pass
        assert len(PPRStore.open(self.path).history) == before

    @rule()
    def open_a_reader(self):
        try:
            store = PPRStore.open(self.path)
            rows = store.rows(store.roots)
        except StoreError:
            assert self.damaged
            return
        self.readers.append((store, rows.ids.tolist(), rows.weights.tolist()))

    @precondition(lambda self: self.readers)
    @rule()
    def close_a_reader(self):
        self.readers.pop(0)

    @precondition(lambda self: not self.damaged)
    @rule(place=st.floats(0, 1), bit=st.integers(0, 7))
    def damage_a_shard(self, place, bit):
        store = PPRStore.open(self.path)
        path = store._places.shards[int(place * (len(store._places.shards) - 1))].path
        data = bytearray(path.read_bytes())
        data[int(place * (len(data) - 1))] ^= 1 << bit
        path.unlink()  # readers keep the file that they have opened
        path.write_bytes(data)
        self.damaged = True
        assert verify_store(self.path)

    @precondition(lambda self: self.damaged)
    @rule()
    def repair(self):
        listed = listed_generations(read_manifest(self.path))
        folded = any(FOLDED in manifest["parameters"] for _, manifest in listed)
        try:
            assert len(repair_store(self.path, resources=ONE_THREAD)) == 1
        except StoreError:
            assert folded
            built(self.path, graph_of(self.edges, self.num_nodes), CONFIG, existing="overwrite")
            self.readers.clear()
        self.damaged = False

    @invariant()
    def the_store_is_that_of_the_model(self):
        if self.damaged:
            return
        assert verify_store(self.path) == []
        store, graph = PPRStore.open(self.path), graph_of(self.edges, self.num_nodes)
        assert store.graph_fingerprint == graph.structure_fingerprint()
        assert_certified(store, graph, CONFIG)

    @invariant()
    def readers_see_what_they_opened(self):
        for store, ids, weights in self.readers:
            try:
                rows = store.rows(store.roots)
            except StoreError:
                assert self.damaged
                continue
            assert (rows.ids.tolist(), rows.weights.tolist()) == (ids, weights)


TestUpdateMachine = UpdateMachine.TestCase
TestUpdateMachine.settings = settings(max_examples=RUNS, stateful_step_count=12, deadline=None)
