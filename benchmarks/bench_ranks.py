"""How much faster do two ranks of one thread train than one?

    python benchmarks/bench_ranks.py --data-dir DIR --work DIR [--rounds 3] [--batch-size B]
        [--all-cores] [--metrics-seeds 0]

Rounds of one epoch on a graph of ogbn-arxiv's size, with 1 and 2 ranks by turns, by the commands
that a user has: roots per second, and which share of training goes to communication (waiting for
the other rank included) and to waiting for data. There are as many cores as ranks: one rank's
loader would else have the second core, and two ranks' loaders would not. With --metrics-seeds,
whole runs with 1, 2 and 4 ranks on CoraML follow, with left-out classes and without: do they end
with the same metrics?
Finished runs are kept in --work.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
K, CLUSTERS = 32, 32


def main() -> None:
    """Runs what is missing and prints one JSON line per round, medians, and a table of metrics."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--dataset", default="ogbn-arxiv-sim")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch-size", type=int, help="of all ranks; default: the recipe's")
    parser.add_argument("--all-cores", action="store_true", help="for one rank, too")
    parser.add_argument("--metrics-seeds", type=int, default=0)
    options = parser.parse_args()
    if options.rounds:
        speed(options)
    if options.metrics_seeds:
        metrics(options)


def speed(options: argparse.Namespace) -> None:
    """Rounds of one epoch each."""
    store = rows_of(options.dataset, options)
    ratios = []
    for turn in range(1, options.rounds + 1):
        found = {}
        for ranks in (1, 2):
            words = ["--dataset", options.dataset, "--ppr", str(store), "--epochs", "1"]
            words += ["--left-out-classes", "paper", "--set", "train.patience=1"]
            name = f"speed_{options.batch_size or 'recipe'}{'_all_cores' * options.all_cores}"
            if options.batch_size:
                words += ["--set", f"minibatch.batch_size={options.batch_size}"]
            cores = None if options.all_cores else ranks
            report = run(f"{name}_{turn}_{ranks}", ranks, words, options, cores=cores)
            seconds = report["ranks"]["seconds"]
            spent = seconds["data"] + seconds["forward"] + seconds["backward"]
            found[ranks] = {
                "roots_per_second": report["ranks"]["roots_per_second"],
                "communication": seconds["communication"] / spent,
                "data": seconds["data"] / spent,
            }
        ratios.append(found[2]["roots_per_second"] / found[1]["roots_per_second"])
        print(json.dumps({"round": turn, "ratio": ratios[-1], "ranks": found}), flush=True)
    print(json.dumps({"median_ratio": statistics.median(ratios)}), flush=True)


def metrics(options: argparse.Namespace) -> None:
    """Whole runs with 1, 2 and 4 ranks; batches of 64 roots, so that there are several."""
    rows_of("CoraML", options)
    places = {
        "accuracy": lambda reports: reports["clean"]["metrics"]["test"]["accuracy"],
        "ECE": lambda reports: reports["clean"]["metrics"]["test"]["ece"],
        "AUC-ROC epistemic": lambda reports: reports["left_out"]["ood"]["auroc_epistemic"],
    }
    table: dict[int, dict[str, list[float]]] = {ranks: {} for ranks in (1, 2, 4)}
    for seed in range(1, options.metrics_seeds + 1):
        for ranks, columns in table.items():
            reports = {
                kind: run(
                    f"metrics_{seed}_{kind}_{ranks}", ranks, coraml(kind, seed, options), options
                )
                for kind in ("clean", "left_out")
            }
            for name, place in places.items():
                columns.setdefault(name, []).append(100 * place(reports))
    print("| ranks | " + " | ".join(places) + " |\n|---" + "|---" * len(places) + "|")
    for ranks, columns in table.items():
        cells = [
            f"{statistics.mean(values):.2f} (by seed: {', '.join(f'{v:.2f}' for v in values)})"
            for values in columns.values()
        ]
        print(f"| {ranks} | " + " | ".join(cells) + " |", flush=True)


def coraml(kind: str, seed: int, options: argparse.Namespace) -> list[str]:
    """Options of one whole run."""
    words = ["--dataset", "CoraML", "--ppr", str(options.work / "CoraML"), "--seed", str(seed)]
    words += ["--split-seed", str(seed), "--set", "minibatch.batch_size=64"]
    words += ["--set", "train.epochs=60", "--set", "train.schedule=cosine"]
    return words + (["--left-out-classes", "paper"] if kind == "left_out" else [])


def rows_of(dataset: str, options: argparse.Namespace) -> Path:
    """The rows of all nodes, with the diffusion of the dataset's recipe."""
    from gpn_scale.data.datasets import load_graph
    from gpn_scale.recipes import recipe_for
    from precompute.cli import main as precompute

    store = options.work / dataset
    if not (store / "manifest.json").exists():
        graph = load_graph(dataset, options.data_dir)
        teleport = recipe_for(dataset, graph).diffusion.teleport
        words = ["--dataset", dataset, "--data-dir", str(options.data_dir), "--k", str(K)]
        words += ["--clusters", str(CLUSTERS), "--teleport", str(teleport), "--out", str(store)]
        assert precompute([*words, "--resume"]) == 0
    return store


def run(
    name: str,
    ranks: int,
    words: list[str],
    options: argparse.Namespace,
    *,
    cores: int | None = None,
) -> dict[str, Any]:
    """The report of a run under torchrun, made if it is not there."""
    out = options.work / "runs" / name
    report = out / "report.json"
    if not report.exists():
        command = [] if cores is None else ["taskset", "-c", f"0-{cores - 1}"]
        command += [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        command += ["--nproc-per-node", str(ranks), "launch/train.py", "--mode", "minibatch"]
        command += ["--threads", "1", "--data-dir", str(options.data_dir.resolve())]
        command += [*words, "--out", str(out), "--overwrite"]
        log = options.work / f"{name}.log"
        with log.open("w") as file:
            environment = os.environ | {"OMP_NUM_THREADS": "1"}
            done = subprocess.run(
                command, cwd=ROOT, env=environment, stdout=file, stderr=file, check=False
            )
        if done.returncode:
            raise SystemExit(f"{name} failed with {done.returncode}: see {log}")
    found: dict[str, Any] = json.loads(report.read_text())
    return found


if __name__ == "__main__":
    main()
