"""What do models cost on a large graph, and how good are they?

    python benchmarks/bench_models.py --dataset NAME --data-dir DIR --work DIR
        [--models LP,GKDE,PPRGo,...] [--set train.epochs=50] [--left-out-classes N]

Each model is trained twice with one thread, in separate processes: with all classes, and without
the left-out classes (by default the paper's), which it then has to detect. Seconds are those of the
first training and of one prediction of all nodes; peak memory is that of the first process. Rows of
a diffusion are computed before, if a model needs them, and do not count. Runs are kept in --work,
by graph and --set; a second call runs only what is missing. The table is printed last.
"""

import argparse
import json
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

MODELS = "LP,GKDE,PPRGo,APPNP,VGCN,VGCN-Energy,VGCN-Energy-minibatch,GPN-minibatch"


def main() -> None:
    """Run what is missing, then print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--dataset", required=True, help="name of a graph in --data-dir")
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--left-out-classes", default="paper", help="a number, or paper")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    options.work = options.work / "_".join([options.dataset, *options.set])
    options.work.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    lines = []
    for model in options.models.split(","):
        numbers: dict[str, Any] = {}
        for run in ("clean", "left_out"):
            path = options.work / f"{model}_{run}.json"
            if not path.exists():
                # A worker of multiprocessing.Pool could not start the processes that compute rows.
                with ProcessPoolExecutor(1, mp_context=context) as pool:
                    pool.submit(measure, model, run, options, path).result()
            numbers[run] = json.loads(path.read_text())
            print(json.dumps({"model": model, "run": run, **numbers[run]}), flush=True)
        lines.append(line(model, numbers["clean"], numbers["left_out"]))
    print(HEAD, *lines, sep="\n")


def measure(model: str, run: str, options: argparse.Namespace, path: Path) -> None:
    """Train and predict once, and write the numbers."""
    import torch

    from gpn_scale.cli.run_inputs import build_rows
    from gpn_scale.data.datasets import load_graph
    from gpn_scale.data.splits import prepare_graph
    from gpn_scale.distributed import World
    from gpn_scale.evaluation.prediction_metrics import (
        classification_metrics,
        out_of_distribution_metrics,
    )
    from gpn_scale.field_types import parse_assignments
    from gpn_scale.files import write_json
    from gpn_scale.memory import peak_rss_bytes
    from gpn_scale.models.registry import setting_of
    from gpn_scale.recipes import left_out_count, recipe_for

    torch.set_num_threads(1)
    graph = load_graph(options.dataset, options.data_dir)
    left_out = 0
    if run == "left_out":
        left_out = left_out_count(options.dataset, options.left_out_classes)
    changes = [*parse_assignments(options.set), ("data.left_out_classes", str(left_out))]
    setting = setting_of(model, recipe_for(options.dataset, graph), changes, graph)
    store = None
    if setting.needs_rows:
        diffusion = setting.config.diffusion
        store = options.work / f"rows_{'_'.join(map(str, diffusion.store_parameters.values()))}"
        build_rows(graph, options.dataset, options.data_dir, store, diffusion, World())
    prepared = prepare_graph(graph, setting.config)
    classifier = setting.new()
    began = time.monotonic()
    classifier.fit(prepared, store=store)
    trained = time.monotonic()
    prediction = classifier.predict(prepared)
    numbers = {
        "train_s": trained - began,
        "inference_s": time.monotonic() - trained,
        "peak_bytes": peak_rss_bytes(),
    }
    if run == "left_out":
        metrics = out_of_distribution_metrics(prediction, prepared)
        numbers |= {name: value for name, value in metrics.items() if isinstance(value, float)}
    else:
        numbers |= classification_metrics(prediction, prepared, prepared.split.test)
    write_json(path, {name: None if value != value else value for name, value in numbers.items()})


COLUMNS = "accuracy, ECE, ID accuracy, left-out AUC-ROC aleatoric, left-out AUC-ROC epistemic"
COLUMNS += ", training s, prediction s, peak memory GB"
HEAD = f"| model | {COLUMNS.replace(', ', ' | ')} |\n{'|---' * 9}|"


def line(model: str, clean: dict[str, Any], left_out: dict[str, Any]) -> str:
    """Return a model's line of the table."""
    fractions = [clean["accuracy"], clean["ece"], left_out["id_accuracy"]]
    fractions += [left_out["auroc_aleatoric"], left_out["auroc_epistemic"]]
    cells = ["n.a." if value is None else f"{100 * value:.1f}" for value in fractions]
    cells += [f"{clean['train_s']:.0f}", f"{clean['inference_s']:.1f}"]
    return f"| {model} | {' | '.join(cells)} | {clean['peak_bytes'] / 1e9:.2f} |"


if __name__ == "__main__":
    main()
