"""Options x values for every command; the options are read from the parsers themselves."""

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

from hostile.commands import Command
from hostile.trial import Trial, generator, shuffled
from hostile.values import DATASETS, DEVICES, NUMBERS, PATHS, SIZES, TEXTS
from hostile.workshop import FINDS_PROBLEMS, JOBS

_JOBS_OF_COMMAND = {
    "precompute": ("build", "plan"),
    "update": ("update", "update by changes"),
    "compact": ("compact",),
    "repair": ("repair",),
    "finish": ("finish",),
    "info": ("info",),
    "verify": ("verify",),
    "import": ("import",),
    "train": ("train", "train rows", "resume"),
    "predict": ("predict", "predict some", "predict new"),
    "evaluate": ("evaluate", "tables"),
    "report": ("report", "compare", "compare tables"),
    "triage": ("triage",),
    "serve": ("serve",),
}
_BY_NAME = {
    "--dataset": DATASETS,
    "--datasets": DATASETS,
    "--graphs": DATASETS,
    "--device": DEVICES,
    "--max-body": SIZES,
    "--roots": PATHS,
    "--like": PATHS,
    "--steps": NUMBERS,
    "--fractions": NUMBERS,
    "--class-sets": NUMBERS,
    "--left-out-classes": NUMBERS,
}
STORE_COMMANDS = ("info", "verify", "compact", "repair", "finish")
_SKIPPED = ("--help", "--plugin")
"""A plug-in is trusted code, so that a hostile one proves nothing."""
_OWN_PROCESS = 0.015
_TWO_OPTIONS = 0.15


def option_trials(commands: dict[str, Command], rng_seed: int, count: int) -> list[Trial]:
    """Return trials of single options, and some of two at a time."""
    pairs = shuffled(_pairs(commands), rng_seed, "options")
    trials = []
    for number in range(count):
        rng = generator(rng_seed, "options", number)
        job, words = pairs[number % len(pairs)]
        if rng.random() < _TWO_OPTIONS:
            others = [other for name, other in pairs[:500] if name == job]
            words = (*words, *rng.choice(others)) if others else words
        if rng.random() < 0.1:
            words = (*words, "--log-format", "json")
        trials.append(_trial(number, job, words, rng))
    return trials


def _trial(number: int, job: str, words: tuple[str, ...], rng: random.Random) -> Trial:
    base = JOBS[job]
    replaces = base.command in STORE_COMMANDS  # whose only argument has no flag
    if replaces:
        base = type(base)(
            name=base.name, command=base.command, arguments=(), uses=base.uses, outputs=()
        )
    has_zero = any("\0" in word for word in words)  # no process can be started with it
    return Trial(
        section="options",
        number=number,
        job=base,
        arguments=words,
        codes=(0, 1, 2) if base.command in FINDS_PROBLEMS else (0, 2),
        own_process=rng.random() < _OWN_PROCESS and base.command != "serve" and not has_zero,
        check=_written_where_asked,
        stop_at="http" if base.command == "serve" else "",
    )


def _written_where_asked(folder: Path) -> str:
    """Return whether inputs of the trial have changed, which no option may lead to."""
    left = [name for name in ("noise", "empty", "deep.json") if not (folder / name).exists()]
    if left:
        return f"{left[0]} was removed"
    return "" if (folder / "noise").stat().st_size == 3000 else "noise was changed"


def _pairs(commands: dict[str, Command]) -> list[tuple[str, tuple[str, ...]]]:
    """Return each job with the words of one hostile option."""
    pairs = []
    for name, jobs in _JOBS_OF_COMMAND.items():
        for action in commands[name].parser()._actions:
            for words in _words_of(action):
                pairs += [(job, words) for job in jobs]
    fields = [(job, words) for words in _field_words() for job in ("train", "train rows")]
    fields += [("evaluate", words) for words in _field_words()[::7]]
    return pairs + fields


def _words_of(action: argparse.Action) -> list[tuple[str, ...]]:
    flag = max(action.option_strings, key=len, default="")
    if flag in _SKIPPED:
        return []
    if action.nargs == 0:
        return [(flag,)]
    values: Sequence[str] = TEXTS
    if flag in _BY_NAME:
        values = _BY_NAME[flag]
    elif action.type in (int, float):
        values = NUMBERS
    elif action.type is Path or not flag:
        values = PATHS
    if not flag:
        return [(value,) for value in values]
    if action.nargs == 2:
        return [(flag, value, value) for value in values]
    return [
        (flag, value) if not value.startswith("-") else (f"{flag}={value}",) for value in values
    ]


def _field_words() -> list[tuple[str, ...]]:
    """Return `--set` with every field of the configuration and every number."""
    from gpn_scale.config import field_types_by_key

    texts = ("", "nonsense", "\udcff", "two\nlines", "=", "auto", "all")
    return [
        ("--set", f"{key}={value}") for key in field_types_by_key() for value in (*NUMBERS, *texts)
    ] + [("--set", text) for text in TEXTS]
