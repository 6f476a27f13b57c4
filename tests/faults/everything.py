"""Tries everything, and prints a table: python -m tests.faults.everything [part of a name].

A trial that does not end as it must is printed, and the exit code is 1.
"""

import sys
from collections import Counter
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
    chosen = [each for each in SCENARIOS if not sys.argv[1:] or sys.argv[1] in each.name]
    rows = []
    for line in (HEAD, ["---"] * len(HEAD)):
        print(f"| {' | '.join(line)} |", flush=True)
    for scenario in chosen:
        rows.append(row_of(scenario))
        print(f"| {' | '.join(map(str, rows[-1]))} |", flush=True)
    sums = [sum(column) for column in list(zip(*rows, strict=True))[1:]]
    print(f"| all | {' | '.join(map(str, sums))} |")
    return 1 if sums[-1] else 0


if __name__ == "__main__":
    sys.exit(main())
