"""Damaged files of every kind that is read, and flipped bits in all of their parts."""

import random
from functools import partial
from pathlib import Path
from typing import NamedTuple

from hostile.commands import Command
from hostile.damage import GENERAL, Damage, change_json, flip
from hostile.formats import change_arrays, change_cell, change_column, forge_document, forge_model
from hostile.trial import Trial, generator
from hostile.workshop import FINDS_PROBLEMS, JOBS

_OWN_PROCESS = 0.01


class Kind(NamedTuple):
    """A file, the jobs that read it, and whether the library itself has written it."""

    pattern: str
    jobs: tuple[str, ...]
    is_own: bool = True
    """A damaged file of ours must not change results; what a user brings is what it is."""
    special: tuple[Damage, ...] = ()
    arguments: tuple[str, ...] = ()


_STORE = ("predict some", "verify", "info", "mend", "update")
_UPDATED = ("predict later", "verify updated", "info updated", "compact", "repair")
_JSON, _FORGED = (change_json,), (change_json, forge_document)
KINDS = (
    Kind("nodes.csv", ("import",), False, (change_cell,)),
    Kind("edges.csv", ("import",), False, (change_cell,)),
    Kind("nodes.parquet", ("import",), False, (change_column,), ("--nodes", "nodes.parquet")),
    Kind("edges.csv.gz", ("import",), False, (), ("--edges", "edges.csv.gz")),
    Kind("data/plain.npz", ("plan",), False, (change_arrays,), ("--dataset", "plain")),
    Kind("data/pairs.npz", ("plan",), False, (change_arrays,), ("--dataset", "pairs")),
    Kind("data/raw/*.csv", ("plan",), False, (change_cell,), ("--dataset", "raw")),
    Kind("data/bank/*.npy", ("predict", "plan", "triage")),
    Kind("data/bank/graph.json", ("predict", "build"), special=_FORGED),
    Kind("data/bank/raw_columns*", ("predict", "triage"), special=(change_column,)),
    Kind("data/bank/import.json", ("import",), special=_JSON, arguments=("--like", "data/bank")),
    Kind("new_*.csv", ("predict new",), False, (change_cell,)),
    Kind("nodes.txt", ("predict some",), False, (change_cell,)),
    Kind("roots.txt", ("build",), False, (change_cell,), ("--roots", "roots.txt")),
    Kind("some.json", ("train",), False, _JSON, ("--config", "some.json")),
    Kind("token.txt", ("serve",), False, (), ("--token-file", "token.txt")),
    Kind("run/model.safetensors", ("predict", "triage", "predict new"), special=(forge_model,)),
    Kind("rows_run/model.safetensors", ("predict some",), special=(forge_model,)),
    Kind("half/checkpoint*.safetensors", ("resume",), special=(forge_model,)),
    Kind("half/config.json", ("resume", "report half"), special=_JSON),
    Kind("half/metrics.jsonl", ("report half", "resume"), special=_JSON),
    Kind("half/inputs.json", ("resume",), special=_JSON),
    Kind("half/written.json", ("resume",), special=_JSON),
    Kind("run/config.json", ("report", "compare", "triage", "predict"), special=_JSON),
    Kind("run/report.json", ("report", "compare", "triage", "serve"), special=_FORGED * 3),
    Kind("run/metrics.jsonl", ("report", "compare"), special=_JSON),
    Kind("run/inputs.json", ("report", "predict"), special=_JSON),
    Kind("run/written.json", ("overwrite", "report"), special=_FORGED),
    Kind("run/promise.json", ("predict", "compare"), special=_FORGED),
    Kind("run/predictions.parquet", ("compare",), special=(change_column,)),
    Kind("run/decisions.jsonl", ("serve",), special=_JSON),
    Kind("before.parquet", ("compare tables",), special=(change_column,)),
    Kind("after.csv", ("compare tables",), False, (change_cell,)),
    Kind(
        "after.jsonl",
        ("compare tables",),
        False,
        _JSON,
        ("--compare", "before.parquet", "after.jsonl"),
    ),
    Kind("store/*.ppr", (*_STORE, "train rows")),
    Kind("store/clusters.npy", (*_STORE, "train rows")),
    Kind("store/cut.npy", _STORE),
    Kind("store/manifest.json", _STORE, special=_FORGED),
    Kind("store/build.json", ("mend", "verify"), special=_FORGED),
    Kind("store/build_seconds.json", ("info", "mend"), False, _JSON),
    Kind("store/graph_*.npy", ("update", "verify", "mend", "update by changes")),
    Kind("changes.csv", ("update by changes",), False, (change_cell,)),
    Kind("updated/**/*.ppr", _UPDATED),
    Kind("updated/**/*.npy", _UPDATED),
    Kind("updated/manifest.json", _UPDATED, special=_FORGED * 3),
    Kind("updated/generation-*/*.json", _UPDATED, special=_FORGED),
    Kind("updated/update.lock", ("compact", "repair"), special=()),
    Kind("parts/*.ppr", ("finish", "part")),
    Kind("parts/*.npy", ("finish", "part")),
    Kind("parts/build.json", ("finish", "part"), special=_FORGED),
    Kind("parts/part*.json", ("finish", "part"), special=_FORGED),
    Kind("matrix/cells/**/*.json", ("tables",), special=_JSON),
)
"""All kinds of files that are read."""

_FORGERIES = (forge_document, forge_model)
"""Forged files are not told from others; they must only not break anything."""
_OTHER_DATA = (change_column, forge_document, forge_model)


def file_trials(commands: dict[str, Command], rng_seed: int, count: int) -> list[Trial]:
    """Return trials with files that are damaged in any way but single flips."""
    del commands
    return [_trial("files", number, rng_seed) for number in range(count)]


def flip_trials(commands: dict[str, Command], rng_seed: int, count: int) -> list[Trial]:
    """Return trials with one flipped bit in a file that the library has written."""
    del commands
    return [_trial("flips", number, rng_seed) for number in range(count)]


def _trial(section: str, number: int, rng_seed: int) -> Trial:
    rng = generator(rng_seed, section, number)
    kinds = [kind for kind in KINDS if kind.is_own] if section == "flips" else KINDS
    kind = kinds[number % len(kinds)]
    job = JOBS[kind.jobs[number // len(kinds) % len(kind.jobs)]]
    damage: Damage = flip
    if section == "files":
        is_special = kind.special and rng.random() < 0.5
        damage = rng.choice(kind.special if is_special else GENERAL)
    is_compared = kind.is_own and damage not in _OTHER_DATA
    return Trial(
        section=section,
        number=number,
        job=job,
        arguments=kind.arguments,
        note=f"{damage.__name__} {kind.pattern}",
        prepare=partial(_damaged, kind.pattern, damage, rng),
        is_compared=is_compared and bool(job.outputs),
        own_process=rng.random() < _OWN_PROCESS and job.command != "serve",
        codes=(0, 1, 2) if job.command in FINDS_PROBLEMS else (0, 2),
        stop_at="http" if job.command == "serve" else "",
    )


def _damaged(pattern: str, damage: Damage, rng: random.Random, folder: Path) -> None:
    """Damage one of the files that a pattern names."""
    damage(rng.choice(sorted(folder.glob(pattern))), rng)
