"""The page on other libraries, and what packages for uncertainty make of a prediction."""

import doctest
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.evaluation.samples import prediction_for

PAGE = Path(__file__).parents[2] / "docs" / "interoperation.md"


def test_the_python_of_the_page_gives_what_it_says():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)  # PyG's import
        results = doctest.testfile(str(PAGE), module_relative=False)
    assert results.attempted > 20
    assert results.failed == 0


@pytest.fixture
def prediction(small_graph):
    """A prediction whose concentrations are at least 1, as those of every GPN are."""
    drawn = prediction_for(small_graph)
    alpha = 1.0 + 20.0 * drawn.alpha_0[:, None] * drawn.probabilities
    return type(drawn)(
        probabilities=alpha / alpha.sum(1, keepdims=True),
        probabilities_no_network=drawn.probabilities_no_network,
        alpha_0=alpha.sum(1),
        alpha_0_no_network=drawn.alpha_0_no_network,
    )


def evidential_uncertainty(evidence):
    """What probly's function of this name computes."""
    return evidence.shape[1] / (evidence + 1.0).sum(1)


def test_pseudo_counts_give_the_vacuity(prediction):
    vacuity = evidential_uncertainty(prediction.alpha - 1.0)
    np.testing.assert_allclose(vacuity, prediction.vacuity, rtol=1e-5)


def test_samples_of_the_posterior_have_its_mean(prediction):
    torch.manual_seed(0)
    samples = prediction.dirichlet().sample((2000,)).permute(1, 0, 2).numpy()
    np.testing.assert_allclose(samples.mean(1), prediction.probabilities, atol=0.05)


def test_logarithms_of_probabilities_are_logits(prediction):
    logits = torch.from_numpy(np.log(np.maximum(prediction.probabilities, 1e-12)))
    again = torch.softmax(logits, 1).numpy()
    np.testing.assert_allclose(again, prediction.probabilities, rtol=1e-5)


def test_probly_takes_samples_and_pseudo_counts(prediction):
    probly = pytest.importorskip("probly.quantification.classification")
    vacuity = probly.evidential_uncertainty(prediction.alpha - 1.0)
    np.testing.assert_allclose(vacuity, prediction.vacuity, rtol=1e-5)
    samples = prediction.dirichlet().sample((200,)).permute(1, 0, 2).numpy()
    assert (probly.mutual_information(samples) >= 0).all()


def test_torchcp_takes_logits(small_graph, prediction):
    predictors = pytest.importorskip("torchcp.classification.predictor")
    scores = pytest.importorskip("torchcp.classification.score")
    logits = torch.from_numpy(np.log(np.maximum(prediction.probabilities, 1e-12)))
    held_out, test = np.array_split(small_graph.split.test, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of its own default
        predictor = predictors.SplitPredictor(scores.APS(score_type="softmax"))
    labels = torch.from_numpy(small_graph.labels).long()
    predictor.calculate_threshold(logits[held_out], labels[held_out], 0.1)
    sets = predictor.predict_with_logits(logits[test])
    assert sets.shape == (len(test), 3)
    covered = sets[torch.arange(len(test)), labels[test]].float().mean()
    assert covered > 0.75
