import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.baselines.predictions import (
    dirichlet_prediction,
    label_evidence_prediction,
    sampled_prediction,
    scored_prediction,
)


@given(st.integers(0, 2), st.floats(1e-12, 10.0), st.floats(1e-6, 1e-3))
def test_the_class_of_most_evidence_is_predicted_however_small_it_is(winner, common, lead):
    evidence = torch.full((1, 3), common, dtype=torch.float64)
    evidence[0, winner] *= 1.0 + lead
    prediction = label_evidence_prediction("LP", evidence, torch.tensor([0, 1, 2]))
    assert prediction.predicted_class.tolist() == [winner]
    assert abs(prediction.probabilities - 1.0 / 3.0).max() < 1e-6 + lead


@given(st.integers(1, 2), st.floats(1e-12, 10.0))
def test_round_off_does_not_decide(later, common):
    evidence = torch.full((1, 3), float(np.float32(common)), dtype=torch.float64)
    evidence[0, later] *= 1.0 + 1e-15
    prediction = label_evidence_prediction("LP", evidence, torch.tensor([0, 1, 2]))
    assert prediction.predicted_class.tolist() == [0]


def test_a_dirichlet_gives_its_mean_and_its_negative_total():
    prediction = dirichlet_prediction("M", torch.tensor([[1.0, 3.0], [2.0, 2.0]]))
    np.testing.assert_allclose(prediction.probabilities, [[0.25, 0.75], [0.5, 0.5]])
    np.testing.assert_allclose(prediction.epistemic, [-4.0, -4.0])


def test_samples_give_their_mean_and_summed_variance():
    samples = torch.rand(5, 7, 3, dtype=torch.float64).softmax(2)
    prediction = sampled_prediction("M", iter(samples))
    np.testing.assert_allclose(prediction.probabilities, samples.mean(0), rtol=1e-6)
    variance = samples.var(0, unbiased=False).sum(1)
    np.testing.assert_allclose(prediction.epistemic, variance, rtol=1e-5)


def test_tensors_with_gradients_become_float32_arrays():
    probability = torch.full((2, 2), 0.5, dtype=torch.float64, requires_grad=True)
    prediction = scored_prediction("M", probability)
    assert prediction.probabilities.dtype == np.float32
    assert prediction.epistemic_score is None
