"""The command line of training: options, their help, and the configuration they add up to."""

import argparse
import ast
import inspect
import os
import textwrap
from pathlib import Path

from gpn_scale import config as config_module
from gpn_scale.config import RunConfig, known_fields, override, parse_assignments
from gpn_scale.data.datasets import DATASET_NAMES
from gpn_scale.data.graph import Graph
from gpn_scale.errors import ConfigError
from gpn_scale.inference.all_nodes import DEFAULT_MEMORY_BYTES
from gpn_scale.recipes import RECIPES, in_minibatches, left_out_count, recipe_for


def training_parser() -> argparse.ArgumentParser:
    """The parser of `launch/train.py`."""
    parser = argparse.ArgumentParser(
        prog="train.py",
        description="Train a Graph Posterior Network and report what it knows and does not know.",
        epilog=f"fields of --set, with their defaults:\n{_field_help()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = ", ".join(DATASET_NAMES)
    parser.add_argument(
        "--dataset",
        default="synthetic",
        metavar="NAME",
        help=f"{names}, ogbn-arxiv-sim, synthetic[:nodes=20000,classes=7,...], or X when DIR/X.npz "
        "or a folder DIR/X of edges and nodes tables exists (default: synthetic)",
    )
    parser.add_argument(
        "--data-dir", type=Path, default=Path("data"), metavar="DIR", help="(default: data)"
    )
    parser.add_argument(
        "--mode",
        choices=["exact", "minibatch"],
        help="exact: the whole graph in every step; minibatch: batches of stored rows, for graphs "
        "of any size (default: exact, under torchrun minibatch)",
    )
    parser.add_argument(
        "--ppr",
        type=Path,
        metavar="STORE",
        help="rows made by `python -m precompute`, for --mode minibatch (default: RUN/store, made "
        "if it is missing)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="RUN",
        help="directory for all that is written (default: runs/ and the dataset's name)",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace a run that is in --out")
    parser.add_argument("--resume", action="store_true", help="go on with the run in --out, if any")
    parser.add_argument("--recipe", choices=RECIPES, help="setting to use instead of the dataset's")
    parser.add_argument(
        "--split-seed", type=int, metavar="S", help="seed of the split (default: 1)"
    )
    parser.add_argument(
        "--seed", type=int, metavar="S", help="seed of initial values and dropout (default: 1)"
    )
    parser.add_argument("--epochs", type=int, metavar="E", help="train at most so many epochs")
    parser.add_argument(
        "--left-out-classes",
        metavar="N|paper",
        help="hide the last N classes (or the paper's number) from training and detect them",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="SECTION.FIELD=VALUE",
        help="set any field of the configuration; may be repeated",
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, ... (default: auto)")
    parser.add_argument("--threads", type=int, metavar="T", help="CPU threads (default: all cores)")
    add_memory_budget(parser)
    parser.add_argument(
        "--timeout-seconds",
        type=float,
        default=1800.0,
        metavar="S",
        help="with several ranks: a rank that does not answer for so long counts as lost; one that "
        "ends is noticed at once (default: 1800)",
    )
    parser.add_argument(
        "--checkpoint-seconds",
        type=float,
        default=30.0,
        metavar="S",
        help="pause between checkpoints (default: 30)",
    )
    return parser


def add_memory_budget(parser: argparse.ArgumentParser) -> None:
    """`--memory-budget`, for all that predicts all nodes."""
    parser.add_argument(
        "--memory-budget",
        type=float,
        default=DEFAULT_MEMORY_BYTES / 1e9,
        metavar="GB",
        help="what predicting all nodes may use beside graph and model; the rest goes to disk "
        "(default: %(default).1f)",
    )


def memory_bytes(gigabytes: float) -> int:
    """`--memory-budget` in bytes."""
    if not gigabytes > 0:
        raise ConfigError(f"--memory-budget got {gigabytes}, expected gigabytes above 0")
    return int(gigabytes * 1e9)


def completed(options: argparse.Namespace) -> argparse.Namespace:
    """The options, with defaults that depend on others and on the number of ranks."""
    if options.mode is None:
        options.mode = "minibatch" if "WORLD_SIZE" in os.environ else "exact"
    if options.out is None:
        name = options.dataset.partition(":")[0]
        options.out = Path("runs") / Path(name).name
    if not options.timeout_seconds > 0:
        raise ConfigError(
            f"--timeout-seconds got {options.timeout_seconds}, expected a positive number"
        )
    # torchrun has started the ranks again, after one of them was lost.
    if int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0:
        options.resume, options.overwrite = True, False
    return options


def checked_threads(threads: int) -> int:
    """`--threads`, at least 1."""
    if threads < 1:
        raise ConfigError(f"--threads got {threads}, expected at least 1")
    return threads


def run_config(options: argparse.Namespace, graph: Graph) -> RunConfig:
    """Recipe (for minibatches), then the options with names of their own, then `--set`."""
    if options.mode == "exact" and options.ppr is not None:
        raise ConfigError("--ppr is for --mode minibatch, got --mode exact: leave one of them out")
    recipe = RECIPES[options.recipe] if options.recipe else None
    config = recipe(options.dataset) if recipe else recipe_for(options.dataset, graph)
    if options.mode == "minibatch":
        config = in_minibatches(config, graph)
    named = {
        "mode": options.mode,
        "split.rng_seed": options.split_seed,
        "train.rng_seed": options.seed,
        "train.epochs": options.epochs,
    }
    if options.left_out_classes is not None:
        count = left_out_count(options.dataset, options.left_out_classes)
        named["data.left_out_classes"] = count
    pairs = [(key, str(value)) for key, value in named.items() if value is not None]
    return override(config, pairs + parse_assignments(options.set))


def _field_help() -> str:
    defaults = RunConfig().to_dict()
    docs = field_docs()
    lines = []
    for key in known_fields():
        section, _, name = key.rpartition(".")
        default = defaults[section][name] if section else defaults[name]
        text = f"{docs.get(key, '')} (default: {default})"
        lines.append(f"  {key}")
        lines += textwrap.wrap(text, 92, initial_indent="      ", subsequent_indent="      ")
    return "\n".join(lines)


def field_docs() -> dict[str, str]:
    """The docstring under every configuration field, read from the source."""
    classes = {
        node.name: node
        for node in ast.parse(inspect.getsource(config_module)).body
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
