"""Steps under the rules for GPUs: few operators, no waiting, and the same numbers as on a CPU."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale.config import (
    DiffusionConfig,
    EncoderConfig,
    MinibatchConfig,
    RunConfig,
    TrainConfig,
)
from gpn_scale.data.graph import CSRFeatures
from gpn_scale.data.splits import stratified_split
from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph
from gpn_scale.device import CPU_RULE, GPU_RULE, forced_rule
from gpn_scale.errors import NumericalError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.nn.flow import _CHECKED_EVERY
from gpn_scale.train.checkpoint import restore_checkpoint, save_checkpoint
from tests.operator_count import OperatorCount, counts_of_steps
from tests.ppr.stored import write_store

DIFFUSION = DiffusionConfig(teleport=0.2, steps=3)
MOST_OPERATORS = {"features": 400, "opinion": 100}
"""Limits of a step with ten radial layers and three maps with batch-norm."""
ALLOWED_WAITS = {
    "noise.py: drawn": "the seed of dropout is drawn on the host",
    "step_totals.py: read": "the loss of the step before this one, which has been queued",
}
"""Where a step may read a number, and why it does not wait for the device."""
CHECK = {"radial_limits.py: is_representable"}
"""What one step in 16 waits for: whether products over the flows' layers stay in range."""


def graph_of(*, sparse=False):
    settings = SyntheticConfig(nodes=700, classes=4, features=6, degree=4)
    graph = stratified_split(synthetic_graph(settings), train=0.3, val=0.05, rng_seed=1)
    if not sparse:
        return graph
    dense = np.where(graph.features > 0, graph.features, 0).astype(np.float32)
    rows, columns = np.nonzero(dense)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(dense)))])
    features = CSRFeatures(
        indptr=indptr,
        indices=columns.astype(np.int32),
        values=dense[rows, columns],
        num_columns=dense.shape[1],
    )
    return replace(graph, features=features)


def config_of(model="GPN+", **train):
    return RunConfig(
        model=model,
        mode="minibatch",
        encoder=EncoderConfig(hidden=12, layers=3, latent=5, dropout=0.3, batch_norm=True),
        diffusion=DIFFUSION,
        minibatch=MinibatchConfig(batch_size=10, tail_nodes=150),
        train=TrainConfig(**({"epochs": 2, "warmup_steps": 3} | train)),
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    parameters = DIFFUSION.store_parameters
    write_store(str(folder), graph_of(), DIFFUSION, k=6, clusters=4, parameters=parameters)
    return folder


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_steps_have_few_operators_and_wait_for_nothing(store, sparse):
    with forced_rule(GPU_RULE):
        for trainer in GPNClassifier(config_of()).trainers(graph_of(sparse=sparse), store):
            counts = counts_of_steps(trainer, 18)
            # The first step of an optimiser makes its state, an operator or two per parameter.
            begun = {0, trainer.warmup_steps}
            operators = [count[0] for step, count in enumerate(counts) if step not in begun]
            assert 50 < min(operators) <= max(operators) < MOST_OPERATORS[trainer.part]
            for step, (_, _, waits) in enumerate(counts):
                checked = trainer.part == "features" and step % _CHECKED_EVERY == 0
                assert waits - ALLOWED_WAITS.keys() == (CHECK if checked else set())


def test_the_rules_for_cpus_take_many_times_as_many(store):
    trainer = GPNClassifier(config_of("GPN")).trainer(graph_of(), store)
    (_, (operators, _, waits)) = counts_of_steps(trainer, 2)
    assert operators > 2 * MOST_OPERATORS["features"]
    assert waits >= CHECK


@pytest.mark.parametrize(
    "wait",
    [
        lambda x: x.sum().item(),
        lambda x: float(x[0]),
        lambda x: x.tolist(),
        lambda x: x[x > 0],
        lambda x: torch.nonzero(x),
        lambda x: torch.unique(x),
        lambda x: torch.bincount(x.int()),
        lambda x: torch.repeat_interleave(x, x.int()),
        lambda x: bool(x.sum() > 0),
        lambda x: x.cpu(),
    ],
)
def test_waits_are_counted(wait):
    tensor, count = torch.tensor([1.0, 2.0]), OperatorCount()
    with count.counting():
        wait(tensor)
    assert count.take()[2]
    with count.counting():
        (tensor * 2).sum()
    assert count.take() == (2, 0, set())


def results_of(store, rule, dtype, graph):
    """Losses and weights of a short training of all parts."""
    losses, weights = [], {}
    with forced_rule(rule):
        for trainer in GPNClassifier(config_of(), dtype=dtype).trainers(graph, store):
            losses += [record.loss for record in trainer.records()]
            state = trainer.model.state_dict()
            weights |= {f"{trainer.part} {name}": value for name, value in state.items()}
    return losses, weights


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_training_is_the_same_as_by_the_rules_for_cpus(store, sparse):
    graph, cpu_rule = graph_of(sparse=sparse), replace(CPU_RULE, hashed_noise=True)
    expected, expected_weights = results_of(store, cpu_rule, torch.float64, graph)
    losses, weights = results_of(store, GPU_RULE, torch.float64, graph)
    assert losses == pytest.approx(expected, rel=1e-9)
    for name, weight in expected_weights.items():
        # Batch-norm takes some biases out again; Adam blows up the round-off of their gradients.
        if name.endswith(("first.bias", "further.0.bias", "running_mean")):
            continue
        torch.testing.assert_close(weights[name], weight, rtol=1e-6, atol=1e-8)


def poisoned(trainer, at):
    """Make a loss of the trainer undefined, and remember the weights after every step."""
    losses, history = trainer.task.losses, []

    def bad_losses(*arguments, **options):
        for number, loss in enumerate(losses(*arguments, **options), start=1):
            yield loss * float("nan") if number == at else loss

    trainer.task.losses = bad_losses
    trainer.observe_step = lambda *_: history.append(
        [parameter.detach().clone() for parameter in trainer.model.parameters()]
    )
    return history


def test_a_loss_that_is_no_number_moves_nothing_and_is_reported_a_step_later(store):
    with forced_rule(GPU_RULE):
        trainer = GPNClassifier(config_of("GPN", warmup_steps=0)).trainer(graph_of(), store)
        history = poisoned(trainer, at=3)
        with pytest.raises(NumericalError, match=r"loss is nan in step 3 of .* epoch 1"):
            list(trainer.records())
    assert len(history) == 3
    for second, third in zip(history[1], history[2], strict=True):
        assert torch.equal(second, third)
    assert not torch.equal(history[0][0], history[1][0])


def test_a_last_loss_that_is_no_number_is_reported_before_validation(store):
    with forced_rule(GPU_RULE):
        trainer = GPNClassifier(config_of("GPN")).trainer(graph_of(), store)
        last = trainer.task.num_steps
        poisoned(trainer, at=last)
        trainer.task.validate = None
        with pytest.raises(NumericalError, match=f"in step {last} of {last} of epoch 1"):
            list(trainer.records())


def test_a_checkpoint_has_the_losses_of_all_steps(store, tmp_path):
    graph, config = graph_of(), config_of("GPN")
    path = tmp_path / "checkpoint"
    with forced_rule(GPU_RULE):
        trainer = GPNClassifier(config).trainer(graph, store)

        def observe_step(epoch, step, steps):
            if step == 5 and not path.exists():
                save_checkpoint(path, trainer, config, "graph")

        trainer.observe_step = observe_step
        whole = [record.loss for record in trainer.records()]
        resumed = GPNClassifier(config).trainer(graph, store)
        restore_checkpoint(path, resumed, config, "graph")
        assert resumed.state.step == 5
        assert [record.loss for record in resumed.records()] == whole
    for name, weight in trainer.model.state_dict().items():
        assert torch.equal(resumed.model.state_dict()[name], weight)


def test_a_request_to_stop_ends_training_at_most_a_step_later(store):
    from gpn_scale.train.trainer import Interrupted

    with forced_rule(GPU_RULE):
        trainer = GPNClassifier(config_of("GPN")).trainer(graph_of(), store)
        trainer.stop_asked = lambda: 15 if trainer.state.step == 4 else None
        with pytest.raises(Interrupted) as interrupted:
            list(trainer.records())
    assert interrupted.value.number == 15
    assert trainer.state.step in (5, 6)
