"""The pieces of a choice by sampled roots; `test_plan` tests choices as a whole."""

import numpy as np
import pytest

from gpn_scale.errors import ConfigError
from precompute import accuracy_targets
from precompute.accuracy_targets import (
    TOLERANCES,
    RootSample,
    Target,
    accuracy_for_recall,
    choose_settings,
    finest_tolerance,
    mean_recall,
    smallest_k,
    visited_edges,
)
from precompute.row_kernels import PaddedRows
from tests.precompute.engines import config_of, engine_of, random_graph, truth_of


def test_a_mass_out_of_reach_is_refused_with_what_can_be_had(monkeypatch):
    monkeypatch.setattr(accuracy_targets, "MAX_K", 5)
    engine = engine_of(random_graph(), config_of(k=2))
    message = r"0\.9 cannot be reached: even 5 entries per row keep .*clusters=32"
    with pytest.raises(ConfigError, match=message) as caught:
        choose_settings(engine, None, "push", np.ones(150), Target("mass", 0.9))
    assert caught.value.arguments == ("target", "k", "clusters")


@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, 2.0, float("nan")])
@pytest.mark.parametrize("kind", ["mass", "recall"])
def test_a_target_outside_0_and_1_is_refused(kind, value):
    message = rf"the target {kind} is .*, expected a number in \(0, 1\)"
    with pytest.raises(ConfigError, match=message):
        Target(kind, value)


@pytest.mark.parametrize(("target", "k"), [(0.1, 1), (0.5, 1), (0.51, 2), (0.75, 3)])
def test_the_smallest_k_reaches_the_target(target, k):
    assert smallest_k(np.array([0.5, 0.7, 0.75]), target) == k


@pytest.mark.parametrize(
    ("recall", "keep", "tolerance"), [(0.9, 20, 8e-3), (0.94, 20, 4e-3), (0.97, 40, 1e-3)]
)
def test_a_higher_recall_of_sweeps_takes_finer_settings(recall, keep, tolerance):
    config = accuracy_for_recall(config_of(k=10), recall)
    assert (config.keep, config.sweep_tolerance) == (keep, tolerance)


def test_recall_counts_valid_entries_only():
    rows = PaddedRows(np.array([[3, 0, 0]]), np.zeros((1, 3)), np.array([1]))
    exact = PaddedRows(np.array([[3, 0, 1]]), np.zeros((1, 3)), np.array([3]))
    assert mean_recall(rows, exact, 3) == pytest.approx(1 / 3)
    assert mean_recall(rows, exact, 1) == 1.0


def test_a_finer_sample_is_paid_for_by_small_graphs_only():
    small, large = (engine_of(random_graph(n), config_of()) for n in (100, 30_000))
    assert finest_tolerance(small, 1e8, 32) == TOLERANCES[-1]
    coarse = finest_tolerance(large, 1e8, 32)
    assert 32 * visited_edges(large, coarse) <= 1e8
    assert coarse > TOLERANCES[-1]
    assert finest_tolerance(large, 0.0, 32) == TOLERANCES[0]


def test_a_sample_keeps_what_the_largest_entries_of_exact_rows_hold():
    graph, config = random_graph(40), config_of()
    truth = truth_of(graph, config)[[3, 30]]
    sample = RootSample(engine_of(graph, config), np.array([3, 30]))
    exact = np.cumsum(-np.sort(-truth, axis=1), axis=1).mean(0)
    np.testing.assert_allclose(sample.kept_mass(1e-7, np.ones(40)), exact, atol=1e-4)
    assert sample.timed(1e-7)[0] is sample.timed(1e-7)[0]
    assert sample.coarsest(1e-7, 0.01, 5) == TOLERANCES[0]
