from dataclasses import replace

import pytest
import torch

from gpn_scale.baselines.ensemble import EnsembleOptions
from gpn_scale.baselines.gcn import VGCN
from gpn_scale.baselines.minibatch_gcn import ensemble_of, in_neighbour_batches
from gpn_scale.errors import ConfigError
from tests.baselines.graphs import CONFIG, check_learning, minibatch, small_graph

BATCHED = in_neighbour_batches(VGCN)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_one_batch_with_all_neighbours_is_training_on_the_whole_graph(layers):
    graph = small_graph()
    shape = replace(CONFIG.encoder, dropout=0.0, layers=layers)
    whole = VGCN(replace(CONFIG, encoder=shape), dtype=torch.float64).fit(graph)
    config = replace(minibatch(neighbours="all"), encoder=shape)
    batched = BATCHED(config, dtype=torch.float64).fit(graph)
    for name, tensor in whole.state().items():
        torch.testing.assert_close(batched.state()[name], tensor, rtol=1e-6, atol=1e-8)


def test_drawn_neighbours_learn_are_repeatable_and_are_restored(tmp_path):
    shape = replace(CONFIG.encoder, layers=3, batch_norm=True)
    config = replace(minibatch(batch_size=8, neighbours=2), encoder=shape)
    check_learning(BATCHED, tmp_path, config)


def test_members_of_an_ensemble_train_on_batches_and_the_mode_must_fit():
    graph, members = small_graph(), EnsembleOptions(members=2)
    config = minibatch(batch_size=8, neighbours=2)
    both = ensemble_of(BATCHED)(config, members).fit(graph)
    assert sorted({name.partition(".")[0] for name in both.state()}) == ["member0", "member1"]
    with pytest.raises(ConfigError, match="VGCN-minibatch trains with mode=minibatch, got mode=e"):
        BATCHED(CONFIG).fit(graph)
    with pytest.raises(ConfigError, match="VGCN-Ensemble-minibatch trains with mode=minibatch"):
        ensemble_of(BATCHED)(CONFIG, members).fit(graph)
    with pytest.raises(ConfigError, match=r"minibatch.batch_size is 500, expected auto or at most"):
        BATCHED(minibatch(batch_size=500)).fit(graph)
