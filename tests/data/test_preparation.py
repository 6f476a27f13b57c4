"""Preparation of raw columns: laws, faults and surprises."""

import doctest
import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.data.column_kinds import KINDS as ALL_KINDS
from gpn_scale.data.column_rules import HashedCategoryRule
from gpn_scale.data.faults import TableFaults
from gpn_scale.data.graph import CSRFeatures
from gpn_scale.data.preparation import Preparation, prepared_features
from gpn_scale.errors import ConfigError, GraphError
from tests.data.raw_tables import KINDS, MIXED, raw_tables

FITTED = Preparation.fit(MIXED, kinds=KINDS)


def dense(features):
    return features.to_dense() if isinstance(features, CSRFeatures) else features


def fit_or_faults(table, **options):
    """The preparation of a table, or None if the table has faults."""
    try:
        return Preparation.fit(table, **options)
    except TableFaults:
        return None


def with_column(name, values):
    return MIXED.set_column(MIXED.column_names.index(name), name, pa.array(values))


@given(raw_tables(), st.sampled_from(["flag", "fill", "refuse"]), st.data())
def test_any_table_is_prepared_or_has_faults(table, missing, data):
    kinds = data.draw(
        st.dictionaries(st.sampled_from(table.column_names or [""]), st.sampled_from(ALL_KINDS))
    )
    preparation = fit_or_faults(table, missing=missing, kinds=kinds)
    if preparation is not None:
        prepared = preparation.apply(table)
        features = dense(prepared.features)
        assert features.dtype == np.float32
        assert features.shape == (table.num_rows, preparation.num_features)
        assert np.isfinite(features).all()
        assert (prepared.notes, prepared.surprises) == ((), ())
        assert len(set(preparation.feature_names)) == preparation.num_features
        names = {rule.column for rule in preparation.rules}
        assert names | {each.column for each in preparation.left_out} == set(table.column_names)


@given(raw_tables(), raw_tables())
def test_any_other_table_is_prepared_or_has_faults(table, other):
    preparation = fit_or_faults(table)
    if preparation is not None:
        with suppress(TableFaults):
            prepared = preparation.apply(other)
            features = dense(prepared.features)
            assert features.shape == (other.num_rows, preparation.num_features)
            assert np.isfinite(features).all()


@given(raw_tables())
def test_a_preparation_comes_back_from_json(table):
    preparation = fit_or_faults(table)
    if preparation is not None:
        again = Preparation.from_dict(json.loads(json.dumps(preparation.to_dict())))
        assert again == preparation
        assert again.feature_names == preparation.feature_names


@given(raw_tables(min_rows=1), st.randoms(use_true_random=False))
def test_permuted_rows_and_columns_have_the_same_features(table, random):
    rows, names = list(range(table.num_rows)), list(table.column_names)
    random.shuffle(rows)
    random.shuffle(names)
    permuted = table.select(names).take(rows)
    preparation, other = fit_or_faults(table), fit_or_faults(permuted)
    assert (preparation is None) == (other is None)
    if preparation is not None:
        expected = dense(preparation.apply(table).features)[rows]
        np.testing.assert_array_equal(dense(preparation.apply(permuted).features), expected)
        position = {name: place for place, name in enumerate(other.feature_names)}
        assert set(position) == set(preparation.feature_names)
        order = [position[name] for name in preparation.feature_names]
        np.testing.assert_array_equal(dense(other.apply(permuted).features)[:, order], expected)


def test_the_features_of_a_mixed_table():
    names = FITTED.feature_names
    assert names[:2] == ("amount", "amount is missing")
    assert names[2:6] == ("country=DE", "country=FR", "country=IT", "country is missing")
    assert names[6:9] == ("active", "active is missing", "opened")
    assert {"note: red", "note: old", "note is missing"} < set(names)
    features = FITTED.apply(MIXED).features
    assert isinstance(features, CSRFeatures)
    columns = dict(zip(names, features.to_dense().T, strict=True))
    amounts = np.array([1.5, 4, -20, 7, 0.25, 3])
    scaled = (amounts - amounts.mean()) / amounts.std()
    np.testing.assert_allclose(columns["amount"][[0, 2, 3, 5, 6, 7]], scaled, rtol=1e-6)
    assert columns["amount"][[1, 4]].tolist() == [0, 0]
    assert columns["amount is missing"].tolist() == [0, 1, 0, 0, 1, 0, 0, 0]
    assert columns["country=IT"].tolist() == [0, 0, 0, 0, 0, 0, 1, 0]
    days = np.arange(8.0)
    np.testing.assert_allclose(columns["opened"], (days - 3.5) / days.std(), rtol=1e-6)


def test_few_features_are_dense():
    table = MIXED.drop_columns(["note"])
    preparation = Preparation.fit(table)
    assert preparation.apply(table).features.shape == (8, 9)
    assert not preparation.is_sparse
    assert FITTED.is_sparse


def test_the_column_behind_a_feature():
    assert FITTED.column_of("country=DE") == "country"
    assert FITTED.column_of(0) == "amount"
    assert FITTED.column_of(np.int64(1)) == "amount"
    for feature in ("size", -1, FITTED.num_features):
        with pytest.raises(
            ConfigError, match=r"expected one of the .* feature names or its positi"
        ):
            FITTED.column_of(feature)


def test_all_faults_of_fitting_are_listed_at_once():
    table = pa.table(
        [["1", "x"], ["2024-01-01", "soon"], [[1], [2]], ["1", "inf"], ["a", "b"], ["c", "d"]],
        names=["size", "due", "spots", "price", "twin", "twin"],
    )
    kinds = {"size": "number", "due": "date", "colour": "text", "price": "colour"}
    with pytest.raises(TableFaults) as caught:
        Preparation.fit(table, kinds=kinds, file="nodes.csv")
    rows = {(fault.column, fault.row, fault.value) for fault in caught.value.faults}
    assert rows == {
        ("size", 2, "x"),
        ("due", 2, "soon"),
        ("spots", None, "list<item: int64>"),
        ("price", 2, "inf"),
        ("price", None, "colour"),
        ("colour", None, None),
        ("twin", None, None),
    }
    assert caught.value.arguments == ("missing", "kinds")
    assert {fault.file for fault in caught.value.faults} == {"nodes.csv"}


def test_an_unknown_rule_for_missing_values_is_refused():
    with pytest.raises(ConfigError, match="missing is 'drop', expected one of flag, fill, refuse"):
        Preparation.fit(MIXED, missing="drop")


def test_columns_that_are_left_out_are_named():
    table = pa.table({"a": ["x", "x"], "b": [None, ""], "c": [1, 2]})
    preparation = Preparation.fit(table)
    assert preparation.feature_names == ("c",)
    assert preparation.notes == (
        "The column 'a' is left out, since all its values are equal.",
        "The column 'b' is left out, since it has no value.",
    )
    assert preparation.apply(pa.table({"c": [3], "a": ["y"]})).notes == ()


def test_missing_columns_and_columns_of_another_kind_are_listed_at_once():
    later = pa.table(
        {"amount": ["many"] * 3, "opened": [1, 2, 3], "active": [[True]] * 3, "note": ["a"] * 3}
    )
    with pytest.raises(TableFaults) as caught:
        FITTED.apply(later, file="may.csv")
    given_faults = {fault.column: (fault.value, fault.count) for fault in caught.value.faults}
    assert given_faults == {
        "amount": ("many", 3),
        "country": (None, 1),
        "active": ("list<item: bool>", 1),
        "opened": ("1", 3),
    }
    assert "add the column, or train again without it" in str(caught.value)
    assert "write a finite number: the column is a number of the model" in str(caught.value)


def test_a_missing_column_comes_with_the_new_ones():
    later = MIXED.rename_columns(
        ["volume" if name == "amount" else name for name in MIXED.column_names]
    )
    with pytest.raises(TableFaults, match=r"add the column, .*; was 'volume' renamed\?"):
        FITTED.apply(later)


def test_repeated_columns_are_refused():
    twice = MIXED.append_column("amount", MIXED["amount"])
    with pytest.raises(TableFaults, match="rename one of the columns of this name"):
        FITTED.apply(twice)


def test_surprises_are_counted_and_told():
    later = with_column("country", ["XK", "DE", "XY", "FR", "DE", "IT", "DE", "DE"])
    later = later.set_column(0, "amount", pa.array(["1", "abc", "", "", "", "2", "3", "4"]))
    later = later.append_column("extra", pa.array(range(8)))
    prepared = FITTED.apply(later)
    assert prepared.notes == (
        "The column 'extra' was not in training and was ignored.",
        "1 value of 'amount' cannot be read as finite numbers (first: 'abc'); it counts as "
        "missing.",
        "2 values of 'country' are not among those of training (first: 'XK'); they count as no "
        "category.",
    )
    amount, country = prepared.surprises
    assert (amount.missing, amount.unreadable) == (0, 1)
    assert (country.unknown, country.first_unknown) == (2, "XK")


@pytest.mark.parametrize(("wrong", "fits"), [(2, True), (3, False)])
def test_up_to_a_quarter_of_other_values_count_as_missing(wrong, fits):
    later = with_column("amount", ["abc"] * wrong + ["1"] * (8 - wrong))
    if fits:
        assert FITTED.apply(later).surprises[0].unreadable == wrong
    else:
        with pytest.raises(TableFaults) as caught:
            FITTED.apply(later)
        (fault,) = caught.value.faults
        assert (fault.row, fault.column, fault.value, fault.count) == (1, "amount", "abc", 3)


def test_missing_values_of_later_tables_are_refused_by_the_same_rule():
    table = MIXED.select(["opened"])
    preparation = Preparation.fit(table, missing="refuse")
    later = pa.table({"opened": [None, "2024-01-01"] + ["2024-01-02"] * 6})
    with pytest.raises(TableFaults) as caught:
        preparation.apply(later)
    (fault,) = caught.value.faults
    assert (fault.row, fault.count) == (1, 1)
    assert "fill the missing values" in fault.advice


def test_text_and_typed_columns_have_equal_features():
    typed = pa.table({"n": [1.5, 2.0, None], "b": [True, False, None], "d": MIXED["opened"][:3]})
    text = pa.table(
        {
            "n": ["1.5", "2", "NA"],
            "b": ["yes", "No", ""],
            "d": ["2024-01-01", "2024-01-02T00:00", "2024-01-03"],
        }
    )
    preparation = Preparation.fit(typed)
    assert Preparation.fit(text) == preparation
    np.testing.assert_array_equal(
        preparation.apply(text).features, preparation.apply(typed).features
    )


@settings(deadline=None)
@given(st.integers(51, 400))
def test_many_categories_are_hashed(count):
    table = pa.table({"city": [f"city {number}" for number in range(count)] * 2})
    preparation = Preparation.fit(table, kinds={"city": "category"})
    features = preparation.apply(table).features
    assert isinstance(features, CSRFeatures)
    assert features.num_columns == 256
    assert features.values.tolist() == [1.0] * 2 * count
    assert preparation.feature_names[17] == "city#17"


def test_structural_features_follow_those_of_columns():
    graph = build_graph([0, 1, 1], [1, 2, 3], num_nodes=8)
    table = MIXED.select(["amount"])
    preparation = Preparation.fit(table, structural=True)
    assert preparation.feature_names == ("amount", "amount is missing")
    prepared = prepared_features(preparation, table, graph)
    fitted = prepared.preparation
    assert fitted.feature_names[2:] == ("log degree", "log mean degree of neighbours")
    assert fitted.column_of("log degree") == "network structure"
    assert prepared.features.shape == (8, 4)
    np.testing.assert_array_equal(prepared.features[:, :2], preparation.apply(table).features)
    assert fitted.fitted_to(build_graph([0], [1])) is fitted
    assert Preparation.from_dict(json.loads(json.dumps(fitted.to_dict()))) == fitted
    other = build_graph([0, 1, 2], [1, 2, 3], num_nodes=8)
    later = prepared_features(fitted, table, other)
    assert later.preparation is fitted
    assert later.features[0, 2] == prepared.features[0, 2]


def test_a_network_alone_has_features():
    graph = build_graph([0, 1], [1, 2])
    preparation = Preparation.fit(pa.table({}), structural=True)
    assert prepared_features(preparation, pa.table({}), graph).features.shape == (3, 2)


def test_rows_must_be_those_of_the_graph():
    with pytest.raises(GraphError, match="have 8 rows but graph 'graph' has 2 nodes, expected one"):
        prepared_features(FITTED, MIXED, build_graph([0], [1]))


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda values: 5, "it is 5, expected an object"),
        (lambda values: values | {"missing": "drop"}, "it has 'drop' for 'missing', expected one"),
        (lambda values: values | {"rules": {}}, "it has {} for 'rules', expected a list"),
        (lambda values: values | {"rules": [[]]}, r"a rule is \[\], expected an object"),
        (lambda values: {"missing": "flag", "rules": []}, "it has no entry 'structural'"),
    ],
)
def test_damaged_values_are_refused(edit, message):
    with pytest.raises(GraphError, match=f"the preparation of columns is damaged: {message}"):
        Preparation.from_dict(edit(FITTED.to_dict()))


def test_features_are_counted_without_making_their_names(monkeypatch):
    """A record of 100 bytes may ask for 16 million names; its width is compared before that."""
    assert FITTED.num_features == len(FITTED.feature_names)
    monkeypatch.setattr(HashedCategoryRule, "labels", None)
    rule = HashedCategoryRule(column="city", num_columns=1 << 24)
    wide = Preparation.from_dict(replace(FITTED, rules=(rule,) * 9).to_dict())
    assert wide.num_features == 9 << 24


def test_the_example_of_the_documentation_runs():
    page = Path(__file__).parents[2] / "docs" / "raw_columns.md"
    results = doctest.testfile(str(page), module_relative=False)
    assert results.attempted > 0
    assert results.failed == 0
