from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.baselines.matern_process import MaternOptions, MaternProcess, laplacian_spectrum
from gpn_scale.errors import ConfigError, GraphError
from tests.baselines.graphs import CONFIG, chain, small_graph
from tests.oracles import dense_transition


def test_the_spectrum_is_that_of_the_laplacian():
    graph = small_graph(nodes=60)
    laplacian = np.eye(60) - dense_transition(graph, "sym", False)
    for pairs in (10, 60):
        value, vector = (part.numpy() for part in laplacian_spectrum(graph, pairs))
        expected = np.linalg.eigvalsh(laplacian)[:pairs]
        np.testing.assert_allclose(value, np.maximum(expected, 0.0), atol=1e-5)
        np.testing.assert_allclose(laplacian @ vector, vector * value, atol=1e-4)


def test_a_directed_graph_has_no_laplacian():
    graph = chain(60, 20, 20, directed=True)
    with pytest.raises(GraphError, match="Matern-GGP got the directed graph"):
        MaternProcess(CONFIG).fit(graph)


def test_positions_need_no_features():
    standardised = replace(CONFIG, encoder=replace(CONFIG.encoder, standardise=True))
    graph = small_graph()
    bare = replace(graph, features=None)
    prediction = MaternProcess(standardised).fit(bare).predict(bare)
    expected = MaternProcess(standardised).fit(graph).predict(graph)
    np.testing.assert_array_equal(prediction.probabilities, expected.probabilities)


def test_the_number_of_eigenpairs_must_be_positive():
    with pytest.raises(ConfigError, match=r"model\.eigenpairs is 0"):
        MaternOptions(eigenpairs=0)
