"""The planner: its choices against dense matrices, its predictions against real builds."""

import os
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.config import DiffusionConfig, PPRConfig
from gpn_scale.data.building import build_graph
from gpn_scale.diffusion.transition import transition_matrix
from gpn_scale.errors import ConfigError
from gpn_scale.ppr.store import PPRStore
from precompute import planner
from precompute.build import Resources, build_store
from precompute.cli import main
from precompute.engine import Engine
from precompute.kernels import Rows
from precompute.mpi import SingleProcess
from precompute.planner import Target, plan_build
from tests.oracles import dense_diffusion, dense_ppr, dense_transition


def random_graph(num_nodes=150, degree=4, rng_seed=0):
    ends = np.random.default_rng(rng_seed).integers(num_nodes, size=(2, num_nodes * degree // 2))
    return build_graph(*ends, num_nodes=num_nodes)


def config_of(normalisation="rw", steps="inf", teleport=0.2, **options):
    diffusion = DiffusionConfig(normalisation=normalisation, steps=steps, teleport=teleport)
    return PPRConfig(diffusion=diffusion, **options)


def engine_of(graph, config, threads=1):
    diffusion = config.diffusion
    transition = transition_matrix(graph, diffusion.normalisation, diffusion.self_loops)
    return Engine(transition, config, SingleProcess(), threads=threads)


def truth_of(graph, config):
    diffusion = config.diffusion
    transition = dense_transition(graph, diffusion.normalisation, diffusion.self_loops)
    if diffusion.steps == "inf":
        return dense_ppr(transition, diffusion.teleport)
    return dense_diffusion(transition, diffusion.teleport, diffusion.steps)


def plan_of(graph, config, method="sweep", target=None, **options):
    engine = engine_of(graph, config, options.pop("threads", 1))
    options = {"roots": None, "rows_per_shard": 256, "sample_roots": graph.num_nodes} | options
    totals = truth_of(graph, config).sum(1)
    return plan_build(engine, method=method, totals=totals, target=target, **options)


def exact_curve(graph, config, method):
    """Mean share of its mass that a row's k largest entries hold, for k = 1 ... N."""
    truth = truth_of(graph, config)
    curve = (np.cumsum(-np.sort(-truth, axis=1), axis=1) / truth.sum(1, keepdims=True)).mean(0)
    return curve - planner.SWEEP_LOSS * (1 - curve) * (method == "sweep")


@pytest.mark.parametrize("method", ["sweep", "push"])
@pytest.mark.parametrize("steps", ["inf", 3])
@pytest.mark.parametrize("normalisation", ["rw", "sym"])
def test_k_is_the_smallest_that_keeps_the_target_mass(method, steps, normalisation):
    graph = random_graph()
    config = config_of(normalisation, steps, push_tolerance=1e-8)
    curve = exact_curve(graph, config, method)
    chosen = []
    for mass in (0.3, 0.5, 0.7, 0.9, 0.97):
        plan = plan_of(graph, config, method, Target("mass", mass))
        k = plan.k
        assert curve[k - 1] >= mass - 1e-4
        assert k == 1 or curve[k - 2] < mass + 1e-4
        assert plan.mean_kept_mass == pytest.approx(curve[k - 1], abs=1e-4)
        assert plan.config == replace(config, k=k)
        chosen.append(k)
    assert chosen == sorted(chosen)
    assert chosen[0] < chosen[-1]


def test_without_a_target_the_configuration_stays_and_its_mass_is_told():
    graph, config = random_graph(), config_of(k=7)
    plan = plan_of(graph, config)
    assert plan.config == config
    assert plan.mean_kept_mass == pytest.approx(exact_curve(graph, config, "sweep")[6], abs=1e-4)


def test_choices_depend_on_neither_threads_nor_time(monkeypatch):
    graph, config = random_graph(2000), config_of()
    plans = []
    for threads in (1, 2):
        ticks = iter(range(0, 10**6, 7 * threads))
        monkeypatch.setattr(planner.time, "perf_counter", lambda ticks=ticks: float(next(ticks)))
        target = Target("mass", 0.4)
        plans.append(plan_of(graph, config, target=target, threads=threads, sample_roots=32))
    first, second = plans
    assert first.config == second.config
    assert first.mean_kept_mass == second.mean_kept_mass
    assert first.disk_bytes == second.disk_bytes
    assert first.seconds != second.seconds


def test_the_sample_is_of_the_roots_alone():
    """Two components: a clique whose rows are spread out, and lone nodes that keep all mass."""
    clique = np.array([(a, b) for a in range(30) for b in range(a)]).T
    graph = build_graph(*clique, num_nodes=60)
    plan = plan_of(graph, config_of(k=1), "push", roots=np.arange(30, 60))
    assert plan.mean_kept_mass == pytest.approx(1.0, abs=1e-6)
    assert plan.num_roots == plan.sampled_roots == 30
    assert plan_of(graph, config_of(k=1), "push", roots=np.arange(30)).mean_kept_mass < 0.5


@pytest.mark.parametrize("method", ["sweep", "push"])
def test_no_roots_make_a_plan_too(method):
    plan = plan_of(random_graph(), config_of(k=3), method, roots=np.arange(0))
    assert (plan.num_roots, plan.sampled_roots) == (0, 0)


def test_a_mass_out_of_reach_is_refused_with_what_can_be_had(monkeypatch):
    monkeypatch.setattr(planner, "MAX_K", 5)
    with pytest.raises(ConfigError, match=r"0\.9 cannot be had: 5 entries keep .*--clusters 32"):
        plan_of(random_graph(), config_of(k=2), target=Target("mass", 0.9))


@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, 2.0, float("nan")])
@pytest.mark.parametrize("kind", ["mass", "recall"])
def test_a_target_outside_0_and_1_is_refused(kind, value):
    with pytest.raises(ConfigError, match=rf"--target-{kind} is .*, expected a number in \(0, 1\)"):
        Target(kind, value)


@pytest.mark.parametrize("steps", ["inf", 4])
def test_the_push_tolerance_is_the_coarsest_that_finds_the_target(steps):
    graph, config = random_graph(250, degree=8), config_of(k=20, steps=steps)
    exact = np.argsort(-truth_of(graph, config), axis=1, kind="stable")[:, :20]
    chosen = []
    for recall in (0.3, 0.8, 0.95, 0.995):
        plan = plan_of(graph, config, "push", Target("recall", recall))
        chosen.append(plan.config.push_tolerance)
        assert plan.config == replace(config, push_tolerance=chosen[-1])
        rows = engine_of(graph, plan.config).push(np.arange(250))
        shares = [np.isin(exact[i], rows.ids[i, : rows.sizes[i]]).mean() for i in range(250)]
        assert np.mean(shares) >= recall - 0.02  # ties may fall otherwise in float32
    assert chosen == sorted(chosen, reverse=True)
    assert set(chosen) <= set(planner.TOLERANCES)


def test_recall_of_sweeps_follows_the_rule():
    graph, config = random_graph(), config_of(k=10)
    got = [
        (plan.keep, plan.config.sweep_tolerance)
        for recall in (0.9, 0.94, 0.97)
        for plan in [plan_of(graph, config, "sweep", Target("recall", recall))]
    ]
    assert got == [(20, 8e-3), (20, 4e-3), (40, 1e-3)]


def test_recall_counts_valid_entries_only():
    found = Rows(np.array([[3, 0, 0]]), np.zeros((1, 3)), np.array([1]))
    exact = Rows(np.array([[3, 0, 1]]), np.zeros((1, 3)), np.array([3]))
    assert planner.mean_recall(found, exact, 3) == pytest.approx(1 / 3)
    assert planner.mean_recall(found, exact, 1) == 1.0


def test_a_finer_sample_is_paid_for_by_small_graphs_only():
    small, large = (engine_of(random_graph(n), config_of()) for n in (100, 30_000))
    assert planner.finest_tolerance(small, 1e8, 32) == planner.TOLERANCES[-1]
    coarse = planner.finest_tolerance(large, 1e8, 32)
    assert 32 * planner.visited_edges(large, coarse) <= 1e8
    assert coarse > planner.TOLERANCES[-1]
    assert planner.finest_tolerance(large, 0.0, 32) == planner.TOLERANCES[0]


@pytest.mark.parametrize("num_nodes", [1, 20, 3000])
def test_the_timed_sweep_stays_inside_its_scratch(monkeypatch, num_nodes):
    def check(first, last, indptr, indices, weight, teleport, hop, rows, work, *block):
        assert 0 <= first < last <= num_nodes == work.mass.shape[1]  # nodes and entries index it
        assert rows.ids.max() < num_nodes
        assert indices.max(initial=0) < len(rows.sizes)
        assert last <= len(rows.sizes)
        assert (rows.weights > 0).all()

    monkeypatch.setattr(planner, "sweep_block_into", check)
    assert planner.seconds_per_entry(engine_of(random_graph(num_nodes), config_of()), 12) > 0


def test_expected_sweeps():
    assert planner.expected_sweeps(config_of(steps=7)) == 7
    assert planner.expected_sweeps(config_of(sweeps=3)) == 3
    quick, slow = config_of(teleport=0.5), config_of(teleport=0.1, sweep_tolerance=1e-4)
    assert 3 < planner.expected_sweeps(quick) < planner.expected_sweeps(slow) < 50


def test_the_pieces_of_memory(monkeypatch):
    monkeypatch.setattr(planner, "resident_bytes", lambda: (1000, 2000))
    graph = random_graph(2048)
    config = config_of(k=8, clusters=0)
    engine = engine_of(graph, config, threads=2)
    edges = len(engine.indices)
    memory = planner.plan_memory(engine, config, "sweep", 256)
    assert memory.transition == 8 * 2049 + (4 + 4) * edges
    assert memory.totals == 8 * 2048
    assert memory.rows == (8 * 16 + 4) * 2048
    longest = int(np.diff(engine.indptr).max()) * 16 + 17
    assert memory.scratch == 2 * (4 * 2048 + 12 * longest)
    assert memory.buffers == (8 * 16 + 4) * 1024 + 8 * 2048  # two blocks of 1024 nodes
    assert memory.cluster_masses == memory.partition == 0
    assert memory.peak == 1000 + memory.rows + memory.scratch + memory.buffers

    hops = config_of(k=8, steps=3, clusters=0)
    twice = planner.plan_memory(engine_of(graph, hops, 2), hops, "sweep", 256)
    assert twice.peak == memory.peak + memory.rows

    push = planner.plan_memory(engine, config, "push", 256)
    assert (push.rows, push.scratch) == (0, 24 * 2048 * 2)

    clusters = planner.plan_memory(engine, replace(config, clusters=32), "sweep", 256)
    assert clusters.cluster_masses == 4 * 2048 * 33
    assert clusters.partition >= clusters.cluster_masses + 2 * 4 * 16 * 2048
    assert replace(memory, reached=10**9).peak == 10**9


def test_the_table_tells_every_number():
    plan = plan_of(random_graph(300), config_of(k=9, clusters=2), threads=2)
    plan = replace(plan, seconds=12.5, ranks=3, memory=replace(plan.memory, reached=5 << 30))
    table = plan.table()
    told = ["sweep", "0.008", "300", "9, 18", f"{plan.mean_kept_mass:.4f}", "12.5", "2 thread"]
    told += ["3 rank", "5,120.00 MiB", f"disk {'':7} {plan.disk_bytes / 2**20:.2f} MiB"]
    for name in ("transition", "totals", "rows", "scratch", "buffers", "cluster_masses"):
        told.append(f"{name.replace('_', ' ')} {getattr(plan.memory, name) / 2**20:.2f} MiB")
    assert not [text for text in told if text not in table]
    assert "tolerance 1e-06" in replace(plan, method="push").table()
    assert "4 sweeps" in replace(plan, config=config_of(steps=4)).table()


@pytest.mark.parametrize(
    "options", [{}, {"clusters": 4}, {"push_tolerance": 1e-4, "method": "push"}, {"steps": 3}]
)
@pytest.mark.parametrize("part", [False, True])
def test_the_size_of_the_store_is_predicted(tmp_path, options, part):
    graph = random_graph(3000, degree=10)
    plan = build_store(
        graph,
        config_of(k=24, **options),
        tmp_path / "store",
        roots=np.arange(0, 3000, 3) if part else None,
        comm=SingleProcess(),
        resources=Resources(threads=1, memory_bytes=1 << 30),
        resume=False,
        overwrite=False,
        say=lambda text: None,
    )
    size = sum(path.stat().st_size for path in (tmp_path / "store").iterdir())
    assert plan.disk_bytes == pytest.approx(size, rel=0.05)
    kept = 1 - PPRStore.open(tmp_path / "store").missing_mass.mean()
    assert plan.mean_kept_mass == pytest.approx(kept, abs=0.05)


BUILD = ["--dataset", "synthetic:nodes=1000", "--threads", "1", "--normalisation", "rw"]


def test_plan_only_prints_and_writes_nothing(tmp_path, capsys):
    out = tmp_path / "deep" / "store"
    assert main([*BUILD, "--out", str(out), "--plan-only", "--target-mass", "0.5"]) == 0
    assert list(tmp_path.iterdir()) == []
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "peak memory" in captured.err


def test_the_store_holds_what_was_chosen(tmp_path, capsys):
    out = tmp_path / "store"
    assert main([*BUILD, "--out", str(out), "--target-mass", "0.5"]) == 0
    store = PPRStore.open(out)
    told = re.search(r"k, keep +(\d+), (\d+)\n", capsys.readouterr().err)
    assert (store.k, store.parameters["keep"]) == tuple(int(text) for text in told.groups())
    assert "target" not in str(dict(store.parameters))
    assert 1 - store.missing_mass.mean() == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target-mass", "0.5", "--target-recall", "0.5"], "exclude each other, got both"),
        (["--target-mass", "0.5", "--k", "5"], "--target-mass chooses k, but --k 5 was given too"),
        (["--target-mass", "1.5"], "--target-mass is 1.5, expected a number in (0, 1)"),
        (["--target-recall", "0"], "--target-recall is 0.0, expected a number in (0, 1)"),
    ],
)
def test_wrong_targets_are_refused(tmp_path, capsys, options, message):
    assert main([*BUILD, "--out", str(tmp_path / "store"), *options]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "store").exists()


MEASURED = """
import sys
from pathlib import Path
import numpy as np
from precompute.build import Resources, build_store
from precompute.mpi import SingleProcess
from gpn_scale.memory import resident_bytes
from tests.precompute.test_planner import config_of, random_graph

options = eval(sys.argv[2])
plan = build_store(
    random_graph(60_000, degree=10), config_of(**options), Path(sys.argv[1]), roots=None,
    comm=SingleProcess(), resources=Resources(threads=2, memory_bytes=1 << 30), resume=False,
    overwrite=False, say=lambda text: None)
print(plan.memory.peak / resident_bytes()[1])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"k": 128, "sweeps": 1}, {"k": 64, "steps": 2}, {"k": 4, "clusters": 32}]
)
def test_peak_memory_is_predicted(tmp_path, options):
    command = [sys.executable, "-c", MEASURED, str(tmp_path / "store"), repr(options)]
    environment = os.environ | {"PYTHONPATH": os.getcwd()}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    assert 1 / 1.2 < float(done.stdout) < 1.2
