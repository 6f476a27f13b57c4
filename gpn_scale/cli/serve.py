"""The command `gpn-serve`: predictions, explanations and decisions of a run over HTTP."""

import argparse
import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn

from gpn_scale.cli.console import leave, run_command
from gpn_scale.cli.remembered import data_dir_of, graph_of_run, store_of
from gpn_scale.cli.shared_options import (
    add_data_dir,
    add_memory_budget,
    add_rows,
    add_run,
    checked_threads,
    memory_bytes,
)
from gpn_scale.command_line import CommandParser, command_name
from gpn_scale.data.formats import graph_files
from gpn_scale.data.graph import Graph
from gpn_scale.extras import check_extra
from gpn_scale.flags import SERVE_FLAGS
from gpn_scale.messages import say
from gpn_scale.page.run_record import read_run
from gpn_scale.serve.decisions import run_fingerprint
from gpn_scale.serve.served_model import ModelSource
from gpn_scale.serve.settings import ServeSettings, parsed_bytes, read_token
from gpn_scale.train.run_directory import SERVED_SUFFIXES, RunDirectory

_DEFAULTS = ServeSettings()


def serve_parser() -> argparse.ArgumentParser:
    """Return the parser of `launch/serve.py`."""
    parser = CommandParser(
        prog=command_name("serve.py"),
        description="Answer requests about the nodes of a run over HTTP: predictions of known and "
        "new nodes, explanations, lists and decisions, with an explorer in the browser. Needs "
        "gpn-scale[serve].",
    )
    add = parser.add_argument
    add_run(parser)
    add_rows(
        parser,
        "store with the rows of the graph, which explanations and lists need on graphs of millions "
        "of nodes (default: the store of the run, if it exists)",
    )
    add_data_dir(parser)
    _add_address(parser)
    _add_limits(parser)
    add(
        "--decisions",
        type=Path,
        metavar="FILE",
        help="file that decisions are appended to (default: RUN/decisions.jsonl)",
    )
    add(
        "--device",
        default="auto",
        metavar="NAME",
        help="auto, cpu, cuda, ...; auto is cuda if available (default: auto)",
    )
    add(
        "--threads",
        type=int,
        default=1,
        metavar="T",
        help="number of CPU threads that compute one request; all nodes are predicted with all "
        "cores (default: 1)",
    )
    add_memory_budget(parser)
    return parser


def _add_address(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("address").add_argument
    add(
        "--host",
        default=_DEFAULTS.host,
        metavar="HOST",
        help="address to listen on; an address that other machines can reach needs --token-file "
        f"(default: {_DEFAULTS.host}, which only this machine can reach)",
    )
    add(
        "--port",
        type=int,
        default=_DEFAULTS.port,
        metavar="PORT",
        help=f"port to listen on; 0 chooses a free one (default: {_DEFAULTS.port})",
    )
    add(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="file with a token that clients must send as Authorization: Bearer TOKEN",
    )
    add(
        "--workers",
        type=int,
        default=_DEFAULTS.workers,
        metavar="W",
        help=f"number of processes that answer requests (default: {_DEFAULTS.workers})",
    )


def _add_limits(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("limits of a request").add_argument
    add(
        "--max-body",
        default="8MB",
        metavar="SIZE",
        help="largest size of a request's body (default: 8MB)",
    )
    for name, what in (("max_nodes", "known nodes"), ("max_new_nodes", "new nodes")):
        default = getattr(_DEFAULTS, name)
        add(
            f"--{name.replace('_', '-')}",
            type=int,
            default=default,
            metavar="N",
            help=f"largest number of {what} in a request (default: {default:,})",
        )
    add(
        "--request-seconds",
        type=float,
        default=_DEFAULTS.request_seconds,
        metavar="S",
        help="longest time that a request may take, in seconds "
        f"(default: {_DEFAULTS.request_seconds:g})",
    )
    add(
        "--poll-seconds",
        type=float,
        default=_DEFAULTS.poll_seconds,
        metavar="S",
        help="seconds between two checks for a new model, promise, graph or store (default: "
        f"{_DEFAULTS.poll_seconds:g})",
    )


def serve(options: argparse.Namespace) -> None:
    """Check everything, load the run, and answer requests until a signal arrives."""
    check_extra("serve", "the service")
    from gpn_scale.serve.server import ServeRequest
    from gpn_scale.serve.server import serve as answer

    settings = _settings(options)
    threads = checked_threads(options.threads)
    directory = RunDirectory(options.run)
    record = read_run(directory)
    dataset, data_dir = record.config.data.dataset, data_dir_of(directory, options.data_dir)
    source = ModelSource(
        run=options.run,
        graph_files=tuple(graph_files(dataset, data_dir)),
        load_graph=partial(_load_graph, options.run, options.data_dir),
        store=store_of(directory, options.ppr),
        folder=directory.served,
        device=options.device,
        memory_bytes=memory_bytes(options.memory_budget),
    )
    stamp = source.stamp()
    graph = source.load_graph()
    assert record.report is not None
    request = ServeRequest(
        source=replace(source, folder=_folder(directory)),
        settings=settings,
        decisions=directory.decisions if options.decisions is None else options.decisions,
        run=run_fingerprint(record.report.fingerprint, record.report.graph["fingerprint"]),
        graph=graph.name,
        threads=threads,
        stamp=stamp,
    )
    answer(request, graph)
    say("stopped", "stopped")


def _settings(options: argparse.Namespace) -> ServeSettings:
    return ServeSettings(
        host=options.host,
        port=options.port,
        workers=options.workers,
        token=None if options.token_file is None else read_token(options.token_file),
        max_body=parsed_bytes(options.max_body),
        max_nodes=options.max_nodes,
        max_new_nodes=options.max_new_nodes,
        request_seconds=options.request_seconds,
        poll_seconds=options.poll_seconds,
    )


def _load_graph(run: Path, data_dir: Path | None) -> Graph:
    directory = RunDirectory(run)
    return graph_of_run(directory, read_run(directory), data_dir, may_be_later=True).graph


def _folder(directory: RunDirectory) -> Path:
    """Return the folder for computed files: in the run or, if that is read-only, another one."""
    if os.access(directory.path, os.W_OK | os.X_OK):
        directory.list_written(directory.served / f"*{suffix}" for suffix in SERVED_SUFFIXES)
        return directory.served
    folder = Path(tempfile.mkdtemp(prefix="gpn_served_"))
    note = f"{directory.path} is read-only, so predictions of all nodes are stored in {folder}"
    say("note", note, path=folder)
    return folder


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, run the command, and return its exit code."""
    return run_command(serve_parser, serve, arguments, SERVE_FLAGS)


def start() -> NoReturn:
    """Run the command and end the process with its exit code."""
    leave(main())
