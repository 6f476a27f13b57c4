"""Do memory, open files or threads of a training grow in the course of twelve hours?

    python benchmarks/bench_long_run.py --work DIR [--hours 12] [--modes exact minibatch]

As many optimiser steps as a training on ogbn-arxiv makes in so many hours (results/arxiv: 6.05 s an
exact step, 39 s for the 178 steps of a minibatch epoch), on a graph so small that steps take
milliseconds. `gpn-train` runs in a process of its own, with checkpoints, metrics and TensorBoard
files, and is watched from outside. Prints one JSON line per mode; exits with 1 if its resident
memory at the end is more than 2 % above that after a tenth of the steps, or if it has more files or
threads.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
SECONDS_PER_STEP = {"exact": 6.05, "minibatch": 39 / 178}
"""Time of an optimiser step on ogbn-arxiv."""
LARGEST_GROWTH = 0.02
_STEPS_PER_EPOCH = {"exact": 1, "minibatch": 10}
_DATASET = "synthetic:nodes=300,classes=3,unseen_classes=0,features=8"
_WINDOW = 0.03
"""Part of the epochs around a moment over which memory is averaged."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What a process holds at one moment."""

    epoch: int
    resident: int
    """Resident memory in bytes."""
    files: int
    threads: int


def sample(process: int, epoch: int) -> Sample | None:
    """Return what a process holds now; None if it has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
        files = len(os.listdir(f"/proc/{process}/fd"))
    except (OSError, ProcessLookupError):
        return None
    status = dict(line.split(":", 1) for line in lines)
    if "VmRSS" not in status:
        return None
    resident = int(status["VmRSS"].split()[0]) * 1024
    return Sample(epoch, resident, files, int(status["Threads"]))


def command(mode: str, epochs: int, out: Path) -> list[str]:
    """Return the command that trains for so many epochs."""
    arguments = [sys.executable, str(ROOT / "launch" / "train.py"), "--dataset", _DATASET]
    arguments += ["--mode", mode, "--model", "GPN", "--threads", "1", "--device", "cpu"]
    arguments += ["--out", str(out), "--overwrite", "--checkpoint-seconds", "5"]
    settings = [f"train.epochs={epochs}", f"train.patience={epochs + 1}", "train.warmup_steps=0"]
    settings += ["encoder.hidden=16", "flow.radial_layers=4", "split.train=0.2", "split.val=0.1"]
    if mode == "minibatch":
        nodes = 60  # of 300, a fifth
        settings += [f"minibatch.batch_size={nodes // _STEPS_PER_EPOCH[mode]}"]
    return [*arguments, *(item for each in settings for item in ("--set", each))]


def epoch_of(metrics: Path) -> int:
    """Return the last epoch in a metrics log; 0 before the first."""
    try:
        with metrics.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 2000))
            lines = file.read().splitlines()
    except OSError:
        return 0
    for line in reversed(lines):
        try:
            return int(json.loads(line)["epoch"])
        except (ValueError, KeyError):
            continue  # it is being written, or begins before what was read
    return 0


def watch(mode: str, steps: int, work: Path, pause: float) -> list[Sample]:
    """Train for so many steps, and return what the process held while it trained.

    Raises:
        SystemExit: the training has failed.
    """
    epochs, out = -(-steps // _STEPS_PER_EPOCH[mode]), work / mode
    with (work / f"{mode}.txt").open("wb") as log:
        process = subprocess.Popen(
            command(mode, epochs, out), stdout=log, stderr=log, env=os.environ
        )
    samples = []
    while process.poll() is None:
        epoch = epoch_of(out / "metrics.jsonl")
        held = sample(process.pid, epoch)
        if held is not None and 0 < epoch < epochs:
            samples.append(held)
        time.sleep(pause)
    if process.returncode:
        raise SystemExit(f"the training ended with {process.returncode}: see {work}/{mode}.txt")
    return samples


def around(samples: list[Sample], fraction: float) -> list[Sample]:
    """Return the samples nearest to the epoch at this fraction of the training."""
    last = samples[-1].epoch
    near = [each for each in samples if abs(each.epoch - fraction * last) <= _WINDOW * last]
    return near or [min(samples, key=lambda each: abs(each.epoch - fraction * last))]


def facts(mode: str, steps: int, samples: list[Sample], seconds: float) -> dict[str, object]:
    """Return how what the process held has grown."""
    early, late = around(samples, 0.1), around(samples, 1 - _WINDOW)
    resident = [median(each.resident for each in part) for part in (early, late)]
    return {
        "mode": mode,
        "steps": steps,
        "seconds": round(seconds),
        "samples": len(samples),
        "resident_mib_after_a_tenth": round(resident[0] / 2**20, 1),
        "resident_mib_at_the_end": round(resident[1] / 2**20, 1),
        "growth": round(resident[1] / resident[0] - 1, 4),
        "files": [max(each.files for each in part) for part in (early, late)],
        "threads": [max(each.threads for each in part) for part in (early, late)],
    }


def is_constant(values: dict[str, object]) -> bool:
    """Return whether nothing has grown."""
    files, threads = values["files"], values["threads"]
    assert isinstance(files, list)
    assert isinstance(threads, list)
    grown = float(str(values["growth"])) > LARGEST_GROWTH
    return not grown and files[1] <= files[0] and threads[1] <= threads[0]


def main() -> None:
    """Train in every mode."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, help="emptied first")
    parser.add_argument("--hours", type=float, default=12)
    parser.add_argument(
        "--modes", nargs="+", choices=SECONDS_PER_STEP, default=list(SECONDS_PER_STEP)
    )
    parser.add_argument("--steps", type=int, help="instead of those of so many hours")
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two samples")
    options = parser.parse_args()
    shutil.rmtree(options.work, ignore_errors=True)
    options.work.mkdir(parents=True)
    good = True
    for mode in options.modes:
        steps = options.steps or round(options.hours * 3600 / SECONDS_PER_STEP[mode])
        began = time.monotonic()
        samples = watch(mode, steps, options.work, options.pause)
        values = facts(mode, steps, samples, time.monotonic() - began)
        print(json.dumps(values), flush=True)
        good = good and is_constant(values)
    if not good:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
