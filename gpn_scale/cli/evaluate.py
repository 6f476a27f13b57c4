"""Entry point of the evaluation: the paper's experiments over graphs, models, splits and seeds."""

import argparse
import multiprocessing
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import NamedTuple, NoReturn

import torch

from gpn_scale.baselines.registry import BaselineSetting
from gpn_scale.cli.arguments import checked_threads
from gpn_scale.cli.console import exit_code_of, leave
from gpn_scale.cli.models import ABLATION, known_models, parse_model, setting_of
from gpn_scale.cli.run_inputs import build_rows
from gpn_scale.config import DiffusionConfig, parse_assignments
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph import Graph
from gpn_scale.data.shifts import check_fraction
from gpn_scale.distributed import World, connected
from gpn_scale.errors import ConfigError
from gpn_scale.experiments.matrix import AnySetting, Cell, Matrix, cells_of
from gpn_scale.experiments.measures import (
    EXPERIMENTS,
    FRACTIONS,
    check_experiment,
    check_possible,
)
from gpn_scale.experiments.paper_figures import Figure, PaperKey, read_paper
from gpn_scale.experiments.studies import STUDIES, STUDY_EXPERIMENTS, studied_models
from gpn_scale.experiments.tables import entries, to_csv, to_latex, to_markdown
from gpn_scale.files import claimed, write_text
from gpn_scale.page.matrix_page import write_matrix_page
from gpn_scale.page.png import find_browser, write_pngs
from gpn_scale.progress import ProgressMeter
from gpn_scale.recipes import left_out_count, recipe_for

_ABLATION_EXPERIMENTS = ("clean", "left-out-classes", "isolated")
STUDY = "hyper-parameters"
_A_DAY = 86_400.0


def evaluation_parser() -> argparse.ArgumentParser:
    """The parser of `launch/evaluate.py`."""
    parser = argparse.ArgumentParser(
        prog="evaluate.py",
        description="The paper's experiments as a matrix of runs. What is finished is kept: the "
        "same call again goes on where it was stopped, and a larger one adds what is missing. "
        "Calls at the same time, by torchrun, mpiexec or hand, share the work; the last one to end "
        "writes the whole tables.",
    )
    add = parser.add_argument
    add(
        "--experiment",
        default="all",
        metavar="NAME[,NAME]",
        help=f"{', '.join(EXPERIMENTS)}, ablation, hyper-parameters, or all, which is all but "
        "the last two (default: all)",
    )
    add("--datasets", default="synthetic", metavar="A,B", help="(default: synthetic)")
    add(
        "--models",
        default="GPN,GPN-minibatch",
        metavar="A,B",
        help=f"of {', '.join(known_models())}; NAME[section.field=value;...] changes one "
        "(default: GPN,GPN-minibatch)",
    )
    add("--splits", type=int, default=10, metavar="N", help="split seeds (default: 10)")
    add("--inits", type=int, default=10, metavar="M", help="seeds per split (default: 10)")
    add("--out", type=Path, required=True, metavar="DIR", help="cells, stores and tables")
    add("--data-dir", type=Path, default=Path("data"), metavar="DIR", help="(default: data)")
    add("--paper", type=Path, metavar="DIR", help="CSV files of the paper's figures, to compare")
    add(
        "--left-out-classes",
        default="paper",
        metavar="N|paper",
        help="classes left out in left-out-classes (default: paper; a number for other graphs)",
    )
    add(
        "--fractions",
        default=",".join(map(str, FRACTIONS)),
        metavar="A,B",
        help="shares of nodes or edges that shifts change; finished cells get those they lack "
        "(default: %(default)s)",
    )
    add(
        "--studies",
        default="all",
        metavar="A,B",
        help=f"of {', '.join(STUDIES)}, for hyper-parameters (default: all)",
    )
    add("--tables-only", action="store_true", help="train nothing, write what there is")
    add("--png", action="store_true", help="plots also as PNG, drawn by Chromium")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="change the recipes")
    add("--processes", type=int, default=1, metavar="P", help="cells at a time (default: 1)")
    add("--threads", type=int, metavar="T", help="CPU threads of each process (default: 1)")
    return parser


class Job(NamedTuple):
    """A cell, and all that a process needs to run it."""

    cell: Cell
    experiments: tuple[str, ...]
    fractions: tuple[float, ...]
    assignments: tuple[str, ...]
    left_out: str
    data_dir: Path
    out: Path
    threads: int


class Wanted(NamedTuple):
    """What the command line asks for."""

    experiments: tuple[str, ...]
    models: tuple[str, ...]
    datasets: tuple[str, ...]
    fractions: tuple[float, ...]


def evaluate(options: argparse.Namespace) -> None:
    """Runs what is missing of the matrix, then writes the tables of all that is there."""
    wanted = _wanted(options)
    browser = find_browser() if options.png else None
    threads = checked_threads(options.threads) if options.threads is not None else 1
    paper = None if options.paper is None else read_paper(options.paper)
    cells = cells_of(
        wanted.datasets, wanted.models, wanted.experiments, options.splits, options.inits
    )
    matrix = Matrix(options.out)
    jobs = [
        Job(
            cell,
            wanted.experiments,
            wanted.fractions,
            tuple(options.set),
            options.left_out_classes,
            options.data_dir,
            options.out,
            threads,
        )
        for cell in ([] if options.tables_only else cells)
    ]
    # Every refusal before the first training; one of them is for finished cells of another setting.
    todo = [
        (job, setting)
        for job in jobs
        if matrix.missing(job.cell, job.experiments, setting := _setting(job), job.fractions)
    ]
    for job, setting in todo:
        graph = _graph(job.cell.dataset, job.data_dir)
        check_possible(job.cell.wanted(job.experiments), graph)
        setting.check(graph)
    with connected(torch.device("cpu"), timeout_seconds=_A_DAY) as world:
        for job, setting in todo:
            store, diffusion = _store(job.cell.dataset, setting, options.out), _rows_of(setting)
            if store is not None and diffusion is not None:
                lock = options.out / "locks" / f"{store.name}.store"
                with claimed(lock, wait=True) if world.is_first else nullcontext():
                    graph, name = _graph(job.cell.dataset, options.data_dir), job.cell.dataset
                    build_rows(graph, name, options.data_dir, store, diffusion, world)
        # Each rank begins with its own, then helps the others with what nobody has claimed.
        ordered = sorted(range(len(todo)), key=lambda place: place % world.size != world.rank)
        _run([todo[place][0] for place in ordered], options.processes, world)
        world.barrier()
        if not world.is_first:
            return
    if options.tables_only:
        wanted = wanted._replace(fractions=())  # whatever a matrix was made with will do
    write_tables(matrix, cells, wanted, paper)
    if browser is not None:
        write_pngs(options.out / "plots", browser)


def write_tables(
    matrix: Matrix,
    cells: Sequence[Cell],
    wanted: Wanted,
    paper: Mapping[PaperKey, Figure] | None,
) -> None:
    """Tables and page of the cells, as far as they are there; what is missing is named."""
    found = {cell: result for cell in cells if (result := matrix.result(cell)) is not None}
    missing = []
    for cell in cells:
        lacking = cell.lacking(found.get(cell), wanted.experiments, wanted.fractions)
        if lacking:
            missing.append(f"{cell.name}: {', '.join(lacking)}")
    table = entries(found, paper)
    folder = matrix.path / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    for suffix, text in (("csv", to_csv(table)), ("md", to_markdown(table))):
        write_text(folder / f"results.{suffix}", text)
    write_text(folder / "results.tex", to_latex(table))
    page = matrix.path / "report.html"
    write_matrix_page(page, table, cells=len(cells), missing=missing)
    print(to_markdown(table))
    if missing:
        print(f"{len(missing)} of {len(cells)} trainings lack results, the first {missing[0]}")
    print(f"tables: {folder / 'results.md'}, results.csv, results.tex")
    print(f"page: {page}")


def _wanted(options: argparse.Namespace) -> Wanted:
    names = [name for name in options.experiment.split(",") if name]
    asked = [name for name in options.models.split(",") if name]
    models, experiments = [*asked], list[str]()
    for name in names:
        if name == "ablation":
            models += [model for model in ABLATION if model not in models]
            experiments += _ABLATION_EXPERIMENTS
        elif name == STUDY:
            models += studied_models(asked, options.studies)
            experiments += STUDY_EXPERIMENTS
        elif name == "all":
            experiments += EXPERIMENTS
        else:
            check_experiment(name)
            experiments.append(name)
    for model in models:
        parse_model(model)
    datasets = [name for name in _split_datasets(options.datasets) if name]
    if not experiments or not models or not datasets:
        raise ConfigError("expected at least one experiment, one model and one dataset")
    return Wanted(
        tuple(dict.fromkeys(experiments)),
        tuple(dict.fromkeys(models)),
        tuple(dict.fromkeys(datasets)),
        _fractions(options.fractions),
    )


def _split_datasets(text: str) -> Iterator[str]:
    """At commas, but not at those between the keys of a synthetic graph."""
    name = ""
    for part in text.split(","):
        if "=" in part and ":" in name and ":" not in part:
            name += f",{part}"
            continue
        if name:
            yield name
        name = part
    yield name


def _fractions(text: str) -> tuple[float, ...]:
    try:
        fractions = tuple(float(part) for part in text.split(",") if part)
    except ValueError:
        raise ConfigError(f"--fractions got {text!r}, expected numbers between 0 and 1") from None
    for fraction in fractions:
        check_fraction(fraction)
    return fractions


@cache
def _graph(dataset: str, data_dir: Path) -> Graph:
    return load_graph(dataset, data_dir)


def _setting(job: Job) -> AnySetting:
    cell, graph = job.cell, _graph(job.cell.dataset, job.data_dir)
    pairs = [("split.rng_seed", str(cell.split)), ("train.rng_seed", str(cell.init))]
    if cell.left_out:
        pairs.append(("data.left_out_classes", str(left_out_count(cell.dataset, job.left_out))))
    recipe = recipe_for(cell.dataset, graph)
    changes = [*pairs, *parse_assignments(job.assignments)]
    return setting_of(cell.model, recipe, changes, graph)


def _rows_of(setting: AnySetting) -> DiffusionConfig | None:
    """The diffusion whose rows the model uses; None where it has none that add up."""
    if isinstance(setting, BaselineSetting):
        return setting.config.diffusion if setting.needs_rows else None
    diffusion = setting.predicts_with
    return None if diffusion.steps == 0 or diffusion.of != "evidence" else diffusion


def _store(dataset: str, setting: AnySetting, out: Path) -> Path | None:
    """Where these rows are."""
    diffusion = _rows_of(setting)
    if diffusion is None:
        return None
    facts = "_".join(str(value) for value in diffusion.store_parameters.values())
    return out / "stores" / f"{dataset.replace(':', '_')}_{facts}"


def _run(jobs: Sequence[Job], processes: int, world: World) -> None:
    if processes < 1:
        raise ConfigError(f"--processes got {processes}, expected at least 1")
    silent = not world.is_first
    with ProgressMeter("evaluate", "cell", len(jobs), silent=silent) as meter:
        if processes == 1:
            for done, job in enumerate(jobs, start=1):
                run_job(job)
                meter.update(done, job.cell.name)
            return
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(processes, mp_context=context) as pool:
            running = {pool.submit(run_job, job): job for job in jobs}
            try:
                for done, future in enumerate(as_completed(running), start=1):
                    future.result()
                    meter.update(done, running[future].cell.name)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def run_job(job: Job) -> None:
    """Runs one cell in this process, unless another process is at it or has done it."""
    torch.set_num_threads(job.threads)
    setting = _setting(job)
    with claimed(job.out / "locks" / job.cell.name, wait=False) as free:
        if free:
            Matrix(job.out).run(
                job.cell,
                job.experiments,
                setting,
                lambda: _graph(job.cell.dataset, job.data_dir),
                store=_store(job.cell.dataset, setting, job.out),
                fractions=job.fractions,
            )


def main(arguments: Sequence[str] | None = None) -> int:
    """Parses the command line and runs; the exit code is 2 for bad input."""
    options = evaluation_parser().parse_args(arguments)
    return exit_code_of(lambda: evaluate(options))


def start() -> NoReturn:
    """Run the command as a process of its own."""
    leave(main())
