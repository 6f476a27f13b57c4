import numpy as np
import pytest

from gpn_scale.drift.parts import GRID, part_drifts
from gpn_scale.drift.reference import ComparedNodes
from tests.drift.samples import columns_of, scored, strange


def drifts(a, b):
    return part_drifts(a, b, ComparedNodes.of(a, b))


def test_shares_distances_and_curves_are_those_of_the_columns():
    a, b = scored(500), scored(400, rng_seed=1)
    parts, left_out = drifts(a, b)
    assert left_out == ()
    assert [part.name for part in parts] == ["known", "features", "neighbourhood", "opinion"]
    for part in parts:
        p_a, p_b = a.p[part.name], b.p[part.name]
        for level, (share_a, share_b) in part.shares.items():
            assert share_a.value == pytest.approx((p_a <= level + 1e-6).mean())
            assert share_b.value == pytest.approx((p_b <= level + 1e-6).mean())
        for place in (0, 5, 50, 100):
            assert part.cumulative[0][place] == pytest.approx((p_a <= GRID[place] + 1e-6).mean())
        assert part.to_dict()["distance"] == part.distribution.distance


def test_equal_tables_have_not_moved():
    for part in drifts(scored(500), scored(500))[0]:
        assert part.distribution.distance == 0
        assert not part.moved
        assert not part.share_moved
        assert part.sentence == f"{part.column} moved by 0.0 %, which chance explains."


def test_a_planted_shift_of_one_part_is_found():
    own = columns_of(600)
    b = scored(600, p_features=strange(own["p_features"], 0.2))
    moved = [part for part in drifts(scored(600), b)[0] if part.moved]
    assert [part.name for part in moved] == ["features"]
    assert moved[0].share_moved
    assert moved[0].looks_stranger
    assert moved[0].sentence.endswith("more than chance explains: B looks stranger.")
    back = [part for part in drifts(b, scored(600))[0] if part.moved]
    assert not back[0].looks_stranger


def test_a_distance_that_only_many_comparisons_explain():
    own = columns_of(600)
    sentences = set()
    for place in range(30):
        p = strange(own["p_features"], 0.1, rng_seed=place)
        part = drifts(scored(600), scored(600, p_features=p))[0][1]
        sentences.add(part.sentence.partition(" %")[2].split(",")[0])
    assert ": this may be more than chance" in sentences


def test_levels_that_no_p_value_reaches_are_left_out():
    coarse = {f"p_{name}": np.full(50, 0.02) for name in ("known", "features")}
    coarse |= {"p_neighbourhood": None, "p_opinion": None}
    parts, left_out = drifts(scored(50, **coarse), scored(50, **coarse))
    assert [list(part.shares) for part in parts] == [[0.05], [0.05]]
    assert left_out == (
        "Shares at or below 1 % are not given: no p-value is that small. The smallest is 2.0 %; "
        "few validation nodes make them coarse.",
    )


def test_few_nodes_and_models_without_p_values_are_left_out():
    parts, left_out = drifts(scored(19), scored(500))
    assert parts == ()
    assert "needs 20 nodes of A and of B, and there are 19 and 500" in left_out[0]
    parts, left_out = drifts(scored(50), scored(50, name="gpn.csv", p_known=None))
    assert parts == ()
    assert left_out[0].startswith("P-values are not compared: gpn.csv has none")
