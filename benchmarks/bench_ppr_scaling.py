"""How does precompute scale with threads, with MPI ranks and with the size of the graph?

    python benchmarks/bench_ppr_scaling.py parallel --dataset NAME --data-dir DIR
    python benchmarks/bench_ppr_scaling.py size --nodes 1000000 3000000 10000000 --roots 1000000
    python benchmarks/bench_ppr_scaling.py size --dataset NAME --data-dir DIR

`parallel` sweeps with 1 and 2 threads in one process, then with 2 ranks of one thread each, and
prints the ratios. `size` runs whole builds, each in its own process, and prints time per root, and
peak memory against the planner's prediction. The default dataset is a synthetic graph of 170,000
nodes. Prints one JSON line per measurement.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def timed_sweeps(dataset: str, data_dir: Path, sweeps: int, comm: Any, threads: int) -> float:
    """Return the seconds of `sweeps` sweeps over all nodes, without compilation and loading."""
    from gpn_scale.config import DiffusionConfig, PPRConfig
    from gpn_scale.data.datasets import load_graph
    from gpn_scale.diffusion.transition import transition_matrix
    from precompute.row_engine import RowEngine

    graph = load_graph(dataset, data_dir)
    diffusion = DiffusionConfig(teleport=0.2, normalisation="rw", steps="inf")
    config = PPRConfig(diffusion=diffusion, k=32, sweeps=sweeps)
    transition = transition_matrix(graph, "rw", True)
    engine = RowEngine(transition, config, comm, threads=threads)
    ends: list[float] = []
    engine.sweep(lambda *_: ends.append(time.perf_counter()))
    return ends[-1] - ends[0]  # the first sweep warms up


def rank_sweeps(dataset: str, data_dir: str, sweeps: str) -> None:
    """Sweep with one thread in each rank of an MPI job, and print the seconds."""
    from precompute.mpi import world

    comm = world()
    seconds = timed_sweeps(dataset, Path(data_dir), int(sweeps), comm, 1)
    if comm.rank == 0:
        print(seconds)


def parallel(options: argparse.Namespace) -> None:
    """Print the ratios of 2 threads and of 2 ranks to one."""
    from precompute.mpi import SingleProcess

    arguments = (options.dataset, options.data_dir, options.sweeps)
    for _ in range(options.repeats):
        one, two = (timed_sweeps(*arguments, SingleProcess(), threads) for threads in (1, 2))
        mpiexec = Path(sys.executable).parent / "mpiexec"
        command = [mpiexec, "-n", "2", sys.executable, __file__, "rank", *map(str, arguments)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        ranks = float(output)
        result = {"one_thread_s": one, "two_threads_s": two, "two_ranks_s": ranks}
        result |= {"threads_ratio": one / two, "ranks_ratio": one / ranks}
        print(json.dumps({"dataset": options.dataset} | result), flush=True)


def size(options: argparse.Namespace) -> None:
    """Print measurements of whole builds of growing graphs."""
    datasets = [f"synthetic:nodes={n},degree=10,features=1" for n in options.nodes or []]
    for dataset in datasets or [options.dataset]:
        print(json.dumps(one_build(dataset, options)), flush=True)


def one_build(dataset: str, options: argparse.Namespace) -> dict[str, Any]:
    """Build in a child process; return its plan, times and peak memory."""
    with tempfile.TemporaryDirectory() as folder:
        roots = ["--roots", f"{folder}/roots.txt"] if options.roots else []
        if options.roots:
            step = int(dataset.partition("nodes=")[2].partition(",")[0]) // options.roots
            ids = (str(step * index) for index in range(options.roots))
            Path(f"{folder}/roots.txt").write_text("\n".join(ids))
        command = [sys.executable, __file__, "child", "--dataset", dataset]
        command += ["--data-dir", str(options.data_dir), "--out", f"{folder}/store", *roots]
        command += options.more
        child = subprocess.run(command, check=True, capture_output=True, text=True)
        return dict(json.loads(child.stdout.splitlines()[-1]))


def child(arguments: list[str]) -> None:
    """Build as the command line does, and print time and memory."""
    from gpn_scale.data.datasets import load_graph
    from gpn_scale.memory import peak_rss_bytes
    from precompute.arguments import chosen_roots, ppr_config, ppr_parser, resources_of
    from precompute.build import build_store
    from precompute.mpi import SingleProcess

    options = ppr_parser().parse_args(arguments)
    comm = SingleProcess()
    graph = load_graph(options.dataset, options.data_dir)
    roots = chosen_roots(graph, options.dataset, options.roots, options.split_seed)
    began = time.perf_counter()
    plan = build_store(
        graph,
        ppr_config(options),
        options.out,
        roots=roots,
        comm=comm,
        resources=resources_of(options, comm),
        say=lambda text: print(text, file=sys.stderr, flush=True),
    )
    seconds = time.perf_counter() - began
    num_roots = graph.num_nodes if roots is None else len(roots)
    peak = peak_rss_bytes()
    result = {"dataset": options.dataset, "nodes": graph.num_nodes, "roots": num_roots}
    result |= {"method": plan.method, "seconds": seconds}
    result |= {"microseconds_per_root": 1e6 * seconds / num_roots, "planned_seconds": plan.seconds}
    result |= {"peak_gb": peak / 1e9, "planned_over_actual_memory": plan.memory.peak / peak}
    print(json.dumps(result))


def main() -> None:
    """Answer one of the two questions."""
    if sys.argv[1:2] == ["child"]:
        child(sys.argv[2:])
        return
    if sys.argv[1:2] == ["rank"]:
        rank_sweeps(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("question", choices=["parallel", "size"])
    parser.add_argument("--dataset", default="synthetic:nodes=170000,degree=14,features=1")
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--sweeps", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--nodes", type=int, nargs="*")
    parser.add_argument("--roots", type=int)
    options, options.more = parser.parse_known_args()
    if options.roots and not options.nodes:
        parser.error("--roots takes every so many nodes of a synthetic graph: give --nodes too")
    parallel(options) if options.question == "parallel" else size(options)


if __name__ == "__main__":
    main()
