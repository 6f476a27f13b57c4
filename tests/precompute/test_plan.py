"""Plans: their choices against dense matrices, and what they print."""

import re
import time
from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.data.building import build_graph
from gpn_scale.ppr.store import PPRStore
from precompute.accuracy_targets import SWEEP_LOSS, TOLERANCES, Target
from precompute.cli import main
from precompute.plan import plan_build
from tests.precompute.command import INTERPRETED
from tests.precompute.engines import config_of, engine_of, random_graph, truth_of


def plan_of(graph, config, method="sweep", target=None, **options):
    engine = engine_of(graph, config, options.pop("threads", 1))
    options = {"roots": None, "rows_per_shard": 256, "sample_roots": graph.num_nodes} | options
    totals = truth_of(graph, config).sum(1)
    return plan_build(engine, method=method, totals=totals, target=target, **options)


def exact_kept_mass(graph, config, method):
    """Mean fraction of its mass that a row's k largest entries hold, for k = 1 ... N."""
    truth = truth_of(graph, config)
    curve = (np.cumsum(-np.sort(-truth, axis=1), axis=1) / truth.sum(1, keepdims=True)).mean(0)
    return curve - SWEEP_LOSS * (1 - curve) * (method == "sweep")


@pytest.mark.parametrize("method", ["sweep", "push"])
@pytest.mark.parametrize("steps", ["inf", 3])
@pytest.mark.parametrize("normalisation", ["rw", "sym"])
def test_k_is_the_smallest_that_keeps_the_target_mass(sized, method, steps, normalisation):
    graph = random_graph(sized(150, 40))
    config = config_of(normalisation, steps, push_tolerance=1e-8)
    curve = exact_kept_mass(graph, config, method)
    chosen = []
    for mass in sized((0.3, 0.5, 0.7, 0.9, 0.97), (0.3, 0.9)):
        plan = plan_of(graph, config, method, Target("mass", mass))
        k = plan.k
        assert curve[k - 1] >= mass - 1e-4
        assert k == 1 or curve[k - 2] < mass + 1e-4
        assert plan.mean_kept_mass == pytest.approx(curve[k - 1], abs=1e-4)
        assert plan.config == replace(config, k=k)
        chosen.append(k)
    assert chosen == sorted(chosen)
    assert chosen[0] < chosen[-1]


def test_without_a_target_the_configuration_stays_and_its_mass_is_estimated(sized):
    graph, config = random_graph(sized(150, 20)), config_of(k=7)
    plan = plan_of(graph, config)
    assert plan.config == config
    expected = exact_kept_mass(graph, config, "sweep")[6]
    assert plan.mean_kept_mass == pytest.approx(expected, abs=1e-4)


def test_choices_depend_on_neither_threads_nor_time(monkeypatch, sized):
    graph, config = random_graph(sized(2000, 150)), config_of()
    plans = []
    for threads in (1, 2):
        ticks = iter(range(0, 10**6, 7 * threads))
        monkeypatch.setattr(time, "perf_counter", lambda ticks=ticks: float(next(ticks)))
        target = Target("mass", 0.4)
        plans.append(plan_of(graph, config, target=target, threads=threads, sample_roots=32))
    first, second = plans
    assert first.config == second.config
    assert first.mean_kept_mass == second.mean_kept_mass
    assert first.disk_bytes == second.disk_bytes
    assert first.seconds != second.seconds


def test_the_sample_is_of_the_roots_alone(sized):
    """Two components: a clique whose rows are spread out, and lone nodes that keep all mass."""
    size = sized(30, 10)
    clique = np.array([(a, b) for a in range(size) for b in range(a)]).T
    graph = build_graph(*clique, num_nodes=2 * size)
    plan = plan_of(graph, config_of(k=1), "push", roots=np.arange(size, 2 * size))
    assert plan.mean_kept_mass == pytest.approx(1.0, abs=1e-6)
    assert plan.num_roots == plan.sampled_roots == size
    assert plan_of(graph, config_of(k=1), "push", roots=np.arange(size)).mean_kept_mass < 0.5


@pytest.mark.parametrize("method", ["sweep", "push"])
def test_no_roots_make_a_plan_too(method):
    plan = plan_of(random_graph(), config_of(k=3), method, roots=np.arange(0))
    assert (plan.num_roots, plan.sampled_roots) == (0, 0)


@pytest.mark.parametrize("steps", ["inf", 4])
def test_the_push_tolerance_is_the_coarsest_that_finds_the_target(sized, steps):
    num_nodes = sized(250, 60)
    graph, config = random_graph(num_nodes, degree=8), config_of(k=20, steps=steps)
    exact = np.argsort(-truth_of(graph, config), axis=1, kind="stable")[:, :20]
    chosen = []
    for recall in sized((0.3, 0.8, 0.95, 0.995), (0.3, 0.95)):
        plan = plan_of(graph, config, "push", Target("recall", recall))
        chosen.append(plan.config.push_tolerance)
        assert plan.config == replace(config, push_tolerance=chosen[-1])
        rows = engine_of(graph, plan.config).push(np.arange(num_nodes))
        recalls = [np.isin(exact[i], rows.ids[i, : rows.sizes[i]]).mean() for i in range(num_nodes)]
        assert np.mean(recalls) >= recall - 0.02  # ties may fall otherwise in float32
    assert chosen == sorted(chosen, reverse=True)
    assert set(chosen) <= set(TOLERANCES)


def test_recall_of_sweeps_follows_the_rule(sized):
    graph, config = random_graph(sized(150, 40)), config_of(k=10)
    got = [
        (plan.keep, plan.config.sweep_tolerance)
        for recall in (0.9, 0.94, 0.97)
        for plan in [plan_of(graph, config, "sweep", Target("recall", recall))]
    ]
    assert got == [(20, 8e-3), (20, 4e-3), (40, 1e-3)]


def test_the_table_tells_every_number():
    plan = plan_of(random_graph(300), config_of(k=9, clusters=2), threads=2)
    plan = replace(plan, seconds=12.5, ranks=3, memory=replace(plan.memory, reached=5 << 30))
    table = plan.table()
    expected = ["sweep", "0.008", "300", "9, 18", f"{plan.mean_kept_mass:.4f}", "12.5", "2 thread"]
    expected += ["3 rank", "5,120.00 MiB", f"disk {'':7} {plan.disk_bytes / 2**20:.2f} MiB"]
    for name in ("transition", "totals", "rows", "scratch", "buffers", "mass_by_cluster"):
        expected.append(f"{name.replace('_', ' ')} {getattr(plan.memory, name) / 2**20:.2f} MiB")
    assert not [text for text in expected if text not in table]
    assert "tolerance 1e-06" in replace(plan, method="push").table()
    assert "4 sweeps" in replace(plan, config=config_of(steps=4)).table()


NODES = 300 if INTERPRETED else 1000
BUILD = ["--dataset", f"synthetic:nodes={NODES}", "--threads", "1", "--normalisation", "rw"]


def test_the_store_holds_what_was_chosen(tmp_path, capsys):
    out = tmp_path / "store"
    assert main([*BUILD, "--out", str(out), "--target-mass", "0.5"]) == 0
    store = PPRStore.open(out)
    printed = re.search(r"k, keep +(\d+), (\d+)\n", capsys.readouterr().err)
    assert (store.k, store.parameters["keep"]) == tuple(int(text) for text in printed.groups())
    assert "target" not in str(dict(store.parameters))
    assert 1 - store.missing_mass.mean() == pytest.approx(0.5, abs=0.05)
