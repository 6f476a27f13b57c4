import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.config import DiffusionConfig
from gpn_scale.data.building import build_graph
from gpn_scale.diffusion.power_iteration import PowerIteration, config_steps, exact_diffusion
from tests.oracles import dense_diffusion, dense_ppr, dense_transition
from tests.strategies import graphs

CPU = torch.device("cpu")


def diffusion_of(graph, **options) -> PowerIteration:
    return exact_diffusion(graph, DiffusionConfig(**options), CPU, torch.float64)


def matrix_of(diffusion, num_nodes):
    return diffusion(torch.eye(num_nodes).double()).numpy()


@given(
    graph=graphs(),
    normalisation=st.sampled_from(["sym", "rw"]),
    self_loops=st.booleans(),
    teleport=st.sampled_from([0.1, 0.5]),
)
def test_steps_are_those_of_the_dense_matrix(graph, normalisation, self_loops, teleport):
    diffusion = diffusion_of(
        graph, normalisation=normalisation, self_loops=self_loops, teleport=teleport, steps=3
    )
    transition = dense_transition(graph, normalisation, self_loops)
    oracle = dense_diffusion(transition, teleport, 3)
    np.testing.assert_allclose(matrix_of(diffusion, graph.num_nodes), oracle, rtol=1e-6, atol=1e-9)


@given(graph=graphs(), normalisation=st.sampled_from(["sym", "rw"]))
def test_infinite_steps_are_personalised_pagerank(graph, normalisation):
    diffusion = diffusion_of(
        graph, normalisation=normalisation, teleport=0.2, steps="inf", tolerance=1e-9
    )
    oracle = dense_ppr(dense_transition(graph, normalisation, True), 0.2)
    np.testing.assert_allclose(matrix_of(diffusion, graph.num_nodes), oracle, atol=1e-6)


@given(graph=graphs())
def test_rw_rows_sum_to_one_and_relabelling_commutes(graph):
    diffusion = diffusion_of(graph, normalisation="rw")
    rows = matrix_of(diffusion, graph.num_nodes)
    np.testing.assert_allclose(rows.sum(1), 1.0, rtol=1e-6)
    order = np.random.default_rng(0).permutation(graph.num_nodes)
    source = np.repeat(np.arange(graph.num_nodes), graph.out_degree)
    renamed = build_graph(
        order[source],
        order[graph.indices],
        num_nodes=graph.num_nodes,
        edge_weight=graph.edge_weight,
        directed=graph.directed,
    )
    other = matrix_of(diffusion_of(renamed, normalisation="rw"), graph.num_nodes)
    np.testing.assert_allclose(other[np.ix_(order, order)], rows, atol=1e-9)


@given(graph=graphs(), normalisation=st.sampled_from(["sym", "rw"]), steps=st.integers(0, 3))
def test_gradient_is_the_transposed_map(graph, normalisation, steps):
    diffusion = diffusion_of(graph, normalisation=normalisation, steps=steps)
    evidence = torch.ones(graph.num_nodes, 2).double().requires_grad_()
    outer = torch.arange(2.0 * graph.num_nodes).double().reshape(-1, 2)
    (diffusion(evidence) * outer).sum().backward()
    oracle = dense_diffusion(dense_transition(graph, normalisation, True), 0.1, steps)
    np.testing.assert_allclose(evidence.grad, oracle.T @ outer.numpy(), rtol=1e-6, atol=1e-9)


def test_no_edges_at_all_leave_every_node_to_itself():
    graph = build_graph([], [], num_nodes=4)
    for self_loops in (True, False):
        diffusion = diffusion_of(graph, self_loops=self_loops)
        np.testing.assert_allclose(matrix_of(diffusion, 4), np.eye(4))


@pytest.mark.parametrize("columns", [0, 1])
def test_one_node_and_no_class(columns):
    graph = build_graph([], [], num_nodes=1)
    assert diffusion_of(graph)(torch.ones(1, columns).double()).tolist() == [[1.0] * columns]


@pytest.mark.parametrize("log_evidence", [-30.0, 30.0])
def test_averaged_logarithms_stay_finite_where_rows_sum_to_more_than_one(log_evidence):
    leaves = np.arange(1, 400)
    star = build_graph(np.zeros(399, np.int64), leaves, name="star", num_nodes=400)
    config = DiffusionConfig(of="log_evidence")
    diffusion = exact_diffusion(star, config, CPU, torch.float32)
    assert diffusion.linear(torch.ones(400, 1)).max() * 30 > 88  # beyond exp in float32
    evidence = torch.full((400, 40), log_evidence).exp().requires_grad_()
    total = diffusion(evidence).sum(1)
    assert torch.isfinite(total).all()
    total.sum().backward()
    assert torch.isfinite(evidence.grad).all()


def test_the_configured_steps_are_counted_or_follow_from_the_tolerance():
    assert config_steps(DiffusionConfig(steps=7)) == 7
    assert config_steps(DiffusionConfig(steps="inf", teleport=0.5, tolerance=1e-3)) == 10


@pytest.mark.parametrize("teleport", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("normalisation", ["sym", "rw"])
def test_steps_that_change_nothing_are_left_out(teleport, normalisation):
    """A file may ask for 100,000 steps, of which the last 99,000 leave all numbers as they are."""
    config = DiffusionConfig(teleport=teleport, normalisation=normalisation, steps=100_000)
    assert config_steps(config) < 500
    star = build_graph(np.zeros(50, np.int64), np.arange(1, 51))
    short = exact_diffusion(star, config, CPU, torch.float64)
    longer = PowerIteration(short.transition, teleport=teleport, steps=2 * short.steps)
    expected = matrix_of(longer, star.num_nodes)
    np.testing.assert_allclose(matrix_of(short, star.num_nodes), expected, rtol=1e-14, atol=1e-18)


def test_a_small_teleport_keeps_its_steps():
    assert config_steps(DiffusionConfig(teleport=1e-6, steps=100_000)) == 100_000
    assert config_steps(DiffusionConfig(teleport=0.1, steps=437)) == 437
