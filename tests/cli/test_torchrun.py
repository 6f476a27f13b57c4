"""Training with torchrun: one report of several ranks, losses of ranks, refusals."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from pyarrow.parquet import read_table

from gpn_scale.cli.torchrun import is_restarted, launch_id, repeat_after_torchrun
from gpn_scale.cli.train import main
from gpn_scale.train.checkpoint import load_tensors
from gpn_scale.train.metrics_log import read_metrics
from tests.distributed.ranks import free_port

pytestmark = pytest.mark.ddp

TRAIN = Path(__file__).parents[2] / "launch" / "train.py"
SMALL = "synthetic:nodes=600,classes=3,features=8,separation=4"
QUICK = ["--dataset", SMALL, "--threads", "1", "--epochs", "4", "--set", "minibatch.batch_size=8"]
QUICK += ["--set", "minibatch.tail_nodes=64", "--set", "train.patience=1000"]


def torchrun(*arguments, ranks=2, more=("--standalone",), script=TRAIN):
    command = [sys.executable, "-m", "torch.distributed.run", *more]
    command += ["--nproc-per-node", str(ranks), str(script), *map(str, arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finished(process):
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The run of one process, with rows that it made itself."""
    folder = tmp_path_factory.mktemp("alone") / "run"
    assert main([*QUICK, "--mode", "minibatch", "--out", str(folder)]) == 0
    return folder


def assert_same_run(run, alone):
    ours, theirs = (load_tensors(path / "model.safetensors")[0] for path in (run, alone))
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        np.testing.assert_allclose(ours[name], value, rtol=2e-3, atol=2e-3, err_msg=name)
    assert len(read_metrics(run / "metrics.jsonl")) == len(read_metrics(alone / "metrics.jsonl"))


def test_two_ranks_make_one_run_and_build_its_rows_first(tmp_path, alone):
    code, out, err = finished(torchrun(*QUICK, "--out", tmp_path / "run"))
    assert code == 0, err
    assert_same_run(tmp_path / "run", alone)
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["mode"] == "minibatch"
    assert report["ranks"]["count"] == len(report["ranks"]["anonymous_bytes"]) == 2
    assert report["ranks"]["roots_per_second"] > 0
    assert report["ranks"]["seconds"]["communication"] > 0
    table = read_table(tmp_path / "run" / "predictions.parquet")
    assert table["node"].to_pylist() == list(range(600))
    assert out.count("test accuracy") == 1
    assert "the other 1 rank(s) wait" in err
    assert (tmp_path / "run" / "graph").is_dir()  # which both ranks have mapped


def test_a_killed_worker_group_comes_back_from_its_checkpoint(tmp_path, alone):
    run = tmp_path / "run"
    arguments = [*QUICK, "--ppr", alone / "store", "--out", run, "--checkpoint-seconds", "0"]
    process = torchrun(*arguments, more=["--standalone", "--max-restarts", "2"])
    while not (run / "checkpoint.safetensors").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(workers[-1]), signal.SIGKILL)
    code, _, err = finished(process)
    assert code == 0, err
    assert_same_run(run, alone)


@pytest.mark.parametrize("ranks_then", [2, 1])
def test_a_request_to_stop_is_kept_and_resumed(tmp_path, alone, ranks_then):
    run = tmp_path / "run"
    arguments = [*QUICK, "--ppr", alone / "store", "--out", run, "--checkpoint-seconds", "0"]
    arguments += ["--mode", "minibatch"]
    process = torchrun(*arguments)
    while not (run / "checkpoint.safetensors").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    code, _, _ = finished(process)
    assert code != 0
    assert not (run / "model.safetensors").exists()
    code, _, err = finished(torchrun(*arguments, "--resume", ranks=ranks_then))
    assert code == 0, err
    assert_same_run(run, alone)


def test_two_agents_that_meet_at_a_port_make_one_run(tmp_path, alone):
    run = tmp_path / "run"
    meeting = ["--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-id", "two"]
    meeting += ["--rdzv-endpoint", f"127.0.0.1:{free_port()}"]
    arguments = [*QUICK, "--ppr", alone / "store", "--out", run]
    agents = [torchrun(*arguments, ranks=1, more=meeting) for _ in range(2)]
    ends = [finished(agent) for agent in agents]
    assert [code for code, _, _ in ends] == [0, 0], ends
    assert sum(out.count("test accuracy") for _, out, _ in ends) == 1
    assert_same_run(run, alone)


def test_one_rank_under_torchrun_is_minibatch_training_too(tmp_path, alone):
    code, _, err = finished(torchrun(*QUICK, "--out", tmp_path / "run", ranks=1))
    assert code == 0, err
    assert_same_run(tmp_path / "run", alone)


def test_a_checkpoint_of_another_graph_is_refused(tmp_path, alone):
    other = [SMALL + ",rng_seed=5" if word == SMALL else word for word in QUICK]
    run = tmp_path / "run"
    run.mkdir()
    for name in ("config.json", "checkpoint.safetensors"):
        (run / name).write_bytes((alone / name).read_bytes())
    code, _, err = finished(torchrun(*other, "--mode", "minibatch", "--out", run, "--resume"))
    assert code != 0
    refusals = {line for line in err.splitlines() if line.startswith("error: ")}
    assert len(refusals) == 1
    assert "graph" in refusals.pop()


def test_ranks_with_different_options_are_refused(tmp_path, alone):
    script = tmp_path / "uneven.py"
    script.write_text(
        "import os, sys\nfrom gpn_scale.cli.train import main\n"
        "sys.exit(main([*sys.argv[1:], '--seed', os.environ['RANK']]))\n"
    )
    arguments = [*QUICK, "--ppr", alone / "store", "--out", tmp_path / "run"]
    code, _, err = finished(torchrun(*arguments, script=script))
    assert code != 0
    assert "error: rank 1 has a different configuration from rank 0" in err.splitlines()[-1], err
    assert not (tmp_path / "run" / "model.safetensors").exists()


def test_refusals_are_said_once(tmp_path, alone):
    code, _, err = finished(torchrun(*QUICK, "--mode", "exact", "--out", tmp_path / "run"))
    assert code != 0
    refusal = "error: mode='exact' trains in one process, got 2 ranks"
    lines = [line for line in err.splitlines() if line.startswith(refusal)]
    assert len(lines) == 2, "once when it happens, and once below torchrun's own report"
    assert err.splitlines()[-1] == lines[0] == lines[1]


def test_a_run_in_the_way_is_the_last_line_and_stays_as_it_is(alone):
    before = {path.name: path.stat().st_mtime_ns for path in alone.iterdir()}
    more = ["--standalone", "--max-restarts", "1"]
    code, _, err = finished(torchrun(*QUICK, "--out", alone, more=more))
    assert code != 0
    assert err.splitlines()[-1].startswith(f"error: {alone} already holds a run (written.json)")
    assert {path.name: path.stat().st_mtime_ns for path in alone.iterdir()} == before


def test_a_second_call_without_a_folder_makes_a_second_run(tmp_path, alone, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(TRAIN.parents[1]))
    arguments = [*QUICK, "--ppr", alone / "store"]
    assert finished(torchrun(*arguments))[0] == 0
    code, out, err = finished(torchrun(*arguments))
    assert code == 0, err
    (line,) = [line for line in err.splitlines() if "already holds a run" in line]
    assert line == "runs/synthetic already holds a run; writing this one to runs/synthetic_2"
    assert "runs/synthetic_2/report.html" in out
    for name in ("synthetic", "synthetic_2"):
        assert_same_run(tmp_path / "runs" / name, alone)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, ("", False)),
        ({"RUN_ID": "job"}, ("job", False)),
        ({"RUN_ID": "job", "RESTART_COUNT": "2", "MAX_RESTARTS": "3"}, ("job", True)),
    ],
)
def test_what_the_environment_says(monkeypatch, variables, expected):
    for name in ("RUN_ID", "RESTART_COUNT", "MAX_RESTARTS"):
        monkeypatch.delenv(f"TORCHELASTIC_{name}", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(f"TORCHELASTIC_{name}", value)
    assert (launch_id(), is_restarted()) == expected


def test_without_an_id_the_parent_process_is_the_launch(monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    assert launch_id() == launch_id()
    assert str(os.getppid()) in launch_id().split()


@pytest.mark.parametrize(
    ("variables", "started"),
    [({}, 0), ({"RUN_ID": "a"}, 1), ({"RUN_ID": "a", "MAX_RESTARTS": "1"}, 0)],
)
def test_a_line_is_repeated_once_and_only_under_torchrun(monkeypatch, variables, started):
    calls = []
    monkeypatch.setattr(subprocess, "Popen", lambda *command, **_: calls.append(command))
    for name in ("RUN_ID", "RESTART_COUNT", "MAX_RESTARTS"):
        monkeypatch.delenv(f"TORCHELASTIC_{name}", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(f"TORCHELASTIC_{name}", value)
    repeat_after_torchrun("error: no")
    assert len(calls) == started


@pytest.mark.parametrize(("ranks", "tidied"), [("1", True), ("2", False)])
def test_a_rank_leaves_at_once_when_its_work_is_done(ranks, tidied):
    code = (
        "import atexit; from gpn_scale.cli.console import leave; atexit.register(print, 'tidied')\n"
    )
    code += "print('said before'); leave(7)"
    command = [sys.executable, "-c", code]
    environment = os.environ | {"WORLD_SIZE": ranks}
    done = subprocess.run(
        command, cwd=TRAIN.parents[1], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 7
    assert done.stdout.split("\n")[0] == "said before"
    assert ("tidied" in done.stdout) == tidied
