"""Command line of `gpn-import`: its options, and the column names and rules that they set."""

import argparse
import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpn_scale.command_line import CommandParser, command_name
from gpn_scale.data.column_kinds import KINDS, MISSING_RULES
from gpn_scale.data.column_roles import ColumnNames
from gpn_scale.data.import_record import ImportRecord, read_record
from gpn_scale.data.import_rules import STRUCTURAL_FEATURES, UNKNOWN_IDS, ImportRules
from gpn_scale.data.table_files import open_table
from gpn_scale.errors import ConfigError

ORDERS = ("like", "table")
"""Orders of the nodes: that of the graph of `--like`, or that of the table."""
_COLUMNS = {
    "id": "ids of the nodes (default: id)",
    "label": "classes of the nodes, empty where unknown (default: label, if it exists)",
    "split": "subset of each node: train, val, test or empty (default: split, if it exists)",
    "source": "ids of the nodes where edges start (default: source)",
    "target": "ids of the nodes where edges end (default: target)",
    "weight": "weights of the edges (default: weight, if it exists)",
}


def import_parser() -> argparse.ArgumentParser:
    """Return the parser of `launch/import_graph.py`."""
    parser = CommandParser(
        prog=command_name("import_graph.py"),
        description="Build a graph from two raw tables, one of nodes and one of edges (CSV, "
        "optionally compressed by gzip, or Parquet). All columns of the nodes that have no role "
        "become features. If the tables have faults, all of them are listed and nothing is "
        "written.",
        epilog="Put names that contain a comma or a quote in double quotes, as in CSV.",
    )
    add = parser.add_argument
    add("--nodes", type=Path, required=True, metavar="FILE", help="table with one row per node")
    add("--edges", type=Path, required=True, metavar="FILE", help="table with one row per edge")
    add("--out", type=Path, required=True, metavar="DIR/NAME", help="folder of the new graph")
    add("--overwrite", action="store_true", help="replace the graph in --out, if there is one")
    add(
        "--like",
        type=Path,
        metavar="DIR/OLD",
        help="use the column names and rules of the import of this graph; other options override "
        "them. Its nodes keep their places (see --order)",
    )
    add(
        "--order",
        choices=ORDERS,
        help="like: keep the order of the graph of --like, with new nodes at the end and gone "
        "nodes in their old places, so that its store can be updated; table: number the nodes as "
        "the table lists them (default: like if --like is given, else table)",
    )
    columns = parser.add_argument_group("columns")
    for role, text in _COLUMNS.items():
        columns.add_argument(f"--{role}", metavar="COL", help=f"column with the {text}")
    columns.add_argument(
        "--drop",
        action="append",
        metavar="COL,...",
        help="columns to ignore, even if they are named label, split or weight; may be repeated",
    )
    rules = parser.add_argument_group("rules")
    rules.add_argument(
        "--unknown-ids",
        choices=UNKNOWN_IDS,
        help="what to do if an edge names an id that no node has: refuse the tables, add a node "
        "without label and values, or drop the edge (default: refuse)",
    )
    rules.add_argument(
        "--missing",
        choices=MISSING_RULES,
        help="what to do if a value is missing: fill it and add a feature that flags it, only "
        "fill it, or refuse the tables (default: flag)",
    )
    rules.add_argument(
        "--kinds",
        action="append",
        metavar="COL=KIND,...",
        help="kinds of columns, instead of the inferred ones, each one of "
        f"{', '.join(KINDS)}; may be repeated",
    )
    rules.add_argument(
        "--directed",
        action=argparse.BooleanOptionalAction,
        help="keep the direction of edges (default: no)",
    )
    rules.add_argument(
        "--structural-features",
        choices=STRUCTURAL_FEATURES,
        help="add features computed from the edges, such as degrees; auto: only if no column "
        "becomes a feature (default: auto)",
    )
    return parser


def import_choices(options: argparse.Namespace) -> tuple[ColumnNames, ImportRules]:
    """Return the column names and rules: those of the options, else those of `--like`.

    Raises:
        ConfigError: an option has a wrong value.
        GraphError: `--like` names no imported graph.
        TableFaults: `--like` is given, and a table cannot be read.
    """
    record = ImportRecord(names=ColumnNames(), rules=ImportRules())
    if options.order == "like" and options.like is None:
        raise ConfigError("--order like needs the graph to follow: add --like DIR/OLD")
    if options.like is not None:
        earlier = read_record(options.like)
        nodes, edges = (open_table(path).column_names for path in (options.nodes, options.edges))
        record = ImportRecord(names=earlier.names_in(nodes, edges), rules=earlier.rules_in(nodes))
    names: dict[str, Any] = {role: getattr(options, role) for role in _COLUMNS}
    rules: dict[str, Any] = {
        "unknown_ids": options.unknown_ids,
        "missing": options.missing,
        "directed": options.directed,
        "structural_features": options.structural_features,
    }
    if options.drop is not None:
        names["drop"] = tuple(name for text in options.drop for name in _listed(text))
    if options.kinds is not None:
        rules["kinds"] = dict(record.rules.kinds) | parse_kinds(options.kinds)
    return replace(record.names, **_given(names)), replace(record.rules, **_given(rules))


def parse_kinds(texts: Sequence[str]) -> dict[str, str]:
    """Return the kind of each column in texts such as `zip=category,born=date`."""
    kinds = {}
    for assignment in (each for text in texts for each in _listed(text)):
        column, equals, kind = assignment.rpartition("=")
        if not equals:
            raise ConfigError(
                f"--kinds holds {assignment!r}, expected COL=KIND with one of {', '.join(KINDS)}"
            )
        kinds[column] = kind
    return kinds


def _listed(text: str) -> list[str]:
    """Return names that are separated by commas; those in double quotes may contain commas."""
    return next(csv.reader([text], skipinitialspace=True), [])


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
