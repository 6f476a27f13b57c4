"""The command `gpn-report`: write the page of a run again, or compare two runs or tables."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from gpn_scale.cli.compare import add_comparison, check_forms, compare_runs
from gpn_scale.cli.console import leave, run_command
from gpn_scale.cli.remembered import graph_of_run, store_of
from gpn_scale.cli.shared_options import (
    add_data_dir,
    add_device,
    add_memory_budget,
    add_rows,
    add_run,
    memory_bytes,
    use_threads,
)
from gpn_scale.command_line import CommandParser, command_name
from gpn_scale.data.graph import Graph
from gpn_scale.errors import RunError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.extras import check_extra
from gpn_scale.flags import COMPARE_FLAGS
from gpn_scale.messages import say
from gpn_scale.page.facts import RunFacts
from gpn_scale.page.run_facts import run_facts, unfinished_facts
from gpn_scale.page.run_record import RunRecord, read_run
from gpn_scale.ppr.store import PPRStore
from gpn_scale.progress import ProgressMeter
from gpn_scale.train.run_directory import RunDirectory


def report_parser() -> argparse.ArgumentParser:
    """Return the parser of `launch/report.py`."""
    parser = CommandParser(
        prog=command_name("report.py"),
        description="Write the page report.html of a run again: what the model knows, what it does "
        "not know, and why. If the run is not finished, the page shows its progress. With "
        "--compare, report instead how predictions have moved between two runs or tables, such as "
        "training and a later month.",
    )
    add = parser.add_argument
    add_run(parser, required=False)
    add_data_dir(parser)
    add_comparison(parser)
    add_rows(
        parser,
        "store that minibatch training used (default: the store of the run, if it exists)",
    )
    add("--png", action="store_true", help="write the charts as PNG files too")
    add_device(parser)
    add_memory_budget(parser)
    return parser


def report(options: argparse.Namespace) -> None:
    """Write the page of a run, with new predictions if it is finished; or compare two runs."""
    check_forms(options)
    if options.compare is not None:
        compare_runs(options)
        return
    check_extra("charts", "the page of a run")
    from gpn_scale.page.run_page import write_page

    use_threads(options.threads)
    directory = RunDirectory(options.run)
    record = read_run(directory)
    if record.report is None:
        facts = unfinished_facts(record, directory)
    else:
        facts = _finished_facts(options, directory, record)
    try:
        write_page(directory, facts, png=options.png)
    except OSError as error:
        raise RunError(f"{directory.page} cannot be written ({error.strerror})") from error
    say("written", f"written: {directory.page}", result=True, path=directory.page)


def _finished_facts(
    options: argparse.Namespace, directory: RunDirectory, record: RunRecord
) -> RunFacts:
    budget = memory_bytes(options.memory_budget)
    classifier = GPNClassifier.load(directory.model, device=options.device)
    graph = graph_of_run(directory, record, options.data_dir).graph
    store = _store_of_run(options.ppr, directory, classifier, graph)
    with ProgressMeter("predict", "node", graph.num_nodes) as meter:
        prediction, evidence = classifier.predict_with_evidence(
            graph, memory_bytes=budget, scratch=directory.path, progress=meter.update
        )
    return run_facts(record, classifier, graph, prediction, store, evidence)


def _store_of_run(
    given: Path | None, directory: RunDirectory, classifier: GPNClassifier, graph: Graph
) -> PPRStore | None:
    """Return the given store, or the one in the run's directory; None in exact mode."""
    if classifier.config.mode == "exact":
        return None
    store = store_of(directory, given)
    return None if store is None else classifier.open_store(store, graph)


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, run the command, and return its exit code."""
    return run_command(report_parser, report, arguments, COMPARE_FLAGS)


def start() -> NoReturn:
    """Run the command and end the process with its exit code."""
    leave(main())
