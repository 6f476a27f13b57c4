"""The diffusion in blocks against the dense matrix and the power iteration."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.config import DiffusionConfig
from gpn_scale.data.graph_folder import open_graph, save_graph
from gpn_scale.diffusion.blocks import AdjacencyBlocks, BlockDiffusion
from gpn_scale.diffusion.power_iteration import exact_diffusion
from tests.oracles import dense_adjacency, dense_diffusion, dense_transition
from tests.strategies import graphs

CPU = torch.device("cpu")


def blocks_of(graph, entries, keep):
    return AdjacencyBlocks(graph, entries=entries, keep=keep, device=CPU, dtype=torch.float64)


@given(graph=graphs(), entries=st.sampled_from([1, 3, 100]), keep=st.booleans())
def test_blocks_are_the_rows_of_the_adjacency_in_every_pass(graph, entries, keep):
    blocks = blocks_of(graph, entries, keep)
    for _ in range(2):
        parts, end = [np.empty((0, graph.num_nodes))], 0
        for start, stop, block in blocks:
            assert start == end
            end = stop
            parts.append(block.multiply(torch.eye(graph.num_nodes).double()).numpy())
        assert end == graph.num_nodes
        np.testing.assert_array_equal(np.concatenate(parts), dense_adjacency(graph))


@given(
    graph=graphs(),
    entries=st.sampled_from([1, 3, 100]),
    normalisation=st.sampled_from(["sym", "rw"]),
    self_loops=st.booleans(),
    steps=st.sampled_from([0, 1, 4]),
)
def test_the_result_is_that_of_the_dense_matrix(graph, entries, normalisation, self_loops, steps):
    config = DiffusionConfig(
        teleport=0.2, normalisation=normalisation, steps=steps, self_loops=self_loops
    )
    blocks = blocks_of(graph, entries, keep=True)
    calls = []
    power = BlockDiffusion(graph, config, blocks, CPU, torch.float64)
    result = power.run_into(torch.eye(graph.num_nodes).double(), lambda: calls.append(1))
    dense = dense_diffusion(dense_transition(graph, normalisation, self_loops), 0.2, steps)
    np.testing.assert_allclose(result.numpy(), dense, atol=1e-9)
    assert len(calls) == power.steps == steps


@pytest.mark.parametrize("keep", [True, False])
def test_a_mapped_graph_gives_what_the_power_iteration_gives(small_graph, tmp_path, keep):
    save_graph(small_graph, tmp_path / "graph")
    mapped = open_graph(tmp_path / "graph")
    config = DiffusionConfig(steps="inf")
    power = BlockDiffusion(mapped, config, blocks_of(mapped, 50, keep), CPU, torch.float64)
    evidence = torch.rand(small_graph.num_nodes, 3, dtype=torch.float64)
    expected = exact_diffusion(small_graph, config, CPU, torch.float64)(evidence)
    torch.testing.assert_close(power.run_into(evidence.clone(), lambda: None), expected)
