"""The sections of a configuration about training: values that they refuse, and batch sizes."""

import pytest

from gpn_scale.config import MinibatchConfig, RunConfig, TrainConfig, override
from gpn_scale.errors import ConfigError
from gpn_scale.field_types import parse_assignments


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("split.train=0", "split.train"),
        ("split.val=1", "split.val"),
        ("split.val=0.99", r"split.train \+ split.val"),
        ("split.rng_seed=-1", "split.rng_seed"),
        ("train.rng_seed=-1", "train.rng_seed"),
        ("train.epochs=-1", "train.epochs"),
        ("train.patience=0", "train.patience"),
        ("train.warmup_steps=-1", "train.warmup_steps"),
        ("train.learning_rate=0", "train.learning_rate"),
        ("train.weight_decay=-1", "train.weight_decay"),
        ("train.entropy_weight=-1", "train.entropy_weight"),
        ("opinion.dropout=1", "opinion.dropout"),
        ("opinion.weight_decay=-1", "opinion.weight_decay"),
        ("opinion.epochs=-1", "opinion.epochs"),
        ("opinion.patience=0", "opinion.patience"),
        (
            "opinion.learning_rate_factor=0",
            "opinion.learning_rate_factor is 0.0, expected positive",
        ),
        ("minibatch.batch_size=0", "minibatch.batch_size"),
        ("minibatch.tail_nodes=-1", "minibatch.tail_nodes"),
    ],
)
def test_values_out_of_range_are_refused(assignment, message):
    with pytest.raises(ConfigError, match=message):
        override(RunConfig(), parse_assignments([assignment]))


@pytest.mark.parametrize(
    "change",
    [{"epochs": "3"}, {"epochs": 3.0}, {"epochs": True}, {"learning_rate": None}],
)
def test_numbers_of_another_type_are_refused(change):
    with pytest.raises(ConfigError, match=r"train\..* is .*, expected a (whole )?number"):
        TrainConfig(**change)


@pytest.mark.parametrize(
    ("size", "roots", "expected"), [("auto", 5, 5), ("auto", 9000, 1024), (7, 9, 7), ("auto", 0, 1)]
)
def test_batches_have_their_size_or_hold_all_roots_up_to_a_limit(size, roots, expected):
    assert MinibatchConfig(batch_size=size).roots_per_batch(roots) == expected
