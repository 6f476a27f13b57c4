from dataclasses import replace

import numpy as np
import pytest
import torch

from gpn_scale.errors import MissingScoreError
from gpn_scale.evaluation import prediction as prediction_module
from gpn_scale.evaluation.p_values import PValues
from gpn_scale.evaluation.prediction import Prediction, row_blocks
from gpn_scale.evaluation.scores import PAGE_SCORES, SCORES
from tests.evaluation.samples import prediction_for


@pytest.mark.parametrize("block", [1, 7, 1 << 17])
def test_scores_of_some_nodes_are_those_of_all(small_graph, block, monkeypatch):
    prediction = prediction_for(small_graph)
    entropy = prediction.aleatoric_entropy
    monkeypatch.setattr(prediction_module, "ROW_BLOCK", block)
    np.testing.assert_array_equal(prediction.aleatoric_entropy, entropy)
    for nodes in (np.array([], np.int64), np.array([5]), np.array([40, 2, 2, 299, 17, 8, 1, 3])):
        scores = prediction.scores(nodes)
        assert list(scores) == list(SCORES)
        for name, score in scores.items():
            np.testing.assert_array_equal(score, getattr(prediction, name)[nodes])


def test_scores_follow_their_definitions(small_graph):
    prediction = prediction_for(small_graph)
    p = prediction.probabilities.astype(np.float64)
    np.testing.assert_allclose(prediction.aleatoric, -p.max(1), rtol=1e-6)
    np.testing.assert_allclose(prediction.aleatoric_entropy, -(p * np.log(p)).sum(1), rtol=1e-4)
    np.testing.assert_array_equal(prediction.epistemic_no_network, -prediction.alpha_0_no_network)
    q = prediction.probabilities_no_network
    np.testing.assert_array_equal(prediction.aleatoric_no_network, -q.max(1))


def test_a_prediction_is_shown_by_its_size(small_graph):
    prediction = prediction_for(small_graph)
    assert repr(prediction) == "Prediction(nodes=300, classes=3, p_values=False)"
    known = replace(prediction, p=PValues(known=np.ones(300, np.float32)))
    assert repr(known) == "Prediction(nodes=300, classes=3, p_values=True)"


def dissonance_of(alpha):
    """By the definition, for one node."""
    belief = (np.asarray(alpha, float) - 1) / np.sum(alpha)
    total = 0.0
    for k, own in enumerate(belief):
        others = [b for j, b in enumerate(belief) if j != k]
        if sum(others) > 0:
            balance = [1 - abs(own - b) / (own + b) if own + b > 0 else 0.0 for b in others]
            total += own * np.dot(others, balance) / sum(others)
    return total


@pytest.mark.parametrize("alpha", [[1, 1, 1], [9, 1, 1], [9, 9, 1], [4, 2.5, 1.5], [50, 50, 50]])
def test_vacuity_and_dissonance_tell_lack_of_evidence_from_conflict(alpha):
    alpha = np.array([alpha], np.float32)
    zeros = np.zeros(1, np.float32)
    prediction = Prediction(
        probabilities=alpha / alpha.sum(),
        probabilities_no_network=alpha / alpha.sum(),
        alpha_0=alpha.sum(1),
        alpha_0_no_network=zeros,
    )
    assert prediction.vacuity == pytest.approx(3 / alpha.sum())
    assert prediction.dissonance == pytest.approx(dissonance_of(alpha[0]), abs=1e-6)


@pytest.mark.parametrize("p", [[0.9, 0.1, 0.0], [0.5, 0.5, 0.0], [0.4, 0.3, 0.3]])
@pytest.mark.parametrize("total", [0.0, 0.5, 60.0])
def test_dissonance_of_gpn_plus_is_that_of_its_posterior(p, total):
    probability = np.array([p], np.float32)
    prediction = Prediction(
        probabilities=probability,
        probabilities_no_network=probability,
        alpha_0=np.array([3.0 + total], np.float32),
        alpha_0_no_network=np.ones(1, np.float32),
        energy=np.zeros(1, np.float32),
    )
    expected = dissonance_of(1.0 + total * probability[0])
    assert prediction.dissonance == pytest.approx(expected, abs=1e-6)


def test_every_score_of_the_page_can_be_asked_for(small_graph):
    prediction = prediction_for(small_graph)
    nodes = np.array([3, 1, 200])
    scores = prediction.scores(nodes, PAGE_SCORES)
    assert list(scores) == list(PAGE_SCORES)
    expected = -prediction.probabilities_no_network[nodes].max(1)
    np.testing.assert_array_equal(scores["aleatoric_no_network"], expected)


def test_rows_are_views_for_slices_and_copies_for_ids(small_graph):
    prediction = prediction_for(small_graph)
    view, copy = prediction.rows(slice(10, 20)), prediction.rows(np.arange(10, 20))
    assert isinstance(view, Prediction)
    for name in ("probabilities", "probabilities_no_network", "alpha_0", "alpha_0_no_network"):
        whole = getattr(prediction, name)
        np.testing.assert_array_equal(getattr(view, name), whole[10:20])
        np.testing.assert_array_equal(getattr(copy, name), whole[10:20])
        assert np.shares_memory(getattr(view, name), whole)
        assert not np.shares_memory(getattr(copy, name), whole)
    np.testing.assert_array_equal(view.predicted_class, prediction.predicted_class[10:20])


def test_blocks_cover_all_rows_and_there_is_always_one(monkeypatch):
    monkeypatch.setattr(prediction_module, "ROW_BLOCK", 4)
    for count in (0, 1, 4, 5, 11):
        rows = [row for block in row_blocks(count) for row in range(*block.indices(count))]
        assert rows == list(range(count))
    assert len(list(row_blocks(0))) == 1


def dirichlet_entropy(alpha):
    return torch.distributions.Dirichlet(torch.tensor(alpha, dtype=torch.float64)).entropy()


def test_entropies_are_those_of_the_posteriors():
    alpha = np.array([[3.0, 1.0], [1.0, 8.0]])
    own = np.array([[2.0, 2.0], [1.5, 1.0]])
    prediction = Prediction(
        probabilities=(alpha / alpha.sum(1, keepdims=True)).astype(np.float32),
        probabilities_no_network=(own / own.sum(1, keepdims=True)).astype(np.float32),
        alpha_0=alpha.sum(1).astype(np.float32),
        alpha_0_no_network=own.sum(1).astype(np.float32),
    )
    np.testing.assert_allclose(prediction.entropy, dirichlet_entropy(alpha), rtol=1e-5)
    np.testing.assert_allclose(prediction.entropy_no_network, dirichlet_entropy(own), rtol=1e-5)
    opinion = replace(prediction, energy=np.zeros(2, np.float32))
    tempered = 1.0 + (alpha.sum(1, keepdims=True) - 2.0) * prediction.probabilities
    np.testing.assert_allclose(opinion.entropy, dirichlet_entropy(tempered), rtol=1e-5)


def test_alpha_is_that_of_the_posterior():
    alpha = np.array([[3.0, 1.0], [1.0, 8.0], [1.0, 1.0]])
    gpn = Prediction(
        probabilities=(alpha / alpha.sum(1, keepdims=True)).astype(np.float32),
        probabilities_no_network=np.full((3, 2), 0.5, np.float32),
        alpha_0=alpha.sum(1).astype(np.float32),
        alpha_0_no_network=np.full(3, 2.0, np.float32),
    )
    np.testing.assert_allclose(gpn.alpha, alpha, rtol=1e-6)
    np.testing.assert_allclose(gpn.dirichlet().mean, gpn.probabilities, rtol=1e-6)
    np.testing.assert_allclose(gpn.dirichlet().entropy(), gpn.entropy, rtol=1e-5, atol=1e-6)
    plus = replace(gpn, energy=np.zeros(3, np.float32))
    expected = 1.0 + (alpha.sum(1, keepdims=True) - 2.0) * gpn.probabilities
    np.testing.assert_allclose(plus.alpha, expected, rtol=1e-6)
    np.testing.assert_allclose(plus.alpha.sum(1), plus.alpha_0, rtol=1e-6)
    assert plus.alpha.dtype == np.float32


def test_alpha_of_much_evidence_is_never_below_one():
    prediction = Prediction(
        probabilities=np.array([[1.0, 0.0]], np.float32),
        probabilities_no_network=np.array([[0.5, 0.5]], np.float32),
        alpha_0=np.array([1e13], np.float32),
        alpha_0_no_network=np.array([2.0], np.float32),
    )
    assert prediction.alpha.min() == 1.0
    assert torch.isfinite(prediction.dirichlet().sample()).all()


def test_a_gpn_has_no_p_values():
    values = np.full((3, 2), 0.5, np.float32)
    total = np.full(3, 4.0, np.float32)
    prediction = Prediction(
        probabilities=values,
        probabilities_no_network=values,
        alpha_0=total,
        alpha_0_no_network=total,
    )
    assert prediction.score("p_known") is None
    with pytest.raises(MissingScoreError, match="has no p-value 'features', only none"):
        prediction.p_value("features")
    p = PValues(features=total / 8, known=total / 16)
    with_p = replace(prediction, p=p)
    np.testing.assert_allclose(with_p.score("p_features"), 0.5)
    np.testing.assert_allclose(with_p.p_value("known"), 0.25)
    assert with_p.score("p_labels") is None
    with pytest.raises(MissingScoreError, match="'labels', only features, known"):
        with_p.p_value("labels")
