from dataclasses import replace

import numpy as np

from gpn_scale.config import RunConfig
from gpn_scale.page.facts import TrainingCurves
from gpn_scale.page.training_sections import details, training
from tests.page.drawings import texts_in
from tests.page.samples import run_facts


def test_every_field_of_the_configuration_is_shown():
    text = details(run_facts()).body
    for section, content in RunConfig(model="GPN").to_dict().items():
        if isinstance(content, dict):
            assert all(f"{section}.{name}<" in text for name in content)


def test_cost_is_shown_once_the_run_is_finished():
    text = details(run_facts()).body
    for cost in ("train", "train: forward", "256 MiB", "version of gpn_scale"):
        assert cost in text
    text = details(replace(run_facts(), report=None)).body
    assert "MiB" not in text
    assert "version of gpn_scale" in text


def test_curves_mark_the_epoch_whose_weights_are_kept():
    section = training(run_facts())
    assert [chart.name for chart in section.charts] == [
        "training-loss",
        "training-cross-entropy",
        "training-accuracy",
    ]
    assert all("best: epoch 12" in texts_in(chart) for chart in section.charts)


def test_a_run_without_epochs_says_so():
    empty = np.empty(0)
    nothing = TrainingCurves(
        epoch=empty, loss=empty, val_cross_entropy=empty, val_accuracy=empty, best_epoch=0
    )
    section = training(replace(run_facts(), training=nothing))
    assert "No epoch is recorded yet" in section.body
    assert not section.charts
