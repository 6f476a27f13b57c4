"""What do models cost on a large graph, and what do they reach?

    python benchmarks/bench_models.py --data-dir DIR [--dataset ogbn-arxiv-sim]
        [--models LP,GKDE,PPRGo,VGCN,VGCN-Energy] [--set train.epochs=50] [--store DIR]

Each model in a process of its own, one thread: accuracy with all classes, then a training without
the paper's left-out classes for their detection. Seconds are of the first training and of one
prediction of all nodes; peak memory is the process's.
"""

import argparse
import json
import multiprocessing
import time
from pathlib import Path
from typing import Any


def main() -> None:
    """Prints one JSON line per model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--dataset", default="ogbn-arxiv-sim")
    parser.add_argument("--models", default="LP,GKDE,PPRGo,APPNP,VGCN,VGCN-Energy,GPN")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--store", type=Path, help="rows of the diffusion of PPRGo")
    parser.add_argument("--no-left-out", action="store_true", help="one training per model")
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    for model in options.models.split(","):
        with context.Pool(1) as pool:
            print(json.dumps(pool.apply(measure, (model, options))), flush=True)


def measure(model: str, options: argparse.Namespace) -> dict[str, Any]:
    """The numbers of one model."""
    import torch

    from gpn_scale.data.datasets import load_graph
    from gpn_scale.memory import peak_rss_bytes

    torch.set_num_threads(1)
    graph = load_graph(options.dataset, options.data_dir)
    found = {"model": model, "dataset": options.dataset, **_run(model, graph, options, 0)}
    if not options.no_left_out:
        from launch.recipes import left_out_count

        found |= _run(model, graph, options, left_out_count(options.dataset, "paper"))
    return found | {"peak_gib": round(peak_rss_bytes() / 2**30, 2)}


def _run(model: str, graph: Any, options: argparse.Namespace, left_out: int) -> dict[str, Any]:
    from gpn_scale.baselines.registry import BaselineSetting
    from gpn_scale.config import parse_assignments
    from gpn_scale.data.splits import prepare_graph
    from gpn_scale.estimator import GPNClassifier
    from gpn_scale.evaluation.evaluate import classification_metrics, out_of_distribution_metrics
    from launch.models import setting_of
    from launch.recipes import recipe_for

    changes = [*parse_assignments(options.set), ("data.left_out_classes", str(left_out))]
    setting = setting_of(model, recipe_for(options.dataset, graph), changes, graph)
    prepared = prepare_graph(graph, setting.config)
    baseline = isinstance(setting, BaselineSetting)
    classifier = setting.new() if baseline else GPNClassifier(setting.config)
    began = time.monotonic()
    classifier.fit(prepared, store=options.store if setting.config.mode == "minibatch" else None)
    trained = time.monotonic()
    prediction = classifier.predict(prepared)
    seconds = {"train_s": trained - began, "inference_s": time.monotonic() - trained}
    if left_out:
        metrics = out_of_distribution_metrics(prediction, prepared)
        wanted = ("id_accuracy", "auroc_aleatoric", "auroc_epistemic")
        return {f"left_out_{name}": round(100 * metrics[name], 2) for name in wanted}
    metrics = classification_metrics(prediction, prepared, prepared.split.test)
    return {name: round(value, 2) for name, value in seconds.items()} | {
        "accuracy": round(100 * metrics["accuracy"], 2),
        "ece": round(100 * metrics["ece"], 2),
    }


if __name__ == "__main__":
    main()
