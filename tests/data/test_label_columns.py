"""Labels become classes with names, and a split its subsets."""

import numpy as np
import pyarrow as pa
import pytest

from gpn_scale.data.label_columns import Labels, read_labels, read_split, read_subsets


def labels_of(values, kind=None):
    column = pa.chunked_array([pa.array(values, kind)])
    return read_labels(column, file="n.csv", column_name="verdict")


@pytest.mark.parametrize(
    ("values", "expected", "names"),
    [
        (["b", None, "a", ""], [1, -1, 0, -1], ["a", "b"]),
        ([10, 9, None], [1, 0, -1], ["9", "10"]),
        ([10.0, 9.0, None], [1, 0, -1], ["9", "10"]),
        (["10.0", "9.0", ""], [1, 0, -1], ["9", "10"]),
        (["-1", "10", "9"], [0, 2, 1], ["-1", "9", "10"]),
        (["10", "9", "x"], [0, 1, 2], ["10", "9", "x"]),
        (["01", "1"], [0, 1], ["01", "1"]),
        ([0, 1, 0], [0, 1, 0], ["0", "1"]),
        ([True, False, None], [1, 0, -1], ["false", "true"]),
        ([str(10**30), "2"], [0, 1], [str(10**30), "2"]),
    ],
)
def test_classes_are_sorted_and_named(values, expected, names):
    labels, faults = labels_of(values)
    assert faults == []
    assert labels.labels.tolist() == expected
    assert labels.class_names.tolist() == names


@pytest.mark.parametrize(
    ("values", "value", "advice"),
    [
        (["", None], None, "all labels are missing: label nodes of at least two classes"),
        (["x", "x", None], "x", "all labels are of one class: label nodes of at least two"),
        ([0.5, 1.0], "0.5", "write integers or text"),
        ([[1], [2]], None, "not values of type list"),
        (["a\0", "a"], "a\0", "no NUL character"),
    ],
)
def test_useless_labels_are_faults(values, value, advice):
    _, faults = labels_of(values)
    assert advice in faults[0].advice
    assert (faults[0].file, faults[0].column, faults[0].value) == ("n.csv", "verdict", value)


def test_every_name_of_a_subset_is_understood():
    given = ["train", "val", "valid", "validation", "test", "", None, "dev", "Train"]
    subsets, unknown = read_subsets(pa.array(given))
    assert {name: nodes.tolist() for name, nodes in subsets.items()} == {
        "train": [0],
        "val": [1, 2, 3],
        "test": [4],
    }
    assert np.flatnonzero(unknown).tolist() == [7, 8]


LABELS = Labels(np.array([0, 1, -1]), np.array(["a", "b"]))


def split_of(values, labels=LABELS):
    return read_split(pa.chunked_array([values]), labels, file="n.csv", column_name="part")


def test_a_split_has_its_nodes():
    labels = Labels(np.array([0, 1, 0, 1]), np.array(["a", "b"]))
    split, faults = split_of(["train", "train", "val", "test"], labels)
    assert faults == []
    assert [split.train.tolist(), split.val.tolist(), split.test.tolist()] == [[0, 1], [2], [3]]


def test_an_empty_split_is_none():
    assert split_of(["", None, ""]) == (None, [])


@pytest.mark.parametrize(
    ("values", "row", "value", "advice"),
    [
        (["train", "dev", None], 2, "dev", "write train, val, valid, validation, test or nothing"),
        (["train", "train", "test"], 3, "test", "the node has no label: add one, or leave the"),
        (["train", "test", None], None, "b", "no node of this class is in train: add one"),
    ],
)
def test_a_wrong_split_is_a_fault(values, row, value, advice):
    _, faults = split_of(values)
    assert (faults[0].row, faults[0].value) == (row, value)
    assert advice in faults[0].advice


def test_a_split_needs_labels():
    _, faults = split_of(["train", None, None], labels=None)
    assert "the node has no label" in faults[0].advice
