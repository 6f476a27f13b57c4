"""Entry point of the page: makes `report.html` of a run again, finished or not."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import torch

from gpn_scale.cli.arguments import add_memory_budget, checked_threads, memory_bytes
from gpn_scale.cli.console import exit_code_of, leave
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph import Graph
from gpn_scale.data.splits import prepare_graph
from gpn_scale.errors import RunError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.page.facts import RunFacts
from gpn_scale.page.png import find_browser, write_pngs
from gpn_scale.page.run_facts import run_facts, unfinished_facts
from gpn_scale.page.run_page import write_page
from gpn_scale.page.run_record import RunRecord, read_run
from gpn_scale.ppr.store import MANIFEST, PPRStore
from gpn_scale.progress import ProgressMeter
from gpn_scale.train.run_directory import RunDirectory


def report_parser() -> argparse.ArgumentParser:
    """The parser of `launch/report.py`."""
    parser = argparse.ArgumentParser(
        prog="report.py",
        description="Make the page report.html of a run again: what the model knows, what it does "
        "not, and why. Of a run that is not finished, the page shows what is there.",
    )
    add = parser.add_argument
    add("--run", type=Path, required=True, help="directory of a training run")
    add("--data-dir", type=Path, default=Path("data"), metavar="DIR", help="(default: data)")
    add(
        "--ppr",
        type=Path,
        metavar="STORE",
        help="rows that minibatch training used (default: RUN/store, if it is there)",
    )
    add("--device", default="auto", help="auto, cpu, cuda, ... (default: auto)")
    add("--threads", type=int, metavar="T", help="CPU threads (default: all cores)")
    add("--png", action="store_true", help="plots also as PNG, drawn by Chromium")
    add_memory_budget(parser)
    return parser


def report(options: argparse.Namespace) -> None:
    """Reads the run, predicts if it is finished, writes the page."""
    if options.threads is not None:
        torch.set_num_threads(checked_threads(options.threads))
    browser = find_browser() if options.png else None
    directory = RunDirectory(options.run)
    record = read_run(directory)
    if record.report is None:
        facts = unfinished_facts(record, directory)
    else:
        facts = _finished_facts(options, directory, record)
    try:
        write_page(directory, facts)
    except OSError as error:
        raise RunError(f"{directory.page} cannot be written ({error.strerror})") from error
    if browser is not None:
        write_pngs(directory.plots, browser)
    print(f"written: {directory.page}")


def _finished_facts(
    options: argparse.Namespace, directory: RunDirectory, record: RunRecord
) -> RunFacts:
    budget = memory_bytes(options.memory_budget)
    classifier = GPNClassifier.load(directory.model, device=options.device)
    graph = prepare_graph(load_graph(record.config.data.dataset, options.data_dir), record.config)
    assert record.report is not None
    if graph.fingerprint() != record.report.graph["fingerprint"]:
        raise RunError(
            f"{record.config.data.dataset} in {options.data_dir} is not the graph that "
            f"{directory.path} was trained on: name its folder with --data-dir, or train again"
        )
    store = _store(options.ppr, directory, classifier, graph)
    with ProgressMeter("predict", "node", graph.num_nodes) as meter:
        prediction, evidence = classifier.predict_with_evidence(
            graph, memory_bytes=budget, scratch=directory.path, progress=meter.update
        )
    return run_facts(record, classifier, graph, prediction, store, evidence)


def _store(
    given: Path | None, directory: RunDirectory, classifier: GPNClassifier, graph: Graph
) -> PPRStore | None:
    """The rows that were named, or those in the run's directory; None in exact mode."""
    if classifier.config.mode == "exact":
        return None
    if given is None and not (directory.store / MANIFEST).exists():
        return None
    return classifier.open_store(given or directory.store, graph)


def main(arguments: Sequence[str] | None = None) -> int:
    """Parses the command line and runs; the exit code is 2 for bad input."""
    options = report_parser().parse_args(arguments)
    return exit_code_of(lambda: report(options))


def start() -> NoReturn:
    """Run the command as a process of its own."""
    leave(main())
