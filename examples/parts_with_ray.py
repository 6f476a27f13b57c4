"""Computes a store of PPR rows in parts, as Ray tasks (pip install ray).

    python examples/parts_with_ray.py --dataset NAME --data-dir DIR --parts 16 --out STORE

Every machine of the cluster has gpn_scale installed, and sees DIR and STORE under the same paths.
A part whose machine is lost is computed again, on whichever machine is free.
"""

import argparse
from pathlib import Path

import ray

from gpn_scale import load_graph
from gpn_scale.config import PPRConfig
from precompute.build import build_store
from precompute.parts import finish_store
from precompute.resources import Resources

THREADS, MEMORY_BYTES = 1, 8 << 30


@ray.remote(num_cpus=THREADS, max_retries=3)
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
    parser = argparse.ArgumentParser(description="Compute a store of PPR rows as Ray tasks.")
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--k", type=int, default=32)
    parser.add_argument("--parts", type=int, default=16)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.data_dir, options.out = options.data_dir.resolve(), options.out.resolve()
    ray.init(log_to_driver=False)
    waiting = [compute_part.remote(options, index) for index in range(1, options.parts + 1)]
    while waiting:
        (done,), waiting = ray.wait(waiting)
        print(ray.get(done))
    finish_store(options.out)


if __name__ == "__main__":
    main()
