"""Ids of nodes, ends of edges and weights: the right ones arrive, the wrong ones are faults."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.edge_tables import EndProblems, WeightReader, ends_of, read_node_ids


def column(*values):
    return pa.chunked_array([list(values)])


def rows_of(faults):
    return [(fault.row, fault.value, fault.count) for fault in faults]


def test_distinct_ids_are_right():
    ids, faults = read_node_ids(column("b", "a", "007"), file="n", column_name="id")
    assert (ids.to_pylist(), faults) == (["b", "a", "007"], [])


def test_missing_repeated_and_wrong_ids_are_faults():
    _, faults = read_node_ids(column("a", None, "a", "", "a", "b", "b"), file="n", column_name="i")
    assert rows_of(faults) == [(2, None, 2), (3, "a", 2), (7, "b", 1)]
    assert faults[0].advice == "give the node an id"
    assert faults[1].advice.startswith("the id stands further up already")
    _, faults = read_node_ids(column(0.5, 1.0), file="n", column_name="i")
    assert rows_of(faults) == [(1, "0.5", 1)]


IDS = pa.array(["a", "7", "007", "1.0"], pa.large_string())


def test_ends_are_numbers_of_nodes():
    ends = ends_of(column("7", "007", None, "x", "1.0", "7.0"), IDS)
    assert ends.nodes.tolist() == [1, 2, -1, -1, 3, 1]
    assert ends.is_missing.tolist() == [False, False, True, False, False, False]
    assert ends.is_unknown.tolist() == [False, False, False, True, False, False]


@pytest.mark.parametrize("values", [[7], [7.0], ["7"], ["7.0"]])
def test_an_id_is_the_same_in_every_type(values):
    assert ends_of(column(*values), IDS).nodes.tolist() == [1]


@given(st.lists(st.sampled_from(["a", "b", "7", "", "zz", " a"])), st.permutations(["a", "7", "b"]))
def test_ends_are_found_as_a_dictionary_would_find_them(values, ids):
    place = {text: number for number, text in enumerate(ids)}
    ends = ends_of(pa.chunked_array([pa.array(values, pa.string())]), pa.array(ids))
    assert ends.nodes.tolist() == [place.get(value, -1) for value in values]


def problems_of(*values, ids=IDS, kind=None):
    """The problems of a column that comes in blocks of two rows."""
    problems = EndProblems()
    for start in range(0, len(values), 2):
        block = pa.chunked_array([pa.array(values[start : start + 2], kind)])
        problems.add(ends_of(block, ids), start)
    return problems


def faults_of(values, **changes):
    options = {"unknown": "fix", "missing": True, "reason": None} | changes
    return problems_of(*values).faults("e", "to", **options)


def test_unknown_and_missing_ends_are_faults_unless_a_rule_allows_them():
    values = ["x", None, "a", "x", "y"]
    assert rows_of(faults_of(values)) == [(2, None, 1), (1, "x", 2), (5, "y", 1)]
    assert rows_of(faults_of(values, unknown=None)) == [(2, None, 1)]
    assert faults_of(values, unknown=None, missing=False) == []


def test_a_reason_replaces_the_list_of_ids():
    (fault,) = faults_of(["a", "x", "y"], reason="because")
    assert (fault.advice, fault.row, fault.value, fault.count) == ("because", 2, "x", 2)


def test_ends_that_are_no_ids_are_faults():
    assert rows_of(faults_of([7.0, 1.0, 7.0, 0.5])) == [(4, "0.5", 1), (2, "1", 1)]
    assert not ends_of(column(0.5, 7.0), IDS).is_unknown.any()


@pytest.mark.parametrize(
    ("values", "expected"), [(["a", "x"], False), (["x", "y", "a"], True), ([None], False)]
)
def test_a_majority_of_unknown_ids_is_seen(values, expected):
    assert problems_of(*values, kind=pa.string()).mostly_unknown is expected


def reason(values, nodes=None, edges=None, ids=("a", "b")):
    ids = pa.array(ids)
    return problems_of(*values, ids=ids).likely_reason(
        ids,
        id_column="id",
        nodes=pa.table(nodes or {}),
        edges=pa.table(edges or {}),
    )


def test_the_reason_names_the_column_that_fits_best():
    edges = {"sum": [1, 2], "to": ["a", "b"], "half": ["a", "q"]}
    assert reason(["5", "9"], edges=edges) == (
        "100 % of these ids are in no node's 'id', but 100 % of the column 'to' are: were columns "
        "exchanged?"
    )
    assert reason(["5", "9"], nodes={"age": [1, 2], "number": [9, 5]}) == (
        "100 % of these ids are in no node's 'id', but 100 % are in its 'number': is that the id?"
    )


def test_the_reason_may_be_blanks_or_cases():
    assert reason([" A", "B "]).endswith("they differ in blanks, or in upper and lower case")


def test_without_a_reason_the_columns_are_asked_for():
    message = "67 % of these ids are in no node's 'id': name the columns that hold the same ids"
    assert message in reason(["x", "y", "a"], nodes={"age": [1, 2]}, edges={"sum": [1, 2, 3]})


def weights_of(values, kind=None):
    """The weights of a column that comes in blocks of three rows, and its faults."""
    reader, weights = WeightReader(), []
    for start in range(0, len(values), 3):
        block = pa.chunked_array([pa.array(values[start : start + 3], kind)])
        weights.append(reader.weights(block, start))
    return np.concatenate(weights), reader.faults("e.csv", "w")


@pytest.mark.parametrize("values", [[0.5, 2.0], ["0.5", " 2"], [1, 2]])
def test_weights_are_numbers(values):
    weights, faults = weights_of(values)
    assert (weights.tolist(), faults) == ([float(value) for value in values], [])


def test_every_wrong_weight_is_a_fault():
    values = ["1", None, "x", "0", "-2", "inf", "1e39", "1e-60"]
    _, faults = weights_of(values)
    assert [(fault.row, fault.value, fault.advice) for fault in faults] == [
        (2, None, "write a weight, or remove the edge"),
        (3, "x", "write a number"),
        (6, "inf", "write a number"),
        (7, "1e39", "write a number"),
        (4, "0", "write a number above 0, or remove the edge"),
        (5, "-2", "write a number above 0, or remove the edge"),
        (8, "1e-60", "write a number above 0, or remove the edge"),
    ]


def test_weights_of_other_types_are_refused():
    _, faults = weights_of([[1], [2]])
    assert "write numbers, not values of type list" in faults[0].advice
    _, faults = weights_of([True, True])
    assert rows_of(faults) == [(1, "true", 2)]


def test_nothing_is_copied_into_the_weights_of_missing_values():
    weights, _ = weights_of([1.0, None])
    assert np.isnan(weights[1])
