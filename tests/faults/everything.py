"""Tries everything, and prints a table: python -m tests.faults.everything [part of a name ...].

A trial that does not end as it must is printed, and the exit code is 1.
"""

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.faults.scenarios import SCENARIOS, Bench, Scenario
from tests.faults.trials import Trials

HEAD = ("command", "calls", "failures tried", "refused in one sentence", "losses of power", "wrong")


def row_of(scenario: Scenario) -> tuple[str | int, ...]:
    """Return the line of a scenario."""
    with TemporaryDirectory() as folder:
        trials = Trials(Bench(scenario, Path(folder)))
        outcomes: Counter[str] = Counter()
        tried: list[tuple] = [(trials.fail, each) for each in trials.failures]
        tried += [(trials.lose_power, (index,)) for index in range(len(trials.crashes))]
        for trial, arguments in tried:
            try:
                outcomes[trial(*arguments)] += 1
            except AssertionError as error:
                outcomes["wrong"] += 1
                sys.stderr.write(f"{scenario.name}: {error}\n")
        counts = (len(trials.calls), len(trials.failures), outcomes["refused"])
        return scenario.name, *counts, len(trials.crashes), outcomes["wrong"]


def main() -> int:
    """Print the table, and return the exit code."""
    parts = sys.argv[1:] or [""]
    chosen = [each for each in SCENARIOS if any(part in each.name for part in parts)]
    rows = []
    write_line(HEAD)
    write_line(["---"] * len(HEAD))
    for scenario in chosen:
        rows.append(row_of(scenario))
        write_line(rows[-1])
    sums = [sum(column) for column in list(zip(*rows, strict=True))[1:]]
    write_line(["all", *sums])
    return 1 if sums[-1] else 0


def write_line(cells: Iterable[object]) -> None:
    """Write a line of the table."""
    sys.stdout.write(f"| {' | '.join(map(str, cells))} |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
