"""Command line of precompute: builds a store, or runs a command on one; never loads torch."""

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpn_scale.command_line import BAD_INPUT, FAULT, SIGNALLED, CommandParser, run_parsed
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph import Graph
from gpn_scale.errors import ConfigError, GpnScaleError
from gpn_scale.flags import PRECOMPUTE_FLAGS, with_flags
from gpn_scale.messages import say
from gpn_scale.ppr.manifest import is_store
from gpn_scale.ppr.manifest_schema import COUNTED
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.verification import verify_store
from gpn_scale.recipes import recipe_for
from precompute.arguments import (
    chosen_roots,
    existing_of,
    part_of,
    ppr_config,
    ppr_parser,
    resources_of,
    target_of,
)
from precompute.build import build_store, plan_store
from precompute.changed_graph import changed_graph
from precompute.compact import compact_store
from precompute.mpi import SingleProcess, abort_all_ranks_on_error, world
from precompute.parts import finish_store
from precompute.plan import Plan
from precompute.repair import repair_store
from precompute.update import update_store
from precompute.update_arguments import update_parser

COMMANDS = ("ppr", "finish", "update", "compact", "repair", "verify", "info")
_BLOCK_BYTES = 512  # of POSIX's st_blocks


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return 0 on success, 1 for a damaged store, 2 for bad input, 130 for Ctrl-C.

    >>> main(["--dataset", "synthetic:nodes=200", "--plan-only", "--out", "store"])
    0
    """
    remaining = list(sys.argv[1:] if arguments is None else arguments)
    command = remaining.pop(0) if remaining and remaining[0] in COMMANDS else "ppr"
    if command in ("ppr", "update"):
        parser, run = (ppr_parser, _ppr) if command == "ppr" else (update_parser, _update)
        return run_parsed(parser, lambda options: _exit_code(run, options), remaining)
    on_stores = {"finish": _finish, "compact": _compact, "repair": _repair, "verify": _verify}
    run_on_store = on_stores.get(command, _info)
    return run_parsed(
        partial(store_parser, command),
        lambda options: _exit_code(lambda options: run_on_store(options.store), options),
        remaining,
    )


def _exit_code(run: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    try:
        return run(options)
    except GpnScaleError as error:
        message = with_flags(error, PRECOMPUTE_FLAGS)
        say("error", message, level="error", arguments=error.arguments)
        return BAD_INPUT
    except KeyboardInterrupt:
        return SIGNALLED + signal.SIGINT


def _ppr(options: argparse.Namespace) -> int:
    comm = world()
    with abort_all_ranks_on_error(comm):

        def say_once(text: str) -> None:
            if comm.rank == 0:
                say("rows", text)

        config, target, part = ppr_config(options), target_of(options), part_of(options)
        resources = resources_of(options, comm)
        graph = load_graph(options.dataset, options.data_dir)
        say_once(_graph_line(graph))
        if note := teleport_note(options.dataset, graph, config.diffusion.teleport):
            say_once(note)
        roots = chosen_roots(graph, options.dataset, options.roots, options.split_seed)
        if options.plan_only:
            plan_store(
                graph,
                config,
                roots=roots,
                comm=comm,
                resources=resources,
                say=say_once,
                target=target,
                part=part,
            )
            return 0
        plan = build_store(
            graph,
            config,
            options.out,
            roots=roots,
            comm=comm,
            resources=resources,
            existing=existing_of(options),
            say=say_once,
            target=target,
            part=part,
        )
        if plan.part is not None:
            _say_part(options.out, plan)
        elif comm.rank == 0:
            _info(options.out)
    return 0


def teleport_note(dataset: str, graph: Graph, teleport: float) -> str:
    """Return a note if models of a dataset are trained with another teleport probability.

    >>> from gpn_scale import build_graph
    >>> teleport_note("mine", build_graph([0], [1], name="mine"), 0.2)
    'note: gpn-train needs --teleport 0.1 for mine, or --set diffusion.teleport=0.2 for these rows'
    >>> teleport_note("mine", build_graph([0], [1]), 0.1)
    ''
    """
    recipe = recipe_for(dataset, graph).diffusion.teleport
    if recipe == teleport:
        return ""
    return (
        f"note: gpn-train needs --teleport {recipe} for {graph.name}, or --set "
        f"diffusion.teleport={teleport} for these rows"
    )


def _graph_line(graph: Graph) -> str:
    """Return name and size of a graph; an edge that goes both ways counts once."""
    edges = graph.num_edges if graph.directed else graph.num_edges // 2
    return f"{graph.name}: {graph.num_nodes:,} nodes, {edges:,} edges"


def _update(options: argparse.Namespace) -> int:
    if world().size > 1:
        raise ConfigError(
            "an update runs in a single process, but several MPI ranks were started: use --threads"
        )

    def say_rows(text: str) -> None:
        say("rows", text)

    if (options.changes is None) != (options.write_graph is None):
        raise ConfigError(
            "--changes FILE and --write-graph DIR/NEW need each other: give both or neither"
        )
    graph = load_graph(options.dataset, options.data_dir)
    if options.changes is not None:
        graph = changed_graph(
            graph, options.changes, options.write_graph, plan_only=options.plan_only
        )
    say_rows(_graph_line(graph))
    roots = None
    if options.roots is not None:
        roots = chosen_roots(graph, options.dataset, options.roots, options.split_seed)
    plan = update_store(
        options.store,
        graph,
        tolerance=options.tolerance,
        roots=roots,
        resources=resources_of(options, SingleProcess()),
        plan_only=options.plan_only,
        say=say_rows,
    )
    if not options.plan_only:
        message = f"{options.store}: {plan.changes.summary}, {plan.computed_rows:,} rows computed"
        say(
            "updated",
            message,
            result=True,
            path=options.store,
            rows=plan.num_roots,
            computed_rows=plan.computed_rows,
            largest_movement=plan.largest_movement,
        )
    return 0


def _compact(path: Path) -> int:
    left = compact_store(path)
    size = store_bytes(path)
    message = f"{path}: one generation, {size / 2**20:,.1f} MiB"
    if left:
        message += f"; still read by other processes, so not removed yet: {', '.join(left)}"
    say("compacted", message, result=True, path=path, bytes=size, left=left)
    return 0


def _repair(path: Path) -> int:
    repaired = repair_store(path, say=lambda text: say("rows", text))
    names = ", ".join(str(each.relative_to(path)) for each in repaired)
    message = f"{path}: computed again: {names}" if repaired else f"{path}: all shards are intact"
    say("repaired", message, result=True, path=path, shards=repaired)
    return _verify(path)


def store_bytes(path: Path) -> int:
    """Return the size of all files of a store, those of its updates included, without holes.

    >>> store_bytes(Path("no_store"))
    0
    """
    sizes = [file.stat() for file in path.rglob("*") if file.is_file()]
    return sum(min(each.st_size, _BLOCK_BYTES * each.st_blocks) for each in sizes)


def _say_part(path: Path, plan: Plan) -> None:
    start, stop = plan.rows
    say(
        "part",
        f"{path}: part {plan.part} is complete, {stop - start:,} of {plan.num_roots:,} rows; when "
        f"all parts are, finish the store with: gpn-precompute finish {path}",
        result=True,
        path=path,
        part=str(plan.part),
        rows=stop - start,
    )


def _finish(path: Path) -> int:
    finish_store(path)
    return _info(path)


def _verify(path: Path) -> int:
    problems = verify_store(path)
    for problem in problems:
        say("problem", problem, level="error", text=problem)
    if problems and is_store(path):
        advice = (
            f"to repair shards: gpn-precompute repair {path}; other files: repeat the command of "
            "the build with --resume"
        )
        say("advice", advice)
    message = f"{path}: {len(problems)} problem(s)" if problems else f"{path}: intact"
    say("verified", message, result=True, path=path, problems=len(problems))
    return FAULT if problems else 0


def _info(path: Path) -> int:
    store = PPRStore.open(path)
    rows, size = store.num_roots, store_bytes(path)
    mean_entries = store.manifest["entries"] / max(rows, 1)
    title = f"{path}: {rows:,} rows of {store.num_nodes:,} nodes, {size / 2**20:,.1f} MiB"
    lines = [title, f"  entries per row up to {store.k}, mean {mean_entries:.1f}"]
    lines.append(f"  clusters        {store.num_clusters}")
    lines.append(f"  build time      {store.build_seconds:.1f} s")
    lines += [f"  {name:<15} {value}" for name, value in store.parameters.items()]
    lines += _history_lines(store)
    missing = np.asarray(store.missing_mass, np.float64)
    lines += _missing_mass_lines(missing, str(store.parameters.get("normalisation")))
    say(
        "store",
        title,
        text="\n".join(lines),
        result=True,
        path=path,
        rows=rows,
        nodes=store.num_nodes,
        bytes=size,
        k=store.k,
        mean_entries=mean_entries,
        clusters=store.num_clusters,
        build_seconds=store.build_seconds,
        parameters=store.parameters,
        updates=store.history,
        mean_missing_mass=missing.mean() if rows else None,
    )
    return 0


def _history_lines(store: PPRStore) -> list[str]:
    """Return lines on the updates of a store and on how far its rows may have moved since."""
    if not (history := store.history):
        return []
    added, removed = (sum(record.get(key, 0) for record in history) for key in COUNTED)
    moved = store.moved(store.roots)
    largest, mean = moved.max(initial=0.0), moved.mean() if len(moved) else 0.0
    return [
        f"  updates         {len(history)}, {added:,} edges added, {removed:,} removed",
        f"  moved mass      at most {largest:.3g} of a row, {mean:.3g} on average",
    ]


def _missing_mass_lines(missing: NDArray[np.float64], normalisation: str) -> list[str]:
    """Return a histogram of the missing mass of all rows, with its unit."""
    unit = "full rows sum to 1"
    if normalisation == "sym":
        unit = "absolute: full rows of sym sum to more or less than 1"
    lines = [f"  missing mass    fraction of rows ({unit})"]
    counts = np.histogram(np.minimum(missing, 1.0), bins=10, range=(0.0, 1.0))[0]
    for index, count in enumerate(counts):
        fraction = count / max(len(missing), 1)
        has_end = index < len(counts) - 1 or normalisation != "sym"
        end = f"to {(index + 1) / 10:.1f}" if has_end else "or more"
        bar = "#" * round(40 * fraction)
        lines.append(f"    {index / 10:.1f} {end:<7} {fraction:6.1%} {bar}")
    return lines


def store_parser(command: str) -> argparse.ArgumentParser:
    """Return the parser of a command that takes a store and no options of its own.

    >>> store_parser("verify").parse_args(["store"]).store.name
    'store'
    """
    description = {
        "finish": "Check that all parts of a store have been computed, and complete the store.",
        "verify": "Check the checksums of all files of a store.",
        "info": "Print the size, parameters and missing mass of a store.",
        "repair": "Recompute the damaged or missing shards of a complete store from the graph that "
        "it contains.",
        "compact": "Fold the generations that updates have added into one, and remove the old "
        "ones, except those that a process is still reading.",
    }[command]
    parser = CommandParser(prog=f"gpn-precompute {command}", description=description)
    parser.add_argument("store", type=Path, metavar="STORE", help="directory of the store")
    return parser
