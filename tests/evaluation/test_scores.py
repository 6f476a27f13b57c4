import numpy as np

from gpn_scale.evaluation import scores
from gpn_scale.evaluation.scores import DETECTION_SCORES, P_SCORES, PAGE_SCORES, SCORES, Score
from tests.evaluation.samples import prediction_for

ALL = [value for value in vars(scores).values() if isinstance(value, Score)]


def test_names_are_stable():
    assert list(SCORES) == ["aleatoric", "epistemic", "epistemic_no_network"]
    assert set(PAGE_SCORES) == {*SCORES, "aleatoric_no_network"}
    assert list(P_SCORES) == ["p_features", "p_neighbourhood", "p_opinion", "p_labels", "p_known"]
    assert list(DETECTION_SCORES) == [*SCORES, "entropy", "entropy_no_network", *P_SCORES]
    assert len({score.name for score in ALL}) == len(ALL) == 12


def test_every_score_has_one_definition():
    for table in (SCORES, PAGE_SCORES, P_SCORES, DETECTION_SCORES):
        for name, score in table.items():
            assert score.name == name
            assert sum(each is score for each in ALL) == 1


def test_every_score_is_described_in_sentences():
    for score in ALL:
        assert score.question.endswith("?")
        assert score.meaning.endswith(".")
        assert score.title[0].isupper()


def test_labels_are_short_names():
    assert [score.label for score in SCORES.values()] == [
        "aleatoric",
        "epistemic",
        "epistemic, no network",
    ]


def test_scores_without_network_ignore_the_network(small_graph):
    prediction = prediction_for(small_graph)
    other = prediction_for(small_graph, rng_seed=1)
    mixed = type(prediction)(
        probabilities=other.probabilities,
        alpha_0=other.alpha_0,
        probabilities_no_network=prediction.probabilities_no_network,
        alpha_0_no_network=prediction.alpha_0_no_network,
    )
    nodes = np.arange(small_graph.num_nodes)
    before, after = (each.scores(nodes, PAGE_SCORES) for each in (prediction, mixed))
    for name, score in PAGE_SCORES.items():
        assert (before[name] == after[name]).all() == (not score.uses_network)
