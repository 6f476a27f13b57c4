"""The engine against dense matrices: the certificate of docs/certificate.md, and its laws."""

import warnings
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core.errors import NumbaSystemWarning

from gpn_scale.config import DiffusionConfig, PPRConfig
from gpn_scale.data.building import build_graph
from precompute.row_engine import chosen_method, compiled_before, row_sums
from tests.oracles import dense_diffusion, dense_ppr, dense_transition
from tests.precompute.engines import densify, engine_of, hub_graph, swept
from tests.strategies import graphs

ROUND_OFF = 2e-6  # of the dense truth, and of masses that are rounded up

CASES = {
    "normalisation": st.sampled_from(["rw", "sym"]),
    "self_loops": st.booleans(),
    "teleport": st.sampled_from([0.1, 0.3, 0.5]),  # the float32 nearest to 0.1 or 0.3 is larger
    "steps": st.sampled_from(["inf", 0, 1, 3]),
}


def engine_for(graph, threads=1, **options):
    names = ("normalisation", "self_loops", "teleport", "steps")
    diffusion = DiffusionConfig(**{name: options.pop(name) for name in names if name in options})
    config = PPRConfig(diffusion=diffusion, **options)
    return engine_of(graph, config, threads)


def test_a_machine_without_shared_memory_is_no_reason_for_a_warning(monkeypatch):
    def set_num_threads(_):
        warnings.warn("no lock", NumbaSystemWarning, stacklevel=1)

    monkeypatch.setattr(numba, "set_num_threads", set_num_threads)
    assert engine_for(build_graph([0], [1])).threads == 1  # warnings are errors here


def truth_for(graph, normalisation="sym", self_loops=True, teleport=0.1, steps=10):
    transition = dense_transition(graph, normalisation, self_loops)
    if steps == "inf":
        return dense_ppr(transition, teleport)
    return dense_diffusion(transition, teleport, steps)


def all_rows(engine, method):
    if method == "sweep":
        return swept(engine)
    return engine.push(np.arange(engine.num_nodes))


@pytest.mark.parametrize("method", ["sweep", "push"])
@given(graph=graphs(), **CASES)
def test_with_room_for_all_entries_nothing_is_lost(method, graph, **case):
    accuracy = {"sweep_tolerance": 1e-9, "push_tolerance": 1e-9}
    engine = engine_for(graph, k=graph.num_nodes, **accuracy, **case)
    rows = densify(all_rows(engine, method), graph.num_nodes)
    np.testing.assert_allclose(rows, truth_for(graph, **case), atol=1e-5)


@pytest.mark.parametrize("method", ["sweep", "push"])
@given(
    graph=graphs(),
    k=st.integers(1, 4),
    sweeps=st.integers(0, 2),
    **CASES,
)
def test_cut_rows_stay_below_the_truth(method, graph, k, sweeps, **case):
    accuracy = {"sweeps": sweeps, "sweep_tolerance": 0.01, "push_tolerance": 1e-2}
    engine = engine_for(graph, k=k, **accuracy, **case)
    rows = densify(all_rows(engine, method), graph.num_nodes)
    assert (rows <= truth_for(graph, **case) * (1 + 1e-12) + 1e-15).all()
    assert (rows >= 0).all()


@given(graph=graphs(), k=st.integers(1, 3), num_clusters=st.integers(1, 3), **CASES)
def test_the_certificate_holds(graph, k, num_clusters, **case):
    """Kept + missing = total, and lost evidence <= sum over clusters of cut mass x largest."""
    truth = truth_for(graph, **case)
    cluster = np.arange(graph.num_nodes, dtype=np.int32) % num_clusters
    one_hot = np.eye(num_clusters)[cluster]
    engine = engine_for(graph, k=k, sweep_tolerance=0.01, **case)
    rows = swept(engine)
    finished = engine.finish(rows, truth.sum(1), cluster, truth @ one_hot)
    dense = densify(rows, graph.num_nodes)
    np.testing.assert_allclose(dense.sum(1) + finished.missing_mass, truth.sum(1), atol=ROUND_OFF)
    lost_clusters = (truth - dense) @ one_hot
    cut = finished.cut_mass.astype(np.float64)
    assert (cut >= lost_clusters - ROUND_OFF).all()
    evidence = np.random.default_rng(0).gamma(0.5, size=(graph.num_nodes, 2))
    largest = np.stack([evidence[cluster == c].max(0, initial=0.0) for c in range(num_clusters)])
    lost = (truth - dense) @ evidence
    assert (lost >= -1e-5).all()
    assert (lost <= cut @ largest + 1e-5).all()
    by_missing = finished.missing_mass[:, None] * evidence.max(0) + 1e-5
    assert (lost <= by_missing).all()


@given(graph=graphs(), k=st.integers(1, 5))
def test_finished_rows_are_sorted_with_ties_to_the_smaller_id(graph, k):
    engine = engine_for(graph, k=k, steps="inf")
    rows = swept(engine)
    finished = engine.finish(rows, np.ones(graph.num_nodes))
    for start, stop in zip(finished.row_ptr, finished.row_ptr[1:], strict=False):
        assert stop - start <= k
        entries = list(zip(-finished.weights[start:stop], finished.ids[start:stop], strict=True))
        assert entries == sorted(entries)


@pytest.mark.parametrize("steps", ["inf", 3])
@pytest.mark.parametrize("method", ["sweep", "push"])
def test_equal_bytes_for_any_number_of_threads(hub_nodes, method, steps):
    graph = hub_graph(hub_nodes)
    results = []
    for threads in sorted({1, 2, numba.config.NUMBA_NUM_THREADS}):
        if threads > numba.config.NUMBA_NUM_THREADS:
            continue
        engine = engine_for(graph, threads=threads, k=8, steps=steps, push_tolerance=1e-4)
        rows = all_rows(engine, method)
        results.append([densify(rows, graph.num_nodes).tobytes(), rows.ids.tobytes()])
    assert all(result == results[0] for result in results)


def test_sweeps_find_the_largest_entries_of_a_large_graph():
    graph = hub_graph(600)
    truth = truth_for(graph, normalisation="rw", teleport=0.2, steps="inf")
    engine = engine_for(
        graph, k=8, normalisation="rw", teleport=0.2, steps="inf", sweep_tolerance=1e-4
    )
    rows = densify(swept(engine), graph.num_nodes)
    top = np.argsort(-truth, axis=1, kind="stable")[:, :8]
    kept = np.take_along_axis(rows, top, axis=1)
    assert (kept > 0)[np.take_along_axis(truth, top, axis=1) > 1e-9].mean() > 0.9
    assert np.abs(np.take_along_axis(truth, top, axis=1) - kept).sum(1).mean() < 0.02
    assert (rows <= truth + ROUND_OFF).all()


def test_more_sweeps_never_lower_an_entry(hub_nodes):
    graph = hub_graph(hub_nodes)
    dense = [
        densify(swept(engine_for(graph, k=8, steps="inf", sweeps=n)), hub_nodes) for n in (2, 3)
    ]
    kept_in_both = (dense[0] > 0) & (dense[1] > 0)
    assert (dense[1] >= dense[0])[kept_in_both].all()
    assert dense[1].sum() > dense[0].sum()


def test_pushes_leave_the_scratch_clean(hub_nodes):
    graph = hub_graph(hub_nodes)
    engine = engine_for(graph, k=8, steps="inf", push_tolerance=1e-4)
    first = engine.push(np.arange(100))
    again = engine.push(np.arange(100))
    assert [a.tobytes() for a in first] == [b.tobytes() for b in again]
    work = engine._push_work
    assert not work.mass.any()
    assert not work.residual.any()
    assert not work.place.any()
    assert not work.value.any()


def test_directed_pushes_follow_out_edges_and_stay_at_dead_ends():
    graph = build_graph([0, 1], [1, 2], num_nodes=3, directed=True)
    engine = engine_for(graph, k=3, normalisation="rw", self_loops=False, teleport=0.5, steps="inf")
    rows = densify(engine.push(np.arange(3)), 3)
    np.testing.assert_allclose(rows, [[0.5, 0.25, 0.25], [0, 0.5, 0.5], [0, 0, 1]], atol=1e-5)


def test_underflowing_weights_do_no_harm():
    graph = build_graph([0, 0, 1], [1, 2, 2], edge_weight=[1e-38, 1.0, 1e-38])
    for method in ("sweep", "push"):
        engine = engine_for(graph, k=3, normalisation="rw", steps="inf")
        rows = densify(all_rows(engine, method), 3)
        assert (rows.sum(1) <= 1 + ROUND_OFF).all()


def test_the_engine_chooses_by_the_share_of_roots():
    assert chosen_method(PPRConfig(), 100, 100) == "sweep"
    assert chosen_method(PPRConfig(), 10, 100) == "push"
    assert chosen_method(PPRConfig(method="push"), 100, 100) == "push"


def test_row_sums():
    engine = engine_for(build_graph([0], [1]), k=2, normalisation="rw")
    np.testing.assert_allclose(row_sums(swept(engine)), 1.0, atol=ROUND_OFF)


@pytest.mark.parametrize(
    ("method", "module", "kernel"),
    [("sweep", "row_kernels", "sweep_block_into"), ("push", "push_kernels", "push_roots_into")],
)
def test_the_compiled_kernels_are_looked_for_in_the_cache(
    tmp_path, monkeypatch, method, module, kernel
):
    monkeypatch.setattr(
        f"precompute.row_engine.{kernel}",
        SimpleNamespace(stats=SimpleNamespace(cache_path=tmp_path)),
    )
    assert not compiled_before(method)
    (tmp_path / f"{module}.{kernel}-129.py312.nbi").touch()
    assert compiled_before(method)
    monkeypatch.setattr(f"precompute.row_engine.{kernel}", lambda: None)
    assert compiled_before(method)
