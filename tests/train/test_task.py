"""Exact training: its loss, its validation, and graphs that are refused."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale.config import RunConfig, TrainConfig
from gpn_scale.errors import GraphError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.nn.noise import Noise
from gpn_scale.nn.posterior import DirichletPosterior
from gpn_scale.train.objective import EvidenceObjective, OpinionObjective
from gpn_scale.train.task import ExactTask, Validation, checked_split, labelled

CPU = torch.device("cpu")


def test_exact_loss_is_the_sum_over_training_nodes(small_graph, generator):
    config = RunConfig(model="GPN", train=TrainConfig(entropy_weight=0.1))
    classifier = GPNClassifier(config, dtype=torch.float64)
    model = classifier.trainer(small_graph).model
    task = ExactTask(small_graph, config, EvidenceObjective(0.1), CPU, torch.float64)
    state = generator.get_state()
    (loss,) = task.losses(model, generator, 1)
    generator.set_state(state)
    noise = Noise.drawn(generator)
    alpha = model(task.inputs, task.diffusion, noise).with_network.alpha_NC
    total = 0.0
    for node in small_graph.split.train:
        one = DirichletPosterior(alpha[node : node + 1])
        label = torch.tensor([small_graph.labels[node]]).long()
        total += (one.expected_nll(label) - 0.1 * one.entropy()).item()
    assert loss.item() == pytest.approx(total)


def test_validation_is_on_the_validation_nodes(small_graph):
    classifier = GPNClassifier(RunConfig(model="GPN", train=TrainConfig(epochs=3)))
    trainer = classifier.trainer(small_graph)
    classifier.fit_trainer(trainer)
    validation = trainer.task.validate(trainer.model)
    val = small_graph.split.val
    prediction = classifier.predict(small_graph)
    correct = prediction.predicted_class[val] == small_graph.labels[val]
    assert validation.accuracy == pytest.approx(correct.mean())
    p = prediction.probabilities[val, small_graph.labels[val]]
    assert validation.cross_entropy == pytest.approx(float(-torch.tensor(p).log().mean()), rel=1e-5)


def test_steps_that_are_done_are_skipped(small_graph):
    task = ExactTask(small_graph, RunConfig(model="GPN"), EvidenceObjective(0.0), CPU)
    model = GPNClassifier(RunConfig(model="GPN")).trainer(small_graph).model
    assert len(list(task.losses(model, None, 1))) == task.num_steps == 1
    assert list(task.losses(model, None, 1, first=1)) == []
    assert task.roots_seen == len(small_graph.split.train)
    assert (task.rows_fingerprint, task.precompute_seconds, task.facts()) == ("", 0.0, {})


def test_scores_are_means_over_the_nodes():
    mean_NC = torch.tensor([[0.5, 0.5], [0.25, 0.75], [0.9, 0.1]])
    scores = Validation.of(mean_NC, torch.tensor([0, 1, 1]))
    expected = -np.log([0.5, 0.75, 0.1]).mean()
    assert scores.cross_entropy == pytest.approx(expected)
    assert scores.accuracy == pytest.approx(2 / 3)


def test_a_probability_of_zero_leaves_the_cross_entropy_finite():
    certain_NC = torch.tensor([[200.0, 0.0], [0.0, 0.0]]).softmax(1)
    assert certain_NC[0, 1] == 0.0
    scores = Validation.of(certain_NC, torch.tensor([1, 0]))
    least = np.finfo(np.float32).tiny
    assert scores.cross_entropy == pytest.approx(-np.log([least, 0.5]).mean())


def test_graphs_without_split_or_validation_nodes_are_refused(small_graph):
    assert checked_split(small_graph) is small_graph.split
    with pytest.raises(GraphError, match="has no split, expected one to train on"):
        checked_split(replace(small_graph, split=None))
    split = replace(small_graph.split, val=np.empty(0, np.int64))
    with pytest.raises(GraphError, match="has no validation nodes") as caught:
        checked_split(replace(small_graph, split=split))
    assert caught.value.arguments == ("split.val",)


def test_labels_come_with_their_nodes(small_graph):
    nodes, labels = labelled(small_graph, small_graph.split.val, CPU)
    assert nodes.tolist() == small_graph.split.val.tolist()
    assert labels.dtype == torch.int64
    assert labels.tolist() == small_graph.labels[small_graph.split.val].tolist()


def test_another_objective_shares_features_and_diffusion(small_graph):
    config = RunConfig(model="GPN")
    evidence = EvidenceObjective(config.train.entropy_weight)
    task = ExactTask(small_graph, config, evidence, torch.device("cpu"))
    model = GPNClassifier(config, device="cpu").trainer(small_graph).model
    next(task.losses(model, None, 1))
    other = task.with_objective(OpinionObjective(len(small_graph.split.train)))
    assert other.inputs is task.inputs
    assert other.diffusion is task.diffusion
    assert (other.roots_seen, task.roots_seen) == (0, len(small_graph.split.train))
    assert task.objective is evidence
