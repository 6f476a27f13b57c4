"""Promises: their parts against slow versions, how often they are kept, and refusals."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import Split
from gpn_scale.errors import ConfigError
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.ppr.example import example_graph
from gpn_scale.triage.promise import (
    MOST_THRESHOLDS,
    checked_nodes,
    fixed_sequence,
    held_out_nodes,
    least_nodes,
    make_promise,
    passing_thresholds,
)


def binomial_tail(errors, count, probability):
    """P(Binomial(count, probability) <= errors), as a sum."""
    return sum(
        math.comb(count, k) * probability**k * (1 - probability) ** (count - k)
        for k in range(errors + 1)
    )


def prediction_of(confidence_N, predicted_N):
    """A prediction of two classes with these probabilities of the predicted class."""
    probability_NC = np.empty((len(confidence_N), 2), np.float32)
    rows = np.arange(len(confidence_N))
    probability_NC[rows, predicted_N] = confidence_N
    probability_NC[rows, 1 - predicted_N] = 1 - confidence_N
    ones = np.ones(len(confidence_N), np.float32)
    return Prediction(
        probabilities=probability_NC,
        probabilities_no_network=probability_NC,
        alpha_0=ones,
        alpha_0_no_network=ones,
    )


def case(rng, num_test, num_val=200, num_other=0, wrong_of=None):
    """A graph without edges and a prediction; the more confident, the more often it is right."""
    count = 2 + num_val + num_test + num_other
    confidence = rng.uniform(0.5, 1.0, count)
    wrong = rng.random(count) < (wrong_of or (lambda c: 1 - c))(confidence)
    labels = rng.integers(2, size=count)
    labels[:2] = [0, 1]
    predicted = np.where(wrong, 1 - labels, labels)
    split = Split(
        train=np.arange(2),
        val=np.arange(2, 2 + num_val),
        test=np.arange(2 + num_val, 2 + num_val + num_test),
    )
    graph = build_graph([], [], num_nodes=count, labels=labels, split=split)
    return graph, prediction_of(confidence, predicted)


@pytest.mark.parametrize(
    ("error", "confidence"), [(0.05, 0.9), (0.01, 0.99), (0.5, 0.5), (0.2, 0.95), (0.9, 0.5)]
)
def test_the_least_number_of_nodes_is_the_smallest_that_passes(error, confidence):
    count = least_nodes(error, confidence)
    assert binomial_tail(0, count, error) <= 1 - confidence
    assert count == 1 or binomial_tail(0, count - 1, error) > 1 - confidence


@given(
    nodes=st.lists(st.tuples(st.integers(0, 10), st.booleans()), min_size=1, max_size=60),
    thresholds=st.sets(st.integers(0, 10), min_size=1),
    error=st.sampled_from([0.1, 0.3, 0.6]),
    confidence=st.sampled_from([0.5, 0.8]),
)
def test_thresholds_pass_until_the_first_failure(nodes, thresholds, error, confidence):
    trust = np.array([each[0] / 10 for each in nodes])
    wrong = np.array([each[1] for each in nodes])
    ordered = np.array(sorted(thresholds, reverse=True)) / 10
    expected = 0
    for threshold in ordered:
        answered = trust >= threshold
        tail = binomial_tail(int(wrong[answered].sum()), int(answered.sum()), error)
        if tail > 1 - confidence + 1e-12:
            break
        expected += 1
    assert passing_thresholds(trust, wrong, ordered, error, confidence) == expected


@given(
    trust=st.lists(st.integers(0, 8), min_size=1, max_size=40),
    num_nodes=st.integers(1, 500),
    data=st.data(),
)
def test_the_sequence_falls_to_zero(trust, num_nodes, data):
    wrong = data.draw(st.lists(st.booleans(), min_size=len(trust), max_size=len(trust)))
    thresholds = fixed_sequence(
        np.array(trust) / 8 + 0.1, np.array(wrong), num_nodes=num_nodes, error=0.1, least=22
    )
    assert (np.diff(thresholds) < 0).all()
    assert thresholds[-1] == 0.0
    assert set(thresholds[:-1]) <= set(np.array(trust) / 8 + 0.1)


def test_the_sequence_is_short_and_begins_with_enough_nodes():
    rng = np.random.default_rng(3)
    trust = rng.random(5_000)
    thresholds = fixed_sequence(
        trust, rng.random(5_000) > trust, num_nodes=1_000, error=0.05, least=45
    )
    assert len(thresholds) <= MOST_THRESHOLDS + 1
    assert (trust >= thresholds[0]).mean() * 1_000 >= 90


@pytest.mark.parametrize(
    "wrong_of",
    [
        lambda c: 1 - c,  # calibrated
        lambda c: np.full_like(c, 0.0501),  # every threshold is bad, but only just
        lambda c: np.where(c > 0.8, 0.02, 0.3),
        lambda c: np.where(c > 0.9, 0.2, 0.03),  # the surest are wrong most often
    ],
    ids=["calibrated", "all bad", "step", "overconfident"],
)
@pytest.mark.parametrize("num_test", [60, 600])
def test_promises_are_kept_as_often_as_they_say(wrong_of, num_test):
    error, confidence, repetitions = 0.05, 0.9, 400
    truth = np.random.default_rng(0).uniform(0.5, 1.0, 200_000)
    broken = 0
    for seed in range(repetitions):
        graph, prediction = case(np.random.default_rng(seed + 1), num_test, wrong_of=wrong_of)
        try:
            promise = make_promise(graph, prediction, error=error, confidence=confidence)
        except ConfigError:
            continue  # to abstain from all nodes breaks no promise
        answered = truth[truth >= promise.threshold]
        broken += bool(len(answered) and wrong_of(answered).mean() > error)
    allowed = 1 - confidence
    scatter = math.sqrt(allowed * confidence / repetitions)
    assert broken / repetitions <= allowed + 3 * scatter


def test_a_promise_answers_most_nodes_that_it_could():
    graph, prediction = case(np.random.default_rng(5), num_test=4_000, num_val=1_000)
    promise = make_promise(graph, prediction, error=0.1, confidence=0.9)
    # Probabilities are uniform on [0.5, 1] and right, so errors average 10 % down to 0.8.
    assert 0.8 < promise.threshold < 0.85
    assert 0.3 < promise.answered < 0.4
    assert promise.answered_errors <= 0.1 * promise.answered_nodes
    assert promise.abstains(prediction).mean() == pytest.approx(1 - promise.answered, abs=0.03)


def test_a_model_that_is_always_right_answers_all_nodes():
    graph, prediction = case(np.random.default_rng(5), 100, wrong_of=lambda c: np.zeros_like(c))
    promise = make_promise(graph, prediction, error=0.05, confidence=0.9)
    assert promise.threshold == 0.0
    assert not promise.abstains(prediction).any()


def test_marked_and_other_nodes_do_not_calibrate():
    split = Split(train=[0, 1], val=[2], test=[3, 4, 5])
    graph = build_graph(
        [], [], num_nodes=7, labels=[0, 1, 0, 1, 0, 1, -1], split=split, marks={"odd": [4]}
    )
    assert held_out_nodes(graph).tolist() == [3, 5]


def test_validation_nodes_choose_only_the_sequence():
    graph, prediction = case(np.random.default_rng(6), 500)
    flipped = prediction.probabilities.copy()
    flipped[graph.split.train] = flipped[graph.split.train, ::-1]
    changed = prediction_of(flipped.max(1), flipped.argmax(1))
    first = make_promise(graph, prediction, error=0.2, confidence=0.9)
    assert make_promise(graph, changed, error=0.2, confidence=0.9) == first


@pytest.mark.parametrize("value", [0.0, 1.0, -1.0, math.nan])
@pytest.mark.parametrize("name", ["error", "confidence"])
def test_numbers_out_of_range_are_refused(name, value):
    graph, prediction = case(np.random.default_rng(7), 100)
    numbers = {"error": 0.05, "confidence": 0.9} | {name: value}
    with pytest.raises(ConfigError, match="expected a number between 0 and 1"):
        make_promise(graph, prediction, **numbers)


def test_percentages_are_recognised():
    with pytest.raises(ConfigError, match=r"is 5\.0, .* did you mean 0\.05, which is 5 %\?"):
        checked_nodes(example_graph(), error=5.0, confidence=0.9)


@pytest.mark.parametrize("num_test", [0, 44])
def test_too_few_labels_are_refused_with_the_number_needed(num_test):
    graph, prediction = case(np.random.default_rng(7), num_test)
    message = rf"has {num_test} labelled test nodes, .* needs at least 45, even if none of them"
    with pytest.raises(ConfigError, match=message) as caught:
        make_promise(graph, prediction, error=0.05, confidence=0.9)
    assert caught.value.arguments == ("error_among_answered", "confidence")


def test_a_model_that_guesses_gets_no_promise():
    graph, prediction = case(np.random.default_rng(7), 300, wrong_of=lambda c: 0 * c + 0.5)
    with pytest.raises(ConfigError, match="no threshold keeps errors among answered nodes"):
        make_promise(graph, prediction, error=0.05, confidence=0.9)


@pytest.mark.parametrize("value", [1e-300, 1 - 1e-16, 0.0, 1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["error", "confidence"])
def test_numbers_at_the_ends_are_refused(name, value):
    numbers = {"error": 0.1, "confidence": 0.9} | {name: value}
    with pytest.raises(ConfigError, match="expected a number between 0 and 1, at least 1e-09"):
        checked_nodes(example_graph(), **numbers)
