"""What do commands do with hostile options, files, names and machines?

    python benchmarks/hostile_trials.py [--trials 5000] [--seed 1] [--processes 2]
        [--only SECTION[:NUMBER]] [--work FOLDER] [--write FILE]

Every trial is one call of a command in a folder of its own, with one thing wrong: a value of an
option, a damaged file, a flipped bit, a shard of another store, a hostile name, a full disk. Each
ends as promised (exit code 0 with the right results, or exit code 2 with one sentence) or as one of

- silent: exit code 0, but other results than those of whole files, and not a word;
- code runs: a crafted pickle was run;
- crash: a signal ended the process;
- hang: it was still running after `--seconds`;
- traceback: a traceback, or exit code 1;
- unclear: exit code 2 without one sentence.

Most trials are forks of this process, which has imported all commands; some are processes of their
own. Pages of the former hold no drawings, which take a second each. Prints a table of sections and
outcomes, and lists all trials that did not end as promised, with the call that repeats one; exits
with 1 if there are any. The same seed gives the same trials.
"""

import argparse
import os
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from hostile.build import built_workshop, whole_results
from hostile.commands import Command, load_commands
from hostile.file_trials import file_trials, flip_trials
from hostile.judge import OUTCOMES, PROMISED, Verdict, judged
from hostile.limit_trials import HEAD, limit_trials
from hostile.name_trials import name_trials
from hostile.option_trials import option_trials
from hostile.runner import Ending, Runner
from hostile.shard_trials import shard_trials
from hostile.trial import Trial
from hostile.workshop import SLOW_JOBS

Draw = Callable[[dict[str, Command], int, int], list[Trial]]
SECTIONS: dict[str, tuple[Draw, float]] = {
    "options": (option_trials, 0.47),
    "files": (file_trials, 0.22),
    "flips": (flip_trials, 0.22),
    "shards": (shard_trials, 0.03),
    "names": (name_trials, 0.01),
    "limits": (limit_trials, 0.05),
}
"""Function that draws the trials of each section, and its part of all trials."""


class Finding(NamedTuple):
    """A trial that did not end as promised."""

    ending: Ending
    verdict: Verdict


def drawn_trials(commands: dict[str, Command], rng_seed: int, count: int, only: str) -> list[Trial]:
    """Return the trials of all sections, of one, or a single one."""
    section, _, number = only.partition(":")
    if only and section not in SECTIONS:
        raise SystemExit(f"--only is {only!r}, expected one of {', '.join(SECTIONS)}")
    chosen = {section: SECTIONS[section]} if only else SECTIONS
    trials = []
    for draw, share in chosen.values():
        wanted = count if only else max(round(share * count), 1)
        wanted = int(number) + 1 if number else wanted
        drawn = draw(commands, rng_seed, wanted)
        trials += drawn[-1:] if number else drawn
    return trials


def is_quick(trial: Trial) -> bool:
    """Return whether a trial takes a small part of a second."""
    is_slow = trial.job.name in SLOW_JOBS and trial.call is None
    is_slow = is_slow or trial.job.command == "serve"
    return not (is_slow or trial.own_process or trial.section == "names" or trial.note == HEAD)


def main() -> None:
    """Run all trials and print what happened."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=30.0, help="longest time of a trial")
    parser.add_argument("--only", default="", help="a section, or a trial as it is listed")
    parser.add_argument("--quick", action="store_true", help="leave out what takes long")
    parser.add_argument("--work", type=Path, help="where the workshop is kept (default: removed)")
    parser.add_argument("--write", type=Path, help="file for the table and the list")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        text, is_good = run_trials(options, Path(folder) if options.work is None else options.work)
    print(text)
    if options.write is not None:
        options.write.write_text(text + "\n", encoding="utf-8")
    if not is_good:
        raise SystemExit(1)


def run_trials(options: argparse.Namespace, folder: Path) -> tuple[str, bool]:
    """Run trials in a folder; return the report, and whether all ended as promised."""
    began = time.monotonic()
    commands = load_commands()
    workshop = built_workshop(folder, commands)
    trials = drawn_trials(commands, options.seed, options.trials, options.only)
    if options.quick:
        trials = [trial for trial in trials if is_quick(trial)]
    runner = Runner(workshop, commands, options.processes, options.seconds)
    whole = whole_results(runner, trials)
    counts: Counter[tuple[str, str]] = Counter()
    findings = []
    for place, ending in enumerate(runner.run(trials)):
        verdict = judged(ending, whole.get(ending.trial.job.name, {}))
        counts[ending.trial.section, verdict.outcome] += 1
        if verdict.outcome != PROMISED:
            findings.append(Finding(ending, verdict))
        if sys.stderr.isatty() and place % 50 == 0:
            print(f"\r{place}/{len(trials)}, {len(findings)} findings", end="", file=sys.stderr)
        if ":" in options.only:
            print(ending.out, ending.err, sep="\n")
    seconds = time.monotonic() - began
    text = "\n".join(
        [
            f"{len(trials):,} trials, seed {options.seed}: {seconds:.0f} s with "
            f"{options.processes} processes, {_cpu_seconds():.0f} s of processor time",
            "",
            *table_of(counts),
            "",
            *(line for each in findings for line in listed(each, options.seed)),
        ]
    )
    return text.rstrip(), not findings


def _cpu_seconds() -> float:
    """Return the processor time of this process and of all that have ended."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, kinds))


def table_of(counts: Counter[tuple[str, str]]) -> list[str]:
    """Return the lines of a Markdown table: sections in rows, outcomes in columns."""
    sections = [section for section in SECTIONS if any(key[0] == section for key in counts)]
    rows: list[Sequence[object]] = [["section", "trials", *OUTCOMES]]
    rows.append(["---", *["---:"] * (len(OUTCOMES) + 1)])
    for section in sections:
        numbers = [counts[section, outcome] for outcome in OUTCOMES]
        rows.append([section, sum(numbers), *numbers])
    totals = [sum(counts[section, outcome] for section in sections) for outcome in OUTCOMES]
    rows.append(["all", sum(totals), *totals])
    return ["| " + " | ".join(map(str, row)) + " |" for row in rows]


def listed(finding: Finding, rng_seed: int) -> list[str]:
    """Return the lines that describe a trial and repeat it."""
    trial = finding.ending.trial
    words = [word if len(word) <= 60 else f"{word[:20]}...({len(word)})" for word in trial.words]
    call = " ".join([trial.job.command, *map(ascii, words)])
    return [
        f"- {finding.verdict.outcome}: {finding.verdict.reason!a}",
        f"  {call}{f'; {trial.note}' if trial.note else ''}",
        f"  python benchmarks/hostile_trials.py --seed {rng_seed} --only {trial.name}",
    ]


if __name__ == "__main__":
    main()
