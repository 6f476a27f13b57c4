"""Graphs and stores that a run loads or builds for itself."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from gpn_scale.cli import run_inputs
from gpn_scale.cli.run_inputs import build_rows, row_entries, shared_graph
from gpn_scale.config import DiffusionConfig
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph_folder import save_graph
from gpn_scale.distributed import World
from gpn_scale.errors import ElsewhereError, StoreError
from gpn_scale.ppr.manifest import MANIFEST
from gpn_scale.ppr.store import PPRStore
from tests.distributed.ranks import run_ranks

SMALL = "synthetic:nodes=150,classes=3,features=4"
DIFFUSION = DiffusionConfig(teleport=0.3, steps=4, normalisation="rw", self_loops=False)


def test_rows_are_long_where_they_cost_little():
    assert row_entries(2_995) == 128
    assert row_entries(169_343) == 32


def test_one_process_loads_the_graph_and_writes_nothing(tmp_path):
    graph = shared_graph(SMALL, tmp_path, tmp_path / "copy", World())
    assert graph.num_nodes == 150
    assert not list(tmp_path.iterdir())


def mapped_graph(world, dataset, data_dir, copy):
    graph = shared_graph(dataset, data_dir, copy, world)
    return isinstance(graph.indices, np.memmap), graph.fingerprint()


@pytest.mark.ddp
def test_several_processes_map_one_graph(tmp_path):
    fingerprint = load_graph(SMALL, tmp_path).fingerprint()
    copy = tmp_path / "copy"
    assert run_ranks(2, mapped_graph, SMALL, tmp_path, copy) == [(True, fingerprint)] * 2
    assert copy.is_dir()
    save_graph(load_graph(SMALL, tmp_path), tmp_path / "saved")
    results = run_ranks(2, mapped_graph, "saved", tmp_path, tmp_path / "unused")
    assert results == [(True, fingerprint)] * 2
    assert not (tmp_path / "unused").exists()


def build(out, data_dir, world=None, dataset=SMALL):
    graph = load_graph(SMALL, data_dir)
    build_rows(graph, dataset, data_dir, out, DIFFUSION, world or World())
    return graph


def test_a_store_is_built_once_with_the_diffusion_of_the_run(tmp_path, capfd):
    out = tmp_path / "store"
    graph = build(out, tmp_path)
    text = capfd.readouterr().err
    assert f"computing rows of 128 entries in {out}" in text
    store = PPRStore.open(out, graph_fingerprint=graph.structure_fingerprint())
    assert store.k == 128
    assert DIFFUSION.store_parameters.items() <= store.parameters.items()
    before = (out / MANIFEST).stat().st_mtime_ns
    build(out, tmp_path)
    assert (out / MANIFEST).stat().st_mtime_ns == before
    assert capfd.readouterr().err == ""


def test_a_store_of_another_diffusion_is_replaced_only_on_request(tmp_path, capfd):
    out = tmp_path / "store"
    graph = build(out, tmp_path)
    other = replace(DIFFUSION, teleport=0.5)
    inputs = (graph, SMALL, tmp_path, out, other, World())
    build_rows(*inputs)
    assert PPRStore.open(out).parameters["teleport"] == DIFFUSION.teleport
    build_rows(*inputs, overwrite=True)
    assert PPRStore.open(out).parameters["teleport"] == 0.5
    capfd.readouterr()
    build_rows(*inputs, overwrite=True)
    assert capfd.readouterr().err == ""


def test_the_same_store_is_built_by_the_command(tmp_path):
    build(tmp_path / "own", tmp_path)
    command = [sys.executable, "-m", "precompute", "--dataset", SMALL, "--k", "128"]
    command += ["--teleport", "0.3", "--steps", "4", "--normalisation", "rw"]
    command += ["--self-loops", "off", "--out", str(tmp_path / "command")]
    subprocess.run(command, check=True, capture_output=True)
    own, other = (PPRStore.open(tmp_path / name) for name in ("own", "command"))
    assert own.manifest == other.manifest


def test_a_build_that_fails_says_why(tmp_path, capfd):
    with pytest.raises(StoreError, match=r".*store could not be computed: .*no dataset 'none"):
        build(tmp_path / "store", tmp_path, dataset="none such")
    assert "Traceback" not in capfd.readouterr().err


def dying(job, failures):
    """Stands for a build that the system kills."""
    os._exit(9)


def test_a_build_that_dies_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(run_inputs, "_build_in_child", dying)
    with pytest.raises(StoreError, match="the process ended with exit code 9"):
        build(tmp_path / "store", tmp_path)


def refused(world, out, data_dir):
    try:
        build(out, data_dir, world, dataset="none such")
    except (StoreError, ElsewhereError) as error:
        return type(error), str(error)
    return None


@pytest.mark.ddp
def test_ranks_fail_together_and_the_first_says_why(tmp_path):
    first, second = run_ranks(2, refused, tmp_path / "store", tmp_path)
    assert first[0] is StoreError
    assert "no dataset 'none such'" in first[1]
    assert second[0] is ElsewhereError
    assert "no dataset 'none such'" in second[1]


def test_an_interrupted_run_takes_its_build_with_it(tmp_path, monkeypatch):
    started = []
    start = run_inputs._Build.start.__func__

    def remember(cls, job):
        started.append(start(cls, job))
        return started[0]

    def interrupted(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(run_inputs._Build, "start", classmethod(remember))
    monkeypatch.setattr(run_inputs.time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "store", tmp_path)
    assert not started[0].is_running()
