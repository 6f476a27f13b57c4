"""Builds the workshop, and finds out what jobs compute from whole files."""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace

from hostile.commands import Command
from hostile.results import printed_result
from hostile.runner import Ending, Runner
from hostile.trial import Job, Trial
from hostile.workshop import TO_BUILD, write_arrays, write_inputs, write_leftovers

_BUILD_SECONDS = 900


def built_workshop(folder: Path, commands: dict[str, Command]) -> Path:
    """Return a folder with whole files of every kind; one that is there already is kept.

    Raises:
        RuntimeError: a command that should work does not.
    """
    draw_nothing()
    workshop = folder / "workshop"
    if (workshop / "complete").exists():
        return workshop
    shutil.rmtree(workshop, ignore_errors=True)
    workshop.mkdir(parents=True)
    write_inputs(workshop)
    steps = [_step(workshop, number, job) for number, job in enumerate(TO_BUILD)]
    steps.insert(1, _call(workshop, len(steps), write_arrays))
    steps.append(_call(workshop, len(steps), write_leftovers))
    for ending in Runner(workshop, commands, 1, _BUILD_SECONDS).run(steps):
        _check(ending)
    (workshop / "complete").touch()
    return workshop


def whole_results(runner: Runner, trials: Iterable[Trial]) -> dict[str, dict[str, str]]:
    """Return what the jobs of trials that are compared compute from whole files, by their names.

    Raises:
        RuntimeError: a job does not work.
    """
    jobs = {trial.job.name: trial.job for trial in trials if trial.is_compared}
    whole = [
        Trial(section="job", number=number, job=job, is_compared=True)
        for number, job in enumerate(jobs.values())
    ]
    results = {}
    for ending in runner.run(whole):
        _check(ending)
        job = ending.trial.job
        results[job.name] = ending.results | printed_result(job, ending.out)
    return results


def _check(ending: Ending) -> None:
    if ending.code != 0:
        words = " ".join(ending.trial.words)
        raise RuntimeError(f"{words} ended with {ending.code}: {ending.err}{ending.broken}")


def draw_nothing() -> None:
    """Let pages of this process hold empty drawings, since each takes part of a second."""
    from gpn_scale.page import chart

    chart._check_address_space = lambda: None  # trials limit it
    chart.vl_convert = SimpleNamespace(  # type: ignore[assignment]
        vegalite_to_svg=lambda _: '<svg class="x" viewBox="0 0 330 190"><g/></svg>',
        vegalite_to_vega=lambda text: {},
        vegalite_to_png=lambda text, scale: b"",
        javascript_bundle=lambda text: text,
    )


def _step(workshop: Path, number: int, job: Job) -> Trial:
    """Return a trial that runs a job in the workshop itself."""

    def run(_: Path) -> int:
        import os

        os.chdir(workshop)
        from hostile.commands import load_commands

        return load_commands()[job.command].main(list(job.arguments))

    return Trial(section="build", number=number, job=job, call=run)


def _call(workshop: Path, number: int, write: Callable[[Path], None]) -> Trial:
    def run(_: Path) -> int:
        write(workshop)
        return 0

    return Trial(section="build", number=number, job=TO_BUILD[0], call=run)
