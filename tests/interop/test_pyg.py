"""Graphs to PyG and back, and PPR rows as edges, against dense matrices."""

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale import interop
from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import CSRFeatures
from gpn_scale.data.pyg import graph_from_pyg
from gpn_scale.errors import ConfigError, GraphError
from gpn_scale.interop import AddTopKPPR, to_pyg
from tests.evaluation.samples import prediction_for
from tests.oracles import dense_adjacency, dense_ppr, dense_transition
from tests.precompute.engines import random_graph
from tests.strategies import graphs

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from torch_geometric.data import Batch, Data, HeteroData
    from torch_geometric.nn import SimpleConv
    from torch_geometric.transforms import Compose, ToUndirected


def dense(features):
    return features.to_dense() if isinstance(features, CSRFeatures) else features


@given(graph=graphs(), sparse=st.booleans())
def test_a_graph_survives_the_way_to_pyg_and_back(graph, sparse):
    data = to_pyg(graph, sparse_features=sparse)
    assert data.num_nodes == graph.num_nodes
    if not (graph.num_classes or graph.features is not None):
        assert "y" not in data
    same = graph_from_pyg(data, directed=graph.directed)
    np.testing.assert_array_equal(dense_adjacency(same), dense_adjacency(graph))
    np.testing.assert_array_equal(same.labels, graph.labels)
    if graph.features is not None:
        np.testing.assert_array_equal(dense(same.features), dense(graph.features))
    if graph.split is not None:
        for subset in ("train", "val", "test"):
            ids = getattr(same.split, subset)
            np.testing.assert_array_equal(ids, getattr(graph.split, subset))


def test_a_prediction_joins_the_data(small_graph):
    prediction = prediction_for(small_graph)
    data = to_pyg(small_graph, prediction)
    torch.testing.assert_close(data.alpha, torch.from_numpy(prediction.alpha))
    assert data.probabilities.shape == (300, 3)
    assert "p_known" not in data
    data.validate()


def test_data_is_a_copy(small_graph):
    before = small_graph.features.copy()
    to_pyg(small_graph).x.zero_()
    np.testing.assert_array_equal(small_graph.features, before)


@given(graph=graphs(), k=st.integers(1, 8))
def test_messages_over_the_new_edges_are_rows_times_features(graph, k):
    data = AddTopKPPR(k=k, teleport=0.3, tolerance=1e-9, threads=1)(to_pyg(graph))
    truth = dense_ppr(dense_transition(graph, "rw", self_loops=False), 0.3)
    x = torch.eye(graph.num_nodes, dtype=torch.float64)
    sums = SimpleConv("sum")(x, data.ppr_edge_index, data.ppr_edge_weight.double()).numpy()
    assert (sums <= truth * (1 + 1e-7) + 1e-15).all()
    assert (truth.sum(1) - sums.sum(1) <= data.ppr_missing_mass.numpy() + 1e-7).all()
    if k >= graph.num_nodes:
        np.testing.assert_allclose(sums, truth, atol=1e-5)
    assert (np.count_nonzero(sums, axis=1) <= k).all()


def test_edges_can_be_replaced_and_the_data_given_stays_as_it_is():
    data = to_pyg(random_graph(30))
    before = data.edge_index.clone()
    result = AddTopKPPR(k=3, name=None)(data)
    assert result.edge_index.shape[1] <= 90
    assert result.edge_weight.shape == result.edge_index.shape[1:]
    assert result.ppr_missing_mass.shape == (30,)
    torch.testing.assert_close(data.edge_index, before)


def test_it_composes_and_batches():
    edges = torch.tensor([[0, 1], [1, 2]])
    transform = Compose([ToUndirected(), AddTopKPPR(k=2)])
    batch = Batch.from_data_list([transform(Data(edge_index=edges, num_nodes=3))] * 2)
    assert batch.ppr_edge_index.shape == (2, 12)
    assert batch.ppr_edge_index[:, 6:].min() == 3
    assert repr(transform.transforms[1]) == "AddTopKPPR(k=2, teleport=0.15)"


def test_weights_of_edges_count():
    graph = build_graph([0, 0], [1, 2], edge_weight=[9.0, 1.0])
    data = AddTopKPPR(k=3, tolerance=1e-9)(to_pyg(graph))
    weight = dict(
        zip(map(tuple, data.ppr_edge_index.T.tolist()), data.ppr_edge_weight, strict=True)
    )
    assert weight[1, 0] > 5 * weight[2, 0]


def test_data_without_edges_of_one_kind_is_refused():
    with pytest.raises(GraphError, match="without edge_index, expected a homogeneous Data"):
        AddTopKPPR()(HeteroData())
    with pytest.raises(GraphError, match="names a node outside"):
        AddTopKPPR()(Data(edge_index=torch.tensor([[0], [5]]), num_nodes=2))


def test_arguments_of_the_transform_are_checked_when_it_is_used():
    with pytest.raises(ConfigError, match=r"^teleport is 2"):
        AddTopKPPR(teleport=2)(to_pyg(random_graph(5)))


def test_the_package_offers_its_names_on_first_use():
    assert set(interop.__all__) == interop._MODULE_OF.keys()
    assert set(interop.__all__) <= set(dir(interop))
    assert all(getattr(interop, name).__doc__ for name in interop.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'to_dgl'"):
        interop.to_dgl  # noqa: B018
