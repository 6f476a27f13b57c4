import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.config import DiffusionConfig
from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph
from gpn_scale.ppr.store import PPRRows, PPRStore
from gpn_scale.ppr.strongest import StrongestRows, strongest
from tests.ppr.stored import write_store


@st.composite
def rows_and_clusters(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    counts = draw(st.lists(st.integers(0, 6), max_size=5))
    clusters = draw(st.integers(0, 3))
    weights = [np.sort(rng.random(count))[::-1] for count in counts]
    ids = [rng.choice(10, count, replace=False) for count in counts]
    cluster_mass = rng.random((len(counts), clusters)).astype(np.float32)
    rows = PPRRows(
        row_ptr=np.append(0, np.cumsum(counts)).astype(np.int64),
        ids=np.concatenate([np.empty(0, int), *ids]).astype(np.int32),
        weights=np.concatenate([np.empty(0), *weights]).astype(np.float32),
        missing_mass=cluster_mass.sum(1) if clusters else rng.random(len(counts)).astype("f4"),
        cluster_mass=cluster_mass,
    )
    return rows, rng.integers(clusters, size=10).astype(np.int32) if clusters else None


@given(rows_and_clusters(), st.integers(1, 7))
def test_what_is_cut_is_missing_from_its_cluster(case, top):
    rows, clusters = case
    cut = strongest(rows, top, clusters)
    for row in range(len(rows.missing_mass)):
        before = slice(rows.row_ptr[row], rows.row_ptr[row + 1])
        after = slice(cut.row_ptr[row], cut.row_ptr[row + 1])
        ids, weights = rows.ids[before], rows.weights[before]
        np.testing.assert_array_equal(cut.ids[after], ids[:top])
        np.testing.assert_array_equal(cut.weights[after], weights[:top])
        missing = rows.missing_mass[row] + weights[top:].sum()
        assert cut.missing_mass[row] == pytest.approx(missing, abs=1e-5)
        if clusters is not None:
            mass = rows.cluster_mass[row].copy()
            for node, weight in zip(ids[top:], weights[top:], strict=True):
                mass[clusters[node]] += weight
            np.testing.assert_allclose(cut.cluster_mass[row], mass, atol=1e-5)


def test_a_store_of_strongest_rows_is_a_store(tmp_path):
    graph = synthetic_graph(SyntheticConfig(nodes=80, classes=2))
    diffusion = DiffusionConfig(teleport=0.2, steps=3)
    write_store(str(tmp_path), graph, diffusion, k=6, clusters=3)
    store = PPRStore.open(tmp_path)
    few = StrongestRows(store, 2)
    assert few.k == 2
    nodes = np.array([5, 3, 5])
    expected = strongest(store.rows(nodes), 2, store.cluster_of_node)
    for other in (few, pickle.loads(pickle.dumps(few))):
        np.testing.assert_array_equal(other.rows(nodes).ids, expected.ids)
    assert (few.missing_mass > store.missing_mass).any()
    np.testing.assert_allclose(
        few.missing_mass, few.rows(np.arange(80)).cluster_mass.sum(1), atol=1e-3
    )
    assert StrongestRows(store, 99).k == 6
