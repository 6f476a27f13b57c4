import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.errors import ConfigError
from gpn_scale.evaluation.conformal import calibrated, coverage


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
        with pytest.raises(ConfigError, match=f"miss rate got {miss}, expected"):
            calibrated(probability, label, miss=miss, num_nodes=5)
    with pytest.raises(ConfigError, match="got no calibration nodes"):
        calibrated(probability[:0], label[:0], miss=0.1, num_nodes=5)
    rule = calibrated(probability, label, miss=0.2, num_nodes=5)
    for stranger in (5, -1):
        with pytest.raises(ConfigError, match=f"node {stranger} joined after calibration on 5"):
            rule.sets(probability[:2], np.array([1, stranger]))
