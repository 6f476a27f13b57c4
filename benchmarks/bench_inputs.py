"""From which fraction of nonzero entries on is a dense product with the features faster?

    python benchmarks/bench_inputs.py [--nodes 4000] [--features 1000] [--hidden 64]
        [--fractions 0.05,0.1,0.25,0.5]

A training step multiplies the features of all nodes by weights and, for the gradient, the
transposed features by a matrix of the hidden layer's size. Sparse and dense products of both kinds
take turns with one thread (warm-up first, medians). `remembered` is the time of a product whose
weights have not changed, relative to the sparse one. Prints one JSON line: sparse / dense times by
fraction.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

from gpn_scale.nn.repeated import RepeatedInputs
from gpn_scale.nn.sparse import SparseMatrix

RNG_SEED = 1


def random_features(
    rows: int, columns: int, fraction: float, source: torch.Generator
) -> tuple[SparseMatrix, Tensor]:
    """Return random features with a fraction of nonzero entries, sparse and dense."""
    kept = torch.rand(rows, columns, generator=source) < fraction
    dense = torch.rand(rows, columns, generator=source) * kept
    indptr = torch.cat([torch.zeros(1, dtype=torch.int64), kept.sum(1).cumsum(0)])
    return SparseMatrix(indptr, kept.nonzero()[:, 1], dense[kept], columns), dense


def medians(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Return the median seconds of each call; the calls take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for repeat in range(repeats + 1):
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            if repeat:  # the first round warms up
                seconds[name].append(time.perf_counter() - began)
    return {name: statistics.median(values) for name, values in seconds.items()}


def measure(options: argparse.Namespace, fraction: float) -> dict[str, float]:
    """Return ratios of times for features with this fraction of nonzero entries."""
    source = torch.Generator().manual_seed(RNG_SEED)
    sparse, dense = random_features(options.nodes, options.features, fraction, source)
    weights = torch.randn(options.features, options.hidden, generator=source)
    gradient = torch.randn(options.nodes, options.hidden, generator=source)
    transposed, repeated = sparse.transposed(), RepeatedInputs(sparse)
    seconds = medians(
        {
            "sparse": lambda: (sparse.multiply(weights), transposed.multiply(gradient)),
            "dense": lambda: (dense @ weights, dense.T @ gradient),
            "sparse product": lambda: sparse.multiply(weights),
            "remembered": lambda: repeated.multiply(weights),
        },
        options.repeats,
    )
    return {
        "sparse_over_dense": seconds["sparse"] / seconds["dense"],
        "remembered_over_sparse": seconds["remembered"] / seconds["sparse product"],
    }


def main() -> None:
    """Measure all fractions and print the result."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=4_000, help="rows (default: 4000)")
    parser.add_argument("--features", type=int, default=1_000, help="columns (default: 1000)")
    parser.add_argument("--hidden", type=int, default=64, help="hidden units (default: 64)")
    parser.add_argument("--fractions", default="0.05,0.1,0.25,0.5", help="fractions of nonzeros")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    fractions = [float(fraction) for fraction in options.fractions.split(",")]
    facts = {f"{fraction:g}": measure(options, fraction) for fraction in fractions}
    print(json.dumps({"nodes": options.nodes, "features": options.features, **facts}))


if __name__ == "__main__":
    main()
