"""The commands that `kill_trials.py` kills, stops and starts twice, and the files they make."""

import hashlib
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trial_processes import python

from gpn_scale.ppr.manifest import SECONDS

ROOT = Path(__file__).resolve().parent.parent
GRAPH = "synthetic:nodes=600,classes=3,unseen_classes=0,features=8"
MATRIX_GRAPH = "synthetic:nodes=200,classes=4,unseen_classes=0,features=8"
_CHANGING = ("seconds", "peak_rss_bytes", "ranks", "minibatch")
"""Entries of `report.json` that tell about time and memory."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A command that can be killed at any time and repeated."""

    command: Callable[[Path, Path], list[str]]
    """Return the command, given the folder of finished inputs and the folder to write to."""
    digests: Callable[[Path], dict[str, str]]
    """Return hashes of what it has made in the folder."""
    needs: str = ""
    """Folder of inputs that is copied to the folder to write to; "" for none."""
    ranks: int = 1
    """Number of its ranks."""


def prepared(subject: Subject, inputs: Path, folder: Path) -> Path:
    """Make the folder to write to, and return it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if subject.needs:
        shutil.copytree(inputs / subject.needs, folder / subject.needs)
    return folder


def temporary_files(folder: Path) -> list[str]:
    """Return the names of temporary files that are left in a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob(".*.tmp"))


def _hashes(folder: Path, *patterns: str) -> dict[str, str]:
    files = sorted(path for pattern in patterns for path in folder.glob(pattern) if path.is_file())
    return {
        str(path.relative_to(folder)): hashlib.blake2b(path.read_bytes()).hexdigest()
        for path in files
    }


def store_digests(folder: Path) -> dict[str, str]:
    """Return the hashes of all files of a store but the time that it took."""
    hashes = _hashes(folder, "store/*")
    return {name: value for name, value in hashes.items() if Path(name).name != SECONDS}


def run_digests(folder: Path) -> dict[str, str]:
    """Return the hashes of a run's results, of its report without times and memory."""
    hashes = _hashes(folder, "run/model.safetensors", "run/predictions.parquet", "run/config.json")
    report = json.loads((folder / "run" / "report.json").read_text(encoding="utf-8"))
    kept = {key: value for key, value in report.items() if key not in _CHANGING}
    text = json.dumps(kept, sort_keys=True).encode()
    return hashes | {"run/report.json": hashlib.blake2b(text).hexdigest()}


def _precompute(_: Path, folder: Path) -> list[str]:
    options = ["--dataset", GRAPH, "--k", "16", "--clusters", "8", "--threads", "1", "--resume"]
    return python("-m", "precompute", *options, "--out", str(folder / "store"))


def _precompute_ranks(inputs: Path, folder: Path) -> list[str]:
    launcher = Path(sys.executable).parent / "mpiexec"
    return [str(launcher), "-n", "2", *_precompute(inputs, folder)]


def _train(mode: str, inputs: Path, folder: Path) -> list[str]:
    options = ["--dataset", GRAPH, "--mode", mode, "--threads", "1", "--resume", "--model", "GPN"]
    options += ["--checkpoint-seconds", "0.1", "--timeout-seconds", "20"]
    options += ["--set", "train.patience=1000", "--set", "minibatch.batch_size=8"]
    options += ["--epochs", "20" if mode == "exact" else "6", "--out", str(folder / "run")]
    options += ["--ppr", str(inputs / "store")] if mode == "minibatch" else []
    return [str(ROOT / "launch" / "train.py"), *options]


def _train_exact(inputs: Path, folder: Path) -> list[str]:
    return python(*_train("exact", inputs, folder))


def _train_minibatch(inputs: Path, folder: Path) -> list[str]:
    return python(*_train("minibatch", inputs, folder))


def _train_ranks(inputs: Path, folder: Path) -> list[str]:
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    return python(*launcher, *_train("minibatch", inputs, folder))


def _predict(inputs: Path, folder: Path) -> list[str]:
    options = ["--run", str(inputs / "run"), "--out", str(folder / "all.parquet")]
    return python(str(ROOT / "launch" / "predict.py"), *options, "--threads", "1", "--overwrite")


def _triage(inputs: Path, folder: Path) -> list[str]:
    options = ["--run", str(inputs / "run"), "--review", "50", "--label-next", "20"]
    options += ["--out", str(folder / "lists"), "--threads", "1", "--overwrite"]
    return python(str(ROOT / "launch" / "triage.py"), *options)


def _report(_: Path, folder: Path) -> list[str]:
    options = ["--run", str(folder / "run"), "--threads", "1"]
    return python(str(ROOT / "launch" / "report.py"), *options)


def _evaluate(_: Path, folder: Path) -> list[str]:
    options = ["--experiment", "clean,left-out-classes", "--datasets", MATRIX_GRAPH]
    options += ["--models", "GPN,GPN-minibatch", "--splits", "2", "--inits", "1"]
    options += ["--left-out-classes", "1", "--set", "train.epochs=3", "--processes", "1"]
    options += ["--data-dir", str(folder / "data"), "--out", str(folder / "matrix")]
    return python(str(ROOT / "launch" / "evaluate.py"), *options)


SUBJECTS = {
    "precompute": Subject(_precompute, store_digests),
    "precompute, 2 MPI ranks": Subject(_precompute_ranks, store_digests, ranks=2),
    "train exact": Subject(_train_exact, run_digests),
    "train minibatch": Subject(_train_minibatch, run_digests),
    "train minibatch, 2 ranks": Subject(_train_ranks, run_digests, ranks=2),
    "predict": Subject(_predict, lambda folder: _hashes(folder, "all.parquet")),
    "evaluate": Subject(
        _evaluate,
        lambda folder: _hashes(
            folder / "matrix", "report.html", "tables/*", "plots/*", "cells/**/split*.json"
        ),
    ),
    "triage": Subject(_triage, lambda folder: _hashes(folder, "lists/*")),
    "report": Subject(
        _report,
        lambda folder: _hashes(folder, "run/report.html", "run/plots/*"),
        needs="run",
    ),
}
"""All subjects by name; those in front make the inputs of the others."""
