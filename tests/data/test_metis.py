import sys

import numpy as np
import pytest

from gpn_scale.data.metis import metis_partition


def ring(num_nodes, *, isolated=0):
    """Offsets and neighbours of a ring, and nodes without edges after it."""
    node = np.arange(num_nodes)
    indices = np.sort(np.stack([(node - 1) % num_nodes, (node + 1) % num_nodes], 1), 1).ravel()
    indptr = np.append(np.arange(0, 2 * num_nodes + 1, 2), np.full(isolated, 2 * num_nodes))
    return indptr, indices.astype(np.int32)


def test_clusters_are_balanced_and_cut_few_edges():
    cluster = metis_partition(*ring(600), 6)
    assert cluster.dtype == np.int32
    assert np.bincount(cluster, minlength=6).max() <= 106
    assert np.count_nonzero(cluster != np.roll(cluster, 1)) <= 18
    np.testing.assert_array_equal(cluster, metis_partition(*ring(600), 6), strict=True)


def test_nodes_without_edges_are_left_to_the_caller():
    cluster = metis_partition(*ring(100, isolated=7), 4)
    assert (cluster[100:] == -1).all()
    np.testing.assert_array_equal(cluster[:100], metis_partition(*ring(100), 4))


def test_clusters_are_balanced_by_weight():
    weight = np.zeros(400, np.int64)
    weight[:100] = 1
    cluster = metis_partition(*ring(400), 4, node_weight=weight)
    assert np.bincount(cluster[:100], minlength=4).max() <= 28
    assert np.bincount(metis_partition(*ring(400), 4)[:100], minlength=4).max() > 28


def test_heavy_edges_are_not_cut():
    indptr, indices = ring(400)
    node = np.repeat(np.arange(400), 2)
    later = np.where((node - indices) % 400 == 1, node, indices)
    light = later % 20 == 0
    assert np.count_nonzero(light) == 2 * 20
    cluster = metis_partition(indptr, indices, 4, edge_weight=np.where(light, 1, 50))
    assert not (cluster[node] != cluster[indices])[~light].any()
    assert len(np.unique(cluster)) == 4


@pytest.mark.parametrize(("num_nodes", "num_clusters"), [(3, 3), (3, 9), (4, 3), (3, 1)])
def test_more_clusters_than_nodes_and_other_corners(num_nodes, num_clusters):
    cluster = metis_partition(*ring(num_nodes, isolated=1), num_clusters)
    assert cluster[-1] == -1
    assert ((cluster[:-1] >= 0) & (cluster[:-1] < num_clusters)).all()
    if num_clusters >= num_nodes:
        assert cluster[:-1].tolist() == list(range(num_nodes))


def test_no_nodes_at_all():
    empty = metis_partition(np.zeros(1, np.int64), np.empty(0, np.int32), 3)
    assert empty.shape == (0,)


def test_without_pymetis_there_is_no_partition(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    assert metis_partition(*ring(9), 3) is None
