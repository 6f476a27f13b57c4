import itertools
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from gpn_scale.config import RunConfig, TrainConfig
from gpn_scale.errors import RunError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.train.checkpoint import (
    check_tensors,
    load_tensors,
    restore_checkpoint,
    save_checkpoint,
    save_tensors,
)
from tests.ppr.cases import flip

CONFIG = RunConfig(model="GPN", train=TrainConfig(epochs=6, warmup_steps=2))


def final_weights(trainer):
    list(trainer.records())
    return trainer.model.state_dict()


@pytest.mark.parametrize("stop_after", [0, 1, 2, 3, 7])
def test_a_restored_trainer_ends_with_the_same_weights(small_graph, tmp_path, stop_after):
    undisturbed = GPNClassifier(CONFIG).trainer(small_graph)
    expected = final_weights(undisturbed)
    first = GPNClassifier(CONFIG).trainer(small_graph)
    list(itertools.islice(first.records(), stop_after))
    save_checkpoint(tmp_path / "c.safetensors", first, CONFIG, "graph")
    second = GPNClassifier(CONFIG).trainer(small_graph)
    restore_checkpoint(tmp_path / "c.safetensors", second, CONFIG, "graph")
    got = final_weights(second)
    assert all(torch.equal(got[name], expected[name]) for name in expected)
    assert second.state.best_epoch == undisturbed.state.best_epoch
    best = undisturbed.state.best_state
    assert all(torch.equal(second.state.best_state[name], best[name]) for name in best)


def test_more_epochs_go_on_where_fewer_ended(small_graph, tmp_path):
    longer = replace(CONFIG, train=replace(CONFIG.train, epochs=9))
    expected = final_weights(GPNClassifier(longer).trainer(small_graph))
    first = GPNClassifier(CONFIG).trainer(small_graph)
    list(first.records())
    save_checkpoint(tmp_path / "c", first, CONFIG, "graph")
    second = GPNClassifier(longer).trainer(small_graph)
    restore_checkpoint(tmp_path / "c", second, longer, "graph")
    got = final_weights(second)
    assert all(torch.equal(got[name], expected[name]) for name in expected)


def test_another_run_is_refused(small_graph, tmp_path):
    trainer = GPNClassifier(CONFIG).trainer(small_graph)
    save_checkpoint(tmp_path / "c", trainer, CONFIG, "graph")
    with pytest.raises(RunError, match="another graph, split or store"):
        restore_checkpoint(tmp_path / "c", trainer, CONFIG, "other")
    other = replace(CONFIG, train=replace(CONFIG.train, learning_rate=0.5))
    with pytest.raises(RunError, match=r"train.learning_rate=0.01, now it is 0.5"):
        restore_checkpoint(tmp_path / "c", trainer, other, "graph")


def test_the_number_of_epochs_is_part_of_a_falling_learning_rate(small_graph, tmp_path):
    falling = replace(CONFIG, opinion=replace(CONFIG.opinion, schedule="cosine"))
    trainer = GPNClassifier(falling).trainer(small_graph)
    save_checkpoint(tmp_path / "c", trainer, falling, "graph")
    longer = replace(falling, opinion=replace(falling.opinion, epochs=9))
    with pytest.raises(RunError, match=r"opinion.epochs=\d+, now it is 9"):
        restore_checkpoint(tmp_path / "c", trainer, longer, "graph")


def test_files_that_are_no_checkpoints_are_refused(tmp_path):
    with pytest.raises(RunError, match="does not exist"):
        load_tensors(tmp_path / "none")
    (tmp_path / "text").write_text("not tensors")
    with pytest.raises(RunError, match="cannot be read"):
        load_tensors(tmp_path / "text")
    save_file({"a": torch.zeros(1)}, tmp_path / "foreign")
    with pytest.raises(RunError, match="format None, expected 1"):
        load_tensors(tmp_path / "foreign")


def test_a_truncated_checkpoint_is_refused(small_graph, tmp_path):
    trainer = GPNClassifier(CONFIG).trainer(small_graph)
    save_checkpoint(tmp_path / "c", trainer, CONFIG, "graph")
    content = (tmp_path / "c").read_bytes()
    (tmp_path / "c").write_bytes(content[: len(content) // 2])
    with pytest.raises(RunError, match="cannot be read"):
        restore_checkpoint(tmp_path / "c", trainer, CONFIG, "graph")


def test_equal_contents_are_equal_bytes(tmp_path):
    tensors, facts = {"b": torch.ones(2), "a": torch.zeros(3)}, {"config": {"x": 1}, "epoch": 4}
    for number in range(8):
        save_tensors(tmp_path / str(number), tensors, facts)
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1
    assert load_tensors(tmp_path / "0")[1] == facts


@given(data=st.data())
def test_no_flipped_bit_escapes(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("tensors") / "c"
    tensors = {"b": torch.ones(2), "a": torch.zeros((3, 2), dtype=torch.int64), "c": torch.ones(())}
    facts = {"config": {"x": 1}, "epoch": 4}
    save_tensors(path, tensors, facts)
    flip(path, data.draw(st.integers(0, path.stat().st_size - 1)), data.draw(st.integers(0, 7)))
    try:
        loaded, loaded_facts = load_tensors(path)
    except RunError as error:
        message = str(error)
        assert str(path) in message
    else:
        assert {name: loaded_facts[name] for name in facts} == facts
        assert all(torch.equal(loaded[name], tensors[name]) for name in tensors)
        assert loaded.keys() == tensors.keys()


def test_files_of_earlier_versions_have_no_checksum(tmp_path):
    facts = {"facts": '{"format": 1, "epoch": 4}'}
    save_file({"a": torch.ones(2)}, tmp_path / "c", facts)
    assert load_tensors(tmp_path / "c")[1] == {"epoch": 4}


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({}, r"file has nothing for 'a', expected torch.float32 of shape \[2\]"),
        ({"a": torch.zeros(3)}, r"has torch.float32 of shape \[3\] for 'a', expected .*\[2\]"),
        ({"a": torch.zeros(2).double()}, r"has torch.float64 .* for 'a', expected torch.float32"),
        ({"a": torch.zeros(2), "b": torch.zeros(1)}, r"for 'b', expected nothing"),
    ],
)
def test_tensors_of_another_name_shape_or_type_are_refused(tensors, message):
    check_tensors("file", {"a": torch.ones(2)}, {"a": torch.zeros(2)})
    with pytest.raises(RunError, match=message):
        check_tensors("file", tensors, {"a": torch.zeros(2)})


def changed(path, target, edit):
    """A copy of the file `path` with its tensors and facts edited."""
    tensors, facts = load_tensors(path)
    edit(tensors, facts)
    save_tensors(target, tensors, facts)
    return target


FIRST = "encoder.first.weight"


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda t, f: t.pop(f"model.{FIRST}"), "has nothing for 'model.encoder.first.weight'"),
        (
            lambda t, f: t.update({f"best.{FIRST}": torch.zeros(5, 3)}),
            r"for 'best.encoder.first.weight'",
        ),
        (lambda t, f: t.update({"optimiser.0.exp_avg": torch.zeros(1)}), "'optimiser.0.exp_avg'"),
        (lambda t, f: t.pop("optimiser.0.step"), "has nothing for 'optimiser.0.step', expected"),
        (lambda t, f: t.update({"optimiser.99.step": torch.zeros(())}), "expected nothing"),
        (lambda t, f: t.pop("generator"), "has nothing for 'generator'"),
        (lambda t, f: f.pop("epoch"), "is a model file, expected a training checkpoint"),
        (lambda t, f: f.update(epoch=-1), "has -1 for 'epoch', expected 0 to"),
        # A best epoch in the future would keep early stopping from ever stopping.
        (lambda t, f: f.update(best_epoch=f["epoch"] + 1), "for 'best_epoch', expected 0 to 8: it"),
        (lambda t, f: f.update(step=2), "has 2 for 'step', expected 0 to 1: it is damaged"),
    ],
)
def test_a_checkpoint_whose_tensors_do_not_fit_is_refused(small_graph, tmp_path, edit, message):
    trainer = GPNClassifier(CONFIG).trainer(small_graph)
    list(trainer.records())
    save_checkpoint(tmp_path / "whole", trainer, CONFIG, "graph")
    path = changed(tmp_path / "whole", tmp_path / "changed", edit)
    other = GPNClassifier(CONFIG).trainer(small_graph)
    before = {name: value.clone() for name, value in other.model.state_dict().items()}
    with pytest.raises(RunError, match=message) as caught:
        restore_checkpoint(path, other, CONFIG, "graph")
    assert "\n" not in str(caught.value)
    assert other.state.epoch == 0
    assert all(torch.equal(before[n], value) for n, value in other.model.state_dict().items())


def test_a_checkpoint_of_a_version_with_fewer_fields_is_continued(small_graph, tmp_path):
    trainer = GPNClassifier(CONFIG).trainer(small_graph)
    list(trainer.records())
    save_checkpoint(tmp_path / "whole", trainer, CONFIG, "graph")
    fewer = changed(
        *(tmp_path / "whole", tmp_path / "fewer"),
        lambda tensors, facts: facts["config"]["data"].pop("left_out_set"),
    )
    other = GPNClassifier(CONFIG).trainer(small_graph)
    restore_checkpoint(fewer, other, CONFIG, "graph")
    assert other.state.epoch == trainer.state.epoch
    moved = replace(CONFIG, data=replace(CONFIG.data, left_out_set=2))
    with pytest.raises(RunError, match=r"data.left_out_set=0, now it is 2"):
        restore_checkpoint(fewer, other, moved, "graph")


def test_seconds_add_up_over_the_pieces_of_a_training(small_graph, tmp_path, monkeypatch):
    clock = itertools.count(100.0)
    ticking = SimpleNamespace(monotonic=lambda: next(clock))
    monkeypatch.setattr("gpn_scale.train.trainer.time", ticking)
    first = GPNClassifier(CONFIG).trainer(small_graph)
    list(itertools.islice(first.records(), 3))
    spent = first.state.seconds
    assert spent > 3.0
    save_checkpoint(tmp_path / "c", first, CONFIG, "graph")
    list(itertools.islice(first.records(), 1))  # an epoch that no checkpoint has seen
    for _ in range(500):  # time between two pieces, which does not count
        next(clock)
    second = GPNClassifier(CONFIG).trainer(small_graph)
    restore_checkpoint(tmp_path / "c", second, CONFIG, "graph")
    assert second.state.seconds == spent
    list(second.records())
    undisturbed = GPNClassifier(CONFIG).trainer(small_graph)
    list(undisturbed.records())
    assert second.state.seconds == pytest.approx(undisturbed.state.seconds, abs=3.0)
    old = changed(tmp_path / "c", tmp_path / "old", lambda tensors, facts: facts.pop("seconds"))
    third = GPNClassifier(CONFIG).trainer(small_graph)
    restore_checkpoint(old, third, CONFIG, "graph")
    assert third.state.seconds == 0.0


@pytest.mark.parametrize("key", ["config", "graph", "step", "loss_sum", "best_cross_entropy"])
def test_a_checkpoint_without_one_of_its_facts_is_refused(small_graph, tmp_path, key):
    trainer = GPNClassifier(CONFIG).trainer(small_graph)
    save_checkpoint(tmp_path / "c", trainer, CONFIG, "graph")
    tensors, facts = load_tensors(tmp_path / "c")
    del facts[key]
    save_tensors(tmp_path / "c", tensors, facts)
    with pytest.raises(RunError, match=f"has nothing for '{key}': it is damaged; remove it"):
        restore_checkpoint(tmp_path / "c", trainer, CONFIG, "graph")
