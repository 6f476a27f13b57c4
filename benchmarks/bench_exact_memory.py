"""Does exact mode fit in memory on a large graph, and do its flows respect their memory limit?

    python benchmarks/bench_exact_memory.py --dataset NAME --data-dir DIR --epochs 5

Prints one JSON line per setting of flow.memory_mib: peak resident memory and seconds per epoch,
each measured in its own process. Without chunks, the flows alone would keep
`flow_bytes_unchunked` bytes.
"""

import argparse
import json
import multiprocessing
import time
from pathlib import Path
from typing import Any

SAVED_PER_LAYER = 4
"""(N, C, D) arrays that autograd keeps per radial layer, see gpn_scale/nn/flow.py."""


def measure(arguments: tuple[str, Path, int, int]) -> dict[str, Any]:
    """Train a few epochs and return memory and time."""
    from gpn_scale.config import override
    from gpn_scale.data.datasets import load_graph
    from gpn_scale.data.splits import prepare_graph
    from gpn_scale.estimator import GPNClassifier
    from gpn_scale.memory import peak_rss_bytes
    from gpn_scale.recipes import recipe_for

    dataset, data_dir, epochs, memory_mib = arguments
    graph = load_graph(dataset, data_dir)
    pairs = [("model", "GPN"), ("train.epochs", str(epochs)), ("train.warmup_steps", "0")]
    config = override(recipe_for(dataset, graph), [*pairs, ("flow.memory_mib", str(memory_mib))])
    graph = prepare_graph(graph, config)
    classifier = GPNClassifier(config)
    trainer = classifier.trainer(graph)
    before = peak_rss_bytes()
    seconds = []
    began = time.perf_counter()
    for _ in trainer.records():
        seconds.append(time.perf_counter() - began)
        began = time.perf_counter()
    after_training = peak_rss_bytes()
    trainer.restore_best()
    classifier.fit_trainer(trainer).predict(graph)
    rows = graph.num_nodes * graph.num_classes * config.encoder.latent * 4
    return {
        "dataset": dataset,
        "flow_memory_mib": memory_mib,
        "epochs": epochs,
        "seconds_per_epoch": sorted(seconds)[len(seconds) // 2],
        "peak_rss_before_training_mib": before >> 20,
        "peak_rss_training_mib": after_training >> 20,
        "peak_rss_with_prediction_mib": peak_rss_bytes() >> 20,
        "flow_bytes_unchunked": rows * SAVED_PER_LAYER * config.flow.radial_layers,
    }


def main() -> None:
    """Measure every setting in its own process."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--dataset", required=True, help="name of a graph in --data-dir")
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--memory-mib", type=int, nargs="+", default=[256, 1024, 4096])
    options = parser.parse_args()
    for memory_mib in options.memory_mib:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            task = (options.dataset, options.data_dir, options.epochs, memory_mib)
            print(json.dumps(pool.apply(measure, (task,))), flush=True)


if __name__ == "__main__":
    main()
