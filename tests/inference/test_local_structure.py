"""Structural features of a few nodes against those of the rebuilt graph."""

import numpy as np
from hypothesis import given

from gpn_scale.data.structural import MEASURES, StructuralRule
from gpn_scale.inference.local_structure import structural_rows
from tests.diffusion.test_patched_transition import patches

RULES = tuple(
    StructuralRule(measure=measure, centre=0.25 * place, scale=1.0 + place)
    for place, measure in enumerate(MEASURES)
)


@given(patches())
def test_they_are_those_of_the_rebuilt_graph(case):
    graph, patch, changed = case
    nodes = np.arange(changed.num_nodes)[::-1]
    got = structural_rows(graph, patch, nodes, RULES)
    expected = np.concatenate([rule.encoded(changed).toarray() for rule in RULES], axis=1)[nodes]
    unknown = np.zeros(got.shape, bool)
    if graph.directed:  # the edges into an existing node are not stored there
        unknown[nodes < graph.num_nodes, MEASURES.index("in-degree")] = True
    np.testing.assert_array_equal(np.isnan(got), unknown)
    np.testing.assert_allclose(got[~unknown], expected[~unknown], rtol=1e-6, atol=1e-6)
    assert got.dtype == np.float32


@given(patches())
def test_no_nodes_and_no_rules_have_empty_features(case):
    graph, patch, _ = case
    nobody = np.empty(0, np.int64)
    assert structural_rows(graph, patch, nobody, RULES).shape == (0, len(RULES))
    assert structural_rows(graph, patch, np.array([0]), ()).shape == (1, 0)
