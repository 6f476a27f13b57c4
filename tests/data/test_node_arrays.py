import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.graph import CSRFeatures
from gpn_scale.data.node_arrays import features_of, is_frame, labels_of
from gpn_scale.errors import GraphError

DENSE = np.array([[0.0, 2.0], [3.0, 0.0], [0.0, 0.0]])


@pytest.mark.parametrize(
    "values", [DENSE, DENSE.tolist(), torch.tensor(DENSE), pd.DataFrame(DENSE)], ids=type
)
def test_numbers_in_rows_become_an_array_without_names(values):
    features = features_of(values)
    np.testing.assert_array_equal(features.values, DENSE)
    assert features.names is None


@pytest.mark.parametrize("kind", [scipy.sparse.coo_array, scipy.sparse.csc_matrix])
def test_sparse_matrices_become_sparse_rows(kind):
    features = features_of(kind(DENSE)).values
    assert isinstance(features, CSRFeatures)
    np.testing.assert_array_equal(features.to_dense(), DENSE)
    assert features_of(features).values is features


def test_entries_that_are_listed_twice_add_up():
    twice = scipy.sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(1, 2))
    np.testing.assert_array_equal(features_of(twice).values.to_dense(), [[0.0, 3.0]])
    assert twice.nnz == 2  # the input stays as it is


def test_frames_have_names_and_may_mix_numbers():
    frame = pd.DataFrame({"age": [1, 2], "rich": [True, False], "size": [0.5, 1.5]})
    features = features_of(frame)
    assert features.names == ("age", "rich", "size")
    np.testing.assert_array_equal(features.values, [[1, 1, 0.5], [2, 0, 1.5]])
    assert features_of(frame[[]]).values.shape == (2, 0)


def test_a_column_of_texts_is_refused_by_name():
    frame = pd.DataFrame({"age": [1, 2], "city": ["a", "b"]})
    with pytest.raises(GraphError, match=r"'city' is .*, expected numbers: .*Graph.from_tables"):
        features_of(frame)


def test_what_counts_as_a_frame():
    assert is_frame(pd.DataFrame())
    assert not is_frame(pd.Series([1]))
    assert not is_frame(DENSE)


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([0, 2, 1], [0, 2, 1]),
        ([0, None, 1], [0, -1, 1]),
        ([0.0, np.nan, 1.0], [0, -1, 1]),
        ([[1], [0]], [1, 0]),
        ([True, False], [1, 0]),
        ([None, None], [-1, -1]),
        ([], []),
        (torch.tensor([1, -1]), [1, -1]),
        (pd.Series([1, None, 0], dtype="Int64"), [1, -1, 0]),
    ],
)
def test_integers_are_class_indices(values, labels):
    class_of, class_names = labels_of(values)
    assert class_of.tolist() == labels
    assert class_names is None


@pytest.mark.parametrize(
    "values",
    [
        ["b", "", "a", "b"],
        np.array(["b", None, "a", "b"], object),
        pd.Series(["b", None, "a", "b"], dtype="category"),
        pd.Series(["b", None, "a", "b"], dtype="string"),
    ],
)
def test_texts_become_sorted_class_names(values):
    labels, class_names = labels_of(values)
    assert labels.tolist() == [1, -1, 0, 1]
    assert class_names.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.5, 1.0], "labels hold 0.5, expected integers or texts"),
        ([np.inf], "labels hold inf"),
        (np.array([1, "a"], object), "labels are of several types"),
        (np.ones((2, 2)), r"labels have shape \(2, 2\), expected \(N,\)"),
        (np.array(["2020-01-01"], "datetime64[s]"), "labels are of the type timestamp"),
    ],
)
def test_other_labels_are_refused(values, message):
    with pytest.raises(GraphError, match=message):
        labels_of(values)


@given(st.lists(st.none() | st.text("abc", min_size=1, max_size=2), min_size=1))
def test_names_give_the_texts_back(texts):
    labels, class_names = labels_of(np.array(texts, object))
    if class_names is None:  # no label at all
        assert texts == [None] * len(texts)
    else:
        assert [None if at < 0 else class_names[at] for at in labels] == texts


@given(st.lists(st.none() | st.integers(0, 9)))
def test_indices_stay(numbers):
    labels, class_names = labels_of(np.array(numbers, object))
    assert class_names is None
    assert labels.tolist() == [-1 if number is None else number for number in numbers]
