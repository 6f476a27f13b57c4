"""How long does it take to choose nodes to label among very many candidates?

    python benchmarks/bench_label_next.py [--nodes 1000000] [--k 32] [--count 50] [--repeats 5]

Every node is a candidate and reaches k nodes near it, most of them close by, with weights that fall
off as those of personalised PageRank do. Uncertainty is drawn uniformly. Only the choice itself is
timed, without reading rows from a store. Prints one JSON line.
"""

import argparse
import json
import statistics
import time

import numpy as np

from gpn_scale.triage.coverage import AbstractColumns, Entries, StoredColumns, greedy_cover

RNG_SEED = 1


def main() -> None:
    """Measure and print the result."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=20_000, help="nodes (default: 20000)")
    parser.add_argument("--k", type=int, default=32, help="entries of a column (default: 32)")
    parser.add_argument("--count", type=int, default=50, help="nodes to choose (default: 50)")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    columns = random_columns(options.nodes, options.k)
    open_N = np.random.default_rng(RNG_SEED + 1).random(options.nodes)
    candidates = np.arange(options.nodes)
    seconds = []
    for _ in range(options.repeats):
        counted = CountedColumns(columns)
        began = time.monotonic()
        greedy_cover(candidates, counted, open_N, options.count)
        seconds.append(time.monotonic() - began)
    facts = {
        "nodes": options.nodes,
        "k": options.k,
        "count": options.count,
        "median_s": statistics.median(seconds),
        "spread_s": max(seconds) - min(seconds),
        "columns_looked_at": counted.looked_at,
    }
    print(json.dumps(facts))


def random_columns(num_nodes: int, k: int) -> StoredColumns:
    """Return columns of k entries each; ids within a column are distinct."""
    rng = np.random.default_rng(RNG_SEED)
    # Distances to the candidate grow by at least 1 from entry to entry, and seldom by much more.
    steps = 1 + np.minimum(rng.zipf(1.5, size=(num_nodes, k - 1)), num_nodes // (2 * k))
    distance = np.concatenate([np.zeros((num_nodes, 1), np.int64), np.cumsum(steps, axis=1)], 1)
    ids = ((np.arange(num_nodes)[:, None] + distance) % num_nodes).astype(np.int32)
    weight = (rng.random((num_nodes, k)) / (1 + np.arange(k))).astype(np.float32)
    weight[:, 0] = 1.0
    return StoredColumns(np.arange(num_nodes + 1) * k, ids.ravel(), weight.ravel())


class CountedColumns(AbstractColumns):
    """Columns that count how often one is looked at."""

    def __init__(self, columns: StoredColumns) -> None:
        self.columns = columns
        self.looked_at = 0

    def bounds(self, open_N: np.ndarray) -> np.ndarray:
        """Return the bounds of the columns."""
        return self.columns.bounds(open_N)

    def column(self, position: int) -> Entries:
        """Return a column."""
        self.looked_at += 1
        return self.columns.column(position)


if __name__ == "__main__":
    main()
