"""Fixtures that every test may ask for."""

import pytest
import torch
from hypothesis import settings

from gpn_scale.data.graph import Graph
from gpn_scale.data.splits import stratified_split
from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph

# No deadline: how long an example takes says more about the machine than about the code.
settings.register_profile("repository", deadline=None, max_examples=50)
settings.load_profile("repository")
torch.set_num_threads(1)  # tests run side by side, one process per core


@pytest.fixture
def generator() -> torch.Generator:
    """The one source of random numbers in a test."""
    return torch.Generator().manual_seed(7)


@pytest.fixture(scope="session")
def small_graph() -> Graph:
    """A synthetic graph of 300 nodes, three classes and one unseen, with a split."""
    graph = synthetic_graph(SyntheticConfig(nodes=300, classes=3, features=8, separation=4.0))
    return stratified_split(graph, train=0.2, val=0.2, rng_seed=1)
