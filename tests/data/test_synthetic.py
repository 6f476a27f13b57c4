"""The synthetic graph has the shape its configuration asks for, and hides what its marks say."""

from dataclasses import fields

import numpy as np
import pytest

from gpn_scale.data import synthetic
from gpn_scale.data.graph import MISSING_LABEL, Graph
from gpn_scale.data.synthetic import SyntheticConfig, parse_synthetic, synthetic_graph
from gpn_scale.errors import ConfigError

CONFIG = SyntheticConfig(nodes=4000, isolated=0.02, foreign=0.03, unseen=0.1)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return synthetic_graph(CONFIG)


def edge_list(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    return np.repeat(np.arange(graph.num_nodes), graph.out_degree), graph.indices


def test_shapes_and_counts(graph):
    assert (graph.name, graph.directed) == ("synthetic", False)
    assert graph.edge_weight is None
    assert graph.split is None
    assert (graph.num_nodes, graph.num_features, graph.num_classes) == (4000, 32, 6)
    assert graph.features.dtype == np.float32
    sizes = {name: len(ids) for name, ids in graph.marks.items()}
    assert sizes == {"unseen_class": 400, "isolated": 80, "foreign_features": 120}


def test_marks_are_disjoint_and_only_unseen_classes_lack_labels(graph):
    assert len(graph.marked) == sum(len(ids) for ids in graph.marks.values())
    missing = np.flatnonzero(graph.labels == MISSING_LABEL)
    np.testing.assert_array_equal(missing, graph.marks["unseen_class"])


@pytest.mark.parametrize("degree", [2.0, 8.0])
@pytest.mark.parametrize("homophily", [0.2, 0.9])
def test_degree_and_homophily_are_near_the_asked(degree, homophily):
    graph = synthetic_graph(SyntheticConfig(nodes=5000, degree=degree, homophily=homophily))
    assert graph.out_degree.mean() == pytest.approx(degree, rel=0.03)
    source, target = edge_list(graph)
    within = (graph.labels[source] == graph.labels[target]).mean()
    assert within == pytest.approx(homophily, abs=0.03)


def test_homophily_is_exact_at_its_ends():
    for homophily in (0.0, 1.0):
        graph = synthetic_graph(SyntheticConfig(nodes=500, homophily=homophily))
        source, target = edge_list(graph)
        assert ((graph.labels[source] == graph.labels[target]) == homophily).all()


def test_exactly_the_isolated_nodes_have_no_edges(graph):
    np.testing.assert_array_equal(np.flatnonzero(graph.out_degree == 0), graph.marks["isolated"])


def test_edges_are_stored_in_both_directions_without_loops(graph):
    source, target = edge_list(graph)
    assert (source != target).all()
    pairs = set(zip(source.tolist(), target.tolist(), strict=True))
    assert len(pairs) == graph.num_edges
    assert pairs == {(v, u) for u, v in pairs}


def test_degrees_have_a_heavy_tail():
    light, heavy = (
        synthetic_graph(SyntheticConfig(nodes=4000, degree_exponent=exponent)).out_degree
        for exponent in (50.0, 2.2)
    )
    assert heavy.max() > 3 * light.max()
    assert np.median(heavy) < np.median(light)


def test_class_sizes_are_mildly_unequal_and_order_does_not_reveal_them(graph):
    sizes = np.bincount(graph.labels[graph.labels >= 0])
    assert sizes.max() == pytest.approx(2 * sizes.min(), rel=0.02)
    first, second = (np.bincount(half + 1) / 2000 for half in np.split(graph.labels, 2))
    np.testing.assert_allclose(first, second, atol=0.05)


def nearest_mean(graph: Graph) -> np.ndarray:
    """Distance of each node's features to the nearest mean of a known class."""
    plain = np.setdiff1d(np.arange(graph.num_nodes), graph.marked)
    means = [graph.features[plain[graph.labels[plain] == c]].mean(0) for c in range(6)]
    return np.min([np.linalg.norm(graph.features - mean, axis=1) for mean in means], axis=0)


def test_foreign_features_are_far_from_all_classes_and_isolated_ones_are_not(graph):
    distance = nearest_mean(graph)
    plain = np.setdiff1d(np.arange(graph.num_nodes), graph.marked)
    assert distance[graph.marks["foreign_features"]].min() > distance[plain].max()
    assert distance[graph.marks["isolated"]].mean() == pytest.approx(
        distance[plain].mean(), rel=0.1
    )
    assert (graph.out_degree[graph.marks["foreign_features"]] > 0).all()


def test_the_unseen_class_has_its_own_mean_and_its_own_block(graph):
    unseen = graph.marks["unseen_class"]
    own = graph.features[unseen].mean(axis=0)
    for label in range(6):
        other = graph.features[graph.labels == label].mean(axis=0)
        assert np.linalg.norm(own - other) > 1.0
    source, target = edge_list(graph)
    is_unseen = graph.labels == MISSING_LABEL
    assert is_unseen[target][is_unseen[source]].mean() > 0.7


def test_neighbours_help_to_tell_classes(graph):
    plain = np.setdiff1d(np.arange(graph.num_nodes), graph.marked)
    source, target = edge_list(graph)
    smooth = graph.features.copy()
    np.add.at(smooth, source, graph.features[target])
    smooth /= (graph.out_degree + 1)[:, None]
    accuracy = []
    for features in (graph.features, smooth):
        means = [features[plain[graph.labels[plain] == c]].mean(0) for c in range(6)]
        distance = [np.linalg.norm(features[plain] - mean, axis=1) for mean in means]
        accuracy.append((np.argmin(distance, axis=0) == graph.labels[plain]).mean())
    assert 0.55 < accuracy[0] < 0.8
    assert accuracy[1] > accuracy[0] + 0.1


def test_several_unseen_classes_share_the_unseen_nodes():
    graph = synthetic_graph(SyntheticConfig(nodes=400, unseen_classes=3, degree=4))
    assert len(graph.marks["unseen_class"]) == 40
    assert graph.num_classes == 6


def test_absent_kinds_leave_no_mark():
    config = SyntheticConfig(nodes=400, unseen_classes=0, isolated=0, foreign=0)
    graph = synthetic_graph(config)
    assert graph.marks == {}
    assert (graph.labels >= 0).all()


def test_the_smallest_graph():
    graph = synthetic_graph(SyntheticConfig(nodes=40, classes=2, unseen_classes=0, features=1))
    assert graph.features.shape == (40, 1)
    assert graph.num_edges > 0


def test_a_lone_unseen_node_still_has_a_neighbour():
    config = SyntheticConfig(nodes=400, unseen=1 / 400, homophily=1.0)
    graph = synthetic_graph(config)
    assert (graph.out_degree[graph.marks["unseen_class"]] > 0).all()


def test_the_configuration_decides_the_graph(graph):
    assert synthetic_graph(CONFIG).fingerprint() == graph.fingerprint()
    other = parse_synthetic("synthetic:nodes=4000,isolated=0.02,foreign=0.03,rng_seed=2")
    assert synthetic_graph(other).fingerprint() != graph.fingerprint()


def test_feature_columns_do_not_change_the_structure(graph):
    wide = SyntheticConfig(nodes=4000, isolated=0.02, foreign=0.03, features=3)
    assert synthetic_graph(wide).structure_fingerprint() == graph.structure_fingerprint()


def test_chunks_keep_every_rule(monkeypatch):
    monkeypatch.setattr(synthetic, "_CHUNK_EDGES", 100)
    monkeypatch.setattr(synthetic, "_CHUNK_ROWS", 7)
    graph = synthetic_graph(SyntheticConfig(nodes=500))
    np.testing.assert_array_equal(np.flatnonzero(graph.out_degree == 0), graph.marks["isolated"])
    assert graph.features.std(axis=1).min() > 0.3


@pytest.mark.parametrize("field", ["nodes=2000000000", "features=2000000000"])
def test_a_graph_that_fits_no_memory_is_refused_before_it_is_drawn(field, monkeypatch):
    monkeypatch.setattr(synthetic, "physical_bytes", lambda: 64 << 30)
    config = parse_synthetic(f"synthetic:{field}")
    with pytest.raises(ConfigError, match=r"takes about .* GB, but this machine has 68.7 GB: low"):
        synthetic_graph(config)


def test_parse_without_keys_gives_the_defaults():
    assert parse_synthetic("synthetic") == parse_synthetic("synthetic:") == SyntheticConfig()


def test_parse_reads_every_field():
    wanted = SyntheticConfig(nodes=20_000, classes=7, degree=6.0, rng_seed=3)
    assert parse_synthetic("synthetic:nodes=20000, classes=7,degree=6,rng_seed=3") == wanted
    text = ",".join(f"{field.name}={field.default}" for field in fields(SyntheticConfig))
    assert parse_synthetic(f"synthetic:{text}") == SyntheticConfig()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("other:nodes=5", "expected 'synthetic' or 'synthetic:key=value,...', got 'other:nodes=5'"),
        (
            "synthetic:node=5",
            "unknown key 'node'; did you mean 'nodes'? keys are nodes, cl",
        ),
        ("synthetic:zzz=5", "unknown key 'zzz'; keys are nodes, classes, unseen_classes,"),
        ("synthetic:nodes", "expected key=value, got 'nodes'"),
        ("synthetic:nodes=500,nodes=600", "nodes is given twice, expected it once"),
        ("synthetic:nodes=many", "nodes must be a whole number, got 'many'"),
        ("synthetic:nodes=1.5", "nodes must be a whole number, got '1.5'"),
        ("synthetic:degree=big", "degree must be a number, got 'big'"),
        ("synthetic:nodes=139", "nodes must lie in [140, 2147483647] for 7 classes, got 139"),
        ("synthetic:classes=1", "classes must lie in [2, 2147483647], got 1"),
        ("synthetic:unseen_classes=-1", "unseen_classes must lie in [0, 2147483647], got -1"),
        ("synthetic:features=0", "features must lie in [1, 2147483647], got 0"),
        ("synthetic:degree=1", "degree must lie in [2, 714.2857143] (half the mean class size)"),
        ("synthetic:degree=nan", "degree must lie in [2, 714.2857143] (half the mean class size)"),
        ("synthetic:homophily=1.1", "homophily must lie in [0, 1], got 1.1"),
        ("synthetic:degree_exponent=2", "degree_exponent must lie in [2.01, 100], got 2.0"),
        ("synthetic:separation=-1", "separation must lie in [0, 1000000], got -1.0"),
        ("synthetic:isolated=0.6", "isolated must lie in [0, 0.5], got 0.6"),
        ("synthetic:foreign=-0.1", "foreign must lie in [0, 0.5], got -0.1"),
        ("synthetic:unseen=nan", "unseen must lie in [0, 0.5], got nan"),
        ("synthetic:isolated=0.5", "isolated, foreign and unseen must add up to at most 0.5, got"),
        ("synthetic:rng_seed=-1", "rng_seed must lie in [0, 9.223372037e+18], got -1"),
    ],
)
def test_wrong_texts_are_refused(text, message):
    with pytest.raises(ConfigError) as caught:
        parse_synthetic(text)
    assert message in str(caught.value)
