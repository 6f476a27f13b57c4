from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale.baselines.appnp import APPNP
from gpn_scale.baselines.pprgo import PPRGo
from gpn_scale.config import DiffusionConfig
from gpn_scale.errors import ConfigError, StoreError
from tests.baselines.graphs import CONFIG, small_graph
from tests.ppr.stored import write_store

DIFFUSION = DiffusionConfig(teleport=0.1)
EXACT = replace(CONFIG, encoder=replace(CONFIG.encoder, dropout=0.0), diffusion=DIFFUSION)
BATCHED = replace(EXACT, mode="minibatch")


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A graph and the path of its uncut rows."""
    graph, folder = small_graph(), tmp_path_factory.mktemp("pprgo") / "rows"
    facts = DIFFUSION.store_parameters
    return graph, write_store(str(folder), graph, DIFFUSION, k=graph.num_nodes, parameters=facts)


def test_whole_rows_in_one_batch_are_appnp(stored):
    graph, store = stored
    rows = PPRGo(BATCHED, dtype=torch.float64).fit(graph, store=store.path).predict(graph)
    whole = APPNP(EXACT, dtype=torch.float64).fit(graph).predict(graph)
    np.testing.assert_allclose(rows.probabilities, whole.probabilities, atol=1e-4)


def test_small_batches_learn(stored):
    graph, store = stored
    small = replace(BATCHED, minibatch=replace(CONFIG.minibatch, batch_size=5))
    prediction = PPRGo(small).fit(graph, store=store.path).predict(graph)
    test = graph.split.test
    assert (prediction.predicted_class[test] == graph.labels[test]).mean() > 0.6


def test_missing_or_foreign_rows_are_refused(stored):
    graph, store = stored
    with pytest.raises(StoreError, match=r"PPR store, and none was given: pass store=") as caught:
        PPRGo(BATCHED).fit(graph)
    assert caught.value.arguments == ("store",)
    other = replace(BATCHED, diffusion=DiffusionConfig(teleport=0.3))
    with pytest.raises(StoreError, match=r"has rows with teleport=0\.1, the model diffuses with"):
        PPRGo(other).fit(graph, store=store.path)
    with pytest.raises(ConfigError, match="PPRGo trains with mode=minibatch, got mode=exact"):
        PPRGo(EXACT).fit(graph)
