"""The commands `ppr`, `verify` and `info`, and their messages (`finish`: `test_part_commands`)."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from gpn_scale.data.datasets import load_graph
from gpn_scale.ppr.store import PPRStore
from precompute.cli import main, store_bytes
from tests.precompute.command import PUSH, REPOSITORY, arguments, build, content


def test_the_command_word_may_be_left_out_and_info_tells_all(data, tmp_path, capsys):
    assert main(["ppr", *arguments(data, tmp_path / "s", "--clusters", "3")]) == 0
    capsys.readouterr()
    assert main(["info", str(tmp_path / "s")]) == 0
    text = capsys.readouterr().out
    assert "700 rows of 700 nodes" in text
    for word in ("teleport", "normalisation", "steps", "missing mass", "clusters        3"):
        assert word in text
    manifest = json.loads((tmp_path / "s" / "manifest.json").read_text())
    assert manifest["k"] == 8


def test_the_size_of_a_store_is_without_holes(tmp_path):
    (tmp_path / "data").write_bytes(b"x" * 10_000)
    os.truncate(tmp_path / "data", 1 << 40)
    assert 10_000 <= store_bytes(tmp_path) < 100_000


def test_a_damaged_shard_is_named_and_only_it_is_rebuilt(data, tmp_path, capsys):
    out = tmp_path / "s"
    assert build(data, out, *PUSH) == 0
    before = content(out)
    shards = sorted(out.glob("shard-*"))
    assert len(shards) == 3
    damaged = bytearray(shards[1].read_bytes())
    damaged[-5] ^= 1
    shards[1].write_bytes(damaged)
    untouched = shards[0].stat().st_mtime_ns
    capsys.readouterr()
    assert main(["verify", str(out)]) == 1
    errors = capsys.readouterr().err
    assert shards[1].name in errors
    assert f"to repair shards: gpn-precompute repair {out}; other files: repeat" in errors
    assert build(data, out, *PUSH, "--resume") == 0
    assert content(out) == before
    assert shards[0].stat().st_mtime_ns == untouched
    assert main(["verify", str(out)]) == 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--teleport", "0"], r"diffusion.teleport is 0.0, expected a number in \(0, 1\)"),
        (["--teleport", "1"], "diffusion.teleport is 1.0"),
        (["--teleport", "1e-300"], r"teleport is 1e-300, expected .*\(0, 1\), at least 1e-06"),
        (["--teleport", "1e-6", "--steps", "inf"], "takes 13,815,504 steps .* at most 100,000"),
        (["--steps", "2147483648"], "steps is 2147483648, expected .*at most 100000, or inf"),
        (["--steps", "9" * 5000], "--steps got '9*', expected a whole number or inf"),
        (["--sweeps", "2147483648"], "sweeps is 2147483648, expected at most 10000"),
        (["--clusters", "5000"], "clusters is 5000, expected at most 4096"),
        (["--k", "2147483647"], "k is 2147483647, expected below 1073741824"),
        (["--keep", "1000000"], "keep is 1000000, expected at most .*, twice the number of nodes"),
        (["--push-tolerance", "1e-300"], r"push_tolerance is 1e-300, expected .*at least 1e-12"),
        (["--memory-budget", "inf"], "--memory-budget got inf, expected .*at most 1000000"),
        (["--k", "0"], "k is 0, expected at least 1"),
        (["--k", "701"], "k is 701, expected at most 700, .* --k K"),
        (["--keep", "4"], "keep is 4, expected 0, or at least k"),
        (["--push-tolerance", "0"], "push_tolerance is 0.0, expected"),
        (["--sweeps", "-1"], "sweeps is -1, expected at least 0"),
        (["--clusters", "-1"], "clusters is -1, expected at least 0"),
        (["--steps", "few"], "--steps got 'few', expected a whole number or inf"),
        (["--roots", "nowhere.txt"], "--roots nowhere.txt cannot be read"),
        (["--threads", "0"], "--threads got 0, expected at least 1"),
        (["--memory-budget", "-1"], "--memory-budget got -1.0, expected a positive number of GB"),
        (
            ["--memory-budget", "0.000001"],
            "leaves 0 MiB .*at least 1 MiB .* --memory-budget GB",
        ),
        (["--dataset", "absent"], "absent"),
    ],
)
def test_bad_options_give_one_sentence(data, tmp_path, capsys, more, message):
    assert build(data, tmp_path / "s", *more) == 2
    errors = capsys.readouterr().err
    assert re.search(rf"^error: .*{message}", errors, re.MULTILINE)
    assert not (tmp_path / "s" / "manifest.json").exists()


def test_less_memory_means_fewer_threads(data, tmp_path, capsys):
    budget = 700 * 16 * 1.5 / 1e9
    assert build(data, tmp_path / "s", "--threads", "2", "--memory-budget", str(budget)) == 0
    assert "using 1 of 2 threads, since scratch memory is limited" in capsys.readouterr().err


@pytest.mark.slow
def test_the_first_use_says_that_it_compiles(data, tmp_path, compiling_environment):
    command = [sys.executable, "-m", "precompute", "--plan-only"]
    command += arguments(data, tmp_path / "s")
    environment = compiling_environment | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    for expected in (True, False):
        result = subprocess.run(
            command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True
        )
        assert ("compiling the kernels; this takes" in result.stderr) is expected


def test_no_torch_is_loaded():
    code = "import sys, precompute.cli; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=REPOSITORY)


BUILD = ["--dataset", "synthetic:nodes=500", "--threads", "1", "--normalisation", "rw"]


def test_plan_only_prints_and_writes_nothing(tmp_path, capsys):
    out = tmp_path / "deep" / "store"
    assert main([*BUILD, "--out", str(out), "--plan-only", "--k", "8"]) == 0
    assert list(tmp_path.iterdir()) == []
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "peak memory" in captured.err


def test_a_store_in_the_way_names_the_flags(data, tmp_path, capsys):
    assert build(data, tmp_path / "s", "--clusters", "0") == 0
    capsys.readouterr()
    assert build(data, tmp_path / "s", "--clusters", "0") == 2
    errors = capsys.readouterr().err
    assert "pass existing='resume' to continue it" in errors
    assert "(on the command line: --resume or --overwrite, --out PATH)" in errors


def test_both_flags_for_a_store_in_the_way_are_refused(data, tmp_path, capsys):
    with pytest.raises(SystemExit) as caught:
        build(data, tmp_path / "s", "--resume", "--overwrite")
    assert caught.value.code == 2
    assert "--overwrite: not allowed with argument --resume" in capsys.readouterr().err


@pytest.mark.parametrize("command", [[], ["finish"], ["info"], ["verify"]])
def test_every_command_has_help(command, capsys):
    with pytest.raises(SystemExit) as caught:
        main([*command, "--help"])
    assert caught.value.code == 0
    assert "STORE" in capsys.readouterr().out


@pytest.mark.parametrize("threads", [None, "1"])
def test_a_limit_on_the_threads_of_numba_is_respected(tmp_path, threads):
    command = [sys.executable, "-m", "precompute", "--dataset", "synthetic:nodes=300", "--k", "8"]
    command += ["--out", str(tmp_path / "s")] + ([] if threads is None else ["--threads", threads])
    environment = os.environ | {"NUMBA_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "1 thread(s) x 1 rank(s)" in done.stderr


@pytest.mark.parametrize(
    ("normalisation", "unit", "end"),
    [
        ("sym", "absolute: full rows of sym sum to more or less than 1", "0.9 or more"),
        ("rw", "full rows sum to 1", "0.9 to 1.0"),
    ],
)
def test_info_says_in_which_unit_mass_is_missing(data, tmp_path, capsys, normalisation, unit, end):
    assert build(data, tmp_path / "s", "--normalisation", normalisation) == 0
    text = capsys.readouterr().out
    assert f"missing mass    fraction of rows ({unit})" in text
    assert end in text


def test_messages_as_json(data, tmp_path, capsys):
    assert build(data, tmp_path / "s", "--log-format", "json") == 0
    output = capsys.readouterr()
    (store,) = map(json.loads, output.out.splitlines())
    assert (store["event"], store["rows"], store["nodes"], store["k"]) == ("store", 700, 700, 8)
    assert 0 < store["mean_missing_mass"] < 1
    messages = [json.loads(line) for line in output.err.splitlines()]
    assert {"progress", "rows"} == {message["event"] for message in messages}
    assert build(data, tmp_path / "s", "--log-format", "json") == 2
    (error,) = [json.loads(line) for line in capsys.readouterr().err.splitlines()][-1:]
    assert error["level"] == "error"
    assert "--resume or --overwrite" in error["message"]
    assert main(["verify", str(tmp_path / "s"), "--log-format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["problems"] == 0


def test_update_and_compact(tmp_path, capsys):
    folder, store = tmp_path / "data", tmp_path / "store"
    folder.mkdir()
    source, target = np.arange(30), (np.arange(30) + 1) % 30
    np.savez(folder / "old.npz", edge_index=np.stack([source, target]), num_nodes=30)
    edges = np.stack([np.append(source, 30), np.append(target, 4)])
    np.savez(folder / "new.npz", edge_index=edges, num_nodes=31)
    assert (
        main(["--dataset", "old", "--data-dir", str(folder), "--k", "4", "--out", str(store)]) == 0
    )
    new = ["--dataset", "new", "--data-dir", str(folder)]
    assert main(["update", str(store), *new, "--plan-only"]) == 0
    assert PPRStore.open(store).num_nodes == 30
    assert main(["update", str(store), *new, "--tolerance", "0.05"]) == 0
    assert "1 node added, 1 edge added" in capsys.readouterr().out
    assert PPRStore.open(store).history[0]["tolerance"] == 0.05
    assert main(["info", str(store)]) == 0
    assert "updates         1, 1 edges added, 0 removed" in capsys.readouterr().out
    assert main(["compact", str(store)]) == 0
    assert main(["verify", str(store)]) == 0
    assert main(["update", str(store), *new, "--tolerance", "-1"]) == 2
    assert "--tolerance E" in capsys.readouterr().err
    assert main(["update", str(tmp_path / "none"), *new]) == 2


def test_update_by_a_table_of_changes(tmp_path, capsys):
    folder, store, table = tmp_path / "data", tmp_path / "store", tmp_path / "changes.csv"
    folder.mkdir()
    source, target = np.arange(30), (np.arange(30) + 1) % 30
    names = [f"n{node}" for node in range(30)]
    np.savez(folder / "old.npz", edge_index=np.stack([source, target]), node_names=names)
    old = ["--dataset", "old", "--data-dir", str(folder)]
    assert main([*old, "--k", "4", "--out", str(store)]) == 0
    new = ["--changes", str(table), "--write-graph", str(folder / "new")]
    table.write_text("source,target,change\nn0,n1,add\nn0,n9,remove\nn0,n99,add\n")
    capsys.readouterr()
    assert main(["update", str(store), *old, *new]) == 2
    error = capsys.readouterr().err
    assert "3 faults in the tables" in error
    assert "(on the command line: --changes FILE)" in error
    table.write_text("source,target,change\nn0,n9,add\nn0,n1,remove\n")
    assert main(["update", str(store), *old, *new[:2]]) == 2
    assert "need each other: give both" in capsys.readouterr().err
    assert main(["update", str(store), *old, *new, "--plan-only"]) == 0
    assert not (folder / "new").exists()
    for _ in range(2):
        assert main(["update", str(store), *old, *new]) == 0
    assert "1 edge added, 1 edge removed" in capsys.readouterr().out
    fingerprint = load_graph("new", folder).structure_fingerprint()
    assert PPRStore.open(store).graph_fingerprint == fingerprint
    assert len(PPRStore.open(store).history) == 1
