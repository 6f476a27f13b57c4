"""Options of `gpn-precompute`: the parser, and the arguments of a build that they set."""

import argparse
import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from gpn_scale.command_line import CommandParser
from gpn_scale.config import DiffusionConfig, PPRConfig, override
from gpn_scale.data.datasets import dataset_help
from gpn_scale.data.graph import MISSING_LABEL, Graph, NodeIds
from gpn_scale.data.id_list import read_id_list
from gpn_scale.data.splits import prepare_graph
from gpn_scale.errors import ConfigError, FileError
from gpn_scale.ppr.claiming import Existing
from gpn_scale.recipes import recipe_for
from precompute.accuracy_targets import Target
from precompute.mpi import AbstractComm
from precompute.resources import Resources, default_resources, thread_limit

_MOST_GIGABYTES, _MOST_DIGITS = 1_000_000, 18
_WHOLE_NUMBER = rf"-?[0-9]{{1,{_MOST_DIGITS}}}"


def ppr_parser() -> argparse.ArgumentParser:
    """Return the parser of the command `ppr`.

    >>> options = ppr_parser().parse_args(["--dataset", "CoraML", "--k", "32", "--out", "store"])
    >>> options.dataset, options.k, options.clusters
    ('CoraML', 32, 32)
    """
    parser = CommandParser(
        prog="gpn-precompute",
        description="Compute the largest entries of every node's personalised-PageRank row and "
        "write them to a store on disk, for `gpn-train --mode minibatch --ppr STORE`. Use "
        "mpiexec to divide the work among several ranks, or --part to divide it among independent "
        "processes.",
        epilog="Further commands: `gpn-precompute info STORE` describes a store, "
        "`gpn-precompute verify STORE` checks all of its files, "
        "`gpn-precompute finish STORE` completes a store after all of its parts are "
        "computed, "
        "`gpn-precompute update STORE --dataset NEW` updates a store after its graph has "
        "changed, "
        "`gpn-precompute compact STORE` folds all updates into one generation, "
        "`gpn-precompute repair STORE` recomputes damaged shards.",
    )
    _add_graph_options(parser.add_argument_group("graph and store"))
    _add_diffusion_options(parser.add_argument_group("diffusion"))
    _add_row_options(parser.add_argument_group("rows"))
    _add_engine_options(parser.add_argument_group("computation"))
    return parser


def _add_graph_options(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--dataset",
        default="synthetic",
        metavar="NAME",
        help=f"{dataset_help()} (default: %(default)s)",
    )
    add(
        "--data-dir",
        type=Path,
        default=Path("data"),
        metavar="DIR",
        help="folder that graphs are read from and downloaded to (default: %(default)s)",
    )
    add("--out", type=Path, required=True, metavar="STORE", help="directory of the store to write")
    existing = group.add_mutually_exclusive_group()
    existing.add_argument(
        "--resume",
        action="store_true",
        help="continue an unfinished store or repair a damaged one",
    )
    existing.add_argument(
        "--overwrite", action="store_true", help="replace the store in this directory"
    )
    add(
        "--roots",
        default="all",
        metavar="all|labelled|train|FILE",
        help="nodes that get a row: all nodes, all labelled ones, the training and validation "
        "nodes of the split (train, enough for training), or the nodes in a file with one id per "
        "line (default: %(default)s)",
    )
    add(
        "--split-seed",
        type=int,
        default=1,
        metavar="S",
        help="seed of the random split for `--roots train`, if the graph comes without a split; "
        "use the same seed as for training (default: %(default)s)",
    )


def _add_diffusion_options(group: argparse._ArgumentGroup) -> None:
    add, defaults = group.add_argument, PPRConfig().diffusion
    add(
        "--teleport",
        type=float,
        default=defaults.teleport,
        metavar="T",
        help="probability of returning to the root in each step, at least 1e-6 and below 1 "
        "(default: %(default)s)",
    )
    add(
        "--normalisation",
        choices=["sym", "rw"],
        default=defaults.normalisation,
        help="transition matrix: sym is D^-1/2 A D^-1/2, rw is D^-1 A (default: %(default)s)",
    )
    add(
        "--steps",
        default=str(defaults.steps),
        metavar="K|inf",
        help="number of diffusion steps, at most 100000, or inf for personalised PageRank, which "
        "needs a teleport probability of at least 0.0002 (default: %(default)s)",
    )
    add(
        "--self-loops",
        choices=["on", "off"],
        default="on",
        help="count every node as its own neighbour (default: %(default)s)",
    )


def _add_row_options(group: argparse._ArgumentGroup) -> None:
    add, defaults = group.add_argument, PPRConfig()
    add(
        "--k",
        type=int,
        metavar="K",
        help="largest number of entries to keep per row, at most the number of nodes "
        f"(default: {defaults.k})",
    )
    add(
        "--clusters",
        type=int,
        default=defaults.clusters,
        metavar="P",
        help="number of graph clusters, at most 4096; the cut mass of each row is stored per "
        "cluster; 0 for no clusters (default: %(default)s)",
    )
    add(
        "--target-mass",
        type=float,
        metavar="M",
        help="choose k so that rows keep this fraction of their mass on average, instead of --k",
    )
    add(
        "--target-recall",
        type=float,
        metavar="R",
        help="choose --keep and the tolerances so that rows contain this fraction of their exact "
        "top k",
    )


def _add_engine_options(group: argparse._ArgumentGroup) -> None:
    add, defaults = group.add_argument, PPRConfig()
    add("--plan-only", action="store_true", help="print the plan and write nothing")
    add(
        "--method",
        choices=["auto", "sweep", "push"],
        default=defaults.method,
        help="sweep computes all rows together, from their neighbours' rows; push computes each "
        "root by itself; auto chooses push if there are few roots (default: %(default)s)",
    )
    add(
        "--keep",
        type=int,
        default=defaults.keep,
        metavar="N",
        help="number of entries per row during sweeps, from k to twice the number of nodes; 0 for "
        "twice k (default: %(default)s)",
    )
    add(
        "--sweeps",
        type=int,
        default=defaults.sweeps,
        metavar="N",
        help="number of sweeps with `--steps inf`, at most 10000; 0 to continue until "
        "--sweep-tolerance (default: %(default)s)",
    )
    add(
        "--sweep-tolerance",
        type=float,
        default=defaults.sweep_tolerance,
        metavar="E",
        help="stop sweeping when further sweeps would add less than E to the mean mass of a row; "
        "at least 1e-12 and below 1 (default: %(default)s)",
    )
    add(
        "--push-tolerance",
        type=float,
        default=defaults.push_tolerance,
        metavar="E",
        help="stop a push when no node's residual exceeds E times its number of edges; at least "
        "1e-12 and below 1 (default: %(default)s)",
    )
    add(
        "--part",
        metavar="I/N",
        help="push and write only the shards of part I of N, such as 3/16. Parts are numbered from "
        "1 and may be computed in any order, on any machine and repeatedly; the command `finish` "
        "joins them",
    )
    add_machine_options(group)


def add_machine_options(group: argparse._ActionsContainer) -> None:
    """Add the options for threads and memory, which `resources_of` reads.

    >>> parser = argparse.ArgumentParser()
    >>> add_machine_options(parser)
    >>> parser.parse_args(["--threads", "2"]).threads
    2
    """
    add = group.add_argument
    add("--threads", type=int, metavar="T", help="threads per rank (default: all cores)")
    add(
        "--memory-budget",
        type=float,
        metavar="GB",
        help="scratch memory per rank in GB, at most a million (default: 80 %% of the free memory)",
    )


def ppr_config(options: argparse.Namespace) -> PPRConfig:
    """Return the options as a checked configuration.

    >>> options = ppr_parser().parse_args(["--steps", "inf", "--k", "16", "--out", "store"])
    >>> config = ppr_config(options)
    >>> config.k, config.diffusion.steps
    (16, 'inf')

    Raises:
        ConfigError: an option has a value that is not allowed.
    """
    steps = options.steps
    if steps != "inf":
        if not (steps.isdecimal() and len(steps) <= _MOST_DIGITS):
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
    """Return the target of `--target-mass` or `--target-recall`, if one was given.

    >>> target_of(ppr_parser().parse_args(["--target-mass", "0.9", "--out", "store"]))
    Target(kind='mass', value=0.9)

    Raises:
        ConfigError: the value is not in (0, 1), or the options contradict each other.
    """
    mass, recall = options.target_mass, options.target_recall
    if mass is not None and recall is not None:
        raise ConfigError(
            "--target-mass and --target-recall are both given, expected at most one of them"
        )
    if mass is not None:
        if options.k is not None:
            raise ConfigError(
                f"--target-mass chooses k, but --k {options.k} is given too: omit one of them"
            )
        return Target("mass", mass)
    return None if recall is None else Target("recall", recall)


def resources_of(options: argparse.Namespace, comm: AbstractComm) -> Resources:
    """Return the threads and memory that the options allow; by default, ranks get equal parts.

    >>> from precompute.mpi import SingleProcess
    >>> flags = ["--threads", "2", "--memory-budget", "4", "--out", "store"]
    >>> resources_of(ppr_parser().parse_args(flags), SingleProcess())
    Resources(threads=2, memory_bytes=4000000000)

    Raises:
        ConfigError: a number is not positive, or numba does not allow that many threads.
    """
    resources = default_resources(comm.size)
    if options.threads is not None:
        if options.threads < 1:
            raise ConfigError(f"--threads got {options.threads}, expected at least 1")
        if options.threads > thread_limit():
            raise ConfigError(
                f"--threads got {options.threads}, expected at most {thread_limit()}: to allow "
                f"more, set the environment variable NUMBA_NUM_THREADS={options.threads}"
            )
        resources = replace(resources, threads=options.threads)
    if options.memory_budget is not None:
        if not 0 < options.memory_budget <= _MOST_GIGABYTES:
            raise ConfigError(
                f"--memory-budget got {options.memory_budget}, expected a positive number of GB, "
                f"at most {_MOST_GIGABYTES}"
            )
        resources = replace(resources, memory_bytes=int(options.memory_budget * 1e9))
    return resources


def part_of(options: argparse.Namespace) -> tuple[int, int] | None:
    """Return the part number and the number of parts of `--part`, if it was given.

    >>> part_of(ppr_parser().parse_args(["--part", "3/16", "--out", "store"]))
    (3, 16)

    Raises:
        ConfigError: the text does not consist of two whole numbers.
    """
    if options.part is None:
        return None
    numbers = options.part.split("/")
    if len(numbers) != 2 or not all(re.fullmatch(_WHOLE_NUMBER, each) for each in numbers):
        raise ConfigError(
            f"--part got {options.part[:40]!r}, expected two whole numbers I/N, such as 3/16 for "
            "the third of 16 parts"
        )
    return int(numbers[0]), int(numbers[1])


def existing_of(options: argparse.Namespace) -> Existing:
    """Return how `--resume` and `--overwrite` treat an existing store.

    >>> existing_of(ppr_parser().parse_args(["--resume", "--out", "store"]))
    'resume'
    """
    if options.resume:
        return "resume"
    return "overwrite" if options.overwrite else "refuse"


def chosen_roots(graph: Graph, dataset: str, selection: str, split_seed: int) -> NodeIds | None:
    """Return the roots of `--roots`: None for all nodes, otherwise sorted node ids.

    For `train`, the split is that of the dataset's recipe.

    >>> from gpn_scale import build_graph
    >>> graph = build_graph([0, 1], [1, 2], labels=[0, -1, 1])
    >>> chosen_roots(graph, "mine", "labelled", split_seed=1)
    array([0, 2])

    Raises:
        ConfigError: a file cannot be read, or contains repeated or unknown ids.
    """
    if selection == "all":
        return None
    if selection == "labelled":
        return np.flatnonzero(graph.labels != MISSING_LABEL)
    if selection == "train":
        config = override(recipe_for(dataset, graph), [("split.rng_seed", str(split_seed))])
        split = prepare_graph(graph, config).split
        assert split is not None
        return np.union1d(split.train, split.val)
    try:
        roots = read_id_list(selection)
    except FileError as error:
        raise ConfigError(f"--roots {error}; other choices are all, labelled and train") from error
    unique, counts = np.unique(roots, return_counts=True)
    if (counts > 1).any():
        raise ConfigError(
            f"--roots {selection} contains node {unique[counts > 1][0]} more than once, expected "
            "each node once"
        )
    wrong = unique[(unique < 0) | (unique >= graph.num_nodes)]
    if len(wrong):
        raise ConfigError(
            f"--roots {selection} contains node {wrong[0]}, expected ids in [0, {graph.num_nodes})"
        )
    return unique
