"""From a configuration and a graph to a trainer, and every refusal."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale.config import (
    EncoderConfig,
    MinibatchConfig,
    OpinionConfig,
    RunConfig,
    TrainConfig,
)
from gpn_scale.data.building import build_graph
from gpn_scale.data.splits import class_prior, prepare_graph
from gpn_scale.distributed import World
from gpn_scale.errors import ConfigError, GraphError, StoreError
from gpn_scale.rank_part import RankPart
from gpn_scale.train.minibatch_task import MinibatchTask
from gpn_scale.train.new_trainer import (
    check_trainable,
    new_network,
    new_opinion,
    new_opinion_trainer,
    new_trainer,
)
from gpn_scale.train.opinion_task import OpinionMinibatchTask
from gpn_scale.train.task import ExactTask
from tests.ppr.stored import write_store

CPU = torch.device("cpu")
BATCHED = RunConfig(model="GPN", mode="minibatch", minibatch=MinibatchConfig(batch_size=16))


def trainer_for(config, graph, store=None, world=None):
    options = {"device": CPU, "dtype": torch.float32, "world": world or World()}
    return new_trainer(config, graph, store, **options)


def stored(graph, folder, clusters=4):
    diffusion = BATCHED.diffusion
    kinds = {"parameters": diffusion.store_parameters, "clusters": clusters}
    return write_store(str(folder), graph, diffusion, k=8, **kinds)


def test_the_mode_decides_on_the_task_and_on_clusters(small_graph, tmp_path):
    exact = trainer_for(RunConfig(model="GPN"), small_graph)
    assert isinstance(exact.task, ExactTask)
    assert exact.model.clusters is None
    batched = trainer_for(BATCHED, small_graph, stored(small_graph, tmp_path))
    assert isinstance(batched.task, MinibatchTask)
    assert batched.model.clusters.num_clusters == 4


def test_the_prior_is_that_of_the_training_set(small_graph):
    model = trainer_for(RunConfig(model="GPN"), small_graph).model
    expected = torch.from_numpy(class_prior(small_graph)).log().float()
    torch.testing.assert_close(model.evidence.log_prior_C, expected)


def test_the_seed_decides_on_the_initial_values(small_graph):
    states = [
        trainer_for(
            RunConfig(model="GPN", train=TrainConfig(rng_seed=seed)), small_graph
        ).model.state_dict()
        for seed in (1, 1, 2)
    ]
    first = "encoder.first.weight"
    assert torch.equal(states[0][first], states[1][first])
    assert not torch.equal(states[0][first], states[2][first])


def test_a_graph_without_split_gets_the_configured_one(small_graph):
    bare, config = replace(small_graph, split=None), RunConfig(model="GPN")
    trainer = trainer_for(config, bare)
    expected = prepare_graph(bare, config).split
    assert trainer.task.train_nodes.tolist() == expected.train.tolist()


def test_columns_are_standardised_by_their_moments(small_graph):
    config = RunConfig(model="GPN", encoder=EncoderConfig(standardise=True))
    first = trainer_for(config, small_graph).model.encoder.first
    expected = np.asarray(small_graph.features, np.float64).mean(0)
    np.testing.assert_allclose(first.shift_F.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_a_network_without_generator_has_the_right_shapes():
    network = new_network(RunConfig(model="GPN"), 5, torch.full((3,), 1 / 3), num_clusters=2)
    assert network.encoder.first.weight.shape[1] == 5
    assert network.clusters.mean_PC.shape == (2, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": [0, 0]}, r"has 1 class\(es\) to learn, expected at least 2"),
        ({"labels": None}, r"has 0 class\(es\) to learn"),
        ({"labels": [0, 1], "features": None}, "has no features"),
    ],
)
def test_graphs_that_cannot_be_trained_on_are_refused(options, message):
    graph = build_graph([0], [1], **{"features": [[1.0], [2.0]], **options})
    with pytest.raises(GraphError, match=message):
        check_trainable(graph)
    with pytest.raises(GraphError, match=message):
        trainer_for(RunConfig(model="GPN"), graph)


def test_batches_need_a_store_and_the_clustered_tail_clusters(small_graph, tmp_path):
    with pytest.raises(StoreError, match=r"needs a PPR store, and none was given") as caught:
        trainer_for(BATCHED, small_graph)
    assert caught.value.arguments == ("store",)
    with pytest.raises(StoreError, match="has no clusters"):
        trainer_for(BATCHED, small_graph, stored(small_graph, tmp_path, clusters=0))


def test_a_store_of_another_graph_or_diffusion_is_refused(small_graph, tmp_path):
    store = stored(small_graph, tmp_path)
    other = replace(small_graph, indices=small_graph.indices[::-1].copy())
    with pytest.raises(StoreError, match="is not the requested store: graph fingerprint"):
        trainer_for(BATCHED, other, store)
    config = replace(BATCHED, diffusion=replace(BATCHED.diffusion, teleport=0.3))
    with pytest.raises(StoreError, match=r"rows with teleport=0.1, .* diffuses with teleport=0.3"):
        trainer_for(config, small_graph, store)
    logs = replace(BATCHED, diffusion=replace(BATCHED.diffusion, of="log_evidence"))
    with pytest.raises(ConfigError, match=r"mode='minibatch' adds up evidence"):
        trainer_for(logs, small_graph, store)


def test_exact_mode_is_for_one_process(small_graph):
    with pytest.raises(ConfigError, match="trains in one process, got 2 ranks") as caught:
        trainer_for(RunConfig(model="GPN"), small_graph, world=World(part=RankPart(0, 2)))
    assert caught.value.arguments == ("mode",)


def opinion_trainer(config, graph, store=None, world=None):
    options = {"device": CPU, "dtype": torch.float32, "world": world or World()}
    return new_opinion_trainer(config, graph, store, **options)


def test_the_mode_decides_on_the_task_of_the_opinion_too(small_graph, tmp_path):
    assert isinstance(opinion_trainer(RunConfig(), small_graph).task, ExactTask)
    store = stored(small_graph, tmp_path)
    batched = opinion_trainer(replace(BATCHED, model="GPN+"), small_graph, store)
    assert isinstance(batched.task, OpinionMinibatchTask)
    assert batched.part == "opinion"
    with pytest.raises(StoreError, match="needs a PPR store, and none was given"):
        opinion_trainer(replace(BATCHED, model="GPN+"), small_graph)
    with pytest.raises(ConfigError, match="trains in one process, got 2 ranks"):
        opinion_trainer(RunConfig(), small_graph, world=World(part=RankPart(0, 2)))


@pytest.mark.parametrize(
    ("train_epochs", "opinion_epochs", "expected"), [(4, 9, 4), (9, 4, 4), (0, 9, 0), (9, 0, 0)]
)
def test_both_numbers_of_epochs_limit_the_opinion(
    small_graph, train_epochs, opinion_epochs, expected
):
    config = RunConfig(
        train=TrainConfig(epochs=train_epochs, warmup_steps=3),
        opinion=OpinionConfig(epochs=opinion_epochs),
    )
    records = list(opinion_trainer(config, small_graph).records())
    assert [record.epoch for record in records] == list(range(1, expected + 1))
    assert {record.phase for record in records} <= {"main"}


def test_the_opinion_stops_by_its_own_patience(small_graph):
    config = RunConfig(
        train=TrainConfig(epochs=10_000, patience=10_000, learning_rate=0.1),
        opinion=OpinionConfig(patience=3),
    )
    trainer = opinion_trainer(config, small_graph)
    last = list(trainer.records())[-1]
    assert last.epoch - last.best_epoch == 3
    assert last.epoch < 1000


def test_an_opinion_without_epochs_keeps_its_initial_values(small_graph):
    config = RunConfig(train=TrainConfig(epochs=0))
    trainer = opinion_trainer(config, small_graph)
    before = {name: t.clone() for name, t in trainer.model.state_dict().items()}
    assert list(trainer.records()) == []
    trainer.restore_best()
    assert all(torch.equal(t, before[name]) for name, t in trainer.model.state_dict().items())


def test_the_opinion_s_weight_decay_and_seed_are_its_own(small_graph):
    config = RunConfig(
        train=TrainConfig(weight_decay=0.5, schedule="cosine"),
        opinion=OpinionConfig(weight_decay=0.25),
    )
    (group,) = opinion_trainer(config, small_graph).new_optimiser("main").param_groups
    assert group["weight_decay"] == 0.25
    own, evidence = (
        make(config, small_graph).model.encoder.first.weight
        for make in (opinion_trainer, trainer_for)
    )
    assert own.shape == evidence.shape
    assert not torch.equal(own, evidence)


def test_columns_of_the_opinion_are_standardised_too(small_graph):
    config = RunConfig(encoder=EncoderConfig(standardise=True))
    first, other = (
        make(config, small_graph).model.encoder.first for make in (opinion_trainer, trainer_for)
    )
    assert torch.equal(first.shift_F, other.shift_F)
    assert first.shift_F.any()


def test_an_opinion_without_generator_has_the_right_shapes():
    opinion = new_opinion(RunConfig(), 5, 3)
    assert opinion.encoder.first.weight.shape[1] == 5
    assert opinion(torch.zeros(1, 5), lambda logits_NC: logits_NC).shape == (1, 3)
