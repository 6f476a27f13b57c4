"""Does a run that is killed repeatedly end like a run that is not?

    python benchmarks/kill_trials.py --work DIR [--kills 10] [--ranks 2] [--dataset NAME]

Both runs consist of precompute, training on several ranks, and prediction. One is left alone. The
other is killed (SIGKILL to all its processes) at random times, up to `--kills` times, and restarted
with the same command and --resume. Weights, predictions and rows must then have the same bytes.
The default dataset is a synthetic graph. Prints one JSON line; exits with 1 if any byte differs.
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

from gpn_scale.ppr.manifest import SECONDS

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = ["train.patience=1000", "minibatch.batch_size=64"]


def commands(folder: Path, options: argparse.Namespace) -> list[list[str]]:
    """Return the commands of a run; each resumes what is already done."""
    rows = [sys.executable, "-m", "precompute", "--dataset", options.dataset, "--k", "16"]
    rows += ["--resume", "--out", str(folder / "store")]
    train = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    train += ["--nproc-per-node", str(options.ranks), str(ROOT / "launch" / "train.py")]
    train += ["--dataset", options.dataset, "--mode", "minibatch", "--threads", "1"]
    train += ["--ppr", str(folder / "store"), "--out", str(folder / "run")]
    train += ["--resume", "--checkpoint-seconds", "0.2", "--epochs", str(options.epochs)]
    train += [item for setting in SETTINGS for item in ("--set", setting)]
    return [rows, train]


def run(command: list[str], seconds: float | None, log: Path) -> bool:
    """Run the command, kill it after `seconds`; return whether it ended by itself."""
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
    """Kill a process and all its descendants, in whatever session they are."""
    family = {leader}
    while True:
        children = {
            int(path.name)
            for path in Path("/proc").glob("[0-9]*")
            if parent_of(path) in family and int(path.name) not in family
        }
        if not children:
            break
        family |= children
    for process in family:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue


def parent_of(path: Path) -> int:
    """Return the parent of the process with this /proc folder; 0 if it has ended."""
    try:
        return int(path.joinpath("stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def digests(folder: Path) -> dict[str, str]:
    """Return the hashes of a run's results, without the time that the rows took."""
    files = [folder / "run" / name for name in ("model.safetensors", "predictions.parquet")]
    files += sorted(path for path in (folder / "store").glob("*") if path.name != SECONDS)
    return {
        str(path.relative_to(folder)): hashlib.blake2b(path.read_bytes()).hexdigest()
        for path in files
    }


def main() -> None:
    """Run both and compare them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, help="emptied first")
    parser.add_argument("--dataset", default="synthetic:nodes=8000")
    parser.add_argument("--epochs", type=int, default=30)
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
    # Kills are divided in proportion to time, but precompute gets at least two.
    in_rows = min(options.kills, max(2, round(options.kills * seconds[0] / sum(seconds))))
    for step, (command, wanted) in enumerate(
        zip(commands(killed, options), (in_rows, options.kills - in_rows), strict=True)
    ):
        while kills[step] < wanted and not run(command, rng.uniform(0, 0.6 * seconds[step]), log):
            kills[step] += 1
        run(command, None, log)
    same = digests(alone) == digests(killed)
    print(json.dumps({"kills_precompute": kills[0], "kills_training": kills[1], "same": same}))
    if not same:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
