import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale.baselines.gcn import VGCN
from gpn_scale.baselines.training import (
    cross_entropy,
    evaluating,
    random_batches,
    train,
    warm_up,
)
from gpn_scale.config import MinibatchConfig, TrainConfig
from gpn_scale.errors import NumericalError
from tests.baselines.graphs import CONFIG, small_graph

SLOW = TrainConfig(epochs=30, patience=3, learning_rate=0.1, weight_decay=0.0)


def squared(module):
    return module.weight.square().sum()


def test_training_stops_after_its_patience_with_the_best_weights():
    module, epochs = torch.nn.Linear(1, 1), []
    losses = iter([5.0, 4.0, 6.0, 7.0, 8.0, 1.0])
    weights = []

    def steps(epoch):
        epochs.append(epoch)
        yield squared(module)

    def validate():
        weights.append(module.weight.detach().clone())
        return next(losses)

    train(module, steps, validate, SLOW)
    assert epochs == [1, 2, 3, 4, 5]
    torch.testing.assert_close(module.weight, weights[1])
    assert not module.training


def test_a_loss_that_is_not_finite_ends_training():
    module = torch.nn.Linear(1, 1)
    with pytest.raises(NumericalError, match="validation loss is nan in epoch 1") as caught:
        train(module, lambda epoch: iter([squared(module)]), lambda: math.nan, SLOW)
    assert "train.learning_rate" in caught.value.arguments


def test_evaluating_restores_the_mode():
    module = torch.nn.Linear(1, 1).train()
    with evaluating(module):
        assert not module.training
        assert not module(torch.ones(1, 1)).requires_grad
    assert module.training


@pytest.mark.parametrize(("size", "sizes"), [(5, [5, 5, 5, 5, 4]), (23, [24]), (1, [1] * 24)])
def test_batches_hold_every_training_node_once(size, sizes):
    graph = small_graph()
    view = VGCN(replace(CONFIG)).view(graph)
    config = MinibatchConfig(batch_size=size)
    batches = list(random_batches(view, config, torch.Generator().manual_seed(1)))
    assert [len(nodes) for nodes, _ in batches] == sizes  # never a last batch of one node alone
    nodes = np.concatenate([nodes for nodes, _ in batches])
    np.testing.assert_array_equal(np.sort(nodes), np.sort(graph.split.train))
    labels = torch.cat([labels for _, labels in batches]).numpy()
    np.testing.assert_array_equal(labels, graph.labels[nodes])


def test_cross_entropy_is_that_of_labelled_nodes():
    logits = torch.randn(6, 3)
    nodes, labels = torch.tensor([4, 1]), torch.tensor([2, 0])
    expected = -(logits.log_softmax(1)[nodes, labels]).mean()
    torch.testing.assert_close(cross_entropy(logits, (nodes, labels)), expected)


def test_warm_up_moves_one_part_for_some_steps():
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    before = [parameter.detach().clone() for parameter in module.parameters()]
    steps = []

    def losses(epoch):
        for step in range(2):
            steps.append((epoch, step))
            yield module(torch.ones(1, 2)).sum()

    warm_up(module, module[1], losses, TrainConfig(warmup_steps=3))
    assert steps == [(0, 0), (0, 1), (0, 0)]
    changed = [
        not torch.equal(old, new) for old, new in zip(before, module.parameters(), strict=True)
    ]
    assert changed == [False, False, True, True]


def test_a_part_may_have_no_weight_decay():
    module = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Linear(1, 1))
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.fill_(1.0)
    config = TrainConfig(epochs=1, weight_decay=0.1)
    nothing = 0.0 * module(torch.ones(1, 1)).sum()
    train(module, lambda epoch: iter([nothing]), lambda: 0.0, config, without_decay=module[1])
    assert [parameter.item() for parameter in module[1].parameters()] == [1.0, 1.0]
    assert all(parameter.item() < 1.0 for parameter in module[0].parameters())
