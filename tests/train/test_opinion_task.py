"""Minibatch training of the opinion against the exact mode that it approximates."""

from dataclasses import replace

import pytest
import torch

from gpn_scale.config import (
    DiffusionConfig,
    EncoderConfig,
    MinibatchConfig,
    OpinionConfig,
    RunConfig,
    TrainConfig,
)
from gpn_scale.distributed import World
from gpn_scale.errors import GraphError, StoreError
from gpn_scale.train.device_batch import DeviceBatch
from gpn_scale.train.new_trainer import new_opinion, new_opinion_trainer
from gpn_scale.train.objective import OpinionObjective
from gpn_scale.train.opinion_task import OpinionMinibatchTask
from gpn_scale.train.task import ExactTask
from tests.ppr.stored import write_store

CPU = torch.device("cpu")
DIFFUSION = DiffusionConfig(teleport=0.2, normalisation="rw")


def config_of(mode="minibatch", *, dropout=0.0, epochs=8, **minibatch):
    return RunConfig(
        mode=mode,
        encoder=EncoderConfig(hidden=8, latent=4),
        diffusion=DIFFUSION,
        minibatch=MinibatchConfig(**minibatch),
        opinion=OpinionConfig(dropout=dropout),
        train=TrainConfig(epochs=epochs),
    )


@pytest.fixture(scope="module")
def all_rows(small_graph, tmp_path_factory):
    """A store with every entry of every row."""
    folder = tmp_path_factory.mktemp("store")
    parameters = DIFFUSION.store_parameters
    return write_store(
        str(folder), small_graph, DIFFUSION, k=300, clusters=4, parameters=parameters
    )


def trainer_for(config, graph, store=None):
    options = {"device": CPU, "dtype": torch.float64, "world": World()}
    return new_opinion_trainer(config, graph, store, **options)


def task_for(graph, store, **options):
    return OpinionMinibatchTask(graph, config_of(**options), store, CPU, torch.float64)


def exact_task(graph, **options):
    objective = OpinionObjective(len(graph.split.train))
    return ExactTask(graph, config_of("exact", **options), objective, CPU, torch.float64)


def opinion_for(graph):
    generator = torch.Generator().manual_seed(3)
    return new_opinion(config_of(), graph.num_features, 3, generator).double()


def gradients(task, opinion):
    opinion.zero_grad()
    (loss,) = task.losses(opinion, None, 1)
    loss.backward()
    return loss.item(), {name: p.grad.clone() for name, p in opinion.named_parameters()}


@pytest.mark.parametrize("tail", ["clustered", "stationary", "truncated"])
def test_with_all_entries_loss_and_gradients_are_those_of_exact_mode(small_graph, all_rows, tail):
    opinion, task = opinion_for(small_graph), task_for(small_graph, all_rows, tail=tail)
    loss, got = gradients(task, opinion)
    expected, exact = gradients(exact_task(small_graph), opinion)
    assert loss == pytest.approx(expected, rel=1e-6)
    for name, gradient in exact.items():
        bound = 1e-6 * gradient.abs().max().item()
        torch.testing.assert_close(got[name], gradient, rtol=0.0, atol=bound)


def test_one_batch_of_all_rows_takes_the_steps_of_exact_mode(small_graph, all_rows):
    exact = trainer_for(config_of("exact"), small_graph)
    batched = trainer_for(config_of(), small_graph, all_rows)
    assert batched.task.num_steps == 1
    for one, other in zip(exact.records(), batched.records(), strict=True):
        assert one.loss == pytest.approx(other.loss, rel=1e-5)
        assert one.val_cross_entropy == pytest.approx(other.val_cross_entropy, rel=1e-5)
        assert (one.part, other.part) == ("opinion", "opinion")
    state = exact.model.state_dict()
    for name, tensor in batched.model.state_dict().items():
        torch.testing.assert_close(tensor, state[name], rtol=0.0, atol=1e-5)


def test_batches_add_up_to_the_whole(small_graph, all_rows):
    opinion, task = opinion_for(small_graph), task_for(small_graph, all_rows, batch_size=7)
    assert task.num_steps > 1
    batches = list(task.loader.epoch(1))
    total = sum(task.loss(opinion, batch, None).item() for batch in batches)
    expected, _ = gradients(exact_task(small_graph), opinion)
    assert total == pytest.approx(expected, rel=1e-6)


def test_validation_by_rows_is_that_by_exact_diffusion(small_graph, all_rows):
    opinion = opinion_for(small_graph)
    expected = exact_task(small_graph).validate(opinion)
    for validation in ("rows", "exact"):
        got = task_for(small_graph, all_rows, validation=validation).validate(opinion)
        assert got.cross_entropy == pytest.approx(expected.cross_entropy, rel=1e-5)
        assert got.accuracy == expected.accuracy


def completed_logits(store, node, logits, mean):
    """Return a node's row of logits, its cut part replaced by `mean`."""
    row = store.rows([node])
    ids, weights = torch.from_numpy(row.ids).long(), torch.from_numpy(row.weights).double()
    return weights @ logits[ids] + row.missing_mass[0] * mean


def test_validation_completes_cut_rows_with_the_mean_of_the_drawn_nodes(small_graph, tmp_path):
    store = write_store(str(tmp_path), small_graph, DIFFUSION, k=5)
    task = task_for(small_graph, store, tail="stationary", validation="rows")
    opinion, val = opinion_for(small_graph), small_graph.split.val
    got = task.validate(opinion)
    logits = opinion.encoder(torch.from_numpy(small_graph.features).double()).detach()
    # The drawn nodes are all 300, and the far field of `rw` is proportional to the degree.
    weight = torch.from_numpy(small_graph.out_degree + 1.0)
    mean = weight @ logits / weight.sum()
    cross_entropy = 0.0
    for node in val:
        row = completed_logits(store, node, logits, mean)
        cross_entropy -= row.log_softmax(0)[small_graph.labels[node]].item() / len(val)
    assert got.cross_entropy == pytest.approx(cross_entropy, rel=1e-5)


def test_a_step_completes_cut_rows_with_the_mean_of_its_batch(small_graph, tmp_path):
    """Loss and gradient by hand: the mean over the batch's support carries a gradient."""
    store = write_store(str(tmp_path), small_graph, DIFFUSION, k=5)
    task = task_for(small_graph, store, tail="stationary", batch_size=20)
    opinion = opinion_for(small_graph)
    batch = next(task.loader.epoch(1))
    task.loss(opinion, batch, None).backward()
    got = {name: p.grad.clone() for name, p in opinion.named_parameters()}
    opinion.zero_grad()
    logits = opinion.encoder(torch.from_numpy(small_graph.features).double())
    weight = torch.from_numpy(batch.weight_in_cluster).double()
    mean = weight @ logits[torch.from_numpy(batch.support_global)] / weight.sum()
    loss = -sum(
        completed_logits(store, node, logits, mean).log_softmax(0)[small_graph.labels[node]]
        for node in batch.root_global
    ) / len(small_graph.split.train)
    assert task.loss(opinion, batch, None).item() == pytest.approx(loss.item(), rel=1e-6)
    loss.backward()
    for name, parameter in opinion.named_parameters():
        bound = 1e-6 * parameter.grad.abs().max().item()
        torch.testing.assert_close(got[name], parameter.grad, rtol=0.0, atol=bound)


@pytest.mark.parametrize("clusters", [3, 200])
def test_batches_for_ranks_have_the_loss_of_batches_for_one(small_graph, tmp_path, clusters):
    """With 200 clusters, some have no node in the batch, and their part of a row counts as cut."""
    store = write_store(str(tmp_path), small_graph, DIFFUSION, k=5, clusters=clusters)
    task = task_for(small_graph, store, tail="clustered", batch_size=20, tail_nodes=2)
    opinion = opinion_for(small_graph)
    batch = next(task.loader.epoch(1))
    plain = task.loss(opinion, batch, None)
    on_host = DeviceBatch.on_host(batch, small_graph.labels, torch.float64)
    assert (on_host.present_P is None) == (clusters == 3)
    assert task.joined_loss(opinion, on_host, None).item() == pytest.approx(plain.item(), rel=1e-6)


def test_the_same_seed_gives_the_same_weights_whatever_the_workers(small_graph, all_rows):
    states = []
    for workers in (0, 2):
        config = config_of(dropout=0.5, batch_size=16, workers=workers, epochs=2)
        trainer = trainer_for(config, small_graph, all_rows)
        list(trainer.records())
        states.append(trainer.model.state_dict())
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_nodes_without_rows_and_graphs_without_split_are_refused(small_graph, tmp_path):
    missing = int(small_graph.split.val[3])
    roots = [node for node in range(300) if node != missing]
    store = write_store(str(tmp_path), small_graph, DIFFUSION, k=5, roots=roots)
    with pytest.raises(StoreError, match=f"node {missing} is not among the 299 roots"):
        task_for(small_graph, store)
    with pytest.raises(GraphError, match="has no split, expected one to train on"):
        task_for(replace(small_graph, split=None), store)
