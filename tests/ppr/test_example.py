import numpy as np
import pytest

from gpn_scale.ppr.example import EXAMPLE_DIFFUSION, example_graph, example_store
from gpn_scale.ppr.verification import verify_store
from tests.ppr.stored import exact_rows


def test_rows_are_those_of_the_diffusion(tmp_path):
    exact = exact_rows(example_graph(), EXAMPLE_DIFFUSION)
    store = example_store(tmp_path)
    rows = store.rows(np.arange(3))
    kept = np.zeros((3, 3))
    kept[rows.row_of_entry(), rows.ids] = rows.weights
    cut = np.where(kept > 0, 0.0, exact)
    assert kept == pytest.approx(exact - cut)
    assert rows.missing_mass == pytest.approx(cut.sum(1))
    by_cluster = np.stack([cut[:, store.cluster_of_node == cluster].sum(1) for cluster in (0, 1)])
    assert rows.cut_mass == pytest.approx(by_cluster.T)
    assert store.cut_mass_of_node == pytest.approx(cut.sum(0))


def test_the_store_is_intact_and_of_the_graph(tmp_path):
    store = example_store(tmp_path)
    assert verify_store(tmp_path) == []
    assert store.graph_fingerprint == example_graph().structure_fingerprint()
    assert dict(store.parameters) == EXAMPLE_DIFFUSION.store_parameters
