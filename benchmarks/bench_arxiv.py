"""How much time and memory do both modes take to reach exact mode's quality?

    python benchmarks/bench_arxiv.py --dataset NAME --data-dir DIR --work DIR
        [--seeds 1] [--exact-epochs 150] [--left-out-classes N]

Both modes train with left-out classes (by default the paper's) on the same memory-mapped graph, one
after the other, each in its own process with the same number of threads; both validate by exact
diffusion. The target is exact mode's best validation cross-entropy within its epochs, plus 0.5 %.
Memory is that of training: the peaks of the process and of its anonymous memory, sampled every
50 ms. Finished runs and their models (for bench_rows.py) are kept in --work, as are checkpoints: an
interrupted exact run of 1,000 epochs, which takes hours, continues from its checkpoint.
"""

import argparse
import json
import math
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

K, CLUSTERS = 32, 32
CHECKPOINT_EPOCHS = 5


def main() -> None:
    """Run what is missing and print one JSON line per seed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--dataset", required=True, help="name of a graph in --data-dir")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--left-out-classes", default="paper", help="a number, or paper")
    parser.add_argument("--exact-epochs", type=int, default=150)
    parser.add_argument("--minibatch-epochs", type=int, help="default: the recipe's")
    parser.add_argument("--set", action="append", default=[], help="override minibatch's recipe")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--run", nargs=2, metavar=("MODE", "SEED"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        train(options, options.run[0], int(options.run[1]))
        return
    prepare(options)
    for seed in range(1, options.seeds + 1):
        runs = {}
        for mode in ("exact", "minibatch"):
            path = result_path(options, mode, seed)
            if not path.exists():
                command = [sys.executable, __file__, *sys.argv[1:], "--run", mode, str(seed)]
                subprocess.run(command, check=True)
            runs[mode] = json.loads(path.read_text())
        print(json.dumps({"seed": seed, **compare(runs["exact"], runs["minibatch"])}), flush=True)


def result_path(options: argparse.Namespace, mode: str, seed: int) -> Path:
    """Return the path of a run's numbers."""
    return options.work / f"{mode}_{seed}.json"


def prepare(options: argparse.Namespace) -> None:
    """Save the graph as memory-mapped arrays and build the rows of all nodes, unless done."""
    from gpn_scale.data.datasets import load_graph
    from gpn_scale.data.graph_folder import save_graph
    from gpn_scale.recipes import recipe_for
    from precompute.cli import main as precompute

    folder = options.work / "graphs" / options.dataset
    if not (folder / "graph.json").exists():
        save_graph(load_graph(options.dataset, options.data_dir), folder)
    store = options.work / "store"
    if not (store / "manifest.json").exists():
        graph = load_graph(options.dataset, folder.parent)
        teleport = recipe_for(options.dataset, graph).diffusion.teleport
        arguments = ["--dataset", options.dataset, "--data-dir", str(folder.parent)]
        arguments += ["--k", str(K), "--clusters", str(CLUSTERS), "--teleport", str(teleport)]
        assert precompute([*arguments, "--out", str(store), "--resume"]) == 0


def train(options: argparse.Namespace, mode: str, seed: int) -> None:
    """Train one run, recording every epoch, and measure its quality by exact diffusion."""
    import numpy as np
    import torch

    from gpn_scale.config import override
    from gpn_scale.data.datasets import load_graph
    from gpn_scale.data.splits import prepare_graph
    from gpn_scale.estimator import GPNClassifier
    from gpn_scale.evaluation.prediction_metrics import (
        classification_metrics,
        out_of_distribution_metrics,
    )
    from gpn_scale.field_types import parse_assignments
    from gpn_scale.files import write_json
    from gpn_scale.memory import (
        KEPT_BLOCK_BYTES,
        anonymous_bytes,
        keep_freed_blocks,
        peak_rss_bytes,
    )
    from gpn_scale.recipes import in_minibatches, left_out_count, recipe_for
    from gpn_scale.train.checkpoint import restore_checkpoint, save_checkpoint

    keep_freed_blocks(KEPT_BLOCK_BYTES[mode])
    torch.set_num_threads(options.threads)
    graph = load_graph(options.dataset, options.work / "graphs")
    left_out = left_out_count(options.dataset, options.left_out_classes)
    recipe = recipe_for(options.dataset, graph)
    recipe = override(recipe, [("data.left_out_classes", str(left_out))])
    recipe = in_minibatches(recipe, graph) if mode == "minibatch" else recipe
    epochs = options.exact_epochs if mode == "exact" else options.minibatch_epochs
    pairs: dict[str, Any] = {"model": "GPN", "train.rng_seed": seed}
    pairs |= {"train.epochs": epochs or recipe.train.epochs}
    assignments = parse_assignments(options.set) if mode == "minibatch" else []
    config = override(recipe, [*((key, str(value)) for key, value in pairs.items()), *assignments])
    graph = prepare_graph(graph, config)
    before, anonymous = anonymous_bytes(), []

    def watch() -> None:
        while True:
            anonymous.append(anonymous_bytes())
            time.sleep(0.05)

    threading.Thread(target=watch, daemon=True).start()
    classifier = GPNClassifier(config)
    store = options.work / "store" if mode == "minibatch" else None
    began = time.monotonic()
    trainer = classifier.trainer(graph, store)
    curve: list[tuple[float, float, float]] = []
    checkpoint, identity = options.work / f"{mode}_{seed}.checkpoint", graph.name
    curve_path = options.work / f"{mode}_{seed}_curve.json"
    if checkpoint.exists():
        restore_checkpoint(checkpoint, trainer, config, identity)
        curve = json.loads(curve_path.read_text())[: trainer.state.epoch]
        began -= curve[-1][0]

    def observe(record: Any) -> None:
        seconds = time.monotonic() - began
        curve.append((seconds, record.val_cross_entropy, record.val_accuracy))
        print(f"{mode} {seed}: epoch {record.epoch}, {seconds:.0f} s, ", end="", file=sys.stderr)
        print(f"cross-entropy {record.val_cross_entropy:.4f}", file=sys.stderr, flush=True)
        if record.epoch % CHECKPOINT_EPOCHS == 0:
            write_json(curve_path, curve)
            save_checkpoint(checkpoint, trainer, config, identity)

    classifier.fit_trainer(trainer, observe=observe)
    peak, most_anonymous = peak_rss_bytes(), max(anonymous)
    classifier.save(options.work / f"{mode}_{seed}.safetensors")
    prediction = classifier.predict(graph, store=store)
    assert graph.split is not None
    numbers = classification_metrics(prediction, graph, graph.split.test)
    numbers |= without_missing(out_of_distribution_metrics(prediction, graph))
    numbers |= rows_against_exact(classifier, prediction, graph, options.work / "store")
    val = graph.split.val
    entropy = -np.log(prediction.probabilities[val, graph.labels[val]]).mean()
    numbers["val_cross_entropy_exact"] = float(entropy)
    numbers |= {"curve": curve, "peak_rss_bytes": peak}
    numbers |= {"peak_anonymous_bytes": most_anonymous, "anonymous_before_bytes": before}
    write_json(result_path(options, mode, seed), numbers)


def without_missing(metrics: dict[str, Any]) -> dict[str, Any]:
    """Leave out the metrics of scores that the model does not have, which are NaN."""
    return {
        name: without_missing(value) if isinstance(value, dict) else value
        for name, value in metrics.items()
        if isinstance(value, dict) or not math.isnan(value)
    }


def rows_against_exact(classifier: Any, exact: Any, graph: Any, store: Path) -> dict[str, float]:
    """Compare alpha_0 from stored rows with exact diffusion of the same weights."""
    import numpy as np
    from scipy.stats import spearmanr

    rows = classifier.predict_nodes(graph, np.arange(graph.num_nodes), store)
    ratio = np.log(rows.prediction.alpha_0 / exact.alpha_0)
    inside = (rows.alpha_0_lower <= exact.alpha_0) & (exact.alpha_0 <= rows.alpha_0_upper)
    return {
        "rows_spearman": float(spearmanr(rows.prediction.alpha_0, exact.alpha_0).statistic),
        "rows_median_log_ratio": float(np.median(ratio)),
        "rows_iqr_log_ratio": float(np.subtract(*np.quantile(ratio, [0.75, 0.25]))),
        "rows_inside_interval": float(inside.mean()),
    }


def compare(exact: dict[str, Any], minibatch: dict[str, Any]) -> dict[str, Any]:
    """Return seconds to the target, memory and quality of both modes, with their ratios."""
    best = min(entropy for _, entropy, _ in exact["curve"])
    seconds = {
        mode: next((s for s, entropy, _ in run["curve"] if entropy <= 1.005 * best), None)
        for mode, run in (("exact", exact), ("minibatch", minibatch))
    }
    keys = ("id_accuracy", "ece", "auroc_epistemic", "auroc_epistemic_no_network")
    keys += ("rows_spearman", "val_cross_entropy_exact")
    ratio = None
    if seconds["exact"] is not None and seconds["minibatch"] is not None:
        ratio = seconds["minibatch"] / seconds["exact"]
    return {
        "target_cross_entropy": 1.005 * best,
        "seconds": seconds,
        "time_ratio": ratio,
        "best_cross_entropy": [min(e for _, e, _ in run["curve"]) for run in (exact, minibatch)],
        "peak_rss_mb": [run["peak_rss_bytes"] / 1e6 for run in (exact, minibatch)],
        "rss_ratio": minibatch["peak_rss_bytes"] / exact["peak_rss_bytes"],
        "peak_anonymous_mb": [run["peak_anonymous_bytes"] / 1e6 for run in (exact, minibatch)],
        "anonymous_ratio": minibatch["peak_anonymous_bytes"] / exact["peak_anonymous_bytes"],
        **{key: [exact.get(key), minibatch.get(key)] for key in keys},
    }


if __name__ == "__main__":
    main()
