import warnings

import numpy as np
import pytest
import torch

from gpn_scale.data.graph import CSRFeatures
from gpn_scale.data.pyg import compact_features, graph_from_pyg
from gpn_scale.errors import GraphError

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)  # PyG's import
    from torch_geometric.data import Data

EDGES = torch.tensor([[0, 1], [1, 2]])
BAG = torch.tensor([[0, 0, 0, 0, 0, 3.0], [0, 0, 0, 0, 0, 0], [0, 2.0, 0, 0, 0, 0]])


def masks(*subsets: list[int]) -> dict[str, torch.Tensor]:
    names = ("train_mask", "val_mask", "test_mask")
    return {
        name: torch.tensor([node in subset for node in range(3)])
        for name, subset in zip(names, subsets, strict=False)
    }


def labelled(**arrays: torch.Tensor) -> Data:
    return Data(edge_index=EDGES, y=torch.tensor([0, 0, 0]), **arrays)


def test_a_full_data_object():
    data = Data(edge_index=EDGES, x=torch.ones(3, 2), y=torch.tensor([0, 1, 1]))
    data.edge_weight = torch.tensor([0.5, 2.0], dtype=torch.float64)
    data.update(masks([0, 1], [], [2]))
    graph = graph_from_pyg(data, "g")
    assert repr(graph) == "Graph('g', nodes=3, edges=4, features=2, classes=2)"
    assert graph.indices.tolist() == [1, 0, 2, 1]
    assert graph.edge_weight.tolist() == [0.5, 0.5, 2.0, 2.0]
    assert graph.features.tolist() == [[1, 1]] * 3
    assert graph.split.train.tolist() == [0, 1]
    assert graph.split.val.tolist() == []
    assert graph.split.test.tolist() == [2]


def test_edges_alone():
    graph = graph_from_pyg(Data(edge_index=EDGES))
    assert graph.num_nodes == 3
    assert graph.features is None
    assert graph.split is None


def test_a_stated_number_of_nodes_counts():
    assert graph_from_pyg(Data(edge_index=EDGES, num_nodes=7)).num_nodes == 7


def test_labels_of_one_column():
    graph = graph_from_pyg(Data(edge_index=EDGES, y=torch.tensor([[1], [0], [2]])))
    assert graph.labels.tolist() == [1, 0, 2]


def test_nan_is_a_missing_label():
    y = torch.tensor([[1.0], [float("nan")], [0.0]])
    assert graph_from_pyg(Data(edge_index=EDGES, y=y)).labels.tolist() == [1, -1, 0]


def test_boolean_labels():
    y = torch.tensor([True, False, True])
    assert graph_from_pyg(Data(edge_index=EDGES, y=y)).labels.tolist() == [1, 0, 1]


def test_edge_attributes_count_only_as_a_vector():
    vector = Data(edge_index=EDGES, edge_attr=torch.tensor([3.0, 4.0]), num_nodes=3)
    assert graph_from_pyg(vector).edge_weight.tolist() == [3.0, 3.0, 4.0, 4.0]
    table = Data(edge_index=EDGES, edge_attr=torch.ones(2, 5), num_nodes=3)
    assert graph_from_pyg(table).edge_weight is None


def several_splits():
    data = Data(edge_index=EDGES, y=torch.tensor([0, 0, 0]))
    data.train_mask = torch.tensor([[True, False], [False, True], [False, False]])
    data.val_mask = torch.tensor([[False, False], [False, False], [True, True]])
    return data


@pytest.mark.parametrize(("column", "train"), [(0, [0]), (1, [1])])
def test_a_column_of_masks_with_several_splits_is_chosen(column, train):
    split = graph_from_pyg(several_splits(), split=column).split
    assert split.train.tolist() == train
    assert split.val.tolist() == [2]
    assert split.test.tolist() == []


def test_a_mask_without_columns_belongs_to_all_splits():
    data = several_splits()
    data.val_mask = torch.tensor([False, False, True])
    assert graph_from_pyg(data, split=1).split.val.tolist() == [2]
    del data.val_mask
    data.train_mask = data.train_mask[:, 0]
    assert graph_from_pyg(data, split=1).split.train.tolist() == [0]


@pytest.mark.parametrize(
    ("data", "column", "message"),
    [
        (several_splits(), None, r"train_mask holds 2 splits.*split=0\) up to split=1"),
        (several_splits(), 2, "holds 2 splits.* but split is 2: expected 0 to 1"),
        (several_splits(), -1, "but split is -1"),
        (Data(edge_index=EDGES), 0, "split is 0, but data.train_mask is missing: omit split"),
    ],
)
def test_several_splits_without_a_valid_choice_are_refused(data, column, message):
    with pytest.raises(GraphError, match=message) as error:
        graph_from_pyg(data, split=column)
    assert error.value.arguments == ("split",)


def test_directions_are_kept_on_request():
    assert graph_from_pyg(Data(edge_index=EDGES), directed=True).indices.tolist() == [1, 2]
    assert graph_from_pyg(Data(edge_index=EDGES)).indices.tolist() == [1, 0, 2, 1]


def test_masks_of_one_column_and_absent_masks():
    data = Data(edge_index=EDGES, y=torch.tensor([0, 0, 0]))
    data.train_mask = masks([0, 2])["train_mask"].unsqueeze(1)
    split = graph_from_pyg(data).split
    assert split.train.tolist() == [0, 2]
    assert len(split.val) == len(split.test) == 0


def test_without_a_training_mask_there_is_no_split():
    data = Data(edge_index=EDGES, y=torch.tensor([0, 0, 0]), test_mask=torch.ones(3).bool())
    assert graph_from_pyg(data).split is None


@pytest.mark.parametrize("layout", ["dense", "coo", "csr", "csc"])
@pytest.mark.filterwarnings("ignore:Sparse CS. tensor support is in beta:UserWarning")
def test_few_nonzero_features_become_sparse_rows(layout):
    x = BAG if layout == "dense" else getattr(BAG, f"to_sparse_{layout}")()
    graph = graph_from_pyg(Data(edge_index=EDGES, x=x, num_nodes=3))
    assert isinstance(graph.features, CSRFeatures)
    assert graph.features.indptr.tolist() == [0, 1, 1, 2]
    np.testing.assert_array_equal(graph.features.to_dense(), BAG.numpy(), strict=True)


def test_many_nonzero_features_stay_dense():
    dense = np.eye(5)  # a fifth is not zero
    assert compact_features(dense) is dense
    assert isinstance(compact_features(np.eye(6)), CSRFeatures)
    assert compact_features(np.empty((3, 0))).shape == (3, 0)


def test_a_tensor_with_sparse_rows_only_is_read():
    x = torch.tensor([[1.0, 2.0], [0, 0], [3.0, 4.0]])
    graph = graph_from_pyg(Data(edge_index=EDGES, x=x.to_sparse(1), num_nodes=3))
    assert graph.features.tolist() == x.tolist()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64, torch.int32])
def test_features_of_any_number_type(dtype):
    x = torch.ones(3, 2, dtype=dtype, requires_grad=dtype.is_floating_point)
    graph = graph_from_pyg(Data(edge_index=EDGES, x=x))
    assert graph.features.dtype == np.float32
    assert graph.features.tolist() == [[1, 1]] * 3


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (Data(x=torch.ones(3, 2)), r"data.edge_index is missing, expected \(2, E\)"),
        (Data(edge_index=EDGES[0]), r"data.edge_index has shape \(2,\), expected \(2, E\)"),
        (Data(edge_index=EDGES, y=torch.tensor([0.5, 0, 1])), "data.y holds numbers with a frac"),
        (Data(edge_index=EDGES, y=torch.zeros(3, 2).long()), "labels must be a vector of integers"),
        (Data(edge_index=EDGES, x=torch.ones(2, 2)), "names a node outside"),
        (Data(edge_index=EDGES, y=torch.tensor([1e30, 0, 1])), "data.y holds .* too large"),
        (
            Data(edge_index=EDGES, x=torch.ones(3, 2, 2).to_sparse(2)),
            r"shape \(3, 2, 2\), expected",
        ),
        (Data(edge_index=EDGES, x=torch.ones(3).to_sparse()), r"features have shape \(3,\), exp"),
        (Data(edge_index=EDGES, x=np.full((3, 2), 1e300)), "NaN or infinity at node 0"),
        (Data(edge_index=EDGES.to_sparse()), "data.edge_index is a torch.sparse_coo tensor of"),
        (labelled(train_mask=torch.tensor([0, 2])), r"data.train_mask is int64 of shape \(2,\), e"),
        (labelled(train_mask=torch.tensor([0, 1, 2])), "train_mask is int64 .*a boolean for each"),
        (
            labelled(train_mask=torch.tensor([True])),
            r"train_mask is bool of shape \(1,\), expected",
        ),
        (labelled(train_mask=torch.tensor(True)), r"train_mask is bool of shape \(\), expected"),
    ],
)
def test_wrong_data_is_refused(data, message):
    with pytest.raises(GraphError, match=message):
        graph_from_pyg(data, "g")
