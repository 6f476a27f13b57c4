import itertools

import pytest
import torch

from gpn_scale.config import FlowConfig, RunConfig, TrainConfig
from gpn_scale.errors import NumericalError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.train.task import AbstractTask, Validation
from gpn_scale.train.trainer import Interrupted, Timing


def trainer_for(graph, task=None, **options):
    config = RunConfig(model="GPN", train=TrainConfig(**options))
    trainer = GPNClassifier(config).trainer(graph)
    if task is not None:
        trainer.task = task
    return trainer


class ScriptedTask(AbstractTask):
    """Validation scores from a list; the loss pulls every parameter by the same amount."""

    def __init__(self, scores):
        self.scores = iter(scores)

    num_steps = 1

    def losses(self, model, generator, epoch, *, first=0):
        yield sum(parameter.sum() for parameter in model.parameters())

    def validate(self, model):
        return Validation(cross_entropy=next(self.scores), accuracy=0.5)


def weights(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def test_warm_up_moves_only_the_flows(small_graph):
    trainer = trainer_for(small_graph, warmup_steps=2, epochs=1)
    before = weights(trainer.model)
    for record in itertools.islice(trainer.records(), 2):
        assert record.phase == "warmup"
    after = weights(trainer.model)
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert moved
    assert all(name.startswith("flow.") for name in moved)
    assert next(trainer.records()).phase == "main"
    assert not torch.equal(before["encoder.first.weight"], trainer.model.encoder.first.weight)


def test_flows_without_layers_have_no_warm_up(small_graph):
    config = RunConfig(
        model="GPN", flow=FlowConfig(radial_layers=0), train=TrainConfig(epochs=2, warmup_steps=2)
    )
    trainer = GPNClassifier(config).trainer(small_graph)
    assert [record.phase for record in trainer.records()] == ["main", "main"]


def test_warm_up_ends_within_an_epoch_of_several_steps(small_graph):
    class ManySteps(ScriptedTask):
        num_steps = 4

        def losses(self, model, generator, epoch, *, first=0):
            for _ in range(first, self.num_steps):
                yield next(super().losses(model, generator, epoch))

    trainer = trainer_for(small_graph, ManySteps([3.0, 2.0]), warmup_steps=6, epochs=1)
    before = weights(trainer.model)
    moved = []

    def watch(epoch, step, steps):
        now = trainer.model.encoder.first.weight
        moved.append(not torch.equal(now, before["encoder.first.weight"]))

    trainer.observe_step = watch
    assert trainer.warmup_epochs == 1
    assert [record.phase for record in trainer.records()] == ["warmup", "main"]
    assert moved == [False] * 6 + [True] * 2
    assert trainer.state.best_epoch == 2


@pytest.mark.parametrize(
    ("schedule", "fractions"), [("constant", [1.0] * 4), ("cosine", [1.0, 0.854, 0.5, 0.146])]
)
def test_the_learning_rate_follows_its_schedule_step_by_step(small_graph, schedule, fractions):
    options = {"warmup_steps": 2, "epochs": 2, "learning_rate": 0.01}
    trainer = trainer_for(small_graph, schedule=schedule, **options)
    rates = []
    trainer.observe_step = lambda *_: rates.append(trainer.optimiser.param_groups[0]["lr"])
    list(trainer.records())
    assert rates == pytest.approx([0.01 * fraction for fraction in fractions], rel=1e-2)


def test_stops_after_patience_and_restores_the_best(small_graph):
    scores = [9.0, 5.0, 4.0, 3.0, 6.0, 6.0, 6.0, 1.0]
    trainer = trainer_for(small_graph, ScriptedTask(scores), warmup_steps=1, epochs=100, patience=3)
    states = {}
    for record in trainer.records():
        states[record.epoch] = weights(trainer.model)
    assert record.epoch == 7
    assert trainer.state.best_epoch == 4
    assert trainer.finished
    trainer.restore_best()
    best = states[4]
    assert all(torch.equal(best[name], value) for name, value in weights(trainer.model).items())
    assert not torch.equal(states[7]["encoder.first.weight"], best["encoder.first.weight"])


def test_the_warm_up_does_not_count_for_the_best(small_graph):
    trainer = trainer_for(small_graph, ScriptedTask([1.0, 5.0, 4.0]), warmup_steps=1, epochs=2)
    list(trainer.records())
    assert trainer.state.best_epoch == 3


def test_no_epochs_train_nothing(small_graph):
    trainer = trainer_for(small_graph, warmup_steps=0, epochs=0)
    assert list(trainer.records()) == []
    trainer.restore_best()


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_validation_score_that_is_not_finite_stops(small_graph, bad):
    trainer = trainer_for(small_graph, ScriptedTask([1.0, bad]), warmup_steps=1, epochs=5)
    with pytest.raises(NumericalError, match=r"validation cross-entropy is .* epoch 2 \(main\)"):
        list(trainer.records())


def test_a_loss_that_is_not_finite_stops_before_the_step(small_graph):
    class NaNTask(ScriptedTask):
        def losses(self, model, generator, epoch, *, first=0):
            yield sum(p.sum() for p in model.parameters()) * float("nan")

    trainer = trainer_for(small_graph, NaNTask([1.0]), warmup_steps=0, epochs=5)
    before = weights(trainer.model)
    message = r"training loss is nan in step 1 of 1 of epoch 1 \(main\)"
    with pytest.raises(NumericalError, match=message):
        list(trainer.records())
    assert all(torch.equal(before[name], value) for name, value in weights(trainer.model).items())


def test_weight_decay_is_on_the_encoder_only(small_graph):
    trainer = trainer_for(small_graph, weight_decay=0.25)
    groups = trainer.new_optimiser("main").param_groups
    decay = {id(p): group["weight_decay"] for group in groups for p in group["params"]}
    assert all(decay[id(p)] == 0.25 for p in trainer.model.encoder.parameters())
    assert all(decay[id(p)] == 0.0 for p in trainer.model.flow.parameters())


def test_a_trainer_that_is_asked_to_stop_does_so_after_the_step(small_graph):
    trainer = trainer_for(small_graph, warmup_steps=0, epochs=5)
    trainer.stop_asked = lambda: 15 if trainer.state.epoch == 2 else None
    records = []
    with pytest.raises(Interrupted) as caught:
        records.extend(trainer.records())
    assert caught.value.number == 15
    assert (trainer.state.epoch, trainer.state.step) == (2, 1)


def test_timing_counts_roots_and_phases(small_graph):
    trainer = trainer_for(small_graph, warmup_steps=0, epochs=2)
    before = Timing()
    list(trainer.records())
    timing = trainer.timing.since(before)
    assert timing.roots == 2 * len(small_graph.split.train)
    assert set(timing.seconds) == {"data", "forward", "backward", "communication", "validation"}
    assert timing.forward > 0 < timing.backward
    assert timing.roots_per_second > 0.0
    assert before.roots_per_second == 0.0
