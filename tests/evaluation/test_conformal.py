import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.errors import ConfigError
from gpn_scale.evaluation.conformal import calibrated, conformal_summary, coverage


def posterior(rng, nodes):
    """Probabilities that have something, but not everything, to do with the labels."""
    label = rng.integers(4, size=nodes)
    logit = rng.normal(size=(nodes, 4)) + 1.5 * np.eye(4)[label]
    probability = np.exp(logit) / np.exp(logit).sum(1, keepdims=True)
    return probability, label


@pytest.mark.parametrize("miss", [0.05, 0.1, 0.3])
def test_sets_hold_the_label_as_often_as_promised(miss):
    rng, held = np.random.default_rng(1), []
    for _ in range(300):
        probability, label = posterior(rng, 160)
        rule = calibrated(probability[:60], label[:60], miss=miss, num_nodes=160)
        held.append(coverage(rule.sets(probability[60:], np.arange(60, 160)), label[60:]))
    # Between 1 - miss and 1 - miss + 1 / (calibration nodes + 1), up to the noise of 300 trials.
    error = np.std(held) / np.sqrt(len(held))
    assert 1 - miss - 3 * error <= np.mean(held) <= 1 - miss + 1 / 61 + 3 * error


@given(st.integers(1, 30), st.floats(0.01, 0.99), st.integers(0, 2**32))
def test_the_rule_is_the_quantile_of_the_scores(nodes, miss, rng_seed):
    probability, label = posterior(np.random.default_rng(rng_seed), nodes)
    rule = calibrated(probability, label, miss=miss, num_nodes=nodes)
    score = np.sort(1 - probability[np.arange(nodes), label])
    rank = nodes + 1 - int(np.floor((nodes + 1) * miss))
    threshold = score[rank - 1] if rank <= nodes else np.inf
    sets = rule.sets(probability, np.arange(nodes))
    np.testing.assert_array_equal(sets, 1 - probability <= threshold + 1e-12)


def test_what_cannot_be_promised_is_refused():
    probability, label = posterior(np.random.default_rng(1), 5)
    for miss in (0.0, 1.0, -1.0):
        with pytest.raises(ConfigError, match=f"miss is {miss}, expected a number") as error:
            calibrated(probability, label, miss=miss, num_nodes=5)
        assert error.value.arguments == ("miss",)
    with pytest.raises(ConfigError, match="there are no calibration nodes"):
        calibrated(probability[:0], label[:0], miss=0.1, num_nodes=5)
    rule = calibrated(probability, label, miss=0.2, num_nodes=5)
    for stranger in (5, -1):
        with pytest.raises(
            ConfigError, match=f"nodes contains {stranger}, which is not in the graph of 5"
        ):
            rule.sets(probability[:2], np.array([1, stranger]))


def test_a_summary_measures_other_nodes_than_it_calibrates_on():
    probability, label = posterior(np.random.default_rng(0), 4001)
    nodes = 3 * np.arange(4001)[::-1]
    summary = conformal_summary(probability, label, nodes, 12_001, rng_seed=0, miss=0.1)
    assert (summary.calibration_nodes, summary.measured_nodes) == (2000, 2001)
    assert summary.coverage == pytest.approx(0.9, abs=0.02)
    assert 1 < summary.mean_size < 4
    order = np.random.default_rng(0).permutation(4001)
    rule = calibrated(probability[order[:2000]], label[order[:2000]], miss=0.1, num_nodes=12_001)
    sets = rule.sets(probability[order[2000:]], nodes[order[2000:]])
    assert summary.coverage == coverage(sets, label[order[2000:]])
    assert summary.mean_size == sets.sum(1).mean()


def test_a_summary_checks_ids_and_not_positions():
    probability, label = posterior(np.random.default_rng(0), 4)
    with pytest.raises(ConfigError, match="nodes contains 9, which is not in the graph of 4 nodes"):
        conformal_summary(probability, label, np.full(4, 9), 4, rng_seed=0, miss=0.5)


@pytest.mark.parametrize("count", [0, 1])
def test_a_summary_needs_two_nodes(count):
    probability, label = posterior(np.random.default_rng(0), count)
    with pytest.raises(ConfigError, match="there are no calibration nodes"):
        conformal_summary(probability, label, np.arange(count), 4, rng_seed=0, miss=0.5)
