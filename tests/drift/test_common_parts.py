import numpy as np
import pytest

from gpn_scale.drift.common_parts import with_common_parts
from gpn_scale.evaluation.p_values import calibration_p, conformal_p
from tests.drift.samples import scored, uniform


def test_equal_parts_stay_as_they_are():
    a, b = scored(50), scored(60, rng_seed=1)
    assert with_common_parts(a, b) == (a, b, ())
    assert with_common_parts(a, scored(50, p_known=None))[2] == ()


def test_a_part_that_one_side_lacks_is_left_out_of_the_sum():
    """Labels that are near in A alone must not make B look less strange."""
    labels = np.full(400, 0.005, np.float32)
    a = scored(400, p_labels=labels, p_known=labels)
    b = scored(400, p_known=uniform(400, 3))
    for first, second in ((a, b), (b, a)):
        new_a, new_b, sentences = with_common_parts(first, second)
        assert new_a.joint == new_b.joint == "p_common"
        np.testing.assert_array_equal(new_a.p["known"], new_b.p["known"])
        assert set(new_a.p) == {"known", "features", "neighbourhood", "opinion"}
        side = "A" if first is a else "B"
        assert f"only {side} has p_labels" in sentences[0]
        assert "measured on the compared nodes of A" in sentences[0]


def test_the_sum_is_measured_on_validation_nodes():
    """The same p-values as those of a calibration that never had the part."""
    rng = np.random.default_rng(2)
    scores = rng.normal(size=(2, 500))
    val = np.arange(500) < 99
    p = [conformal_p(np.sort(score[val]), score) for score in scores]
    split = np.where(val, "val", "test").tolist()
    parts = {"p_features": p[0], "p_opinion": p[1], "p_neighbourhood": None}
    a = scored(500, split=split, p_labels=uniform(500), **parts)
    b = scored(500, **parts)
    new_a, new_b, sentences = with_common_parts(a, b)
    own = [calibration_p(score[val]) for score in scores]
    sums = np.sort(-np.sum(np.log(own), axis=0))
    expected = conformal_p(sums, -np.sum(np.log(np.asarray(p, np.float64)), axis=0) - 1e-6)
    np.testing.assert_allclose(new_b.p["known"], expected, atol=1e-6)
    np.testing.assert_array_equal(new_a.p["known"], new_b.p["known"])
    assert "measured on the 99 validation nodes of A" in sentences[0]


def test_no_common_part():
    only = {"p_features": None, "p_neighbourhood": None}
    a = scored(50, **only)
    b = scored(50, p_opinion=None)
    new_a, new_b, sentences = with_common_parts(a, b)
    assert (new_a.p, new_b.p) == ({}, {})
    assert sentences[0].startswith("P-values are not compared, since no part is in both: only A")
    assert sentences[0].endswith("only B has p_features, p_neighbourhood.")


@pytest.mark.parametrize("count", [5, 18])
def test_few_validation_nodes_are_not_enough(count):
    split = ["val"] * count + ["test"] * (100 - count)
    a = scored(100, split=split, p_labels=uniform(100))
    assert "compared nodes of A" in with_common_parts(a, scored(100))[2][0]
