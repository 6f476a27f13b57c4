import csv

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.drift.nodes import movement, node_drifts
from gpn_scale.drift.reference import ComparedNodes
from gpn_scale.evaluation.table_writers import table_writer
from tests.drift.samples import columns_of, scored


def drifts(a, b):
    return node_drifts(a, b, ComparedNodes.of(a, b))


@st.composite
def two_distributions(draw):
    weights = st.lists(st.floats(0.01, 1), min_size=3, max_size=3)
    return [np.array(draw(weights)) / 1.0 for _ in range(2)]


@given(two_distributions())
def test_the_movement_of_probabilities_is_a_lower_bound(pair):
    """Never more than the total variation distance, which needs all probabilities."""
    before, after = (each / each.sum() for each in pair)
    changed = np.array([before.argmax() != after.argmax()])
    bound = movement(before[[before.argmax()]], after[[after.argmax()]], changed, None)[0]
    assert bound <= np.abs(before - after).sum() / 2 + 1e-12


def test_equal_tables_have_not_moved():
    drift = drifts(scored(100), scored(100))
    assert (drift.in_both, drift.moved, drift.joined, drift.left) == (100, 0, 0, 0)
    assert drift.table.num_rows == 0
    assert drift.strange_joined is None


def test_planted_movements_are_first():
    own = columns_of(100, p_known=np.full(100, 0.5, np.float32), aleatoric=np.full(100, -0.7))
    names = list(own["predicted_class_name"])
    p_known, aleatoric = own["p_known"].copy(), own["aleatoric"].copy()
    p_known[3], p_known[5], aleatoric[7] = 0.005, 0.06, -0.99
    numbers = own["predicted_class"].copy()
    names[9] = "merchant" if names[9] != "merchant" else "fraud"
    numbers[9] = ("private", "merchant", "fraud").index(names[9])
    base = scored(100, p_known=own["p_known"], aleatoric=own["aleatoric"])
    b = scored(
        100,
        p_known=p_known,
        aleatoric=aleatoric,
        predicted_class=numbers,
        predicted_class_name=names,
        reason=["foreign features" if i == 3 else "nothing unusual" for i in range(100)],
    )
    drift = drifts(base, b)
    rows = drift.table.to_pylist()
    assert [row["id"] for row in rows] == ["n3", "n9", "n7"]  # 0.06 is no tenth of 0.5
    assert rows[0]["p_known_before"] == 0.5
    assert rows[0]["p_known_after"] == pytest.approx(0.005)
    assert (rows[0]["reason_before"], rows[0]["reason_after"]) == (
        "nothing unusual",
        "foreign features",
    )
    assert rows[0]["movement"] == pytest.approx(2.0)
    assert (drift.moved, drift.changed_class) == (3, 1)


def test_classes_are_matched_by_name():
    a = scored(30, predicted_class=[0] * 30, predicted_class_name=["x"] * 30)
    b = scored(30, predicted_class=[1] * 30, predicted_class_name=["x"] * 30)
    assert drifts(a, b).changed_class == 0
    other = scored(30, predicted_class=[0] * 30, predicted_class_name=["y"] * 30)
    assert drifts(a, other).changed_class == 30
    numbers = scored(30, predicted_class=[1] * 30, predicted_class_name=None)
    assert drifts(a, numbers).table["class_after"].to_pylist() == ["1"] * 30


def test_joined_nodes_that_look_unknown_are_listed():
    p = np.where(np.arange(60) >= 50, np.float32(0.01), np.float32(0.5))
    drift = drifts(scored(40, p_known=p[:40]), scored(60, p_known=p))
    assert (drift.joined, drift.left, drift.listed_joined) == (20, 0, 10)
    assert drift.strange_joined.value == 0.5
    assert drift.strange_in_both.value == 0
    joined = [row for row in drift.table.to_pylist() if row["status"] == "joined"]
    assert [row["id"] for row in joined] == [f"n{i}" for i in range(50, 60)]
    assert all(row["class_before"] is None and row["class_after"] for row in joined)
    assert drifts(scored(60), scored(40)).left == 20


def test_models_without_p_values_are_compared_by_class():
    bare = {f"p_{name}": None for name in ("known", "features", "neighbourhood", "opinion")}
    bare["reason"] = None
    drift = drifts(scored(50, **bare), scored(50, rng_seed=2, **bare))
    assert drift.strange_in_both is None
    assert drift.changed_class > 0
    assert "p_known_before" not in drift.table.column_names


def test_the_list_holds_no_formulas(tmp_path):
    names = ["=1+1"] + [f"n{i}" for i in range(29)]
    a = scored(30, node_name=names, predicted_class=[0] * 30, predicted_class_name=["@x"] * 30)
    b = scored(30, node_name=names, predicted_class=[1] * 30, predicted_class_name=["-y"] * 30)
    with table_writer(tmp_path / "x.csv") as writer:
        writer.write(drifts(a, b).table)
    rows = list(csv.DictReader((tmp_path / "x.csv").read_text().splitlines()))
    assert {"'=1+1"} < {row["id"] for row in rows}
    assert {row["class_before"] for row in rows} == {"'@x"}
    assert {row["class_after"] for row in rows} == {"'-y"}
