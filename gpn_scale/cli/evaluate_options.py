"""The options of `gpn-evaluate`, and the matrix of runs that they request."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpn_scale.cli.evaluate_tables import TableChoice
from gpn_scale.command_line import CommandParser, command_name
from gpn_scale.data.datasets import dataset_help
from gpn_scale.errors import ConfigError
from gpn_scale.experiments.catalogue import EXPERIMENTS
from gpn_scale.experiments.metric_columns import chosen_columns
from gpn_scale.experiments.request import MatrixRequest, expand_groups
from gpn_scale.experiments.studies import STUDIES
from gpn_scale.experiments.trained import FRACTIONS
from gpn_scale.extras import check_extra
from gpn_scale.models.plugins import load_installed_models, load_plugins
from gpn_scale.models.registry import model_names
from gpn_scale.reading import open_file

_COMMENT_BYTES = 1 << 20


def evaluation_parser() -> argparse.ArgumentParser:
    """Return the parser of `gpn-evaluate`; its help includes models of installed plug-ins."""
    load_installed_models()
    parser = CommandParser(
        prog=command_name("evaluate.py"),
        description="Run the paper's experiments as a matrix of graphs, models and seeds. Finished "
        "results are kept: repeating a call continues where it was interrupted, and a larger "
        "matrix adds what is missing. Several calls at the same time, started by torchrun, mpiexec "
        "or by hand, share the work; the last one to finish writes the complete tables.",
    )
    add = parser.add_argument
    add(
        "--experiment",
        default="all",
        metavar="NAME[,NAME]",
        help=f"{', '.join(EXPERIMENTS)}, ablation, hyper-parameters, or all, which means "
        "all but the last two (default: all)",
    )
    add(
        "--datasets",
        default="synthetic",
        metavar="A,B",
        help=f"datasets, each {dataset_help()} (default: synthetic)",
    )
    add(
        "--models",
        default="GPN,GPN-minibatch",
        metavar="A,B",
        help=f"models among {', '.join(model_names())}; NAME[section.field=value;...] changes "
        "the configuration of one (default: GPN,GPN-minibatch)",
    )
    add(
        "--plugin",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="Python file that registers further models for --models (docs/adding_a_model.md); the "
        "file is executed, so use only files that you trust (may be repeated)",
    )
    add("--splits", type=int, default=10, metavar="N", help="number of splits (default: 10)")
    add(
        "--inits",
        type=int,
        default=10,
        metavar="M",
        help="number of initialisations per split (default: 10)",
    )
    add("--out", type=Path, required=True, metavar="DIR", help="directory of cells, stores, tables")
    add(
        "--data-dir",
        type=Path,
        default=Path("data"),
        metavar="DIR",
        help="directory of the datasets (default: data)",
    )
    add(
        "--paper",
        type=Path,
        metavar="DIR",
        help="directory of CSV files with the paper's figures, which the tables then show as well",
    )
    add(
        "--left-out-classes",
        default="paper",
        metavar="N|paper",
        help="number of classes to leave out in the experiment left-out-classes; graphs that are "
        "not in the paper need a number (default: paper)",
    )
    add(
        "--class-sets",
        default="0",
        metavar="A,B",
        help="sets of classes to leave out, with one training each: 0 for the last classes, as in "
        "the paper, 1 to 4 for sets of the same size spread over all classes (default: 0)",
    )
    add(
        "--own-seeds",
        action="store_true",
        help="give every cell its own seed of the initial weights, the same for all models; only "
        "for a new matrix (default: initialisation i has seed i in all cells)",
    )
    add(
        "--fractions",
        default=",".join(map(str, FRACTIONS)),
        metavar="A,B",
        help="fractions of nodes or edges that the shifts change; fractions that finished cells "
        "lack are added to them (default: %(default)s)",
    )
    add(
        "--studies",
        default="all",
        metavar="A,B",
        help=f"hyper-parameter studies among {', '.join(STUDIES)} (default: all)",
    )
    add(
        "--measured",
        type=Path,
        metavar="DIR",
        help="folder of CSV tables with measured cells, as benchmarks/leaderboard.py writes them; "
        "cells that have all results there, with the same configuration, are not trained. The "
        "fingerprint in the tables covers the configuration but not the code; lines without one "
        "count for every configuration (default: none)",
    )
    add("--tables-only", action="store_true", help="only write the tables of finished results")
    add(
        "--metrics",
        metavar="A,B",
        help="metrics in the Markdown and LaTeX tables, such as accuracy,ece,auroc_p_known; "
        "EXPERIMENT/NAME selects a metric of one experiment (default: all); results.csv always has "
        "all metrics",
    )
    add(
        "--latex",
        type=Path,
        metavar="FILE",
        help="file for the LaTeX tables, which use booktabs (default: tables/results.tex in --out)",
    )
    add("--png", action="store_true", help="also write charts as PNG files")
    add(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a field of every recipe, e.g. train.epochs=50 (may be repeated)",
    )
    add(
        "--processes",
        type=int,
        default=1,
        metavar="P",
        help="number of cells that run at the same time (default: 1)",
    )
    add("--threads", type=int, metavar="T", help="CPU threads of each process (default: 1)")
    return parser


def requested_matrix(options: argparse.Namespace) -> MatrixRequest:
    """Return the matrix that the command line requests.

    Raises:
        ConfigError: an option has a value that is not allowed.
    """
    load_plugins(options.plugin)
    names = [name for name in options.experiment.split(",") if name]
    models = [name for name in options.models.split(",") if name]
    experiments, all_models = expand_groups(names, models, options.studies)
    return MatrixRequest(
        out=options.out,
        datasets=tuple(dict.fromkeys(filter(None, split_datasets(options.datasets)))),
        models=all_models,
        experiments=experiments,
        splits=options.splits,
        inits=options.inits,
        fractions=_fractions(options.fractions),
        left_out_classes=options.left_out_classes,
        class_sets=_class_sets(options.class_sets),
        own_seeds=options.own_seeds,
        changes=tuple(options.set),
        data_dir=options.data_dir,
        plugins=tuple(options.plugin),
    )


def table_choice(options: argparse.Namespace, experiments: Sequence[str]) -> TableChoice:
    """Return what the tables show and where they are written.

    Args:
        options: The parsed options, and `command`, the whole command line.
        experiments: Experiments of the matrix.

    Raises:
        ConfigError: a metric does not exist, or `--latex` names a folder or a file that this
            command did not write.
    """
    columns = None
    if options.metrics is not None:
        names = [name.strip() for name in options.metrics.split(",") if name.strip()]
        columns = chosen_columns(names, experiments)
    if options.latex is not None and options.latex.is_dir():
        raise ConfigError(f"--latex is {options.latex}, which is a folder: name a file in it")
    if options.latex is not None and not _may_hold_tables(options.latex):
        raise ConfigError(
            f"--latex is {options.latex}, an existing file that this command did not write: choose "
            "another name, or remove the file"
        )
    if options.png:
        check_extra("charts", "--png")
    return TableChoice(
        columns=columns, latex=options.latex, png=options.png, command=options.command
    )


def split_datasets(text: str) -> Iterator[str]:
    """Yield names of datasets, split at commas except those inside a synthetic graph's settings.

    >>> list(split_datasets("CoraML,synthetic:nodes=10,classes=3,CiteSeer"))
    ['CoraML', 'synthetic:nodes=10,classes=3', 'CiteSeer']
    """
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
        return tuple(float(part) for part in text.split(",") if part)
    except ValueError:
        raise ConfigError(
            f"fractions got {text!r}, expected numbers between 0 and 1", arguments=("fractions",)
        ) from None


def _class_sets(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",") if part]
    if not all(part.isdecimal() and len(part) < 10 for part in parts):
        raise ConfigError(
            f"class_sets got {text!r}, expected whole numbers", arguments=("class_sets",)
        )
    return tuple(int(part) for part in parts)


def _may_hold_tables(path: Path) -> bool:
    """Return whether a file is missing, empty, or begins with the comment of our tables."""
    if not path.exists():
        return True
    with open_file(path) as file:
        first = file.readline(_COMMENT_BYTES)
    return not first or (first.startswith(b"% ") and b"(gpn_scale " in first)
