"""The structure of the graph that a store holds."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from gpn_scale import build_graph
from gpn_scale.errors import StoreError
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.stored_graph import names_checksum
from gpn_scale.ppr.writer import StoreWriter
from tests.strategies import graphs


def empty_store(folder, graph, kept=None):
    writer = StoreWriter.begin(
        folder,
        graph_fingerprint=graph.structure_fingerprint(),
        parameters={},
        num_nodes=graph.num_nodes,
        roots=np.array([], np.int64),
        num_clusters=0,
        rows_per_shard=4,
        k=1,
        graph=kept,
    )
    writer.finish()
    return PPRStore.open(folder)


@given(graph=graphs())
def test_the_structure_comes_back(tmp_path_factory, graph):
    store = empty_store(tmp_path_factory.mktemp("store"), graph, kept=graph)
    got = store.stored_graph()
    assert got.structure_fingerprint() == graph.structure_fingerprint()
    assert (got.num_nodes, got.directed) == (graph.num_nodes, graph.directed)
    names = names_checksum(graph.node_names, graph.num_nodes)
    assert store.manifest["graph"]["node_names"] == names


@given(graph=graphs())
def test_a_store_without_its_graph_says_so(tmp_path_factory, graph):
    store = empty_store(tmp_path_factory.mktemp("store"), graph)
    with pytest.raises(StoreError, match="does not contain its graph"):
        store.stored_graph()


def test_row_pointers_that_fall_are_refused_whatever_the_checksums_say(tmp_path):
    graph = build_graph([0, 1, 2], [1, 2, 3])
    indptr = graph.indptr.copy()
    indptr[1:3] = indptr[2], indptr[1]
    forged = replace(graph, indptr=indptr)
    store = empty_store(tmp_path, forged, kept=forged)
    with pytest.raises(StoreError, match="the edges have row pointers that fall"):
        store.stored_graph()


def test_the_hash_of_names_tells_orders_and_borders_apart():
    hashes = [
        names_checksum(np.array(names), 2) for names in (["ab", "c"], ["a", "bc"], ["c", "ab"])
    ]
    assert len(set(hashes)) == 3
    assert names_checksum(None, 2) is None
