"""The command `gpn-triage`: list what to review and what to label, and when to abstain."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

import pyarrow as pa

from gpn_scale.cli.console import leave, run_command
from gpn_scale.cli.remembered import graph_of_run, store_of
from gpn_scale.cli.shared_options import (
    add_data_dir,
    add_device,
    add_memory_budget,
    add_rows,
    add_run,
    claimed_folder,
    memory_bytes,
    use_threads,
)
from gpn_scale.cli.terminal_table import table_lines
from gpn_scale.command_line import CommandParser, command_name
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.known_calibration import ELSEWHERE_CONDITION, LATER_CONDITION
from gpn_scale.files import make_folder
from gpn_scale.messages import say
from gpn_scale.page.run_record import read_run
from gpn_scale.progress import ProgressMeter
from gpn_scale.train.run_directory import RunDirectory
from gpn_scale.train.run_graph import RunGraph, has_validation_nodes
from gpn_scale.triage.lists import (
    LABEL_NEXT,
    MOST_LABELLED,
    MOST_REVIEWED,
    REVIEW,
    Triage,
    TriageRequest,
)
from gpn_scale.triage.promise import Promise
from gpn_scale.triage.promise_file import write_promise

_PRINTED_NODES = 10
_PRINTED_COLUMNS = {
    "review": ("id", "predicted_class", "probability", "p_known", "reason", "detail"),
    "label_next": ("id", "predicted_class", "probability", "p_known", "reason", "covered"),
}


def triage_parser() -> argparse.ArgumentParser:
    """Return the parser of `launch/triage.py`."""
    parser = CommandParser(
        prog=command_name("triage.py"),
        description="List the least trusted predictions of a run, with reasons, and the nodes "
        "whose labels would teach the model most. With --error-among-answered, also find the trust "
        "below which the model should abstain.",
    )
    add = parser.add_argument
    add_run(parser)
    add(
        "--dataset",
        metavar="NAME",
        help="graph whose nodes are listed (default: the graph of the run)",
    )
    add(
        "--review",
        type=int,
        metavar="N",
        help=f"number of predictions in {REVIEW} (default: {MOST_REVIEWED}, or all if fewer)",
    )
    add(
        "--label-next",
        type=int,
        metavar="B",
        help=f"number of nodes in {LABEL_NEXT} (default: {MOST_LABELLED}, or all if fewer)",
    )
    add(
        "--include-labelled",
        action="store_true",
        help=f"also list training and validation nodes in {REVIEW}",
    )
    add(
        "--error-among-answered",
        type=float,
        metavar="E",
        help="promise that at most the fraction E of the answered nodes is wrong. The threshold "
        "is tested on the labelled test nodes and written to RUN/promise.json; gpn-predict then "
        "writes the column abstain (default: no promise)",
    )
    add(
        "--confidence",
        type=float,
        default=TriageRequest().confidence,
        metavar="C",
        help="probability with which the promise is kept (default: 0.9)",
    )
    add("--out", type=Path, required=True, metavar="FOLDER", help="folder for both lists")
    add("--overwrite", action="store_true", help="replace existing lists in --out")
    add_data_dir(parser)
    add_rows(
        parser,
        "store with the rows of the graph (default: the store of the run, if it exists; without a "
        "store, the necessary rows are computed)",
    )
    add_device(parser)
    add_memory_budget(parser)
    return parser


def triage(options: argparse.Namespace) -> None:
    """Load the run, predict, and write the lists and the promise."""
    use_threads(options.threads)
    with claimed_folder(options.out, (REVIEW, LABEL_NEXT), overwrite=options.overwrite):
        _write_lists(options)


def _write_lists(options: argparse.Namespace) -> None:
    budget = memory_bytes(options.memory_budget)
    directory = RunDirectory(options.run)
    related = graph_of_run(
        directory,
        read_run(directory),
        options.data_dir,
        may_be_later=True,
        dataset=options.dataset,
    )
    graph = related.graph
    classifier = GPNClassifier.load(directory.model, device=options.device)
    notes = [*related.notes, *_refreshed(classifier, related, budget)]
    request = TriageRequest(
        review=options.review,
        label_next=options.label_next,
        include_labelled=options.include_labelled,
        error_among_answered=options.error_among_answered,
        confidence=options.confidence,
    )
    is_other = related.relation == "other"
    make_folder(options.out)  # for scratch files; another process may have removed it
    with ProgressMeter("predict", "node", graph.num_nodes) as meter:
        lists = classifier.triage(
            graph,
            request,
            rows=options.ppr if is_other else store_of(directory, options.ppr),
            memory_bytes=budget,
            scratch=options.out,
            progress=meter.update,
        )
    written = list(lists.write(options.out))
    if lists.promise is not None:
        write_promise(directory.promise, lists.promise, directory.model)
        written.append(directory.promise)
    _print(lists, [*notes, *lists.notes], written)


def _refreshed(classifier: GPNClassifier, related: RunGraph, budget: int) -> list[str]:
    """Calibrate p-values on a later graph if possible; return notes on what they mean there."""
    calibration = classifier.trained.calibration
    if related.relation == "training" or calibration is None or not calibration.scores:
        return []
    graph = classifier.aligned(related.graph).graph
    if not has_validation_nodes(graph):
        return [ELSEWHERE_CONDITION]
    classifier.calibrate(graph, memory_bytes=budget)
    return [LATER_CONDITION]


def _print(lists: Triage, notes: Sequence[str], paths: Sequence[Path]) -> None:
    for note in notes:
        say("note", note, text=f"note: {note}", result=True)
    for title, name, table in (
        ("least trusted", "review", lists.review),
        ("to label next", "label_next", lists.label_next),
    ):
        shown = table.select(_PRINTED_COLUMNS[name])
        lines = ["", f"{title}:", *list_lines(shown)]
        first = shown.slice(0, _PRINTED_NODES).to_pylist()
        say(name, title, text="\n".join(lines), result=True, count=table.num_rows, first=first)
    if lists.promise is not None:
        text = promise_text(lists.promise)
        say("promise", text.splitlines()[0], text=f"\n{text}", result=True, **asdict(lists.promise))
    lines = ["", "written:", *(f"  {path}" for path in paths)]
    say("written", "written", text="\n".join(lines), result=True, written=list(paths))


def promise_text(promise: Promise) -> str:
    """Return text that states the promise and the fraction of nodes that it leaves unanswered."""
    return (
        f"promise: with a confidence of {100 * promise.confidence:.3g} %, at most "
        f"{100 * promise.error:.3g} % of the answered nodes are wrong.\n"
        f"  Answer nodes with a trust of at least {promise.threshold:.3g}.\n"
        f"  Tested on {promise.held_out_nodes:,} labelled test nodes: {promise.answered_nodes:,} "
        f"answered ({100 * promise.answered:.0f} %), {promise.answered_errors:,} of these wrong."
    )


def list_lines(table: pa.Table) -> list[str]:
    """Return the first rows of a table as aligned lines, with the number of omitted rows."""
    heads = [name.replace("_", " ") for name in table.column_names]
    rows = [list(row.values()) for row in table.slice(0, _PRINTED_NODES).to_pylist()]
    lines = table_lines([heads, *rows])
    if (more := table.num_rows - len(rows)) > 0:
        lines.append(f"  ... and {more:,} more in the file")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, run the command, and return its exit code."""
    return run_command(triage_parser, triage, arguments)


def start() -> NoReturn:
    """Run the command and end the process with its exit code."""
    leave(main())
