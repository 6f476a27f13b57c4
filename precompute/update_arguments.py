"""Options of `gpn-precompute update`."""

import argparse
from pathlib import Path

from gpn_scale.command_line import CommandParser
from gpn_scale.data.datasets import dataset_help
from precompute.arguments import add_machine_options
from precompute.update import TOLERANCE


def update_parser() -> argparse.ArgumentParser:
    """Return the parser of the command `update`.

    >>> update_parser().parse_args(["store", "--dataset", "CoraML"]).tolerance
    0.01
    """
    parser = CommandParser(
        prog="gpn-precompute update",
        description="Update the rows of a store after its graph has changed. Rows that may have "
        "moved by more than a tolerance are recomputed; the others are kept, together with a "
        "bound on how far they moved. The new graph must begin with the nodes of the old one, in "
        "the same order.",
    )
    add = parser.add_argument
    add("store", type=Path, metavar="STORE", help="directory of the store")
    add(
        "--dataset",
        required=True,
        metavar="NAME",
        help=f"the new graph, or the old one with --changes: {dataset_help()}",
    )
    add(
        "--changes",
        type=Path,
        metavar="FILE",
        help="table of changed edges (CSV or Parquet) with the columns source, target, change "
        "(add, remove or set) and, for weighted edges, weight; needs --write-graph",
    )
    add(
        "--write-graph",
        type=Path,
        metavar="DIR/NEW",
        help="folder to which the graph after --changes is written, for --dataset of other "
        "commands",
    )
    add(
        "--data-dir",
        type=Path,
        default=Path("data"),
        metavar="DIR",
        help="folder that graphs are read from and downloaded to (default: %(default)s)",
    )
    add(
        "--tolerance",
        type=float,
        default=TOLERANCE,
        metavar="E",
        help="recompute rows of which more than this mass may have moved; 0 recomputes all rows "
        "that a change can reach (default: %(default)s)",
    )
    add(
        "--roots",
        metavar="labelled|train|FILE",
        help="additional nodes that get a row, for a store that does not have rows of all nodes",
    )
    add(
        "--split-seed",
        type=int,
        default=1,
        metavar="S",
        help="seed of the random split for `--roots train`, as in a build (default: %(default)s)",
    )
    add("--plan-only", action="store_true", help="print the plan and write nothing")
    add_machine_options(parser)
    return parser
