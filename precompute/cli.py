"""Command line of precompute: `ppr` (may be left out), `verify` and `info`. Loads no torch."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from gpn_scale.config import DiffusionConfig, PPRConfig
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph import MISSING_LABEL, Graph, NodeIds
from gpn_scale.data.splits import stratified_split
from gpn_scale.errors import ConfigError, GpnScaleError
from gpn_scale.flags import PRECOMPUTE_FLAGS, with_flags
from gpn_scale.ppr.store import PPRStore, verify_store
from precompute.build import Resources, build_store, default_resources
from precompute.mpi import AbstractComm, abort_all_ranks_on_error, world
from precompute.planner import Target

BAD_INPUT = 2
COMMANDS = ("ppr", "verify", "info")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; 0 when done, 1 for a store that fails verification, 2 for bad input."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    command = words.pop(0) if words and words[0] in COMMANDS else "ppr"
    try:
        if command == "ppr":
            return _ppr(ppr_parser().parse_args(words))
        options = _store_parser(command).parse_args(words)
        return _verify(options.store) if command == "verify" else _info(options.store)
    except GpnScaleError as error:
        print(f"error: {with_flags(error, PRECOMPUTE_FLAGS)}", file=sys.stderr)
        return BAD_INPUT


def ppr_parser() -> argparse.ArgumentParser:
    """The parser of `ppr`."""
    defaults = PPRConfig()
    diffusion = defaults.diffusion
    parser = argparse.ArgumentParser(
        prog="python -m precompute",
        description="Compute top-k personalised-PageRank rows of a graph into a store on disk. "
        "Further commands: verify STORE, info STORE. Runs under mpiexec, too.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--dataset", default="synthetic", metavar="NAME", help="as for launch/train.py")
    add("--data-dir", type=Path, default=Path("data"), metavar="DIR", help="where graphs are")
    add("--out", type=Path, required=True, metavar="STORE", help="directory of the store")
    add("--resume", action="store_true", help="go on with an unfinished or damaged store")
    add("--overwrite", action="store_true", help="replace the store that is there")
    add("--teleport", type=float, default=diffusion.teleport, help="return probability")
    add("--normalisation", choices=["sym", "rw"], default=diffusion.normalisation, help="of S")
    add("--steps", default=str(diffusion.steps), metavar="K|inf", help="steps of the diffusion")
    add("--self-loops", choices=["on", "off"], default="on", help="loops added to every node")
    add("--k", type=int, help=f"most entries of a row; if absent, {defaults.k} or by --target-mass")
    add("--target-mass", type=float, metavar="M", help="mean kept mass, in place of --k")
    add(
        "--target-recall",
        type=float,
        metavar="R",
        help="share of each exact top k, in place of --keep and the tolerances",
    )
    add("--plan-only", action="store_true", help="print the plan and write nothing")
    add("--clusters", type=int, default=defaults.clusters, metavar="P", help="clusters, 0: none")
    add("--roots", default="all", metavar="all|labelled|train|FILE", help="nodes to have rows")
    add("--split-seed", type=int, default=1, metavar="S", help="of --roots train without a split")
    add("--method", choices=["auto", "sweep", "push"], default=defaults.method, help="engine")
    add("--keep", type=int, default=defaults.keep, help="entries while sweeping, 0: twice k")
    add("--sweeps", type=int, default=defaults.sweeps, help="number of sweeps, 0: as needed")
    add("--sweep-tolerance", type=float, default=defaults.sweep_tolerance, help="mass to come")
    add("--push-tolerance", type=float, default=defaults.push_tolerance, help="residual of a push")
    add("--threads", type=int, metavar="T", help="per rank; all cores if absent")
    add("--memory-budget", type=float, metavar="GB", help="scratch per rank; free memory if absent")
    return parser


def _store_parser(command: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m precompute {command}")
    parser.add_argument("store", type=Path)
    return parser


def ppr_config(options: argparse.Namespace) -> PPRConfig:
    """The options as a checked configuration."""
    steps = options.steps
    if steps != "inf":
        if not steps.isdecimal():
            raise ConfigError(f"--steps got {steps!r}, expected a whole number or inf")
        steps = int(steps)
    return PPRConfig(
        diffusion=DiffusionConfig(
            teleport=options.teleport,
            normalisation=options.normalisation,
            steps=steps,
            self_loops=options.self_loops == "on",
        ),
        k=PPRConfig().k if options.k is None else options.k,
        clusters=options.clusters,
        method=options.method,
        keep=options.keep,
        sweeps=options.sweeps,
        sweep_tolerance=options.sweep_tolerance,
        push_tolerance=options.push_tolerance,
    )


def target_of(options: argparse.Namespace) -> Target | None:
    """`--target-mass` or `--target-recall`, if one was given."""
    mass, recall = options.target_mass, options.target_recall
    if mass is not None and recall is not None:
        raise ConfigError("--target-mass and --target-recall exclude each other, got both")
    if mass is not None:
        if options.k is not None:
            raise ConfigError(f"--target-mass chooses k, but --k {options.k} was given too")
        return Target("mass", mass)
    return None if recall is None else Target("recall", recall)


def resources_of(options: argparse.Namespace, comm: AbstractComm) -> Resources:
    """What the options allow, or an even share of the machine."""
    resources = default_resources(comm.size)
    if options.threads is not None:
        if options.threads < 1:
            raise ConfigError(f"--threads got {options.threads}, expected at least 1")
        resources = replace(resources, threads=options.threads)
    if options.memory_budget is not None:
        if not options.memory_budget > 0:
            raise ConfigError(f"--memory-budget got {options.memory_budget}, expected gigabytes")
        resources = replace(resources, memory_bytes=int(options.memory_budget * 1e9))
    return resources


def chosen_roots(graph: Graph, asked: str, split_seed: int) -> NodeIds | None:
    """`--roots`: None for all nodes, else sorted node ids.

    Raises:
        ConfigError: a file cannot be read, or holds repeated or unknown ids.
    """
    if asked == "all":
        return None
    if asked == "labelled":
        return np.flatnonzero(graph.labels != MISSING_LABEL)
    if asked == "train":
        split = graph.split or stratified_split(graph, rng_seed=split_seed).split
        assert split is not None
        return split.train
    try:
        roots = np.loadtxt(asked, dtype=np.int64, ndmin=1)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"--roots {asked} cannot be read ({error}), expected all, labelled, train or a text "
            "file with one node id a line"
        ) from error
    unique, counts = np.unique(roots, return_counts=True)
    if (counts > 1).any():
        raise ConfigError(
            f"--roots {asked} holds node {unique[counts > 1][0]} more than once, expected each once"
        )
    wrong = unique[(unique < 0) | (unique >= graph.num_nodes)]
    if len(wrong):
        raise ConfigError(
            f"--roots {asked} holds node {wrong[0]}, expected ids in [0, {graph.num_nodes})"
        )
    return unique


def _ppr(options: argparse.Namespace) -> int:
    comm = world()
    with abort_all_ranks_on_error(comm):

        def say(text: str) -> None:
            if comm.rank == 0:
                print(text, file=sys.stderr, flush=True)

        config, target = ppr_config(options), target_of(options)
        graph = load_graph(options.dataset, options.data_dir)
        say(f"{graph.name}: {graph.num_nodes:,} nodes, {graph.num_edges:,} edges")
        build_store(
            graph,
            config,
            options.out,
            roots=chosen_roots(graph, options.roots, options.split_seed),
            comm=comm,
            resources=resources_of(options, comm),
            resume=options.resume,
            overwrite=options.overwrite,
            say=say,
            target=target,
            plan_only=options.plan_only,
        )
        if comm.rank == 0 and not options.plan_only:
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
    missing = store.missing_mass
    entries = store.manifest["entries"]
    size = sum(file.stat().st_size for file in path.iterdir())
    print(f"{path}: {store.num_roots:,} rows of {store.num_nodes:,} nodes, {size / 2**20:,.1f} MiB")
    print(f"  entries a row   up to {store.k}, mean {entries / max(store.num_roots, 1):.1f}")
    print(f"  clusters        {store.num_clusters}")
    for name, value in store.parameters.items():
        print(f"  {name:<15} {value}")
    print("  missing mass    share of rows")
    counts = np.histogram(np.minimum(missing, 1.0), bins=10, range=(0.0, 1.0))[0]
    for index, count in enumerate(counts):
        share = count / max(store.num_roots, 1)
        bar = "#" * round(40 * share)
        print(f"    {index / 10:.1f} to {(index + 1) / 10:.1f}   {share:6.1%} {bar}")
    return 0
