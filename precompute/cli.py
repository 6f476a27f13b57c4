"""Command line of precompute: `ppr` (the default), `verify` and `info`. It does not load torch."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gpn_scale.data.datasets import load_graph
from gpn_scale.errors import GpnScaleError
from gpn_scale.flags import PRECOMPUTE_FLAGS, with_flags
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.verification import verify_store
from precompute.arguments import (
    chosen_roots,
    existing_of,
    ppr_config,
    ppr_parser,
    resources_of,
    target_of,
)
from precompute.build import build_store, plan_store
from precompute.mpi import abort_all_ranks_on_error, world

BAD_INPUT = 2
COMMANDS = ("ppr", "verify", "info")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return 0 if done, 1 for a damaged store, 2 for invalid input.

    >>> main(["--dataset", "synthetic:nodes=200", "--plan-only", "--out", "store"])
    0
    """
    remaining = list(sys.argv[1:] if arguments is None else arguments)
    command = remaining.pop(0) if remaining and remaining[0] in COMMANDS else "ppr"
    try:
        if command == "ppr":
            return _ppr(ppr_parser().parse_args(remaining))
        options = _store_parser(command).parse_args(remaining)
        return _verify(options.store) if command == "verify" else _info(options.store)
    except GpnScaleError as error:
        print(f"error: {with_flags(error, PRECOMPUTE_FLAGS)}", file=sys.stderr)
        return BAD_INPUT


def _ppr(options: argparse.Namespace) -> int:
    comm = world()
    with abort_all_ranks_on_error(comm):

        def say(text: str) -> None:
            if comm.rank == 0:
                print(text, file=sys.stderr, flush=True)

        config, target = ppr_config(options), target_of(options)
        resources = resources_of(options, comm)
        graph = load_graph(options.dataset, options.data_dir)
        say(f"{graph.name}: {graph.num_nodes:,} nodes, {graph.num_edges:,} edges")
        roots = chosen_roots(graph, options.dataset, options.roots, options.split_seed)
        if options.plan_only:
            plan_store(
                graph,
                config,
                roots=roots,
                comm=comm,
                resources=resources,
                say=say,
                target=target,
            )
            return 0
        build_store(
            graph,
            config,
            options.out,
            roots=roots,
            comm=comm,
            resources=resources,
            existing=existing_of(options),
            say=say,
            target=target,
        )
        if comm.rank == 0:
            _info(options.out)
    return 0


def _verify(path: Path) -> int:
    problems = verify_store(path)
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{path}: {len(problems)} problem(s)" if problems else f"{path}: intact")
    return 1 if problems else 0


def _info(path: Path) -> int:
    store = PPRStore.open(path)
    entries = store.manifest["entries"]
    size = sum(file.stat().st_size for file in path.iterdir())
    print(f"{path}: {store.num_roots:,} rows of {store.num_nodes:,} nodes, {size / 2**20:,.1f} MiB")
    print(f"  entries per row up to {store.k}, mean {entries / max(store.num_roots, 1):.1f}")
    print(f"  clusters        {store.num_clusters}")
    print(f"  build time      {store.build_seconds:.1f} s")
    for name, value in store.parameters.items():
        print(f"  {name:<15} {value}")
    print("  missing mass    fraction of rows")
    counts = np.histogram(np.minimum(store.missing_mass, 1.0), bins=10, range=(0.0, 1.0))[0]
    for index, count in enumerate(counts):
        fraction = count / max(store.num_roots, 1)
        bar = "#" * round(40 * fraction)
        print(f"    {index / 10:.1f} to {(index + 1) / 10:.1f}   {fraction:6.1%} {bar}")
    return 0


def _store_parser(command: str) -> argparse.ArgumentParser:
    description = {
        "verify": "Check the checksums of all files of a store.",
        "info": "Print size, parameters and missing mass of a store.",
    }[command]
    parser = argparse.ArgumentParser(
        prog=f"python -m precompute {command}", description=description
    )
    parser.add_argument("store", type=Path, metavar="STORE", help="directory of the store")
    return parser
