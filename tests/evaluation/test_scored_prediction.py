import numpy as np
import pytest

from gpn_scale.errors import MissingScoreError
from gpn_scale.evaluation.scored_prediction import ScoredPrediction
from gpn_scale.evaluation.scores import PAGE_SCORES, SCORES
from tests.evaluation.samples import scored_prediction


def test_scores_that_the_model_has_are_given_and_others_are_none():
    prediction = scored_prediction(9)
    nodes = np.array([4, 0, 4])
    scores = prediction.scores(nodes)
    assert list(scores) == list(SCORES)
    np.testing.assert_array_equal(scores["aleatoric"], -prediction.probabilities.max(1)[nodes])
    np.testing.assert_array_equal(scores["epistemic"], prediction.epistemic_score[nodes])
    assert scores["epistemic_no_network"] is None
    assert prediction.scores(nodes, PAGE_SCORES)["aleatoric_no_network"] is None
    assert scored_prediction(9, epistemic=False).scores(nodes)["epistemic"] is None


def test_a_missing_score_is_refused_with_a_next_step():
    plain = scored_prediction(4, epistemic=False)
    with pytest.raises(MissingScoreError, match=r"no epistemic score.*use `aleatoric`"):
        plain.epistemic  # noqa: B018
    with pytest.raises(MissingScoreError, match="GCN has no score without network: use a GPN"):
        plain.epistemic_no_network  # noqa: B018
    np.testing.assert_array_equal(
        scored_prediction(4).epistemic, scored_prediction(4).epistemic_score
    )


@pytest.mark.parametrize("epistemic", [True, False])
def test_parts_are_joined_in_their_order(epistemic):
    whole = scored_prediction(10, epistemic=epistemic)
    parts = [whole.rows(slice(0, 3)), whole.rows(np.arange(3, 10))]
    joined = ScoredPrediction.joined(parts)
    assert joined.model == whole.model
    np.testing.assert_array_equal(joined.probabilities, whole.probabilities)
    np.testing.assert_array_equal(joined.predicted_class, whole.predicted_class)
    if epistemic:
        np.testing.assert_array_equal(joined.epistemic, whole.epistemic)
    else:
        assert joined.epistemic_score is None
