"""`gpn-report --compare A B`: print what moved from A to B, and write it to files."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gpn_scale.cli.compare_text import drift_text
from gpn_scale.cli.optional_parts import has_extra
from gpn_scale.cli.remembered import DEFAULT_DATA_DIR, data_dir_of
from gpn_scale.cli.shared_options import claim_folder
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph import Graph
from gpn_scale.drift.columns import graph_fits
from gpn_scale.drift.comparison import DRIFT_CSV, DRIFT_JSON, DRIFT_PAGE, Drift, compare
from gpn_scale.drift.scored_file import read_scored
from gpn_scale.drift.scored_table import ScoredTable
from gpn_scale.errors import ConfigError, GpnScaleError, RunError
from gpn_scale.evaluation.prediction_table import Origin
from gpn_scale.messages import say
from gpn_scale.page.run_record import check_unchanged, read_run
from gpn_scale.train.run_directory import RunDirectory
from gpn_scale.triage.promise import Promise
from gpn_scale.triage.promise_file import model_fingerprint, read_promise
from gpn_scale.triage.trust import trust

_SIDES = ("A", "B")


def add_comparison(parser: argparse.ArgumentParser) -> None:
    """Add the options of a comparison."""
    group = parser.add_argument_group("comparison")
    group.add_argument(
        "--compare",
        nargs=2,
        type=Path,
        metavar=_SIDES,
        help="compare the predictions B with the predictions A; each is the directory of a "
        "finished run or a table written by gpn-predict",
    )
    group.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help=f"folder for {DRIFT_PAGE}, {DRIFT_JSON} and {DRIFT_CSV} (default: print text only)",
    )
    group.add_argument("--overwrite", action="store_true", help="replace existing files in --out")
    group.add_argument(
        "--graphs",
        nargs=2,
        metavar=("DATASET_A", "DATASET_B"),
        help="names of the graphs of A and B in --data-dir, whose columns are compared (default: "
        "the graphs recorded in the runs and Parquet tables)",
    )


def check_forms(options: argparse.Namespace) -> None:
    """Refuse options that do not go together.

    Raises:
        ConfigError: not exactly one of `--run` and `--compare` is given, or an option is given
            that belongs to the other one.
    """
    if (options.run is None) == (options.compare is None):
        given = "both are given" if options.run is not None else "neither is given"
        raise ConfigError(
            "--run RUN writes the page of a run and --compare A B compares two runs: expected "
            f"exactly one of them, but {given}"
        )
    if options.compare is None:
        for name in ("out", "overwrite", "graphs"):
            if getattr(options, name):
                raise ConfigError(f"--{name} only applies to a comparison: add --compare A B")
    elif options.ppr is not None or options.png:
        flag = "--png" if options.png else "--ppr"
        raise ConfigError(f"{flag} only applies to the page of a run: omit it with --compare")


def compare_runs(options: argparse.Namespace) -> None:
    """Read both sides, compare them, print what moved and write the files."""
    if options.out is not None:
        names = (DRIFT_PAGE, DRIFT_JSON, DRIFT_CSV)
        claim_folder(options.out, names, overwrite=options.overwrite)
    elif options.overwrite:
        raise ConfigError("--overwrite has no effect without --out: add --out FOLDER")
    a, b = (_read_side(path) for path in options.compare)
    tables = _with_promise(a, b)
    graphs, left_out = _graphs(options, (a, b), tables)
    drift = compare(tables[0], tables[1], graph_a=graphs[0], graph_b=graphs[1], left_out=left_out)
    text = drift_text(drift)
    fields = {name: value for name, value in drift.to_dict().items() if name != "verdict"}
    say("drift", drift.verdict, text=text, result=True, **fields)
    if options.out is not None:
        _write(options.out, drift)
    else:
        hint = f"Add --out FOLDER to write {DRIFT_PAGE}, {DRIFT_JSON} and {DRIFT_CSV}."
        say("note", hint, text=f"\n{hint}", result=True)


class _Side(NamedTuple):
    """One side of a comparison."""

    table: ScoredTable
    run: RunDirectory | None
    """The run; None for a table."""
    promise: Promise | None


def _read_side(path: Path) -> _Side:
    if not path.exists():
        raise ConfigError(
            f"{path} does not exist, expected a run or a table of predictions",
            arguments=("compare",),
        )
    if not path.is_dir():
        return _Side(read_scored(path), None, None)
    directory = RunDirectory(path)
    record = read_run(directory)
    config = record.config
    if not directory.predictions.exists():
        raise RunError(
            f"{path} has no {directory.predictions.name}, so the run is not finished: continue it "
            "with gpn-train --resume"
        )
    if record.report is not None:
        check_unchanged(record.report, directory.predictions)
    model = model_fingerprint(directory.model) if directory.model.exists() else None
    origin = Origin(
        dataset=config.data.dataset, data_dir=str(data_dir_of(directory, None)), model=model
    )
    table = replace(read_scored(directory.predictions, name=str(path)), origin=origin)
    has_promise = directory.promise.exists() and model is not None
    promise = read_promise(directory.promise, directory.model) if has_promise else None
    return _Side(table, directory, promise)


def _with_promise(a: _Side, b: _Side) -> tuple[ScoredTable, ScoredTable]:
    """Return both tables with the column `abstain`, if a promise was made for their model.

    Tables written before the promise lack this column. The promise is stored with the run and
    applies only to the run's own model.
    """
    promise = a.promise or b.promise
    models = {each.table.origin.model for each in (a, b)} - {None}
    if promise is None or len(models) > 1:
        return a.table, b.table
    return _abstaining(a.table, promise), _abstaining(b.table, promise)


def _abstaining(table: ScoredTable, promise: Promise) -> ScoredTable:
    if table.abstain is not None:
        return table
    abstain = trust(table.probability, table.p.get("known")) < promise.threshold
    return replace(table, abstain=np.asarray(abstain))


def _graphs(
    options: argparse.Namespace, sides: tuple[_Side, _Side], tables: Sequence[ScoredTable]
) -> tuple[tuple[Graph | None, Graph | None], list[str]]:
    """Return both graphs, and the reasons if columns cannot be compared.

    A graph that an option names must be loadable; a recorded one may be missing or changed.
    """
    graphs: list[Graph | None] = []
    reasons: list[str] = []
    other = [side.table.origin.data_dir for side in reversed(sides)]
    for place, (letter, table) in enumerate(zip(_SIDES, tables, strict=True)):
        remembered = table.origin.data_dir or other[place] or DEFAULT_DATA_DIR
        folder = options.data_dir or Path(remembered)
        if options.graphs is not None:
            graphs.append(load_graph(options.graphs[place], folder))
            continue
        graph, reason = _remembered_graph(table, letter, folder)
        graphs.append(graph)
        reasons += [] if reason is None else [reason]
    return (graphs[0], graphs[1]), reasons


def _remembered_graph(
    table: ScoredTable, letter: str, folder: Path
) -> tuple[Graph | None, str | None]:
    """Return the graph recorded in a table; if that is impossible, None and the reason."""
    name, hint = table.origin.dataset, "name both graphs with --graphs and --data-dir"
    if name is None:
        return None, (
            f"Columns are not compared: {letter} does not record its graph, as only runs and "
            f"Parquet tables do; {hint}."
        )
    try:
        graph = load_graph(name, folder)
    except GpnScaleError:
        return None, f"Columns are not compared: {letter}'s graph {name!r} is missing; {hint}."
    if not graph_fits(table, graph):
        return None, f"Columns are not compared: {letter}'s graph {name!r} has changed; {hint}."
    return graph, None


def _write(folder: Path, drift: Drift) -> None:
    try:
        paths = [*_write_page(folder, drift), *drift.write(folder)]
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot be written ({error.strerror}); choose another folder",
            arguments=("out",),
        ) from error
    lines = ["", "written:", *(f"  {path}" for path in paths)]
    say("written", "written", text="\n".join(lines), result=True, written=paths)


def _write_page(folder: Path, drift: Drift) -> list[Path]:
    """Write the page, and return its path; without the packages for charts, say so."""
    if not has_extra("charts", f"{folder / DRIFT_PAGE} is not written", "a page"):
        return []
    from gpn_scale.page.drift_page import write_drift_page

    return [write_drift_page(folder, drift)]
