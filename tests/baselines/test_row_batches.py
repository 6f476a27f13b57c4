import numpy as np
import pytest
import torch

from gpn_scale.baselines.pprgo import PPRGo
from gpn_scale.baselines.row_batches import row_batch, stored_rows
from gpn_scale.config import DiffusionConfig
from gpn_scale.errors import StoreError
from tests.baselines.graphs import minibatch, small_graph
from tests.ppr.stored import exact_rows, write_store

DIFFUSION = DiffusionConfig(teleport=0.1)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A graph and the path of its rows, cut to four entries."""
    graph, folder = small_graph(), tmp_path_factory.mktemp("rows") / "rows"
    return graph, write_store(
        str(folder), graph, DIFFUSION, k=4, parameters=DIFFUSION.store_parameters
    )


def kept(row):
    """The row without all but its four heaviest entries."""
    return np.where(row >= np.sort(row)[-4], row, 0.0)


@pytest.mark.parametrize("normalised", [False, True])
def test_a_batch_has_the_kept_weights_and_the_features_of_their_nodes(stored, normalised):
    graph, store = stored
    view = PPRGo(minibatch(), dtype=torch.float64).view(graph)
    roots = np.array([7, 0, 50])
    batch = row_batch(view, store, roots, normalised=normalised)
    sums = batch.weights.multiply(batch.inputs)
    weights = np.stack([kept(row) for row in exact_rows(graph, DIFFUSION)[roots]])
    if normalised:
        weights /= weights.sum(1, keepdims=True)
    np.testing.assert_allclose(sums, weights @ graph.features, rtol=1e-5)
    assert len(batch.inputs) == np.count_nonzero(weights.any(0))


def test_a_missing_store_is_refused(stored):
    graph, _ = stored
    model = PPRGo(minibatch())
    with pytest.raises(StoreError, match="PPRGo trains on the rows of a PPR store, and none"):
        stored_rows(model, model.view(graph), None)
