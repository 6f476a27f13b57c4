"""The command `gpn-import`: build a graph from two raw tables."""

import argparse
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from gpn_scale.cli.console import leave, run_command
from gpn_scale.cli.import_options import import_choices, import_parser
from gpn_scale.data.formats import FORMATS
from gpn_scale.data.graph import Graph
from gpn_scale.data.graph_folder import MANIFEST, open_graph, save_graph
from gpn_scale.data.import_record import RECORD, write_record
from gpn_scale.data.import_tables import import_tables
from gpn_scale.data.summary import GraphSummary
from gpn_scale.data.surprises import listed
from gpn_scale.data.synthetic import NAME as SYNTHETIC
from gpn_scale.errors import ConfigError, GraphError
from gpn_scale.files import make_folder
from gpn_scale.flags import IMPORT_FLAGS
from gpn_scale.messages import say

_OWN_FILES = re.compile(rf"{re.escape(RECORD)}|.*-[0-9a-f]{{16}}\.(npy|parquet)|\..*\.tmp")
"""Files that an import writes before the manifest, which completes the graph."""


def import_graph(options: argparse.Namespace) -> None:
    """Read both tables, and write the graph and a record of the import."""
    check_out(options.out, overwrite=options.overwrite)
    names, rules = import_choices(options)
    like = None if options.like is None else open_graph(options.like)
    imported = import_tables(
        options.nodes,
        options.edges,
        names=names,
        rules=rules,
        name=options.out.resolve().name,
        earlier=None if options.order == "table" else like,
        scratch=_existing(options.out),
    )
    graph, facts = imported.graph, imported.facts
    files = {"nodes": str(options.nodes.resolve()), "edges": str(options.edges.resolve())}
    try:
        make_folder(options.out)
        write_record(options.out, imported.columns, names.drop, rules, facts, files)
        save_graph(graph, options.out)
    except OSError as error:
        raise GraphError(
            f"{options.out} cannot be written ({error.strerror})", arguments=("out",)
        ) from error
    summary = GraphSummary.of(graph, facts=facts.to_dict())
    text = summary.text()
    say("graph", text.splitlines()[0], text=text, result=True, **summary.to_dict())
    for note in (*facts.notes, *_changed_columns(graph, like)):
        say("note", note, text=f"note: {note}", result=True)
    say("written", f"written: {options.out}", result=True, path=options.out)
    command = _next_command(graph, options.out)
    say("next", f"next: {command}", result=True, command=command)


def check_out(out: Path, *, overwrite: bool) -> None:
    """Refuse a folder whose name another graph already has, or that holds other files.

    Raises:
        ConfigError: the folder cannot be used.
    """
    name, folder = out.resolve().name, out.resolve().parent
    if not name or name.partition(":")[0] == SYNTHETIC:
        raise ConfigError(
            f"--out {out}: the name {name!r} is reserved for another graph, choose another name"
        )
    hiding = [folder / f"{name}{each.suffix}" for each in FORMATS if each.suffix]
    if taken := [path for path in hiding if path.exists()]:
        raise ConfigError(
            f"--out {out}: {taken[0]} has the same name and would be loaded instead, choose "
            "another name"
        )
    if not out.exists():
        return
    if not out.is_dir():
        raise ConfigError(f"--out {out} is a file, expected a folder to write the graph to")
    if (out / MANIFEST).exists():
        if not overwrite:
            raise ConfigError(f"--out {out} already holds a graph: use --overwrite to replace it")
        return
    # Without a manifest, files of an import are left over from an interrupted one.
    if foreign := sorted(
        path.name for path in out.iterdir() if not _OWN_FILES.fullmatch(path.name)
    ):
        raise ConfigError(
            f"--out {out} holds {foreign[0]!r} but no graph, and is not replaced: choose a new "
            "folder"
        )


def _changed_columns(graph: Graph, like: Graph | None) -> list[str]:
    """Return a note if the table of nodes has lost columns that the one of `like` has."""
    if like is None or like.raw_columns is None:
        return []
    before = like.raw_columns.names
    now = () if graph.raw_columns is None else graph.raw_columns.names
    if not (gone := [name for name in before if name not in now]):
        return []
    new = [name for name in now if name not in before]
    renamed = f" (new: {listed(new)}; if a column was renamed, rename it back)" if new else ""
    return [
        f"The table of nodes no longer has {listed(gone)}{renamed}; a model that was trained on "
        f"{like.name} needs all of its columns."
    ]


def _existing(out: Path) -> Path:
    """Return the nearest existing parent of `out`, whose disk also holds the temporary files.

    Those files have no name, so nothing remains of them.
    """
    return next(folder for folder in out.resolve().parents if folder.is_dir())


def _next_command(graph: Graph, out: Path) -> str:
    """Return the command to run next: training if the graph has labels, otherwise prediction."""
    place = f"--dataset {shlex.quote(out.resolve().name)} --data-dir {shlex.quote(str(out.parent))}"
    if graph.num_classes:
        return f"gpn-train {place}"
    return f"gpn-predict --run RUN {place} --out predictions.csv"


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, run the command, and return its exit code."""
    return run_command(import_parser, import_graph, arguments, IMPORT_FLAGS)


def start() -> NoReturn:
    """Run the command and end the process with its exit code."""
    leave(main())
