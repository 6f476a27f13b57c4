"""What does perturbing 100 nodes one at a time cost, compared with one plain inference?

    python benchmarks/bench_isolated.py --datasets CoraML,CoauthorCS --data-dir DIR [--repeats 5]

Models have the dataset's recipe and random weights. Both kinds of inference take turns, and medians
are compared. The evidence and diffusion of the unchanged graph count as part of the perturbations.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np

from gpn_scale.cli.evaluate_options import split_datasets

NODES = 100


def main() -> None:
    """Print one JSON line per graph."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--datasets", required=True, help="names of graphs in --data-dir")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    for dataset in split_datasets(options.datasets):
        print(json.dumps(measure(dataset, options.data_dir, options.repeats)), flush=True)


def measure(dataset: str, data_dir: Path, repeats: int) -> dict[str, object]:
    """Return the median seconds of both kinds of inference, and their ratio."""
    from gpn_scale.config import override
    from gpn_scale.data.datasets import load_graph
    from gpn_scale.data.shifts import noise_rows
    from gpn_scale.data.splits import prepare_graph
    from gpn_scale.estimator import GPNClassifier
    from gpn_scale.recipes import recipe_for

    graph = load_graph(dataset, data_dir)
    config = override(recipe_for(dataset, graph), [("model", "GPN"), ("train.epochs", "0")])
    graph = prepare_graph(graph, config)
    classifier = GPNClassifier(config).fit(graph)
    rng = np.random.default_rng(1)
    nodes = np.sort(rng.choice(graph.num_nodes, NODES, replace=False))
    rows = noise_rows("normal", NODES, graph.num_features, 1)
    seconds: dict[str, list[float]] = {"plain": [], "isolated": []}
    for _ in range(repeats):
        began = time.monotonic()
        classifier.predict(graph)
        seconds["plain"].append(time.monotonic() - began)
        began = time.monotonic()
        classifier.perturbed(graph).isolated(nodes, rows.__getitem__)
        seconds["isolated"].append(time.monotonic() - began)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    return {"dataset": dataset, **medians, "ratio": medians["isolated"] / medians["plain"]}


if __name__ == "__main__":
    main()
