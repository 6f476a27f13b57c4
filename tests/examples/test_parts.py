"""The recipes of docs/parts.md: a job array, xargs, Ray, Dask and a Kubernetes job."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from precompute.arguments import part_of, ppr_parser
from precompute.cli import main
from tests.examples import EXAMPLES
from tests.precompute.command import content

PAGE = EXAMPLES.parent / "docs" / "parts.md"
GRAPH = "synthetic:nodes=600,classes=3,features=2"
BINARIES = Path(sys.executable).parent


def run(command, **variables):
    """Run a command of the repository, with its Python first on the path."""
    environment = os.environ | {"PATH": f"{BINARIES}:{os.environ['PATH']}"} | variables
    environment["PYTHONPATH"] = str(EXAMPLES.parent)
    subprocess.run(
        command, cwd=EXAMPLES.parent, env=environment, check=True, stderr=subprocess.DEVNULL
    )


def single_build(out, *more):
    assert main(["--dataset", GRAPH, "--method", "push", "--out", str(out), *more]) == 0
    return content(out)


def test_a_job_array_and_xargs_give_the_bytes_of_a_single_build(tmp_path):
    script = EXAMPLES / "parts_slurm.sh"
    run(["bash", "-n", script])
    out = tmp_path / "rows"
    options = {"DATASET": GRAPH, "DATA": str(tmp_path), "ROWS": str(out), "PARTS": "2"}
    run(["bash", script], SLURM_ARRAY_TASK_ID="2", **options)
    assert len(list(out.glob("shard-*"))) == 2
    (line,) = re.findall(r"^seq 16 .*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    line = line.replace("seq 16", "seq 2").replace("{}/16", "{}/2").replace("--out rows", "")
    run(["bash", "-c", f"{line} --dataset {GRAPH} --out {shlex.quote(str(out))}"])
    assert main(["finish", str(out)]) == 0
    assert content(out) == single_build(tmp_path / "single")


@pytest.mark.skipif(shutil.which("parallel") is None, reason="GNU parallel is not installed")
def test_gnu_parallel_gives_the_bytes_of_a_single_build(tmp_path):
    out = tmp_path / "rows"
    (line,) = re.findall(r"^parallel .*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    line = line.replace("seq 16", "seq 2").replace("{}/16", "{}/2").replace("--out rows", "")
    own = f"--dataset {GRAPH} --out {shlex.quote(str(out))}"
    run(["bash", "-c", line.replace(":::", f"{own} :::")])
    assert main(["finish", str(out)]) == 0
    assert content(out) == single_build(tmp_path / "single")


def test_the_job_array_has_as_many_tasks_as_parts():
    text = (EXAMPLES / "parts_slurm.sh").read_text(encoding="utf-8")
    assert re.search(r"--array=1-(\d+)$", text, re.MULTILINE)[1] == "16"
    assert "${PARTS:-16}" in text


def test_the_pods_of_the_job_compute_all_parts(tmp_path):
    yaml = pytest.importorskip("yaml")
    job = yaml.safe_load((EXAMPLES / "parts_job.yaml").read_text(encoding="utf-8"))
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    assert job["spec"]["completionMode"] == "Indexed"
    container = job["spec"]["template"]["spec"]["containers"][0]
    (tmp_path / "python").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "python").chmod(0o755)
    parts = []
    for index in (0, job["spec"]["completions"] - 1):
        done = subprocess.run(
            [*container["command"], *container["args"]],
            env={"PATH": f"{tmp_path}:/usr/bin:/bin", "JOB_COMPLETION_INDEX": str(index)},
            capture_output=True,
            text=True,
            check=True,
        )
        module, *options = done.stdout.split()[1:]
        assert module == "precompute"
        parts.append(part_of(ppr_parser().parse_args(options)))
    count = job["spec"]["completions"]
    assert parts == [(1, count), (count, count)]


@pytest.mark.parametrize("library", ["ray", "distributed"])
def test_tasks_of_ray_and_dask_give_the_bytes_of_a_single_build(tmp_path, library):
    pytest.importorskip(library)
    script = EXAMPLES / f"parts_with_{library.replace('distributed', 'dask')}.py"
    options = ["--dataset", GRAPH, "--k", "8", "--out", str(tmp_path / "rows")]
    run([sys.executable, script, "--parts", "2", *options], RAY_AUTH_MODE="disabled")
    assert content(tmp_path / "rows") == single_build(tmp_path / "single", "--k", "8")
