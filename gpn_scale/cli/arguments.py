"""Command line of training: options, help texts, and the configuration that they produce."""

import argparse
import ast
import inspect
import os
import textwrap
from dataclasses import replace
from pathlib import Path

from gpn_scale import config as config_module
from gpn_scale import config_sections, training_sections
from gpn_scale.cli.config_file import ConfigFile
from gpn_scale.cli.remembered import DEFAULT_DATA_DIR, data_dir_of, store_of
from gpn_scale.cli.run_choice import RunChoice
from gpn_scale.cli.shared_options import add_device, add_memory_budget
from gpn_scale.command_line import CommandParser, command_name
from gpn_scale.config import RunConfig, SplitConfig, field_types_by_key, override
from gpn_scale.data.datasets import dataset_help
from gpn_scale.data.graph import Graph
from gpn_scale.errors import ConfigError, RunError
from gpn_scale.field_types import parse_assignments
from gpn_scale.recipes import RECIPES, in_minibatches, is_own_graph, left_out_count, recipe_for
from gpn_scale.train.run_directory import RunDirectory

_YEAR_SECONDS = 365 * 86_400
DEFAULT_DATASET = "synthetic"
"""Dataset that is used if neither an option nor a configuration names one."""


def training_parser() -> argparse.ArgumentParser:
    """Return the parser of `launch/train.py`."""
    parser = CommandParser(
        prog=command_name("train.py"),
        description="Train a Graph Posterior Network, predict all nodes with their uncertainty "
        "and write a report.",
        epilog=f"fields of --set, with their defaults:\n{_field_help()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "--dataset",
        metavar="NAME",
        help=f"{dataset_help()} (default: the one of the resumed run or of --config, else "
        "synthetic)",
    )
    add(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="folder that graphs are read from and downloaded to (default: the one of the resumed "
        "run or of the run of --config, else data)",
    )
    add(
        "--config",
        type=Path,
        metavar="FILE",
        help="JSON file of the configuration to start from. The config.json of a run repeats that "
        "run and ends with the same weights; fields that the file omits are set by the recipe. "
        "Other options and --set override the file (default: the configuration of the resumed "
        "run, else the recipe)",
    )
    add(
        "--model",
        choices=["GPN+", "GPN"],
        help="GPN+: feature evidence, opinion and label evidence, with a p-value per node for "
        "being known; GPN: the paper's model (default: GPN+)",
    )
    add(
        "--mode",
        choices=["exact", "minibatch"],
        help="exact: every step uses the whole graph; minibatch: steps use batches of stored rows, "
        "for graphs of any size (default: the mode of the configuration to start from, else exact, "
        "or minibatch under torchrun)",
    )
    add(
        "--ppr",
        type=Path,
        metavar="STORE",
        help="store of rows computed by `gpn-precompute`, for --mode minibatch (default: the "
        "store of the resumed run or of the run of --config if it fits, else RUN/store, which is "
        "computed if it is missing)",
    )
    add(
        "--out",
        type=Path,
        metavar="RUN",
        help="directory for all output (default: runs/NAME, or runs/NAME_2 and so on if that "
        "exists; --resume and --overwrite use the last one)",
    )
    add("--overwrite", action="store_true", help="replace the run in --out, if there is one")
    add("--resume", action="store_true", help="continue the run in --out, if there is one")
    add(
        "--warm-start",
        type=Path,
        metavar="RUN",
        help="start from the weights of this finished run, on a later version of its graph or on "
        "another graph with the same classes and features. Without --config, the configuration of "
        "that run is used; its training and validation nodes keep their roles "
        "(default: start from random weights)",
    )
    add(
        "--recipe",
        choices=RECIPES,
        help="recipe to start from (default: the one that fits the dataset)",
    )
    add("--split-seed", type=int, metavar="S", help="seed of the random split (default: 1)")
    add(
        "--seed",
        type=int,
        metavar="S",
        help="seed of the initial weights and of dropout (default: 1)",
    )
    add("--epochs", type=int, metavar="E", help="maximum number of epochs (default: the recipe's)")
    add(
        "--left-out-classes",
        metavar="N|paper",
        help="hide the labels of the last N classes and use their nodes as unknown nodes to "
        "detect; `paper` leaves out as many classes as the paper (default: 0)",
    )
    add(
        "--set",
        action="append",
        default=[],
        metavar="SECTION.FIELD=VALUE",
        help="set a field of the configuration (fields are listed below); may be repeated",
    )
    add_device(parser)
    add_memory_budget(parser)
    add(
        "--timeout-seconds",
        type=float,
        default=1800.0,
        metavar="S",
        help="with several ranks: seconds without an answer after which a rank counts as lost; a "
        "rank that ends is noticed at once (default: 1800)",
    )
    add(
        "--checkpoint-seconds",
        type=float,
        default=30.0,
        metavar="S",
        help="seconds between two checkpoints (default: 30)",
    )
    add(
        "--mlflow",
        metavar="EXPERIMENT",
        help="log the finished run to this MLflow experiment: settings, curves, figures and "
        "files. MLFLOW_TRACKING_URI sets the server or folder (default: log nothing)",
    )
    return parser


def dataset_of(options: argparse.Namespace, base: ConfigFile | None) -> str:
    """Return the dataset named by the options or by the configuration that they start from."""
    return options.dataset or (base and base.dataset) or DEFAULT_DATASET


def completed(
    options: argparse.Namespace, choice: RunChoice, base: ConfigFile | None
) -> argparse.Namespace:
    """Fill in the defaults that depend on the run, on `base` and on torchrun; return the options.

    Args:
        options: The parsed options.
        choice: The directory of the run, and whether a run in it is resumed or replaced.
        base: The configuration of `--config`, None without it. A resumed run uses its own.

    Returns:
        The options, with `base` and `remembered_store` added.

    Raises:
        ConfigError: the configuration to start from cannot be read.
        RunError: the record of where an earlier run's data is cannot be read.
    """
    options.out, options.resume, options.overwrite = choice.out, choice.resume, choice.overwrite
    earlier = choice.directory if choice.resume else None
    if options.config is None and earlier is not None and earlier.holds_run:
        base = _config_of(earlier)
    elif base is not None and earlier is None:
        earlier = RunDirectory(base.path.parent)
    options.base = base
    options.dataset = dataset_of(options, base)
    options.mode = options.mode or (base and base.mode)
    options.mode = options.mode or ("minibatch" if "WORLD_SIZE" in os.environ else "exact")
    options.remembered_store = None if earlier is None else store_of(earlier, None)
    if options.data_dir is None:
        options.data_dir = DEFAULT_DATA_DIR if earlier is None else data_dir_of(earlier, None)
    return options


def _config_of(run: RunDirectory) -> ConfigFile | None:
    """Return the configuration of a run to resume; None if it has not begun to train."""
    config = ConfigFile(run.config) if run.config.exists() else None
    has_trained = any(run.checkpoint_of(part).exists() for part in ("features", "opinion"))
    if config.is_complete if config is not None else not has_trained:
        return config
    raise RunError(
        f"{run.config} is missing or incomplete, so that it is unknown how {run.path} was trained: "
        "give its configuration (config), or overwrite the run",
        arguments=("config", "overwrite"),
    )


def checked_timeout(seconds: float) -> float:
    """Return the value of `--timeout-seconds` if it is positive and at most a year."""
    if not 0 < seconds <= _YEAR_SECONDS:
        raise ConfigError(
            f"--timeout-seconds is {seconds}, expected a positive number, at most "
            f"{_YEAR_SECONDS:,} (a year)"
        )
    return seconds


def checked_pause(seconds: float) -> float:
    """Return the value of `--checkpoint-seconds` if it is not negative and at most a year."""
    if not 0 <= seconds <= _YEAR_SECONDS:
        raise ConfigError(
            f"--checkpoint-seconds is {seconds}, expected 0 to {_YEAR_SECONDS:,} (a year)"
        )
    return seconds


def run_config(options: argparse.Namespace, graph: Graph) -> RunConfig:
    """Return the recipe, overridden by the file, then by single options, then by `--set`.

    Raises:
        ConfigError: an option has a wrong value, does not fit another, or would have no effect.
    """
    if options.mode == "exact" and options.ppr is not None:
        raise ConfigError(
            "--ppr has no effect in exact mode: omit --ppr, or add --mode minibatch to use it"
        )
    recipe = RECIPES[options.recipe] if options.recipe else None
    config = recipe(options.dataset) if recipe else recipe_for(options.dataset, graph)
    named = {
        "data.dataset": options.dataset,
        "model": options.model,
        "mode": options.mode,
        "split.rng_seed": options.split_seed,
        "train.rng_seed": options.seed,
        "train.epochs": options.epochs,
    }
    if options.left_out_classes is not None:
        count = left_out_count(options.dataset, options.left_out_classes)
        named["data.left_out_classes"] = count
    pairs = [(key, str(value)) for key, value in named.items() if value is not None]
    assignments = parse_assignments(options.set)
    pairs += assignments

    def changed(config: RunConfig) -> RunConfig:
        base = config if options.base is None else options.base.applied_to(config)
        return override(base, pairs)

    # Epochs depend on the training nodes and on the batch size, so these are set first.
    wanted = changed(config)
    config = replace(config, data=wanted.data, split=wanted.split, minibatch=wanted.minibatch)
    if config.split.kind == "public" and graph.split is not None:
        _refuse_split_fields(options, [key for key, _ in assignments])
    if options.mode == "minibatch":
        config = in_minibatches(config, graph)
    return changed(config)


def _refuse_split_fields(options: argparse.Namespace, assigned: list[str]) -> None:
    """Refuse fields of a drawn split for a graph whose public split is used.

    The default seed is always accepted, since it changes nothing. Any seed is accepted for a
    dataset of the paper, because scripts pass the same options for all of them; `unused_seed`
    then returns a note.
    """
    fields = [key for key in assigned if key.startswith("split.") and key != "split.kind"]
    given = [f"--set {key}" for key in fields]
    if options.split_seed not in (None, SplitConfig().rng_seed) and is_own_graph(options.dataset):
        given.append("--split-seed")
    if given:
        raise ConfigError(
            f"{' and '.join(given)} would have no effect, because {options.dataset} comes with its "
            "own split, which is used: omit it, or draw a new split with --set "
            "split.kind=stratified"
        )


def unused_seed(options: argparse.Namespace, config: RunConfig) -> str | None:
    """Return a sentence if `--split-seed` was given but the public split of a dataset is used."""
    if config.split.kind == "stratified" or options.split_seed in (None, SplitConfig().rng_seed):
        return None
    return (
        f"--split-seed {options.split_seed} has no effect, because {options.dataset} comes with "
        "its own split, which is used; draw a new one with --set split.kind=stratified"
    )


def _field_help() -> str:
    defaults = RunConfig().to_dict()
    docs = field_docs()
    lines = []
    for key in field_types_by_key():
        section, _, name = key.rpartition(".")
        default = defaults[section][name] if section else defaults[name]
        text = f"{' '.join(docs.get(key, '').split())} (default: {default})"
        lines.append(f"  {key}")
        lines += textwrap.wrap(text, 92, initial_indent="      ", subsequent_indent="      ")
    return "\n".join(lines)


def field_docs() -> dict[str, str]:
    """Return the docstring under every configuration field, read from the source."""
    classes = {
        node.name: node
        for module in (config_module, config_sections, training_sections)
        for node in ast.parse(inspect.getsource(module)).body
        if isinstance(node, ast.ClassDef)
    }
    docs = _class_docs(classes["RunConfig"], "")
    for section, kind in inspect.get_annotations(RunConfig).items():
        if getattr(kind, "__name__", None) in classes:
            docs |= _class_docs(classes[kind.__name__], f"{section}.")
    return docs


def _class_docs(node: ast.ClassDef, prefix: str) -> dict[str, str]:
    docs = {}
    for field, following in zip(node.body, node.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            value = following.value if isinstance(following, ast.Expr) else None
            if isinstance(value, ast.Constant):
                docs[prefix + field.target.id] = str(value.value)
    return docs
