"""The commands that `kill_trials.py` kills, stops and starts twice, and the files they make."""

import hashlib
import json
import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from trial_processes import python

from gpn_scale.data.building import build_graph
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.npz import write_npz
from gpn_scale.ppr.manifest import SECONDS
from gpn_scale.ppr.store import PPRStore

ROOT = Path(__file__).resolve().parent.parent
GRAPH = "synthetic:nodes=600,classes=3,unseen_classes=0,features=8"
STORED_GRAPH = "synthetic:nodes=6000,classes=3,unseen_classes=0,features=2"
MATRIX_GRAPH = "synthetic:nodes=200,classes=4,unseen_classes=0,features=8"
_CHANGING = ("seconds", "peak_rss_bytes", "ranks", "minibatch", "files", "checksum")
"""Entries of `report.json` that tell about time and memory, or have hashes of what tells it."""


Run = Callable[[list[str]], object]


@dataclass(frozen=True, slots=True)
class Subject:
    """A command that can be killed at any time and repeated."""

    command: Callable[[Path, Path], list[str]]
    """Return the command, given the folder of finished inputs and the folder to write to."""
    digests: Callable[[Path], dict[str, str]]
    """Return hashes of what it has made in the folder."""
    make_inputs: Callable[[Path, Run], None] = lambda inputs, run: None
    """Make the inputs that are missing in their folder; commands are run by the second argument."""
    copied: tuple[str, str] | None = None
    """A folder of inputs, and what it is called in the folder to write to; None for none."""
    ranks: int = 1
    """Number of its ranks."""
    seen: Callable[[Path], str] | None = None
    """Return a hash of what a reader sees in the folder at any time, the end of a kill included."""


def prepared(subject: Subject, inputs: Path, folder: Path) -> Path:
    """Make the folder to write to, and return it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if subject.copied is not None:
        name, copy = subject.copied
        shutil.copytree(inputs / name, folder / copy)
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
    hashes = _hashes(folder, "store/**/*")
    return {name: value for name, value in hashes.items() if Path(name).name != SECONDS}


def store_seen(folder: Path) -> str:
    """Return a hash of all rows of a store with their bounds; "" if it is not finished."""
    if not (folder / "store" / "manifest.json").exists():
        return ""
    store = PPRStore.open(folder / "store")
    rows = store.rows(store.roots)
    arrays = (store.roots, rows.row_ptr, rows.ids, rows.weights, rows.missing_mass, rows.cut_mass)
    digest = hashlib.blake2b(store.graph_fingerprint.encode())
    for array in (*arrays, store.moved(store.roots)):
        digest.update(array.tobytes())
    return digest.hexdigest()


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


def _stored(*options: str) -> list[str]:
    settings = ["--dataset", STORED_GRAPH, "--k", "16", "--clusters", "8", "--threads", "1"]
    return python("-m", "precompute", *settings, *options)


def _update(inputs: Path, folder: Path, store: str = "store") -> list[str]:
    later = ["--dataset", "later", "--data-dir", str(inputs), "--threads", "1"]
    return python("-m", "precompute", "update", str(folder / store), *later)


def _compact(_: Path, folder: Path) -> list[str]:
    return python("-m", "precompute", "compact", str(folder / "store"))


def _parts(_: Path, folder: Path) -> list[str]:
    """Return a command that computes two parts at the same time, and finishes the store."""
    store = str(folder / "store")
    first, second = (shlex.join(_stored("--part", f"{part}/2", "--out", store)) for part in (1, 2))
    finish = shlex.join(python("-m", "precompute", "finish", store))
    return ["sh", "-c", f"{first} & one=$!; {second} && wait $one && {finish}"]


def _make_store(inputs: Path, run: Run) -> None:
    if not (inputs / "store" / "manifest.json").exists():
        run(_precompute(inputs, inputs))


def _make_run(inputs: Path, run: Run) -> None:
    if not (inputs / "run" / "report.json").exists():
        run(_train_exact(inputs, inputs))


def _make_updated_store(inputs: Path, run: Run) -> None:
    """Make a store, a later graph, and a store that follows it."""
    if not (inputs / "updated").exists():
        inputs.mkdir(parents=True, exist_ok=True)
        _write_later_graph(inputs)
        run(_stored("--out", str(inputs / "built")))
        shutil.copytree(inputs / "built", inputs / "updated")
        run(_update(inputs, inputs, "updated"))


def _write_later_graph(inputs: Path) -> None:
    """Write a graph that has lost some edges of `STORED_GRAPH` and gained others."""
    graph = load_graph(STORED_GRAPH)
    source = np.repeat(np.arange(graph.num_nodes), np.diff(graph.indptr))
    kept = (source < graph.indices) & (source % 500 != 0)
    new = np.arange(0, graph.num_nodes - 1, 400)
    ends = np.concatenate([source[kept], new]), np.concatenate([graph.indices[kept], new + 1])
    write_npz(build_graph(*ends, num_nodes=graph.num_nodes), inputs / "later.npz")


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
    "update": Subject(
        _update, store_digests, _make_updated_store, ("built", "store"), seen=store_seen
    ),
    "compact": Subject(
        _compact, store_digests, _make_updated_store, ("updated", "store"), seen=store_seen
    ),
    "two parts, finish": Subject(_parts, store_digests, seen=store_seen),
    "train exact": Subject(_train_exact, run_digests),
    "train minibatch": Subject(_train_minibatch, run_digests, _make_store),
    "train minibatch, 2 ranks": Subject(_train_ranks, run_digests, _make_store, ranks=2),
    "predict": Subject(_predict, lambda folder: _hashes(folder, "all.parquet"), _make_run),
    "evaluate": Subject(
        _evaluate,
        lambda folder: _hashes(
            folder / "matrix", "report.html", "tables/*", "plots/*", "cells/**/split*.json"
        ),
    ),
    "triage": Subject(_triage, lambda folder: _hashes(folder, "lists/*"), _make_run),
    "report": Subject(
        _report,
        lambda folder: _hashes(folder, "run/report.html", "run/plots/*"),
        _make_run,
        ("run", "run"),
    ),
}
"""All subjects by name."""
