"""How much faster do two ranks of one thread train than one?

    python benchmarks/bench_ranks.py --dataset NAME --data-dir DIR --work DIR [--rounds 3]
        [--batch-size B] [--all-cores] [--metrics-seeds N] [--left-out-classes N]

Rounds of one epoch with 1 and 2 ranks take turns, started by the commands that a user would call:
roots per second, and the fractions of training spent in communication (including waiting for the
other rank) and in waiting for data. There are as many cores as ranks: otherwise one rank's loader
would have the second core to itself, and the loaders of two ranks would not. With --metrics-seeds N
(and --rounds 0), whole runs with 1, 2 and 4 ranks, with left-out classes and without, show whether
they end with the same metrics. Finished runs are kept in --work.
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
METRICS_BATCH = 64


def main() -> None:
    """Run what is missing and print a JSON line per round, medians and a table of metrics."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--dataset", required=True, help="name of a graph in --data-dir")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--batch-size", type=int, help="roots of all ranks; default: the recipe's, or 64"
    )
    parser.add_argument("--all-cores", action="store_true", help="also for one rank")
    parser.add_argument("--metrics-seeds", type=int, default=0)
    parser.add_argument("--metrics-epochs", type=int, default=60)
    parser.add_argument("--left-out-classes", default="paper", help="a number, or paper")
    options = parser.parse_args()
    options.work = options.work.resolve()  # runs are started in another folder
    if options.rounds:
        speed(options)
    if options.metrics_seeds:
        metrics(options)


def speed(options: argparse.Namespace) -> None:
    """Print the speed of rounds of one epoch each."""
    store = rows_of(options.dataset, options)
    ratios = []
    for turn in range(1, options.rounds + 1):
        by_ranks = {}
        for ranks in (1, 2):
            arguments = ["--dataset", options.dataset, "--ppr", str(store), "--epochs", "1"]
            arguments += ["--left-out-classes", options.left_out_classes]
            arguments += ["--set", "train.patience=1"]
            name = f"speed_{options.batch_size or 'recipe'}{'_all_cores' * options.all_cores}"
            if options.batch_size:
                arguments += ["--set", f"minibatch.batch_size={options.batch_size}"]
            cores = None if options.all_cores else ranks
            report = run(f"{name}_{turn}_{ranks}", ranks, arguments, options, cores=cores)
            seconds = report["ranks"]["seconds"]
            total = seconds["data"] + seconds["forward"] + seconds["backward"]
            by_ranks[ranks] = {
                "roots_per_second": report["ranks"]["roots_per_second"],
                "communication": seconds["communication"] / total,
                "data": seconds["data"] / total,
            }
        ratios.append(by_ranks[2]["roots_per_second"] / by_ranks[1]["roots_per_second"])
        print(json.dumps({"round": turn, "ratio": ratios[-1], "ranks": by_ranks}), flush=True)
    print(json.dumps({"median_ratio": statistics.median(ratios)}), flush=True)


def metrics(options: argparse.Namespace) -> None:
    """Print the metrics of whole runs with 1, 2 and 4 ranks."""
    rows_of(options.dataset, options)
    places = {
        "accuracy": lambda reports: reports["clean"]["metrics"]["test"]["accuracy"],
        "ECE": lambda reports: reports["clean"]["metrics"]["test"]["ece"],
        "AUC-ROC epistemic": lambda reports: reports["left_out"]["ood"]["auroc_epistemic"],
    }
    table: dict[int, dict[str, list[float]]] = {ranks: {} for ranks in (1, 2, 4)}
    setting = f"metrics_{options.batch_size or METRICS_BATCH}_{options.metrics_epochs}"
    for seed in range(1, options.metrics_seeds + 1):
        for ranks, columns in table.items():
            reports = {
                kind: run(
                    f"{setting}_{seed}_{kind}_{ranks}", ranks, whole(kind, seed, options), options
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


def whole(kind: str, seed: int, options: argparse.Namespace) -> list[str]:
    """Return the options of one whole run."""
    arguments = ["--dataset", options.dataset, "--ppr", str(options.work / options.dataset)]
    arguments += ["--seed", str(seed), "--split-seed", str(seed)]
    arguments += ["--set", f"minibatch.batch_size={options.batch_size or METRICS_BATCH}"]
    arguments += ["--epochs", str(options.metrics_epochs), "--set", "train.schedule=cosine"]
    left_out = ["--left-out-classes", options.left_out_classes]
    return arguments + (left_out if kind == "left_out" else [])


def rows_of(dataset: str, options: argparse.Namespace) -> Path:
    """Build the rows of all nodes with the diffusion of the dataset's recipe, unless done."""
    from gpn_scale.data.datasets import load_graph
    from gpn_scale.recipes import recipe_for
    from precompute.cli import main as precompute

    store = options.work / dataset
    if not (store / "manifest.json").exists():
        graph = load_graph(dataset, options.data_dir)
        teleport = recipe_for(dataset, graph).diffusion.teleport
        arguments = ["--dataset", dataset, "--data-dir", str(options.data_dir), "--k", str(K)]
        arguments += ["--clusters", str(CLUSTERS), "--teleport", str(teleport)]
        assert precompute([*arguments, "--out", str(store), "--resume"]) == 0
    return store


def run(
    name: str,
    ranks: int,
    arguments: list[str],
    options: argparse.Namespace,
    *,
    cores: int | None = None,
) -> dict[str, Any]:
    """Return the report of a run under torchrun, which is started unless it is done."""
    out = options.work / "runs" / name
    report = out / "report.json"
    if not report.exists():
        command = [] if cores is None else ["taskset", "-c", f"0-{cores - 1}"]
        command += [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        command += ["--nproc-per-node", str(ranks), "launch/train.py"]
        command += ["--model", "GPN", "--mode", "minibatch"]
        command += ["--threads", "1", "--data-dir", str(options.data_dir.resolve())]
        command += [*arguments, "--out", str(out), "--overwrite"]
        log = options.work / f"{name}.log"
        with log.open("w") as file:
            environment = os.environ | {"OMP_NUM_THREADS": "1"}
            done = subprocess.run(
                command, cwd=ROOT, env=environment, stdout=file, stderr=file, check=False
            )
        if done.returncode:
            raise SystemExit(f"{name} failed with {done.returncode}: see {log}")
    facts: dict[str, Any] = json.loads(report.read_text())
    return facts


if __name__ == "__main__":
    main()
