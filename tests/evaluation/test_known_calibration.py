"""Temperature and p-values of GPN+: against counts, valid by simulation, and what is left out."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.evaluation import known_calibration as module
from gpn_scale.evaluation import prediction as prediction_module
from gpn_scale.evaluation.known_calibration import (
    LEAST_NODES,
    KnownCalibration,
    calibration_nodes,
)
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.evaluation.temperature import NodeTemperature
from tests.inference.models import assert_counted

ALL_PARTS = ("features", "neighbourhood", "opinion", "labels")


def predicted(num_nodes, rng, *, levels=None, labels=True) -> Prediction:
    """A prediction of GPN+ with scores at random; with `levels`, there are ties."""

    def score(least):
        if levels is None:
            return (least + rng.lognormal(size=num_nodes)).astype(np.float32)
        return (least + rng.integers(0, levels, num_nodes)).astype(np.float32)

    return Prediction(
        probabilities=rng.dirichlet(np.ones(3), num_nodes).astype(np.float32),
        probabilities_no_network=rng.dirichlet(np.ones(3), num_nodes).astype(np.float32),
        alpha_0=score(3),
        alpha_0_no_network=score(3),
        energy=score(-1),
        label_evidence=score(0) if labels else None,
    )


def applied(calibration, prediction, around=None) -> Prediction:
    """The prediction with tempered probabilities and p-values."""
    calibration.temper(prediction)
    surprise = calibration.surprise(prediction)
    total = np.sum(list(surprise.values()), axis=0) if surprise else None
    return replace(prediction, surprise=total, p=calibration.p_values(surprise, around))


def labels_for(prediction, rng):
    return rng.integers(0, 3, len(prediction.alpha_0))


def fitted(num_nodes, rng, **options):
    prediction = predicted(num_nodes, rng, **options)
    return KnownCalibration.fitted(prediction, labels_for(prediction, rng))


def arrays(prediction):
    return [prediction.probabilities, *(getattr(prediction.p, part) for part in ALL_PARTS)]


@given(
    seed=st.integers(0, 10_000),
    size=st.integers(LEAST_NODES, 30),
    count=st.integers(0, 6),
    levels=st.sampled_from([2, 4, None]),
    has_labels=st.booleans(),
)
def test_p_values_are_the_counts_of_the_definition(seed, size, count, levels, has_labels):
    rng = np.random.default_rng(seed)
    calibration = fitted(size, rng, levels=levels)
    got = applied(calibration, predicted(count, rng, levels=levels, labels=has_labels))
    assert_counted(got, calibration)


@pytest.mark.parametrize("seed", [44, 143])
def test_equal_products_of_counts_are_equal_however_logarithms_are_rounded(seed):
    """In these draws, sums that should be equal differ in their last bits."""
    rng = np.random.default_rng(seed)
    calibration = fitted(30, rng)
    assert_counted(applied(calibration, predicted(6, rng)), calibration)


def test_the_temperatures_are_the_fitted_ones_and_temper_probabilities():
    rng = np.random.default_rng(1)
    prediction = predicted(60, rng)
    labels = np.where(rng.random(60) < 0.7, prediction.predicted_class, labels_for(prediction, rng))
    calibration = KnownCalibration.fitted(prediction, labels)
    own = NodeTemperature.fitted(prediction.probabilities, prediction.energy, labels)
    assert calibration.tempering == own
    assert abs(own.slope) > 1e-3
    power = prediction.probabilities.astype(np.float64) ** (
        1.0 / own.of(prediction.energy)[:, None]
    )
    got = applied(calibration, prediction)
    np.testing.assert_allclose(got.probabilities, power / power.sum(1, keepdims=True), rtol=1e-5)
    assert got.probabilities is prediction.probabilities  # changed in place
    np.testing.assert_array_equal(got.alpha_0, prediction.alpha_0)


def test_entropies_of_calibration_are_those_of_tempered_probabilities():
    rng = np.random.default_rng(2)
    prediction = predicted(40, rng)
    calibration = KnownCalibration.fitted(prediction, labels_for(prediction, rng))
    got = applied(calibration, prediction)
    np.testing.assert_array_equal(calibration.scores["entropy"], got.entropy)


def test_blocks_of_rows_give_what_all_at_once_does(monkeypatch):
    rng = np.random.default_rng(3)
    calibration, prediction = fitted(50, rng), predicted(10, rng)
    copy = replace(prediction, probabilities=prediction.probabilities.copy())
    whole = applied(calibration, prediction)
    monkeypatch.setattr(prediction_module, "ROW_BLOCK", 3)
    blocks = applied(calibration, copy)
    for got, expected in zip(arrays(blocks), arrays(whole), strict=True):
        np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(blocks.p.known, whole.p.known)


@pytest.mark.parametrize("count", [0, 1])
def test_predictions_of_no_node_and_of_one(count):
    rng = np.random.default_rng(4)
    got = applied(fitted(30, rng), predicted(count, rng))
    assert got.p.parts == ALL_PARTS
    assert got.p.known.shape == (count,)
    assert got.probabilities.shape == (count, 3)


def test_the_state_is_all_of_it():
    rng = np.random.default_rng(5)
    around = {part: rng.random(30).astype(np.float32) for part in ALL_PARTS}
    calibration = replace(fitted(30, rng), surroundings=around)
    again = KnownCalibration.from_state(calibration.state())
    assert again.tempering == calibration.tempering
    assert again.tempering.slope != 0.0
    assert again.num_nodes == 30
    assert again.surroundings["labels"].tolist() == around["labels"].tolist()
    assert again.notes == calibration.notes
    prediction = predicted(5, rng)
    copy = replace(prediction, probabilities=prediction.probabilities.copy())
    for got, expected in zip(
        arrays(applied(again, copy)), arrays(applied(calibration, prediction)), strict=True
    ):
        np.testing.assert_array_equal(got, expected)
    assert all(isinstance(tensor, torch.Tensor) for tensor in calibration.state().values())


@pytest.mark.parametrize("count", [0, 1, 18])
def test_too_few_validation_nodes_have_a_temperature_but_no_p_values(count):
    rng = np.random.default_rng(6)
    calibration = fitted(count, rng)
    assert calibration.parts == ()
    assert calibration.notes == (
        f"There are {count} validation nodes; p-values need at least 19, so none are given.",
    )
    got = applied(calibration, predicted(4, rng))
    assert got.p is None
    assert KnownCalibration.from_state(calibration.state()).notes == calibration.notes
    if count == 0:
        assert calibration.tempering == NodeTemperature(1.0)


def test_a_note_says_how_coarse_p_values_are():
    rng = np.random.default_rng(7)
    (note,) = fitted(19, rng).notes
    assert note.startswith("There are only 19 validation nodes")
    assert "smallest possible one is 5.0%" in note
    assert applied(fitted(19, rng), predicted(300, rng)).p.known.min() >= 1 / 20
    assert "1.0%" in fitted(98, rng).notes[0]
    assert fitted(99, rng).notes == ()


def test_a_part_that_says_the_same_of_every_node_is_left_out():
    rng = np.random.default_rng(8)
    prediction = replace(predicted(120, rng), label_evidence=np.zeros(120, np.float32))
    calibration = KnownCalibration.fitted(prediction, labels_for(prediction, rng))
    assert calibration.parts == ("features", "neighbourhood", "opinion")
    (note,) = calibration.notes
    assert note.startswith("The p-value that a node is known leaves out labels: such")
    got = applied(calibration, predicted(9, rng))
    assert got.p.labels is None
    assert_counted(got, calibration)


def test_without_edges_neighbourhood_and_labels_are_left_out():
    rng = np.random.default_rng(9)
    prediction = predicted(120, rng)
    calibration = KnownCalibration.fitted(prediction, labels_for(prediction, rng), has_edges=False)
    assert calibration.parts == ("features", "opinion")
    assert "leaves out neighbourhood, labels" in calibration.notes[0]


def test_scores_that_are_all_the_same_give_no_p_values_and_a_note_of_its_own():
    rng = np.random.default_rng(10)
    same = predicted(1, rng)
    prediction = same.rows(np.zeros(30, np.int64))
    calibration = KnownCalibration.fitted(prediction, labels_for(prediction, rng))
    assert calibration.parts == ()
    (note,) = calibration.notes
    assert note == ("No score distinguishes the 30 validation nodes, so no p-values are given.")
    assert applied(calibration, predicted(3, rng)).p is None


def test_of_too_many_validation_nodes_some_are_drawn(monkeypatch):
    val = np.arange(100, 140)
    assert calibration_nodes(val, 1) is val
    monkeypatch.setattr(module, "MOST_NODES", 25)
    first, again, other = (calibration_nodes(val, seed).tolist() for seed in (1, 1, 2))
    assert len(set(first)) == 25
    assert first == sorted(first)
    assert set(first) <= set(val.tolist())
    assert first == again != other


def test_surroundings_count_beside_a_node_s_own_surprise():
    rng = np.random.default_rng(15)
    calibration = fitted(50, rng)
    around_V = {part: rng.random(50).astype(np.float32) for part in ALL_PARTS}
    known = replace(calibration, surroundings=around_V)
    for has_labels in (True, False):
        around = rng.random(20).astype(np.float32)
        got = applied(known, predicted(20, rng, labels=has_labels), around)
        assert_counted(got, known, around)
    # Without those of the nodes, or of the validation nodes, only their own surprise counts.
    assert_counted(applied(known, predicted(20, rng)), known)
    assert_counted(applied(calibration, predicted(20, rng), around), calibration)


def test_strange_surroundings_make_a_node_strange():
    rng = np.random.default_rng(16)
    around_V = {part: rng.random(50).astype(np.float32) for part in ALL_PARTS}
    calibration, prediction = replace(fitted(50, rng), surroundings=around_V), predicted(20, rng)
    surprise = calibration.surprise(prediction)
    p_values = [
        calibration.p_values(surprise, np.full(20, around, np.float32)).known
        for around in (0.0, 2.0, 100.0)
    ]
    assert (p_values[0] >= p_values[1]).all()
    assert (p_values[0] > p_values[1]).any()
    np.testing.assert_allclose(p_values[2], 1 / 51, rtol=1e-6)


@pytest.mark.parametrize("levels", [None, 3])
@pytest.mark.parametrize("size", [19, 60])
def test_p_values_of_exchangeable_nodes_are_valid(size, levels):
    """P(p <= x) <= x for every x, up to the sampling error of this many draws."""
    rng, draws, p_values = np.random.default_rng(13), 600, []
    for _ in range(draws):
        both = predicted(size + 1, rng, levels=levels)
        calibration = KnownCalibration.fitted(both.rows(np.arange(size)), rng.integers(0, 3, size))
        got = applied(calibration, both.rows(np.array([size])))
        p_values.append([got.p.known[0], *(getattr(got.p, part)[0] for part in got.p.parts)])
    for x in (0.05, 0.1, 0.25, 0.5, 0.9):
        error = 4.0 * np.sqrt(x * (1 - x) / draws)
        assert ((np.array(p_values) <= x + 1e-6).mean(0) <= x + error).all()


def test_strange_nodes_have_small_p_values_and_the_strange_part_is_the_loudest():
    rng = np.random.default_rng(14)
    calibration, usual = fitted(200, rng), predicted(50, rng)
    strange = replace(usual, energy=np.full(50, 1e4, np.float32))
    got = applied(calibration, strange)
    np.testing.assert_allclose(got.p.opinion, 1 / 201, rtol=1e-6)
    assert [got.p.parts[place] for place in got.p.loudest] == ["opinion"] * 50
    assert np.median(got.p.known) < 0.15


@given(seed=st.integers(0, 10_000), size=st.integers(LEAST_NODES, 30), count=st.integers(1, 12))
def test_only_nodes_with_the_smallest_p_value_lie_beyond(seed, size, count):
    rng = np.random.default_rng(seed)
    calibration, others = fitted(size, rng), predicted(count, rng)
    around = rng.exponential(9.0, count).astype(np.float32)
    own = {part: rng.exponential(2.0, size).astype(np.float32) for part in calibration.parts}
    p = applied(replace(calibration, surroundings=own), others, around).p
    smallest = p.known == p.known.dtype.type(1 / (1 + size))
    assert (p.beyond >= 0).all()
    assert smallest[p.beyond > 1e-5].all()  # round-off aside
    order = np.argsort(p.continued, kind="stable")
    assert (np.diff(p.known[order]) >= 0).all()
