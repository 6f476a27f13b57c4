"""Homophily against counts over all pairs, and what it advises."""

import math

import numpy as np
import pytest
from hypothesis import given

from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import MISSING_LABEL
from gpn_scale.data.homophily import LEAST_PAIRS, Homophily
from tests.data.test_edge_blocks import listed_edges
from tests.strategies import graphs


@given(graphs())
def test_counts_are_those_of_a_loop_over_edges(graph):
    pairs = [(graph.labels[u], graph.labels[v]) for u, v in listed_edges(graph)]
    pairs = [pair for pair in pairs if MISSING_LABEL not in pair]
    homophily = Homophily.of(graph)
    assert homophily.pairs == len(pairs)
    assert homophily.same == sum(int(first == second) for first, second in pairs)
    ends = [label for pair in pairs for label in pair]
    if not ends:
        assert math.isnan(homophily.chance)
        assert homophily.to_dict()["chance"] is None
        return
    chance = sum((ends.count(label) / len(ends)) ** 2 for label in set(ends))
    assert homophily.chance == pytest.approx(chance)


def test_random_edges_share_a_class_by_chance():
    rng = np.random.default_rng(3)
    labels = rng.choice(3, 3000, p=[0.7, 0.2, 0.1])
    homophily = Homophily.of(build_graph(*rng.integers(0, 3000, (2, 20_000)), labels=labels))
    assert homophily.fraction == pytest.approx(homophily.chance, abs=0.02)
    assert homophily.chance == pytest.approx(0.54, abs=0.02)
    assert "about as often as by chance (54 %): the network may mislead" in homophily.advice
    assert "diffusion.teleport" in homophily.advice


@pytest.mark.parametrize(
    ("pairs", "same", "chance", "sentence"),
    [
        (0, 0, math.nan, "No edge joins two labelled nodes"),
        (1, 1, 1.0, "Only one edge joins two labelled nodes"),
        (LEAST_PAIRS - 1, 5, 0.5, "Only 29 edges join two labelled nodes"),
        (100, 81, 0.22, "81 % of the time, 22 % by chance: the network will help"),
        (10_000, 5500, 0.5, "the network may help a little"),
        (100, 55, 0.5, "about as often as by chance"),
        (100, 10, 0.5, "less often than by chance (50 %): the network may mislead"),
        (100, 100, 1.0, "they are of one class"),
    ],
)
def test_the_advice_follows_the_counts(pairs, same, chance, sentence):
    homophily = Homophily(pairs=pairs, same=same, chance=chance)
    assert sentence in homophily.advice
    assert homophily.to_dict()["advice"] == homophily.advice
