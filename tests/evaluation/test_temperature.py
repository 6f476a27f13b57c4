import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from gpn_scale.evaluation.metrics import negative_log_likelihood
from gpn_scale.evaluation.temperature import (
    LOG_PRECISION,
    SLOPE_PRECISION,
    NodeTemperature,
    fitted_temperature,
    scaled,
)


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


def drawn_logits(rng_seed, nodes, slope):
    """Logits whose labels are drawn at temperatures exp(-slope x) of the standardised energies."""
    rng = np.random.default_rng(rng_seed)
    logit = rng.normal(size=(nodes, 4)) * rng.lognormal(sigma=0.6, size=(nodes, 1)) * 2.0
    energy = -np.log(np.exp(logit).sum(1))
    probability = np.exp(logit) / np.exp(logit).sum(1, keepdims=True)
    rule = NodeTemperature(1.3, slope, energy.mean(), energy.std())
    truth = rule.scaled(probability, energy)
    label = (rng.random((nodes, 1)) > truth.cumsum(1)).sum(1).clip(0, 3)
    return probability, energy, label


@pytest.mark.parametrize("slope", [-0.3, 0.0, 0.4])
def test_temperatures_that_depend_on_energy_are_found(slope):
    probability, energy, label = drawn_logits(1, 20_000, slope)
    rule = NodeTemperature.fitted(probability, energy, label)
    assert rule.slope == pytest.approx(slope, abs=0.05)
    assert rule.temperature == pytest.approx(1.3, rel=0.05)


@given(st.integers(0, 2**32), st.integers(2, 80), st.floats(-0.5, 0.5))
def test_the_fitted_rule_is_the_minimum_of_loss_and_prior(rng_seed, nodes, slope):
    probability, energy, label = drawn_logits(rng_seed, nodes, slope)
    rule = NodeTemperature.fitted(probability, energy, label)

    def loss(temperature, slope):
        other = NodeTemperature(temperature, slope, rule.mean, rule.deviation)
        nll = negative_log_likelihood(other.scaled(probability, energy), label)
        prior = LOG_PRECISION * np.log(temperature) ** 2 + SLOPE_PRECISION * slope**2
        return nodes * nll + 0.5 * prior

    own = loss(rule.temperature, rule.slope)
    assert 0.05 <= rule.temperature <= 20.0
    for factor in (0.97, 1.0, 1.03):
        for change in (-0.02, 0.0, 0.02):
            moved = np.clip(rule.temperature * factor, 0.05, 20.0), rule.slope + change
            assert own <= loss(*moved) + 1e-6 * nodes
    assert own <= loss(fitted_temperature(probability, label), 0.0) + 1e-6 * nodes


def test_few_nodes_hardly_move_the_slope():
    slopes = [NodeTemperature.fitted(*drawn_logits(seed, 10, 0.0)).slope for seed in range(50)]
    assert 0.0 < np.abs(slopes).max() < 0.5
    assert np.std(slopes) < 0.15


def test_a_few_correct_predictions_do_not_make_a_model_certain():
    label = np.arange(30) % 3
    probability = np.full((30, 3), 0.15)
    probability[np.arange(30), label] = 0.7
    assert fitted_temperature(probability, label) == pytest.approx(0.05, rel=0.01)
    scores = np.linspace(-2.0, -1.0, 30)
    rule = NodeTemperature.fitted(probability, scores, label)
    confidence = rule.scaled(probability, scores).max(1)
    assert ((confidence > 0.9) & (confidence < 0.999)).all()


def test_classes_stay_and_far_energies_count_as_three_deviations():
    probability, energy, _ = drawn_logits(2, 500, 0.0)
    rule = NodeTemperature(0.8, slope=0.5, mean=-2.0, deviation=1.0)
    assert (rule.scaled(probability, energy).argmax(1) == probability.argmax(1)).all()
    far = rule.of(np.array([-1e30, -5.0, 1.0, 1e30]))
    np.testing.assert_allclose(far, 0.8 * np.exp([1.5, 1.5, -1.5, -1.5]))


@pytest.mark.parametrize("energy", [None, np.full(30, -1.0)])
def test_without_energies_that_differ_there_is_one_temperature(energy):
    probability, label = posterior(5, 30)
    rule = NodeTemperature.fitted(probability, energy, label)
    assert (rule.slope, rule.mean, rule.deviation) == (0.0, 0.0, 1.0)
    plain = fitted_temperature(probability, label)
    assert abs(np.log(rule.temperature)) < abs(np.log(plain))
    assert rule.temperature == pytest.approx(plain, rel=0.2)
    np.testing.assert_array_equal(
        rule.scaled(probability, energy), scaled(probability, rule.temperature)
    )


def test_without_nodes_nothing_changes():
    none = np.empty(0)
    assert NodeTemperature.fitted(np.empty((0, 3)), none, none.astype(int)) == NodeTemperature(1.0)
