"""Do stored rows give the same uncertainty as exact diffusion with the same weights?

    python benchmarks/bench_rows.py --data-dir DIR --work DIR [--write FILE] MODEL.safetensors ...

Takes trained models, such as those of a matrix that `launch/evaluate.py` has trained, and compares
alpha_0 from rows with alpha_0 by exact diffusion, on all nodes, for several tails, k and numbers of
clusters. Finished comparisons are kept in --work; a second call continues where the first stopped.
"""

import argparse
import hashlib
import json
import statistics
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr

from gpn_scale.config import TailKind
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph import Graph
from gpn_scale.data.splits import prepare_graph
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.evaluation.prediction_metrics import out_of_distribution_metrics
from gpn_scale.files import write_json
from precompute.cli import main as precompute

TAILS: tuple[TailKind, ...] = ("truncated", "renormalised", "stationary", "clustered")
KS, CLUSTERS = (16, 32, 64, 128), (8, 32, 128)
MAIN_CLUSTERS = 32
START = "## alpha_0 from rows against exact diffusion of the same weights"


def settings(ks: list[int]) -> Iterator[tuple[int, int, TailKind]]:
    """Yield (k, clusters, tail) of each comparison."""
    for k in ks:
        for tail in TAILS:
            for clusters in CLUSTERS if tail == "clustered" else [MAIN_CLUSTERS]:
                yield k, clusters, tail


def store_of(classifier: GPNClassifier, k: int, clusters: int, options: argparse.Namespace) -> Path:
    """Build rows of all nodes with the model's diffusion, by the command line; only once."""
    diffusion, dataset = classifier.config.diffusion, classifier.config.data.dataset
    facts = "_".join(str(value) for value in diffusion.store_parameters.values())
    out: Path = options.work / "stores" / f"{dataset}_{facts}_{k}_{clusters}"
    if not (out / "manifest.json").exists():
        arguments = ["--dataset", dataset, "--data-dir", str(options.data_dir), "--out", str(out)]
        arguments += ["--teleport", str(diffusion.teleport)]
        arguments += ["--normalisation", diffusion.normalisation, "--steps", str(diffusion.steps)]
        arguments += ["--k", str(k), "--clusters", str(clusters), "--resume"]
        assert precompute(arguments) == 0
    return out


def compare(
    classifier: GPNClassifier, exact: Prediction, graph: Graph, store: Path, tail: TailKind
) -> dict[str, float]:
    """Compare the prediction of all nodes from their rows with the one by exact diffusion."""
    minibatch = replace(classifier.config.minibatch, tail=tail)
    with_tail = GPNClassifier(
        replace(classifier.config, minibatch=minibatch),
        predicts_with=classifier.predicts_with,
        dtype=classifier.dtype,
    )
    with_tail.load_state(graph, classifier.state(), "the trained model")
    rows = with_tail.predict_nodes(graph, np.arange(graph.num_nodes), store)
    log_ratio = np.log(rows.prediction.alpha_0 / exact.alpha_0)
    inside = (rows.alpha_0_lower <= exact.alpha_0) & (exact.alpha_0 <= rows.alpha_0_upper)
    comparison = {
        "spearman": float(spearmanr(rows.prediction.alpha_0, exact.alpha_0).statistic),
        "median_log_ratio": float(np.median(log_ratio)),
        "iqr_log_ratio": float(np.subtract(*np.quantile(log_ratio, [0.75, 0.25]))),
        "inside_interval": float(inside.mean()),
    }
    metrics = out_of_distribution_metrics(rows.prediction, graph)
    return comparison | {"auroc_epistemic": metrics.get("auroc_epistemic", float("nan"))}


def measure(path: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return all comparisons of one model, computing those that are missing."""
    name = hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest()
    kept = options.work / "models" / f"{name}.json"
    results: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    ks = [int(k) for k in options.ks.split(",")]
    keys = {" ".join(map(str, setting)): setting for setting in settings(ks)}
    if any(key not in results for key in keys):
        classifier = GPNClassifier.load(path)
        dataset = classifier.config.data.dataset
        graph = prepare_graph(load_graph(dataset, options.data_dir), classifier.config)
        exact = classifier.predict(graph)
        metrics = out_of_distribution_metrics(exact, graph)
        results |= {"dataset": dataset, "exact": metrics.get("auroc_epistemic", float("nan"))}
        for key, (k, clusters, tail) in keys.items():
            if key not in results:
                store = store_of(classifier, k, clusters, options)
                results[key] = compare(classifier, exact, graph, store, tail)
                write_json(kept, results)
        print(f"{path}: done", flush=True)
    return results


def table(models: list[dict[str, Any]], ks: list[int]) -> str:
    """Return a Markdown table of means over the models of one graph."""
    lines = [
        f"### {models[0]['dataset']} ({len(models)} models)",
        "",
        "| tail | " + " | ".join(f"k = {k}" for k in ks) + " |",
        "|---" * (len(ks) + 1) + "|",
    ]
    for _, clusters, tail in settings(ks[:1]):
        cells = []
        for k in ks:
            cell = [model[f"{k} {clusters} {tail}"] for model in models]
            mean = {key: statistics.mean(each[key] for each in cell) for key in cell[0]}
            cells.append(
                f"{mean['spearman']:.4f}; {mean['median_log_ratio']:+.2f}, "
                f"{mean['iqr_log_ratio']:.2f}; {100 * mean['auroc_epistemic']:.1f}"
            )
        name = f"clustered, P = {clusters}" if tail == "clustered" else tail
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    everything = [each for model in models for each in model.values() if isinstance(each, dict)]
    inside = min(each["inside_interval"] for each in everything)
    auroc = 100 * statistics.mean(model["exact"] for model in models)
    lines += ["", f"Exact AUC-ROC {auroc:.1f}; alpha_0 inside the interval: {inside:.2%} at least."]
    return "\n".join(lines)


def main() -> None:
    """Compute missing comparisons, print the tables, and put them at the end of --write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("models", type=Path, nargs="+", metavar="MODEL.safetensors")
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--ks", default=",".join(map(str, KS)))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--write", type=Path, help="Markdown file; the tables replace its end")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    (options.work / "models").mkdir(parents=True, exist_ok=True)
    by_graph: dict[str, list[dict[str, Any]]] = {}
    for path in options.models:
        comparisons = measure(path, options)
        by_graph.setdefault(comparisons["dataset"], []).append(comparisons)
    ks = [int(k) for k in options.ks.split(",")]
    parts = [
        START,
        "Spearman correlation; median and interquartile range of the log ratio; left-out AUC-ROC.",
        *(table(models, ks) for models in by_graph.values()),
    ]
    text = "\n\n".join(parts) + "\n"
    print(text)
    if options.write:
        before = options.write.read_text(encoding="utf-8").partition(START)[0]
        options.write.write_text(before + text, encoding="utf-8")


if __name__ == "__main__":
    main()
