"""Does a matrix of runs that is killed repeatedly end like a matrix that is not?

    python benchmarks/matrix_kill_trials.py --work DIR [--kills 10] [--processes 2] [--dataset NAME]

One evaluation is left alone. The other is killed (SIGKILL to all its processes) at random times, up
to `--kills` times, and restarted with the same command. Tables, page and every cell must then have
the same bytes. The default dataset is a synthetic graph. Prints one JSON line; exits with 1 if any
byte differs.
"""

import argparse
import hashlib
import json
import random
import shutil
import sys
import time
from pathlib import Path

from kill_trials import ROOT, run


def command(out: Path, options: argparse.Namespace) -> list[str]:
    """Return the command that runs all experiments of a small matrix."""
    arguments = [sys.executable, str(ROOT / "launch" / "evaluate.py"), "--out", str(out)]
    arguments += ["--experiment", options.experiment, "--datasets", options.dataset]
    seeds = str(options.seeds)
    arguments += ["--splits", seeds, "--inits", seeds, "--processes", str(options.processes)]
    arguments += ["--left-out-classes", "1", "--data-dir", str(options.data_dir)]
    return [*arguments, "--set", f"train.epochs={options.epochs}"]


def digests(out: Path) -> dict[str, str]:
    """Return the hashes of page, tables, plots and the results of all cells."""
    files = [out / "report.html", *(out / "tables").glob("*"), *(out / "plots").glob("*")]
    files += (out / "cells").rglob("split*.json")
    return {
        str(path.relative_to(out)): hashlib.blake2b(path.read_bytes()).hexdigest()
        for path in sorted(files)
    }


def main() -> None:
    """Run both and compare them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, help="emptied first")
    parser.add_argument(
        "--dataset", default="synthetic:nodes=2000,classes=4,unseen_classes=0,features=16"
    )
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--experiment", default="all,ablation")
    parser.add_argument("--seeds", type=int, default=2, help="splits, and inits of each")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rng-seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.rng_seed)
    shutil.rmtree(options.work, ignore_errors=True)
    options.work.mkdir(parents=True)
    alone, killed, log = options.work / "alone", options.work / "killed", options.work / "log.txt"
    began = time.monotonic()
    run(command(alone, options), None, log)
    seconds, kills = time.monotonic() - began, 0
    # Every restart takes time to load, so all restarts together run longer than one run alone.
    longest = 3 * seconds / max(options.kills, 1)
    while kills < options.kills and not run(command(killed, options), rng.uniform(0, longest), log):
        kills += 1
    run(command(killed, options), None, log)
    first, second = digests(alone), digests(killed)
    facts = {"seconds": round(seconds), "kills": kills, "files": len(first)}
    print(json.dumps({**facts, "same": first == second}))
    if first != second:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
