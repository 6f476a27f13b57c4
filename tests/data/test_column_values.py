import math
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpn_scale.data.column_values import (
    MISSING_TOKENS,
    ColumnReader,
    parsed_booleans,
    parsed_dates,
    parsed_numbers,
)

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)


def reader(values, kind=None):
    return ColumnReader(pa.chunked_array([pa.array(values, kind)]))


def number_of(text):
    """The slow, obvious version: Python's own numbers, written with ASCII digits only."""
    if not set(text) <= set("0123456789+-.eEinfINFtyTY"):
        return math.nan
    try:
        return float(text)
    except ValueError:
        return math.nan


@given(st.lists(TEXTS | st.floats().map(str) | st.text("0123456789.eE+-", max_size=6)))
@example(["1e999", "-inf", "Infinity", ".", "e5", "1_000", "+5", "5.", "nan", "NaN", ""])
def test_numbers_are_those_of_python(texts):
    expected = [number_of(text) for text in texts]
    numbers = parsed_numbers(pa.array(texts, pa.string()))
    np.testing.assert_array_equal(numbers, np.array(expected, float))


def days_of(text):
    """The slow, obvious version, for texts in the form of ISO dates."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return math.nan
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() / 86400


ZONES = st.sampled_from(["", "Z", "+02:00", "-0530", "+14"])
MOMENTS = st.builds(
    lambda moment, separator, zone: f"{moment.isoformat(separator)}{zone}",
    st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)),
    st.sampled_from("T "),
    ZONES,
)
DAYS = st.builds("{:04}-{:02}-{:02}".format, *map(st.integers, (1, 0, 0), (9999, 13, 32)))


@given(st.lists(MOMENTS | DAYS))
@example(["2024-02-29", "2023-02-29", "2024-04-31", "2024-01-01T10:20:60"])
def test_dates_are_those_of_python(texts):
    expected = np.array([days_of(text) for text in texts], float)
    np.testing.assert_allclose(parsed_dates(pa.array(texts, pa.string())), expected, rtol=1e-12)


@given(st.lists(TEXTS))
@example(
    ["20240101", "2024-1-1", "2024-01-01T", "2024-01-01T24:00", "01.02.2024", "2024-01-01 +02:00"]
)
def test_other_texts_are_no_dates(texts):
    assert np.isnan(parsed_dates(pa.array(texts, pa.string()))).all()


def test_fractions_of_seconds_may_have_nine_digits():
    expected = 0.123456 / 86400
    days = parsed_dates(pa.array(["1970-01-01T00:00:00.123456789"]))
    np.testing.assert_allclose(days, [expected], rtol=1e-12)


def test_booleans():
    texts = ["True", "YES", "t", "Y", "1", "false", "No", "F", "n", "0", "2", "yess"]
    expected = [1.0] * 5 + [0.0] * 5 + [math.nan] * 2
    np.testing.assert_array_equal(parsed_booleans(pa.array(texts)), expected)


@pytest.mark.parametrize("token", MISSING_TOKENS)
def test_missing_tokens_count_with_blanks_around_them(token):
    values = reader([f" {token}\t", "x", None])
    assert values.text.missing.tolist() == [True, False, True]
    assert values.numbers.missing.tolist() == [True, False, True]
    assert values.numbers.wrong.tolist() == [False, True, False]


@given(st.lists(st.none() | TEXTS))
def test_texts_are_the_trimmed_values(texts):
    values = reader(texts, pa.string()).text
    got = [None if code < 0 else values.distinct[code].as_py() for code in values.code.tolist()]
    trimmed = pa.compute.utf8_trim_whitespace(pa.array(texts, pa.string())).to_pylist()
    assert got == [None if text in (None, *MISSING_TOKENS) else text for text in trimmed]
    assert values.counts.sum() == sum(text is not None for text in got)
    assert len(set(values.distinct.to_pylist())) == len(values.distinct)


@pytest.mark.parametrize(
    ("values", "kind", "texts"),
    [
        ([1, None, 3], pa.int8(), ["1", None, "3"]),
        (
            [1.0, math.nan, 0.5, 1e15, 1e300],
            pa.float64(),
            ["1", None, "0.5", f"{10**15}", "1e+300"],
        ),
        ([1.5, 2.0], pa.float16(), ["1.5", "2"]),
        ([True, None], pa.bool_(), ["true", None]),
        ([Decimal("1.50")], pa.decimal128(5, 2), ["1.50"]),
        ([date(2024, 1, 2)], pa.date32(), ["2024-01-02"]),
        (["a", None], pa.dictionary(pa.int8(), pa.string()), ["a", None]),
        ([None, None], pa.null(), [None, None]),
        ([], pa.string(), []),
    ],
)
def test_any_type_can_be_text(values, kind, texts):
    text = reader(values, kind).text
    got = [None if code < 0 else text.distinct[code].as_py() for code in text.code.tolist()]
    assert got == texts


@pytest.mark.parametrize(
    ("values", "kind", "numbers"),
    [
        ([2**63 + 5, None], pa.uint64(), [2.0**63, math.nan]),
        ([math.nan, 2.5], pa.float32(), [math.nan, 2.5]),
        ([Decimal("1.50")], pa.decimal128(5, 2), [1.5]),
        (["7", "x"], pa.large_string(), [7.0, math.nan]),
        ([1, 2], pa.dictionary(pa.int8(), pa.int64()), [1.0, 2.0]),
    ],
)
def test_any_type_can_be_numbers(values, kind, numbers):
    np.testing.assert_array_equal(reader(values, kind).numbers.value, numbers)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([date(1970, 1, 3), None], pa.date32()),
        ([date(1970, 1, 3), None], pa.date64()),
        *(([datetime(1970, 1, 3), None], pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")),
        ([datetime(1970, 1, 3), None], pa.timestamp("us", "Europe/Berlin")),
    ],
)
def test_dates_of_any_type_are_days(values, kind):
    dates = reader(values, kind).dates
    np.testing.assert_array_equal(dates.value, [2.0, math.nan])
    assert dates.missing.tolist() == [False, True]


def test_types_that_are_not_of_a_kind_are_wrong():
    flags, moments = reader([True, None]), reader([date(1970, 1, 3), None])
    assert flags.numbers.wrong.tolist() == [True, False]
    assert flags.dates.wrong.tolist() == [True, False]
    assert moments.numbers.wrong.tolist() == [True, False]
    assert moments.booleans.wrong.tolist() == [True, False]
    assert reader([1, 0, 2]).booleans.wrong.tolist() == [False, False, True]


def test_numbers_whose_squares_overflow_are_wrong():
    assert reader([1e301, -math.inf, 1e300]).numbers.wrong.tolist() == [True, True, False]


def test_a_cell_is_shown_as_it_was_given():
    assert reader([" x ", "y"]).cell(0) == " x "
    assert reader([2.0]).cell(0) == "2.0"
