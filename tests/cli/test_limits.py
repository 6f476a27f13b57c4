"""Commands under limits of the machine: files that cannot grow, folders of another kind."""

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpn_scale.cli.train import main
from gpn_scale.train.run_directory import RunDirectory

REPOSITORY = Path(__file__).parents[2]
SMALL = ["--dataset", "synthetic:nodes=300,classes=3,features=8", "--epochs", "2"]


@pytest.mark.parametrize("kib", [1, 30, 100])
def test_a_limit_of_file_sizes_is_one_sentence_and_resumes(tmp_path, kib):
    """A full disk fails in the same places; standard error is a pipe, which has no such limit."""
    command = [sys.executable, "launch/train.py", *SMALL, "--threads", "1", "--out"]

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (kib << 10, kib << 10))

    done = subprocess.run(
        [*command, str(tmp_path / "run")],
        cwd=REPOSITORY,
        preexec_fn=limit,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: ")
    assert "File too large" in last
    assert not list(tmp_path.rglob("*.tmp"))
    assert main([*SMALL, "--out", str(tmp_path / "run"), "--resume"]) == 0


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("finished") / "run"
    assert main([*SMALL, "--out", str(path)]) == 0
    return path


@pytest.mark.parametrize("name", ["plots", "tensorboard", "metrics", "report", "predictions"])
@pytest.mark.parametrize("kind", ["file", "folder", "pipe", "link", "loop"])
def test_other_things_where_a_run_writes_are_named(finished, tmp_path, capsys, name, kind):
    shutil.copytree(finished, tmp_path / "run")
    path = getattr(RunDirectory(tmp_path / "run"), name)
    path.rename(tmp_path / "before")
    make = {
        "file": path.touch,
        "folder": path.mkdir,
        "pipe": lambda: os.mkfifo(path),
        "link": lambda: path.symlink_to(tmp_path / "nowhere" / "else"),
        "loop": lambda: path.symlink_to(path),
    }
    make[kind]()
    capsys.readouterr()
    code = main([*SMALL, "--out", str(tmp_path / "run"), "--resume"])
    errors = capsys.readouterr().err
    assert code in (0, 2)
    assert "Traceback" not in errors
    assert "bug in gpn_scale" not in errors
    assert code == 0 or errors.splitlines()[-1].startswith("error: ")
