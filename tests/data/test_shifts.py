import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import MISSING_LABEL
from gpn_scale.data.shifts import noise_rows, shifted_edges, shifted_nodes
from gpn_scale.data.synthetic import SyntheticConfig, synthetic_graph
from gpn_scale.errors import ConfigError, GraphError

GRAPH = synthetic_graph(SyntheticConfig(nodes=200, classes=3, degree=6))


def edges(graph):
    """Pairs (smaller, larger), after a check that both directions are stored."""
    source = np.repeat(np.arange(graph.num_nodes), graph.out_degree)
    pairs = set(zip(source.tolist(), graph.indices.tolist(), strict=True))
    assert pairs == {(b, a) for a, b in pairs}
    assert all(a != b for a, b in pairs)
    return {(a, b) for a, b in pairs if a < b}


@given(st.sampled_from([0.01, 0.1, 0.5, 0.99]), st.integers(0, 2**32))
def test_random_shifts_move_a_fraction_of_the_edges(fraction, rng_seed):
    before, after = edges(GRAPH), edges(shifted_edges(GRAPH, fraction, "random", rng_seed))
    count = round(fraction * len(before))
    assert len(after) == len(before)
    # Of the pairs that are no edges any more, some come back by chance: as many as they are dense.
    density = len(before) / (GRAPH.num_nodes * (GRAPH.num_nodes - 1) / 2)
    assert (1 - 3 * density) * count - 3 <= len(before - after) <= count


@given(st.sampled_from([0.01, 0.1, 0.5, 0.99]), st.integers(0, 2**32))
def test_dice_cuts_within_classes_and_links_between_them(fraction, rng_seed):
    before, after = edges(GRAPH), edges(shifted_edges(GRAPH, fraction, "dice", rng_seed))
    labels = GRAPH.labels
    assert all(labels[a] == labels[b] != MISSING_LABEL for a, b in before - after)
    assert all(labels[a] != labels[b] for a, b in after - before)
    assert all(MISSING_LABEL not in (labels[a], labels[b]) for a, b in after - before)
    changed = len(before - after) + len(after - before)
    assert changed == round(fraction * len(before))


def test_a_seed_is_a_shift():
    first, same, other = (shifted_edges(GRAPH, 0.3, "random", seed) for seed in (1, 1, 2))
    assert edges(first) == edges(same) != edges(other)
    np.testing.assert_array_equal(shifted_nodes(GRAPH, 0.3, 1), shifted_nodes(GRAPH, 0.3, 1))
    assert len(shifted_nodes(GRAPH, 0.3, 1)) == round(0.3 * GRAPH.num_nodes)


def test_bernoulli_rows_are_shares_and_normal_rows_are_not():
    rows = noise_rows("bernoulli", 50, 40, 1)
    np.testing.assert_allclose(rows.sum(1), 1.0, rtol=1e-5)
    assert 0.4 < (rows > 0).mean() < 0.6
    rows = noise_rows("normal", 200, 40, 1)
    assert abs(rows.mean()) < 0.05
    assert rows.std() == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, 1.5, float("nan")])
def test_fractions_outside_of_0_and_1_are_refused(fraction):
    for shift in (
        lambda: shifted_nodes(GRAPH, fraction, 1),
        lambda: shifted_edges(GRAPH, fraction, "dice", 1),
    ):
        with pytest.raises(ConfigError, match="expected a number between 0 and 1"):
            shift()


def test_other_kinds_and_graphs_are_refused():
    with pytest.raises(ConfigError, match="edge shift is 'swap', expected random or dice"):
        shifted_edges(GRAPH, 0.1, "swap", 1)
    with pytest.raises(ConfigError, match="feature noise is 'pink'"):
        noise_rows("pink", 1, 1, 1)
    directed = build_graph([0, 1], [1, 2], directed=True)
    with pytest.raises(GraphError, match="is directed or weighted"):
        shifted_edges(directed, 0.5, "random", 1)
