import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.data.contract import DataContract
from gpn_scale.data.features import take_columns
from gpn_scale.data.graph import CSRFeatures, Split
from gpn_scale.errors import GraphError

NAMES = ["age", "size", "kind"]
VALUES = np.array([[1.0, 2.0, 3.0], [4.0, 0.0, 6.0], [7.0, 8.0, 0.0]], np.float32)


def graph_of(columns=(0, 1, 2), *, labels=(0, 1, 0), classes=("sea", "land"), **more):
    order = list(columns)
    return build_graph(
        [0, 1],
        [1, 2],
        features=VALUES[:, order],
        feature_names=[NAMES[column] for column in order],
        labels=list(labels),
        class_names=classes,
        **more,
    )


CONTRACT = DataContract.of(graph_of())


@given(st.permutations(range(3)))
def test_columns_are_matched_by_name_in_any_order(order):
    graph, notes, _ = CONTRACT.aligned(graph_of(order))
    np.testing.assert_array_equal(graph.features, VALUES)
    assert graph.feature_names.tolist() == NAMES
    assert notes == ()


@given(st.permutations(range(4)).flatmap(lambda order: st.sampled_from([order[:2], order])))
def test_sparse_columns_are_taken_like_dense_ones(columns):
    dense = np.array([[1.0, 0.0, 2.0, 0.0], [0.0, 3.0, 4.0, 5.0], [0.0, 0.0, 0.0, 0.0]], np.float32)
    rows, indices = np.nonzero(dense)
    sparse = CSRFeatures(
        indptr=np.searchsorted(rows, np.arange(4)).astype(np.int64),
        indices=indices.astype(np.int32),
        values=dense[rows, indices],
        num_columns=4,
    )
    taken = take_columns(sparse, np.array(columns))
    np.testing.assert_array_equal(taken.to_dense(), take_columns(dense, np.array(columns)))


def test_further_columns_are_reported_and_ignored():
    contract = DataContract.of(graph_of([0, 2]))
    graph, notes, _ = contract.aligned(graph_of([2, 1, 0]))
    np.testing.assert_array_equal(graph.features, VALUES[:, [0, 2]])
    assert notes == ("The feature column 'size' is not in the model and was ignored.",)


def test_missing_columns_are_refused_by_name():
    with pytest.raises(GraphError, match="no feature column 'size', which the model was trained"):
        CONTRACT.aligned(graph_of([2, 0]))
    many = DataContract(num_features=9, num_classes=2, feature_names=tuple("abcdefghi"))
    with pytest.raises(GraphError, match="'a', 'b', 'c', 'd', 'e' and 4 more"):
        many.aligned(graph_of())


def test_columns_without_names_are_matched_by_position():
    plain = build_graph([0, 1], [1, 2], features=VALUES)
    graph, notes, _ = CONTRACT.aligned(plain)
    np.testing.assert_array_equal(graph.features, VALUES)
    assert notes == ()


def test_class_names_are_those_of_the_model():
    renamed = graph_of(labels=[1, 0, 1], classes=("land", "sea"))
    graph, notes, _ = CONTRACT.aligned(renamed)
    assert graph.labels.tolist() == [0, 1, 0]
    assert graph.class_names.tolist() == ["sea", "land"]
    assert notes == ()


def test_a_class_that_the_model_does_not_know_loses_its_labels():
    split = Split(train=[0, 1], val=[2], test=[])
    other = graph_of(labels=[0, 1, 1], classes=("sea", "sky"), split=split)
    graph, notes, _ = CONTRACT.aligned(other)
    assert graph.labels.tolist() == [0, -1, -1]
    assert graph.num_classes == 2
    assert graph.split.train.tolist() == [0]
    assert graph.split.val.tolist() == []
    assert notes == (
        "The model does not know the class 'sky'; the labels of 2 nodes were ignored.",
    )


def test_a_graph_without_labels_gets_the_models_classes():
    graph, notes, _ = CONTRACT.aligned(build_graph([0, 1], [1, 2], features=VALUES))
    assert graph.class_names.tolist() == ["sea", "land"]
    assert notes == ()


def test_numbers_of_classes_are_kept_and_larger_ones_are_missing():
    numbered = build_graph([0, 1], [1, 2], features=VALUES, labels=[0, 2, 1])
    graph, notes, _ = CONTRACT.aligned(numbered)
    assert graph.labels.tolist() == [0, -1, 1]
    assert notes == ("The model does not know the class '2'; the labels of 1 nodes were ignored.",)


def test_a_model_without_names_leaves_its_own_kind_of_graph_alone():
    plain = build_graph([0, 1], [1, 2], features=VALUES, labels=[0, 1, 0])
    graph, notes, _ = DataContract.of(plain).aligned(plain)
    assert graph is plain
    assert notes == ()


def test_a_model_without_names_matches_classes_by_number():
    plain = build_graph([0, 1], [1, 2], features=VALUES, labels=[0, 1, 0])
    contract, named = DataContract.of(plain), graph_of()
    graph, notes, _ = contract.aligned(named)
    assert graph is named
    assert notes == ()
    smaller = graph_of(labels=[0, 0, 0], classes=("sea",))
    assert contract.aligned(smaller).graph.class_names is None
    larger = graph_of(labels=[0, 2, 1], classes=("sea", "land", "sky"))
    graph, notes, _ = contract.aligned(larger)
    assert graph.labels.tolist() == [0, -1, 1]
    assert (graph.num_classes, graph.class_names) == (2, None)
    assert notes == ("The model does not know the class '2'; the labels of 1 nodes were ignored.",)


def test_repeated_feature_names_are_refused():
    with pytest.raises(GraphError, match="feature_names holds 'a' twice, expected distinct names"):
        build_graph([0], [1], features=VALUES[:2, :2], feature_names=["a", "a"])
