"""Does the plan of a build tell how long it will take, and how much memory and disk it needs?

    python benchmarks/bench_plan.py [--data-dir DIR] [--datasets NAME:STEPS:FRACTION ...]

Builds a store of every graph, with rows for a fraction of its nodes and K steps or `inf`, each in a
process of its own, and prints planned and actual time, and their ratio. Kernels are compiled before
the first measurement. The defaults need no file; others are, for example, `web-Google:inf:1`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

SHAPES = (
    "synthetic/nodes=20000:10:1",
    "synthetic/nodes=100000,degree=30:10:1",
    "synthetic/nodes=100000,degree_exponent=2.05:inf:1",
    "synthetic/nodes=300000,degree=6:10:0.05",
    "synthetic/nodes=300000,degree=10:inf:0.05",
)


def measure(shape: str, data_dir: Path, seed: int) -> dict[str, object]:
    """Return planned and actual figures of one build, in this process."""
    import time

    import numpy as np

    from gpn_scale.config import DiffusionConfig, PPRConfig
    from gpn_scale.data.datasets import load_graph
    from precompute.build import build_store

    name, steps, fraction = shape.rsplit(":", 2)
    graph = load_graph(name.replace("/", ":"), data_dir)
    diffusion = DiffusionConfig(
        teleport=0.2, normalisation="sym", steps="inf" if steps == "inf" else int(steps)
    )
    config = PPRConfig(diffusion=diffusion, k=32, clusters=32, push_tolerance=3e-5)
    rng = np.random.default_rng(seed)
    count = round(float(fraction) * graph.num_nodes)
    roots = None
    if count < graph.num_nodes:
        roots = np.sort(rng.choice(graph.num_nodes, count, replace=False))
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        plan = build_store(graph, config, folder, roots=roots)
        seconds = time.perf_counter() - began
        size = sum(path.stat().st_size for path in Path(folder).rglob("*"))
    return {
        "shape": shape.replace("/", ":"),
        "method": plan.method,
        "planned_seconds": plan.seconds,
        "seconds": seconds,
        "ratio": plan.seconds / seconds,
        "disk_ratio": plan.disk_bytes / size,
    }


def main() -> None:
    """Measure every shape in a process of its own, and print one JSON line each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--datasets", nargs="+", metavar="NAME:STEPS:FRACTION")
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--here", action="store_true", help="measure in this process")
    options = parser.parse_args()
    for shape in options.datasets or SHAPES:
        if options.here:
            print(json.dumps(measure(shape, options.data_dir, seed=0)), flush=True)
        else:
            command = [sys.executable, __file__, "--here", "--datasets", shape]
            subprocess.run([*command, "--data-dir", options.data_dir], check=True)


if __name__ == "__main__":
    main()
