"""The command `gpn-evaluate`: the paper's experiments over graphs, models and seeds."""

import argparse
import shlex
import sys
from collections.abc import Sequence
from typing import NoReturn

import torch

from gpn_scale.cli.console import leave, run_command
from gpn_scale.cli.evaluate_options import evaluation_parser, requested_matrix, table_choice
from gpn_scale.cli.evaluate_stores import build_stores
from gpn_scale.cli.evaluate_tables import write_tables
from gpn_scale.cli.shared_options import checked_threads
from gpn_scale.distributed import connected
from gpn_scale.experiments.cells import Cell
from gpn_scale.experiments.measured_cells import read_cells, without_measured
from gpn_scale.experiments.paper_figures import read_paper
from gpn_scale.experiments.request import MatrixRequest
from gpn_scale.experiments.run_matrix import run_cells, unfinished_cells
from gpn_scale.messages import say

_DAY_SECONDS = 86_400.0


def evaluate(options: argparse.Namespace) -> None:
    """Run the unfinished cells of the matrix, then write the tables of all results."""
    request = requested_matrix(options)
    threads = checked_threads(options.threads) if options.threads is not None else 1
    paper = None if options.paper is None else read_paper(options.paper)
    cells, choice = wanted_cells(options, request), table_choice(options, request.experiments)
    # All checks that can fail run before the first training.
    unfinished = [] if options.tables_only else unfinished_cells(request, cells)
    with connected(torch.device("cpu"), timeout_seconds=_DAY_SECONDS) as world:
        if world.is_first and len(cells) < len(request.cells):
            count = len(request.cells) - len(cells)
            message = f"{count:,} of {len(request.cells):,} trainings are not needed: "
            message += f"{options.measured} has their results"
            say("measured", message, count=count, path=str(options.measured))
        build_stores(request, unfinished, world)
        # Each rank begins with its own cells, then runs those that no other rank has claimed.
        order = sorted(range(len(unfinished)), key=lambda index: index % world.size != world.rank)
        run_cells(
            request,
            [unfinished[index] for index in order],
            processes=options.processes,
            threads=threads,
            silent=not world.is_first,
        )
        world.barrier()
        if not world.is_first:
            return
    # With --tables-only, no fraction counts as missing, whatever fractions the cells were run with.
    fractions = () if options.tables_only else request.fractions
    write_tables(request.directory, cells, request.experiments, fractions, paper, choice)


def wanted_cells(options: argparse.Namespace, request: MatrixRequest) -> list[Cell]:
    """Return the cells of the matrix that are not measured elsewhere with the same configuration.

    Raises:
        RunError: `--measured` is not a folder of such tables.
    """
    if options.measured is None:
        return request.cells
    measured = read_cells(options.measured)
    return without_measured(
        request.cells,
        measured,
        request.experiments,
        request.fractions,
        fingerprint_of=lambda cell: request.setting(cell).fingerprint,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and run; return the exit code, 2 for bad input."""
    given = sys.argv[1:] if arguments is None else arguments

    def run(options: argparse.Namespace) -> None:
        options.command = shlex.join(["gpn-evaluate", *given])
        evaluate(options)

    return run_command(evaluation_parser, run, arguments)


def start() -> NoReturn:
    """Run the command and end the process with its exit code."""
    leave(main())
