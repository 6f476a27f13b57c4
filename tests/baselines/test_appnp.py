import torch

from gpn_scale.baselines.appnp import APPNP
from tests.baselines.graphs import check_learning, in_float64, small_graph
from tests.baselines.pyg import edge_index, pyg


def test_appnp_is_pygs_propagation():
    graph = small_graph()
    model = in_float64(APPNP).fit(graph)
    view, layers = model.view(graph), model.layers
    with torch.no_grad():
        hidden = layers.first(torch.from_numpy(graph.features).double()) + layers.biases[0]
        undiffused = hidden.relu() @ layers.further[0] + layers.biases[1]
        expected = pyg().APPNP(10, 0.1)(undiffused, edge_index(graph))
    torch.testing.assert_close(model.final_logits(view), expected)


def test_the_last_linear_map_of_representations_gives_logits():
    graph = small_graph()
    model = in_float64(APPNP).fit(graph)
    view, layers = model.view(graph), model.layers
    with torch.no_grad():
        bias = layers.biases[1].expand(graph.num_nodes, -1)
        diffused = pyg().APPNP(10, 0.1)(bias, edge_index(graph))
        expected = model.representation(view) @ layers.further[0] + diffused
    torch.testing.assert_close(model.final_logits(view), expected)


def test_appnp_learns_is_repeatable_and_is_restored(tmp_path):
    check_learning(APPNP, tmp_path)


def test_appnp_has_no_limit_of_hops_and_no_epistemic_score():
    graph = small_graph()
    model = in_float64(APPNP).fit(graph)
    assert model.reach is None
    assert model.predict(graph).epistemic_score is None
