"""Computes a store of PPR rows in parts, as Dask futures (pip install "dask[distributed]").

    python examples/parts_with_dask.py --dataset NAME --data-dir DIR --parts 16 --out STORE

This starts two workers on this machine; with `--scheduler tcp://HOST:8786` the workers are those of
a cluster. Every machine has gpn_scale installed, and sees DIR and STORE under the same paths.
Workers have one thread each (`dask worker --nthreads 1`): parts are computed by processes, not by
threads of one process.
"""

import argparse
from pathlib import Path

from distributed import Client, as_completed

from gpn_scale import load_graph
from gpn_scale.config import PPRConfig
from precompute.build import build_store
from precompute.parts import finish_store
from precompute.resources import Resources

THREADS, MEMORY_BYTES = 1, 8 << 30


def compute_part(options: argparse.Namespace, index: int) -> str:
    """Compute and write part `index`, which counts from 1."""
    plan = build_store(
        load_graph(options.dataset, options.data_dir),
        PPRConfig(k=options.k),
        options.out,
        part=(index, options.parts),
        resources=Resources(threads=THREADS, memory_bytes=MEMORY_BYTES),
    )
    return f"part {plan.part} is complete"


def main() -> None:
    """Compute all parts and complete the store."""
    parser = argparse.ArgumentParser(description="Compute a store of PPR rows as Dask futures.")
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--k", type=int, default=32)
    parser.add_argument("--parts", type=int, default=16)
    parser.add_argument("--scheduler", help="address of a cluster; without, two local workers")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.data_dir, options.out = options.data_dir.resolve(), options.out.resolve()
    local = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with Client(options.scheduler) if options.scheduler else Client(**local) as client:
        numbers = range(1, options.parts + 1)
        futures = [client.submit(compute_part, options, i, pure=False, retries=3) for i in numbers]
        for done in as_completed(futures):
            print(done.result())
    finish_store(options.out)


if __name__ == "__main__":
    main()
