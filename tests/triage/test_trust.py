from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.evaluation import prediction as predictions
from gpn_scale.evaluation.p_values import PValues
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.triage.trust import trust, trust_of


def prediction_of(probability_NC, known_N=None):
    ones = np.ones(len(probability_NC), np.float32)
    return Prediction(
        probabilities=np.asarray(probability_NC, np.float32),
        probabilities_no_network=np.asarray(probability_NC, np.float32),
        alpha_0=ones,
        alpha_0_no_network=ones,
        p=None if known_N is None else PValues(known=np.asarray(known_N, np.float32)),
    )


def test_trust_joins_probability_and_p_value():
    probability = [[0.9, 0.1], [0.5, 0.5], [0.9, 0.1]]
    values = trust_of(prediction_of(probability, [1.0, 1.0, 0.01]))
    np.testing.assert_allclose(values, [0.9, 0.5, 0.09], rtol=1e-6)


def test_nodes_beyond_all_validation_nodes_are_told_apart():
    beside = prediction_of(np.full((3, 2), 0.5), [0.01, 0.01, 0.5])
    beyond = np.array([2.0, 0.0, 0.0], np.float32)
    further = replace(beside, p=PValues(known=beside.p.known, beyond=beyond))
    np.testing.assert_allclose(trust_of(further)[1:], trust_of(beside)[1:])
    np.testing.assert_allclose(trust_of(further)[0], trust_of(beside)[0] * np.exp(-1.0))


def test_without_p_values_trust_is_the_probability():
    np.testing.assert_allclose(trust_of(prediction_of([[0.2, 0.8]])), [0.8], rtol=1e-6)


def test_two_numbers_are_enough():
    rng = np.random.default_rng(1)
    prediction = prediction_of(rng.dirichlet(np.ones(3), 20), rng.random(20))
    probability = prediction.probabilities.max(1)
    before = probability.copy()
    assert (trust(probability, prediction.p.known) == trust_of(prediction)).all()
    assert (trust(probability, None) == probability).all()
    assert (probability == before).all()


def test_rows_are_read_in_blocks(monkeypatch):
    rng = np.random.default_rng(1)
    prediction = prediction_of(rng.dirichlet(np.ones(3), 20), rng.random(20))
    whole = trust_of(prediction)
    monkeypatch.setattr(predictions, "ROW_BLOCK", 3)
    assert (trust_of(prediction) == whole).all()


@pytest.mark.parametrize("known", [None, []])
def test_no_nodes(known):
    assert trust_of(prediction_of(np.empty((0, 2)), known)).shape == (0,)
