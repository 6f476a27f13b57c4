"""What does checking the blocks of a store cost, in training and prediction?

    python benchmarks/bench_checksums.py [--dataset NAME --data-dir DIR --work DIR --repeats N]

Builds a store, then trains one epoch in minibatches and predicts random nodes from their rows, each
with a newly opened store, so that all blocks are checked for the first time. Runs with and without
checks take turns. `cold` runs begin without the store's files in the page cache. Prints one JSON
line: seconds of both (medians), and the median ratio of neighbouring runs, in wall and CPU time.
`rows` reads batches of rows and does nothing else.
"""

import argparse
import gc
import json
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from gpn_scale.config import MinibatchConfig, PPRConfig, RunConfig, TrainConfig
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph import Graph
from gpn_scale.data.splits import prepare_graph
from gpn_scale.estimator import GPNClassifier
from gpn_scale.ppr import block_guard
from gpn_scale.ppr.store import PPRStore
from precompute.build import build_store


class Bench:
    """A graph, its store and a trained model."""

    def __init__(self, graph: Graph, folder: Path, nodes: int, batch_size: int) -> None:
        self.batch_size = batch_size
        self.config = RunConfig(
            model="GPN",
            mode="minibatch",
            train=TrainConfig(epochs=1, warmup_steps=0),
            minibatch=MinibatchConfig(batch_size=batch_size, workers=0),
        )
        self.config = replace(self.config, split=replace(self.config.split, train=0.3, val=0.05))
        self.graph, self.folder = prepare_graph(graph, self.config), folder
        rows = PPRConfig(diffusion=self.config.diffusion, k=64, clusters=32)
        build_store(self.graph, rows, folder, existing="resume")
        self.classifier = GPNClassifier(self.config, device="cpu")
        self.classifier.fit(self.graph, store=folder)
        self.nodes = np.random.default_rng(1).integers(graph.num_nodes, size=nodes)
        self.classifier.predict_nodes(self.graph, self.nodes[:2], folder)  # summarises clusters

    def rows(self) -> None:
        """Read the rows of random nodes, a batch at a time."""
        store = PPRStore.open(self.folder)
        for start in range(0, len(self.nodes), self.batch_size):
            store.rows(self.nodes[start : start + self.batch_size])

    def training(self) -> None:
        """Train one epoch."""
        trainer = GPNClassifier(self.config, device="cpu").trainer(self.graph, self.folder)
        list(trainer.records())

    def prediction(self) -> None:
        """Predict random nodes from their rows."""
        self.classifier.predict_nodes(self.graph, self.nodes, self.folder)

    def forget_files(self) -> None:
        """Drop the store from the page cache; pages that are still mapped would stay."""
        gc.collect()
        os.sync()
        for path in self.folder.iterdir():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def timed(work: Callable[[], None], *, checking: bool) -> tuple[float, float]:
    """Return the wall and CPU time of one run."""
    block_guard._checking = checking
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    block_guard._checking = True
    return time.perf_counter() - wall, time.process_time() - cpu


def measure(bench: Bench, work: Callable[[], None], *, cold: bool, repeats: int) -> dict[str, Any]:
    """Run with and without checks in turn."""
    times: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for repeat in range(repeats + 1):
        for checking in (True, False) if repeat % 2 else (False, True):
            if cold:
                bench.forget_files()
            times[checking].append(timed(work, checking=checking))
    results: dict[str, Any] = {}
    for place, name in enumerate(("wall", "cpu")):
        on, off = ([run[place] for run in times[checking][1:]] for checking in (True, False))
        ratios = [a / b for a, b in zip(on, off, strict=True)]
        results[f"{name}_s"] = [round(statistics.median(each), 4) for each in (on, off)]
        results[f"{name}_ratio"] = round(statistics.median(ratios), 4)
        results[f"{name}_ratio_range"] = [round(min(ratios), 4), round(max(ratios), 4)]
    return results


def main() -> None:
    """Print the result as one JSON line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--dataset", default="synthetic:nodes=100000,classes=10,features=64")
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--work", type=Path, help="directory for the store, on a real disk")
    parser.add_argument("--nodes", type=int, default=20_000, help="predicted nodes")
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.work is not None:
        options.work.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=options.work) as folder:
        graph = load_graph(options.dataset, options.data_dir)
        bench = Bench(graph, Path(folder), options.nodes, options.batch_size)
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
        result: dict[str, Any] = {"dataset": options.dataset, "store_mib": round(size / 2**20, 1)}
        for name in ("rows", "training", "prediction"):
            for cache in ("warm", "cold"):
                result[f"{name}_{cache}"] = measure(
                    bench, getattr(bench, name), cold=cache == "cold", repeats=options.repeats
                )
    print(json.dumps(result))


if __name__ == "__main__":
    main()
