"""Trials of a scenario: one call of the disk fails, or power is lost after one.

After each, the disk must hold the old state or a new one, and the next call must end with the bytes
of a run that nothing disturbed.
"""

import re
from collections.abc import Collection
from pathlib import Path

from gpn_scale.files import TEMPORARY
from tests.faults.failing_disk import ERRORS, FailingDisk
from tests.faults.recording_disk import RecordingDisk, Tree, read_tree
from tests.faults.scenarios import Bench, difference

_ERROR_LINE = re.compile(r"^error: ", re.MULTILINE)


class Trials:
    """All trials of a scenario, in one folder.

    Args:
        bench: The scenario and its folder.
    """

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self._record = RecordingDisk(bench.folder)
        self._succeed(bench.run(self._record), "without a failure")
        self.after = read_tree(bench.folder)
        self.calls = self._counted_calls()
        """Names of the calls of a whole run."""
        self.crashes = self._record.crashes
        self._continued: set[int] = set()

    def fail(self, number: int, kind: str) -> str:
        """Let one call fail, then continue; return what happened."""
        self.bench.restore()
        system = FailingDisk(number, kind)
        code, errors = self.bench.run(system)
        where = f"call {number} ({self.calls[number - 1]}) with {kind}"
        assert system.has_failed, f"{where}: not reached"
        left = read_tree(self.bench.folder)
        self._check_versions(left, where)
        assert not temporaries(left), f"{where}: {temporaries(left)} is left"
        if code == 0:
            assert self.bench.scenario.may_succeed, f"{where}: no word about it"
            others = [name for name in difference(left, self.after) if name in self.after]
            assert not others, f"{where}: {others} differ"
            self._continue(left, where)
            return "done without it"
        assert code == 2, f"{where}: exit code {code}, {errors}"
        assert len(_ERROR_LINE.findall(errors)) == 1, f"{where}: {errors}"
        assert "Traceback" not in errors, f"{where}: {errors}"
        assert errors.rstrip().splitlines()[-1].startswith("error: "), f"{where}: {errors}"
        self._continue(left, where)
        return "refused"

    def lose_power(self, index: int) -> str:
        """Put one of the states after a loss of power on the disk, then continue."""
        where, left = self.crashes[index]
        self._check_versions(left, where, grown=self._record.grown)
        self._continue(left, where)
        return "continued"

    def _counted_calls(self) -> list[str]:
        self.bench.restore()
        system = FailingDisk()
        self._succeed(self.bench.run(system), "counting calls")
        return system.calls

    @property
    def failures(self) -> list[tuple[int, str]]:
        """Every call with every way in which it can fail."""
        return [
            (number, kind)
            for number, name in enumerate(self.calls, start=1)
            for kind in ERRORS
            if kind != "torn" or name == "write"
        ]

    def _continue(self, left: Tree, where: str) -> None:
        """Make the next call on a state, unless that was done before."""
        identity = hash(tuple(sorted(left.items())))
        if identity in self._continued:
            return
        self._continued.add(identity)
        self.bench.restore(left)
        self._succeed(self.bench.repeat(), f"next call, {where}")
        after = read_tree(self.bench.folder)
        assert not difference(after, self.after), f"{where}: {difference(after, self.after)} differ"
        assert not temporaries(after), f"{where}: {temporaries(after)} is left"

    def _check_versions(self, left: Tree, where: str, grown: Collection[str] = ()) -> None:
        """Check that every file has a content that it had at some time in a whole run."""
        versions = self._record.versions
        for name in {*versions, *left} - set(temporaries(left)) - set(grown):
            is_known = left.get(name) in versions.get(name, ())
            assert is_known, f"{where}: {name} is neither old nor new"

    @staticmethod
    def _succeed(outcome: tuple[int, str], where: str) -> None:
        code, errors = outcome
        assert code == 0, f"{where}: exit code {code}, {errors}"


def temporaries(tree: Tree) -> list[str]:
    """Return the names of temporary files."""
    return [name for name in tree if TEMPORARY.fullmatch(Path(name).name)]
