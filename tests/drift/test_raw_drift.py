import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.column_kinds import KINDS
from gpn_scale.drift.column_drift import Bars, Bins
from gpn_scale.drift.raw_drift import column_drift, number_drift

CELLS = st.lists(
    st.sampled_from([None, "", "NA", "1", "2.5", "yes", "no", "red car", "2024-01-01"])
)


def chunked(values, kind=None):
    return pa.chunked_array([pa.array(values, kind)])


def drift_of(kind, a, b):
    return column_drift("x", kind, chunked(a), chunked(b))


def test_numbers_move_by_medians_in_units_of_the_range():
    rng = np.random.default_rng(1)
    a = rng.normal(50, 10, 500)
    drift = drift_of("number", a, a + 5)
    low, high = np.quantile(a, [0.25, 0.75])
    assert drift.numbers["shift_in_iqr"] == pytest.approx(5 / (high - low))
    assert drift.values.direction == 1
    assert drift.movement.is_notable()
    assert isinstance(drift.picture, Bins)
    assert drift.missing[0].count == 0


def test_missing_values_and_values_of_another_kind_count_as_missing():
    drift = drift_of("number", ["1"] * 50, ["1"] * 40 + ["", "NA", None, "old"] * 5)
    assert [share.count for share in drift.missing] == [0, 20]
    assert drift.measure == "share of missing values"


def test_equal_numbers_have_no_range():
    drift = number_drift("x", "number", np.ones(50), np.append(np.ones(50), 2.0))
    assert drift.numbers["shift_in_iqr"] is None
    assert drift.detail == "median 1 -> 1"


def test_dates_are_shown_as_dates():
    first = [datetime.date(2020, 1, 1) + datetime.timedelta(day) for day in range(100)]
    later = [day + datetime.timedelta(365) for day in first]
    drift = drift_of("date", first, later)
    assert drift.detail.startswith("median 2020-02-19 -> 2021-02-18")
    assert drift.kind == "date"


def test_booleans_move_by_shares():
    drift = drift_of("boolean", ["yes", "no"] * 50, ["yes"] * 75 + ["no"] * 25)
    assert drift.values.distance == pytest.approx(0.25)
    assert drift.detail == "share of yes 50.0 % -> 75.0 %"
    assert isinstance(drift.picture, Bars)


def test_categories_tell_new_and_vanished_values():
    a = ["DE"] * 60 + ["FR"] * 30 + ["NL"] * 10
    b = ["DE"] * 60 + ["FR"] * 20 + ["XK"] * 15 + ["<b>"] * 5
    drift = drift_of("category", a, b)
    assert drift.values.distance == pytest.approx(0.2)
    assert drift.detail == "new values: 'XK' (15), '<b>' (5); vanished values: 'NL'"
    assert drift.numbers["new_values"] == {"XK": 15, "<b>": 5}
    assert drift.picture.names[0] == "XK"
    many = drift_of("category", a, [f"v{place}" for place in range(100)])
    assert "and 95 more" in many.detail
    assert many.numbers["num_new_values"] == 100
    moved = drift_of("category", a, ["DE"] * 40 + ["FR"] * 50 + ["NL"] * 10)
    assert moved.detail.startswith("'FR' 30.0 % -> 50.0 %, 'DE' 60.0 % -> 40.0 %")


def test_texts_move_by_words():
    a = ["rent and food"] * 50 + ["shop card"] * 50
    b = ["rent and food"] * 50 + ["token swap"] * 50
    drift = drift_of("text", a, b)
    assert drift.values.distance == pytest.approx(0.5)
    assert drift.movement.is_notable()
    assert drift.numbers["num_new_words"] == 2
    assert set(drift.picture.names) >= {"shop", "card", "token", "swap"}
    assert drift_of("text", ["?"] * 30, ["!"] * 30).detail == "no words"


def test_the_words_of_a_text_are_corrected_for_their_number():
    rng = np.random.default_rng(4)
    texts = [" ".join(f"w{word}" for word in rng.integers(0, 300, 8)) for _ in range(600)]
    drift = drift_of("text", texts[:300], texts[300:])
    assert not drift.movement.is_notable()


@pytest.mark.parametrize("kind", KINDS)
def test_few_values_are_not_compared(kind):
    value = {"number": "1", "boolean": "yes", "date": "2024-01-01"}.get(kind, "red")
    drift = drift_of(kind, [value] * 19, [value] * 100)
    assert drift.movement.distance == 0
    assert "too few values to compare" in drift.detail


@given(st.sampled_from(KINDS), CELLS, CELLS)
def test_any_cells_can_be_compared(kind, a, b):
    drift = column_drift("x", kind, chunked(a, pa.string()), chunked(b, pa.string()))
    assert 0 <= drift.movement.distance <= 1
    assert 0 <= drift.movement.p_value <= 1
    same = column_drift("x", kind, chunked(a, pa.string()), chunked(a, pa.string()))
    assert same.movement.distance == 0


def test_columns_of_other_types_are_not_read():
    lists = pa.chunked_array([[[1], [2]]])
    assert column_drift("x", "text", lists, lists) is None
