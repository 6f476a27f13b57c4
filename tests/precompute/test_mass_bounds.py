"""Bounds on masses, and the certified interval they make, against float64 series of large range."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_scale.config import DiffusionConfig, PPRConfig
from gpn_scale.data.building import build_graph
from gpn_scale.ppr.store import PPRStore
from precompute.build import build_store
from precompute.mass_bounds import clusters_in_reach, largest_row_mass, mass_bounds
from precompute.resources import Resources
from tests.oracles import dense_diffusion, dense_transition
from tests.precompute.engines import config_of, engine_of
from tests.strategies import graphs

PRIOR, ROUND_OFF = 3.0, 1e-5
"""Number of classes, and the fraction by which `predict_nodes` widens the interval."""


def rows_of_large_range(graph, diffusion):
    """Full rows as sums of non-negative terms, so that tiny entries are right as well.

    An inverse would be off by 1e-16, which counts where evidence is 1e13.
    """
    transition = dense_transition(graph, diffusion.normalisation, diffusion.self_loops)
    if diffusion.steps != "inf":
        return dense_diffusion(transition, diffusion.teleport, diffusion.steps)
    power = (1.0 - diffusion.teleport) * transition
    total = np.eye(graph.num_nodes)
    for _ in range(14):  # 2^14 terms
        total, power = total + power @ total, power @ power
    return diffusion.teleport * total


def hostile_graph(rng):
    num_nodes = int(rng.integers(5, 60))
    num_edges = max(1, num_nodes * int(rng.choice([1, 2, 4, 8])) // 2)
    weight = np.clip(rng.lognormal(0.0, 6.0, num_edges), 1e-8, 1e8)
    return build_graph(
        *rng.integers(num_nodes, size=(2, num_edges)),
        num_nodes=num_nodes,
        edge_weight=weight if rng.random() < 0.6 else None,
        directed=bool(rng.random() < 0.3),
    )


@pytest.mark.parametrize("normalisation", ["sym", "rw"])
@pytest.mark.parametrize("method", ["sweep", "push"])
@pytest.mark.parametrize("steps", [1, 5, 10, "inf"])
def test_intervals_hold_for_evidence_over_forty_orders_of_magnitude(
    tmp_path, normalisation, method, steps
):
    rng = np.random.default_rng(7)
    for trial in range(8):
        graph = hostile_graph(rng)
        diffusion = DiffusionConfig(
            teleport=float(rng.choice([0.05, 0.2, 0.5])), normalisation=normalisation, steps=steps
        )
        k, clusters = int(rng.integers(1, min(graph.num_nodes, 20) + 1)), int(rng.choice([0, 1, 3]))
        build_store(
            graph,
            PPRConfig(diffusion=diffusion, k=k, clusters=clusters, method=method),
            tmp_path / f"{trial}",
            resources=Resources(threads=1, memory_bytes=1 << 30),
        )
        store = PPRStore.open(tmp_path / f"{trial}")
        exact = rows_of_large_range(graph, diffusion)
        for evidence in (
            10.0 ** rng.uniform(-26.0, 13.0, graph.num_nodes),
            np.where(rng.random(graph.num_nodes) < 0.1, 1e13, 1e-13),
        ):
            lower, upper = interval_of(store, evidence)
            alpha_0 = PRIOR + exact @ evidence
            assert (lower <= alpha_0).all()
            assert (alpha_0 <= upper).all()


def interval_of(store, evidence):
    """The interval of alpha_0 by the formula of docs/certificate.md, row by row."""
    nodes = np.arange(store.num_nodes)
    rows = store.rows(nodes)
    kept = np.array(
        [
            rows.weights[start:stop].astype(np.float64) @ evidence[rows.ids[start:stop]]
            for start, stop in zip(rows.row_ptr, rows.row_ptr[1:], strict=False)
        ]
    )
    if store.num_clusters:
        cluster = np.asarray(store.cluster_of_node)
        largest = [evidence[cluster == c].max(initial=0.0) for c in range(store.num_clusters)]
        cut = rows.cut_mass.astype(np.float64) @ np.array(largest)
    else:
        cut = rows.missing_mass.astype(np.float64) * evidence.max()
    return (PRIOR + kept) * (1 - ROUND_OFF), (PRIOR + kept + cut) * (1 + ROUND_OFF)


@pytest.mark.parametrize("steps", [10, "inf"])
def test_masses_fit_whatever_the_weights(tmp_path, steps):
    graph = build_graph([0, 1, 2], [1, 2, 3], edge_weight=[1e30, 1e-30, 1.0])
    for number, self_loops in enumerate((True, False)):
        diffusion = DiffusionConfig(teleport=2e-4, steps=steps, self_loops=self_loops)
        config = PPRConfig(diffusion=diffusion, k=1, clusters=2, push_tolerance=1e-9)
        resources = Resources(threads=1, memory_bytes=1 << 30)
        build_store(graph, config, tmp_path / f"{number}", resources=resources)
        rows = PPRStore.open(tmp_path / f"{number}").rows(np.arange(4))
        assert (rows.cut_mass <= 2.01).all()


def test_rows_that_lose_nothing_have_no_missing_mass(tmp_path):
    """Small components and isolated nodes keep a narrow interval, whatever others' evidence is."""
    graph = build_graph([0, 1, 3, 4, 5], [1, 2, 4, 5, 6], num_nodes=9)
    for method in ("sweep", "push"):
        for steps in (10, "inf"):
            path = tmp_path / f"{method} {steps}"
            config = PPRConfig(
                diffusion=DiffusionConfig(steps=steps), k=3, clusters=2, method=method
            )
            resources = Resources(threads=1, memory_bytes=1 << 30)
            build_store(graph, config, path, resources=resources)
            rows = PPRStore.open(path).rows(np.arange(9))
            assert not rows.missing_mass[7:].any()
            assert not rows.cut_mass[7:].any()
            assert (rows.weights[-2:] == 1.0).all()
            if (method, steps) == ("sweep", 10):
                assert not rows.missing_mass[:3].any()
                assert not rows.cut_mass[:3].any()
                assert rows.missing_mass[3:7].all()


@given(
    graph=graphs(), normalisation=st.sampled_from(["rw", "sym"]), steps=st.sampled_from([3, "inf"])
)
def test_computed_sums_are_bounded_from_above(graph, normalisation, steps):
    config = config_of(normalisation=normalisation, steps=steps, k=2, clusters=3)
    cluster = (np.arange(graph.num_nodes) % 3).astype(np.int32)
    exact = rows_of_large_range(graph, config.diffusion)
    sums = 60 if steps == "inf" else 3
    cut_short = rows_of_large_range(
        graph, DiffusionConfig(teleport=0.2, normalisation=normalisation, steps=sums)
    )
    bounds = mass_bounds(engine_of(graph, config), graph, steps=sums, cluster_of_node=cluster)
    nodes, one_hot = np.arange(graph.num_nodes), np.eye(3)[cluster]
    single = np.nextafter((cut_short @ one_hot).astype(np.float32), np.float32(9))
    single[cut_short @ one_hot == 0.0] = 0.0
    by_cluster = bounds.by_cluster(nodes, single)
    assert (by_cluster >= exact @ one_hot * (1 - 1e-12)).all()
    assert (bounds.totals(nodes, cut_short.sum(1)) >= exact.sum(1) * (1 - 1e-12)).all()
    np.testing.assert_allclose(by_cluster, exact @ one_hot, atol=1e-4)
    assert (by_cluster[exact @ one_hot == 0.0] == 0.0).all() or steps == "inf"


@given(graph=graphs(), normalisation=st.sampled_from(["rw", "sym"]))
def test_no_power_of_the_transition_has_larger_rows(graph, normalisation):
    engine = engine_of(graph, config_of(normalisation=normalisation, k=2))
    bound = largest_row_mass(graph, engine)
    transition = dense_transition(graph, normalisation, True)
    sums = np.ones(graph.num_nodes)
    for _ in range(8):
        assert (sums <= bound * (1 + 1e-12)).all()
        sums = transition @ sums


@given(graph=graphs(), num_clusters=st.sampled_from([1, 3, 70]))
def test_clusters_in_reach_are_those_of_the_component(graph, num_clusters):
    cluster = (np.arange(graph.num_nodes) * 23 % num_clusters).astype(np.int32)
    engine = engine_of(graph, config_of(k=2))
    nodes = np.arange(graph.num_nodes)
    found = clusters_in_reach(engine, cluster, num_clusters).of(nodes)
    linked = dense_transition(graph, "rw", True) > 0
    linked = np.linalg.matrix_power((linked | linked.T).astype(int), graph.num_nodes) > 0
    for node in nodes:
        assert set(np.flatnonzero(found[node])) == set(cluster[linked[node]])
