import pytest

from precompute import time_estimate
from precompute.time_estimate import estimate_seconds, expected_sweeps, seconds_per_entry
from tests.precompute.engines import config_of, engine_of, random_graph


@pytest.mark.parametrize("num_nodes", [1, 20, 3000])
def test_the_timed_sweep_stays_inside_its_scratch(monkeypatch, num_nodes):
    def check(first, last, indptr, indices, weight, teleport, hop, rows, work, *block):
        assert 0 <= first < last <= num_nodes == work.place.shape[1]  # nodes and entries index it
        assert rows.ids.max() < num_nodes
        assert indices.max(initial=0) < len(rows.sizes)
        assert last <= len(rows.sizes)
        assert (rows.weights > 0).all()

    monkeypatch.setattr(time_estimate, "sweep_block_into", check)
    assert seconds_per_entry(engine_of(random_graph(num_nodes), config_of()), 12) > 0


def test_expected_sweeps():
    assert expected_sweeps(config_of(steps=7)) == 7
    assert expected_sweeps(config_of(sweeps=3)) == 3
    quick, slow = config_of(teleport=0.5), config_of(teleport=0.1, sweep_tolerance=1e-4)
    assert 3 < expected_sweeps(quick) < expected_sweeps(slow) < 50


def test_time_grows_with_roots_and_falls_with_threads(monkeypatch):
    graph, config = random_graph(200), config_of(k=8, clusters=0)
    one, two = engine_of(graph, config), engine_of(graph, config, threads=2)
    assert estimate_seconds(one, config, "push", 100, 0.5) == pytest.approx(50.0)
    assert estimate_seconds(two, config, "push", 100, 0.5) == pytest.approx(25.0)
    monkeypatch.setattr(time_estimate, "seconds_per_entry", lambda engine, keep: 1e-3)
    sweeps = estimate_seconds(one, config_of(k=8, clusters=0, sweeps=2), "sweep", 200, 0.5)
    assert sweeps == pytest.approx(2 * 16 * len(one.indices) * 1e-3, rel=1e-3)


def test_clusters_take_time_too():
    graph, config = random_graph(200), config_of(k=8, clusters=4)
    engine = engine_of(graph, config)
    without = estimate_seconds(engine, config_of(k=8, clusters=0), "push", 10, 0.1)
    assert estimate_seconds(engine, config, "push", 10, 0.1) > without
