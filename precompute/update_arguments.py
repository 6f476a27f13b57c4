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
        description="Make the rows of a store those of a graph that has changed. Rows that may "
        "have moved by more mass than a tolerance are computed again; the others stay, with a "
        "bound on how far they moved. The old nodes must be the first ones of the new graph.",
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
        help="table of the edges that have changed (CSV or Parquet) with the columns source, "
        "target, change (add, remove or set) and, for weighted edges, weight; needs --write-graph",
    )
    add(
        "--write-graph",
        type=Path,
        metavar="DIR/NEW",
        help="folder in which the graph after --changes is saved, for --dataset of other commands",
    )
    add(
        "--data-dir",
        type=Path,
        default=Path("data"),
        metavar="DIR",
        help="directory of the datasets (default: %(default)s)",
    )
    add(
        "--tolerance",
        type=float,
        default=TOLERANCE,
        metavar="E",
        help="rows that may have moved by more mass than this are computed again; 0 for all that "
        "a change can reach (default: %(default)s)",
    )
    add(
        "--roots",
        metavar="labelled|train|FILE",
        help="further nodes that get a row, for a store whose roots are not all nodes",
    )
    add("--split-seed", type=int, default=1, metavar="S", help="as for a build")
    add("--plan-only", action="store_true", help="print the plan and write nothing")
    add_machine_options(parser)
    return parser
