"""Is a run that is killed again and again the run that was not?

    python benchmarks/kill_trials.py --work DIR [--kills 10] [--ranks 2] [--dataset NAME]

The journey is precompute, training on several ranks, and prediction. One journey is left alone. The
other is killed (SIGKILL, to all its processes) at random moments, up to `--kills` times, and each
time started again with the same command and --resume. Then weights, predictions and rows must be
the same bytes. Prints one JSON line, and exits with 1 if they are not.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = ["train.patience=1000", "minibatch.batch_size=64", "train.epochs=30"]


def commands(folder: Path, options: argparse.Namespace) -> list[list[str]]:
    """The journey, each part resuming what is there of it."""
    rows = [sys.executable, "-m", "precompute", "--dataset", options.dataset, "--k", "16"]
    rows += ["--resume", "--out", str(folder / "store")]
    train = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    train += ["--nproc-per-node", str(options.ranks), str(ROOT / "launch" / "train.py")]
    train += ["--dataset", options.dataset, "--mode", "minibatch", "--threads", "1"]
    train += ["--ppr", str(folder / "store"), "--out", str(folder / "run")]
    train += ["--resume", "--checkpoint-seconds", "0.2"]
    train += [word for setting in SETTINGS for word in ("--set", setting)]
    return [rows, train]


def run(command: list[str], seconds: float | None, log: Path) -> bool:
    """Whether the command ended by itself; after so many seconds it is killed with its children."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            kill_all(process.pid)
            process.wait()
            return False
    if code != 0:
        raise SystemExit(f"{' '.join(command)} ended with {code}: see {log}")
    return True


def kill_all(leader: int) -> None:
    """SIGKILL to a process, its session and the sessions of its children (torchrun's workers)."""
    family = {leader}
    while True:
        found = {
            int(path.name)
            for path in Path("/proc").glob("[0-9]*")
            if parent_of(path) in family and int(path.name) not in family
        }
        if not found:
            break
        family |= found
    for process in family:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue


def parent_of(path: Path) -> int:
    """Of the process whose /proc folder this is; 0 if it is gone."""
    try:
        return int(path.joinpath("stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def digests(folder: Path) -> dict[str, str]:
    """Hashes of what the journey leaves."""
    files = [folder / "run" / name for name in ("model.safetensors", "predictions.parquet")]
    files += sorted((folder / "store").glob("*"))
    return {
        str(path.relative_to(folder)): hashlib.blake2b(path.read_bytes()).hexdigest()
        for path in files
    }


def main() -> None:
    """Both journeys, and whether they came to the same."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, help="emptied first")
    parser.add_argument("--dataset", default="synthetic:nodes=8000")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rng-seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.rng_seed)
    shutil.rmtree(options.work, ignore_errors=True)
    alone, killed = options.work / "alone", options.work / "killed"
    seconds, log = [], options.work / "log.txt"
    options.work.mkdir(parents=True)
    for command in commands(alone, options):
        began = time.monotonic()
        run(command, None, log)
        seconds.append(time.monotonic() - began)
    kills = {0: 0, 1: 0}
    # Of the kills, precompute gets its share of the time, but at least two.
    in_rows = max(2, round(options.kills * seconds[0] / sum(seconds)))
    for part, (command, wanted) in enumerate(
        zip(commands(killed, options), (in_rows, options.kills - in_rows), strict=True)
    ):
        while kills[part] < wanted and not run(command, rng.uniform(0, 0.6 * seconds[part]), log):
            kills[part] += 1
        run(command, None, log)
    same = digests(alone) == digests(killed)
    print(json.dumps({"kills_precompute": kills[0], "kills_training": kills[1], "same": same}))
    if not same:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
