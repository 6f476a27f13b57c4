import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from gpn_scale.evaluation.metrics import negative_log_likelihood
from gpn_scale.evaluation.temperature import fitted_temperature, scaled


def posterior(rng_seed, nodes, sharpness=1.0):
    rng = np.random.default_rng(rng_seed)
    label = rng.integers(4, size=nodes)
    logit = sharpness * (rng.normal(size=(nodes, 4)) + 1.5 * np.eye(4)[label])
    probability = np.exp(logit) / np.exp(logit).sum(1, keepdims=True)
    return probability, label


def test_a_temperature_raises_probabilities_to_its_inverse():
    probability, _ = posterior(1, 20)
    np.testing.assert_allclose(scaled(probability, 1.0), probability)
    expected = probability**0.5 / (probability**0.5).sum(1, keepdims=True)
    np.testing.assert_allclose(scaled(probability, 2.0), expected)
    assert (scaled(probability, 0.1).argmax(1) == probability.argmax(1)).all()


def test_certain_nodes_stay_finite():
    probability = np.array([[1.0, 0.0], [0.5, 0.5]], np.float32)
    sharpened = scaled(probability, 0.05)
    assert np.isfinite(sharpened).all()
    np.testing.assert_allclose(sharpened.sum(1), 1.0)
    assert scaled(probability[:0], 2.0).shape == (0, 2)


@given(st.integers(0, 2**32), st.floats(0.3, 3.0))
def test_the_fitted_one_has_the_least_loss(rng_seed, sharpness):
    probability, label = posterior(rng_seed, 60, sharpness)

    def loss(log_temperature):
        return negative_log_likelihood(scaled(probability, np.exp(log_temperature)), label)

    best = minimize_scalar(loss, bounds=np.log([0.05, 20.0]), method="bounded")
    fitted = fitted_temperature(probability, label)
    assert 0.05 <= fitted <= 20.0
    assert loss(np.log(fitted)) <= best.fun + 1e-9


def test_a_model_that_is_twice_too_sharp_is_found_out():
    probability, label = posterior(3, 20_000)
    # Labels shift the true class by 1.5 and noise has variance 1, so logits 1.5 x are the truth.
    fitted = fitted_temperature(probability**3 / (probability**3).sum(1, keepdims=True), label)
    assert fitted == pytest.approx(3 / 1.5, rel=0.05)


def test_nothing_to_fit():
    assert fitted_temperature(np.empty((0, 3)), np.empty(0, np.int64)) == 1.0
