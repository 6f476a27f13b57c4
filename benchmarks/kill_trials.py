"""Does a command that is killed, stopped or started twice end like one that is left alone?

    python benchmarks/kill_trials.py --work DIR [--kills 200] [--subjects predict,triage]

Every subject (`trial_subjects.py`: precompute, update, compact, parts, training, prediction,
evaluation, triage, report; in one process and on two ranks) first runs undisturbed. Then

- it is killed (SIGKILL to all its processes) at random times of the undisturbed duration, restarted
  with the same command, and left alone after at most four kills: its files must have the same
  bytes, and no temporary file may be left; a new trial begins in an empty folder, until all kills
  are spent. After a kill, readers of a store see the old one or the new one;
- one of its processes is stopped (SIGSTOP) at a random time and continued after some seconds: the
  bytes must be the same. A rank of a training that is not continued must be given up after
  --timeout-seconds, in one sentence;
- it is started twice in the same folder: the second is refused in one sentence or both end, and the
  bytes are the same. Two trainings and two builds that differ may leave one or the other, but no
  mixture.

Prints three tables; exits with 1 if anything was not so.
"""

import argparse
import json
import random
import shutil
import signal
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from trial_processes import Ended, ended, rank_process, run, send, start
from trial_subjects import SUBJECTS, Subject, prepared, temporary_files

_KILLS_PER_TRIAL = 4
_TIMEOUT_SECONDS = 20
"""--timeout-seconds of all trainings."""
_ABANDONED_SECONDS = 60
"""torchrun waits 30 s for a rank that it has asked to end, before it kills it."""


@dataclass(slots=True)
class Kills:
    """What killing one subject has led to."""

    subject: str
    seconds: float
    """Duration of the undisturbed run."""
    kills: int = 0
    trials: int = 0
    interrupted: int = 0
    """Trials in which at least one kill happened."""
    left_by_kills: int = 0
    """Temporary files that kills have left, before the next start."""
    mixed: int = 0
    """Kills after which a reader saw neither the old nor the new state."""
    left: int = 0
    """Temporary files that are left at the end of trials."""
    same: int = 0
    """Trials that ended with the bytes of the undisturbed run."""


class Trials:
    """All trials in one folder.

    Args:
        work: The folder; the undisturbed runs in it are used again.
        rng_seed: Seed of the random times.
    """

    def __init__(self, work: Path, rng_seed: int) -> None:
        self.work, self.rng_seed = work, rng_seed
        self.inputs = work / "inputs"
        self.folder = work / "folder"
        """Where every run writes to: some files name their folder."""
        self.seconds: dict[str, float] = {}
        self._expected: dict[str, dict[str, str]] = {}
        self._old_or_new: dict[str, set[str]] = {}

    def undisturbed(self, name: str) -> dict[str, str]:
        """Return the hashes of a subject's files, after running it for its time if needed."""
        if name in self._expected:
            return self._expected[name]
        subject = SUBJECTS[name]
        subject.make_inputs(self.inputs, lambda command: run(command, self._log("inputs")))
        digests, seen = [], set()
        for _ in range(2):  # the first call on a machine may compile kernels
            folder = prepared(subject, self.inputs, self.folder)
            seen.add(self._seen(subject, folder))
            result = run(subject.command(self.inputs, folder), self._log(name))
            digests.append(subject.digests(folder))
            seen.add(self._seen(subject, folder))
        if not digests[0] or digests[0] != digests[1]:
            raise SystemExit(f"two undisturbed runs of {name} differ, or have made nothing")
        self.seconds[name], self._expected[name] = result.seconds, digests[1]
        self._old_or_new[name] = seen
        return digests[1]

    @staticmethod
    def _seen(subject: Subject, folder: Path) -> str:
        return "" if subject.seen is None else subject.seen(folder)

    def kill(self, name: str, wanted: int) -> Kills:
        """Kill a subject so many times."""
        rng = random.Random(f"{self.rng_seed} {name}")
        subject, expected = SUBJECTS[name], self.undisturbed(name)
        result = Kills(name, round(self.seconds[name], 1))
        while result.kills < wanted:
            folder = prepared(subject, self.inputs, self.folder)
            command, before = subject.command(self.inputs, folder), result.kills
            for _ in range(min(_KILLS_PER_TRIAL, wanted - result.kills)):
                moment = rng.uniform(0, self.seconds[name])
                end = run(command, self._log(name), moment)
                if end.code is not None:
                    if result.kills == before:  # the machine is less busy than it was
                        self.seconds[name] = min(self.seconds[name], end.seconds)
                    break
                result.kills += 1
                result.left_by_kills += len(temporary_files(folder))
                result.mixed += self._seen(subject, folder) not in self._old_or_new[name]
            run(command, self._log(name))
            result.trials += 1
            result.interrupted += result.kills > before
            result.left += len(temporary_files(folder))
            self._count_same(result, subject.digests(folder) == expected, folder)
        return result

    def _count_same(self, result: Kills, same: bool, folder: Path) -> None:
        result.same += same
        if not same:
            shutil.copytree(folder, self.work / f"differs-{result.subject}-{result.trials}")

    def stop(self, name: str, seconds: float) -> dict[str, object]:
        """Stop one process of a subject, continue it after `seconds`, and compare."""
        rng = random.Random(f"{self.rng_seed} stop {name}")
        subject, expected = SUBJECTS[name], self.undisturbed(name)
        folder = prepared(subject, self.inputs, self.folder)
        process = start(subject.command(self.inputs, folder), self._log(name))
        victim = rank_process(process.pid, 1) if subject.ranks > 1 else process.pid
        time.sleep(rng.uniform(0.1, 0.6) * self.seconds[name])
        send([victim], signal.SIGSTOP)
        time.sleep(seconds)
        waited = process.poll() is None
        send([victim], signal.SIGCONT)
        end = ended(process, self._log(name))
        return {
            "subject": name,
            "stopped": f"{seconds:g} s",
            "outcome": "waited, then ended by itself" if waited else "had ended before",
            "good": end.code == 0 and subject.digests(folder) == expected,
        }

    def abandon(self, name: str) -> dict[str, object]:
        """Stop a rank of a training for good; the others must give it up in time."""
        subject, expected = SUBJECTS[name], self.undisturbed(name)
        folder = prepared(subject, self.inputs, self.folder)
        command = subject.command(self.inputs, folder)
        process = start(command, self._log(name))
        victim = rank_process(process.pid, 1)
        checkpoint = folder / "run" / "checkpoint.safetensors"
        while not checkpoint.exists() and process.poll() is None:
            time.sleep(0.01)
        send([victim], signal.SIGSTOP)
        end = ended(process, self._log(name))
        in_time = end.seconds < _TIMEOUT_SECONDS + _ABANDONED_SECONDS
        run(command, self._log(name))
        outcome = f"ended with {end.code} after {end.seconds:.0f} s: {end.sentence}"
        good = end.code not in (0, None) and bool(end.sentence) and in_time
        return {
            "subject": name,
            "stopped": "for good",
            "outcome": outcome if end.code else "had ended before",
            "good": good and subject.digests(folder) == expected,
        }

    def pair(self, name: str) -> dict[str, object]:
        """Start a subject twice in one folder, the second at a random time."""
        rng = random.Random(f"{self.rng_seed} pair {name}")
        subject, expected = SUBJECTS[name], self.undisturbed(name)
        folder = prepared(subject, self.inputs, self.folder)
        command = subject.command(self.inputs, folder)
        ends = self._both(command, command, rng.uniform(0, 0.5) * self.seconds[name])
        good = self._is_refused_or_done(ends, subject) and subject.digests(folder) == expected
        good = good and not temporary_files(folder)
        return {"subject": name, "second": "same", "outcome": _outcome(ends), "good": good}

    def different_pair(self, name: str, change: tuple[str, ...]) -> dict[str, object]:
        """Start two calls that differ in one folder; the result is that of one of them."""
        rng = random.Random(f"{self.rng_seed} different {name}")
        subject, results = SUBJECTS[name], [self.undisturbed(name)]
        folder = prepared(subject, self.inputs, self.folder)
        other = [*subject.command(self.inputs, folder), *change]
        other.remove("--resume")
        run(other, self._log(name))
        results.append(subject.digests(folder))
        folder = prepared(subject, self.inputs, self.folder)
        command = subject.command(self.inputs, folder)
        second = [*command, *change, "--overwrite"]
        second.remove("--resume")
        ends = self._both(command, second, rng.uniform(0.3, 0.8) * self.seconds[name])
        good = all(end.code in (0, 2) for end in ends) and subject.digests(folder) in results
        good = good and not temporary_files(folder)
        text = f"{' '.join(change)} --overwrite"
        return {"subject": name, "second": text, "outcome": _outcome(ends), "good": good}

    def _both(self, first: list[str], second: list[str], pause: float) -> list[Ended]:
        logs = [self.work / f"pair-{place}.txt" for place in (1, 2)]
        processes: list[subprocess.Popen[bytes]] = [start(first, logs[0])]
        time.sleep(pause)
        processes.append(start(second, logs[1]))
        return [ended(process, log) for process, log in zip(processes, logs, strict=True)]

    def _is_refused_or_done(self, ends: list[Ended], subject: Subject) -> bool:
        done = [end for end in ends if end.code == 0]
        codes = (1, 2) if subject.ranks > 1 else (2,)  # torchrun itself ends with 1
        refused = [end for end in ends if end.code in codes and end.sentence]
        return bool(done) and len(done) + len(refused) == 2

    def _log(self, name: str) -> Path:
        return self.work / f"{name.replace(' ', '_').replace(',', '')}.txt"


def _outcome(ends: list[Ended]) -> str:
    texts = [f"{end.code}" + (f" ({end.sentence})" if end.sentence else "") for end in ends]
    return f"exit codes {texts[0]} and {texts[1]}"


def print_table(rows: list[dict[str, object]]) -> None:
    """Print rows with the same keys as a Markdown table."""
    if rows:
        print(f"\n| {' | '.join(rows[0])} |\n|{'---|' * len(rows[0])}")
        for row in rows:
            print(f"| {' | '.join(str(value) for value in row.values())} |", flush=True)


def main() -> None:
    """Run all trials."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, help="emptied first")
    parser.add_argument("--kills", type=int, default=200, help="divided among the subjects")
    parser.add_argument("--subjects", default=";".join(SUBJECTS), help="names with semicolons")
    parser.add_argument("--rng-seed", type=int, default=1)
    options = parser.parse_args()
    shutil.rmtree(options.work, ignore_errors=True)
    options.work.mkdir(parents=True)
    names = options.subjects.split(";")
    trials = Trials(options.work.resolve(), options.rng_seed)
    kills, stops, pairs = [], [], []
    for place, name in enumerate(names):
        share = options.kills * (place + 1) // len(names) - options.kills * place // len(names)
        kills.append(asdict(trials.kill(name, share)))
        print(json.dumps(kills[-1]), flush=True)
        stops.append(trials.stop(name, 3.0))
        print(json.dumps(stops[-1]), flush=True)
        pairs.append(trials.pair(name))
        print(json.dumps(pairs[-1]), flush=True)
    if "train minibatch, 2 ranks" in names:
        stops.append(trials.abandon("train minibatch, 2 ranks"))
    if "train exact" in names:
        pairs.append(trials.different_pair("train exact", ("--seed", "2")))
    if "precompute" in names:
        pairs.append(trials.different_pair("precompute", ("--k", "8")))
    for rows in (kills, stops, pairs):
        print_table(rows)
    good = all(row["same"] == row["trials"] for row in kills)
    good = good and not any(row["left"] or row["mixed"] for row in kills)
    if not good or not all(row["good"] for row in (*stops, *pairs)):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
