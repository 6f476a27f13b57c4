"""How long does a batch take to assemble, and how many nodes does an epoch encode?

    python benchmarks/bench_batches.py --dataset NAME --data-dir DIR --ppr STORE

Prints two JSON lines: the encodings of an epoch (mean of three), and the milliseconds per batch for
each tail in one thread, as median and spread over the batches of an epoch; the tails take turns.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any, get_args

import numpy as np

from gpn_scale.config import DiffusionConfig, MinibatchConfig, TailKind
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph import Graph
from gpn_scale.data.splits import stratified_split
from gpn_scale.ppr.batches import BatchLoader, BatchSource, epoch_cost
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.tails import make_tail

EPOCHS = 3


class Bench:
    """A graph, its store, and loaders over its training nodes."""

    def __init__(self, graph: Graph, store: PPRStore, batch_size: int) -> None:
        assert graph.split is not None
        self.graph, self.store, self.roots = graph, store, graph.split.train
        self.batch_size = batch_size
        stored = store.parameters
        self.diffusion = DiffusionConfig(
            teleport=stored["teleport"],
            normalisation=stored["normalisation"],
            steps="inf" if stored["steps"] == "inf" else int(stored["steps"]),
            self_loops=stored["self_loops"],
        )

    def loader(self, kind: TailKind) -> BatchLoader:
        """Return the loader that training would use, without background threads."""
        config = MinibatchConfig(batch_size=self.batch_size, tail=kind, workers=0)
        tail = make_tail(config, self.store, self.graph, self.diffusion)
        source = BatchSource(store=self.store, tail=tail, features=self.graph.features)
        return BatchLoader(self.roots, source, config, rng_seed=1)

    def encodings(self) -> dict[str, Any]:
        """Count the encodings of an epoch, and the distinct nodes among them."""
        loader = self.loader("truncated")
        costs = [epoch_cost(loader.epoch_roots(epoch), self.store) for epoch in range(EPOCHS)]
        return {
            "batches": loader.num_batches,
            "distinct": costs[0].distinct,
            "encodings": float(np.mean([cost.encodings for cost in costs])),
        }

    def milliseconds(self, timed_batches: int) -> dict[str, list[float]]:
        """Time batches of each tail: the median, and the slowest minus the fastest."""
        epochs = {kind: self.loader(kind).epoch(0) for kind in get_args(TailKind)}
        times: dict[str, list[float]] = {kind: [] for kind in epochs}
        for _ in range(timed_batches + 1):
            for kind, batches in epochs.items():
                began = time.perf_counter()
                next(batches)
                times[kind].append(1e3 * (time.perf_counter() - began))
        # The first batch is left out: its features and rows are not in memory yet.
        return {
            kind: [float(np.median(each[1:])), max(each[1:]) - min(each[1:])]
            for kind, each in times.items()
        }


def main() -> None:
    """Print the encodings and the times, one JSON line each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--dataset", required=True, help="name of a graph in --data-dir")
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--ppr", type=Path, required=True, help="store with clusters")
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--batches", type=int, default=20, help="largest number of timed batches")
    options = parser.parse_args()
    graph = load_graph(options.dataset, options.data_dir)
    if graph.split is None:
        graph = stratified_split(graph, rng_seed=1)
    assert graph.split is not None
    store = PPRStore.open(options.ppr, graph_fingerprint=graph.structure_fingerprint())
    whole_batches = len(graph.split.train) // options.batch_size
    timed = min(options.batches, whole_batches - 1)
    if timed < 1:
        parser.error(
            f"--batches is {options.batches}, and {len(graph.split.train)} training nodes make "
            f"{whole_batches} whole batches; expected at least 1 and 2: lower --batch-size"
        )
    bench = Bench(graph, store, options.batch_size)
    facts = {"dataset": options.dataset, "roots": len(bench.roots), "k": store.k}
    facts |= {"batch_size": options.batch_size}
    print(json.dumps(facts | bench.encodings()), flush=True)
    print(json.dumps(facts | {"timed_batches": timed} | bench.milliseconds(timed)), flush=True)


if __name__ == "__main__":
    main()
