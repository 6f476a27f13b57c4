"""Entry point of prediction: what a trained model says of all nodes, or of some, and why."""

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np
import torch

from gpn_scale.cli.arguments import add_memory_budget, checked_threads, memory_bytes
from gpn_scale.cli.console import exit_code_of, leave
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.data.splits import prepare_graph
from gpn_scale.errors import ConfigError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.prediction_table import write_predictions
from gpn_scale.inference.some_nodes import NodesPrediction
from gpn_scale.progress import ProgressMeter
from gpn_scale.train.run_directory import RunDirectory

_SHOWN = 10


def prediction_parser() -> argparse.ArgumentParser:
    """The parser of `launch/predict.py`."""
    parser = argparse.ArgumentParser(
        prog="predict.py",
        description="What a trained model says of all nodes of a graph, or of some from their "
        "stored rows, with a certified interval for alpha_0 and the neighbours behind it.",
    )
    add = parser.add_argument
    add("--run", type=Path, required=True, help="directory of a training run")
    add("--dataset", metavar="NAME", help="graph to predict (default: that of the run)")
    add("--data-dir", type=Path, default=Path("data"), metavar="DIR", help="(default: data)")
    add("--out", type=Path, required=True, metavar="FILE", help="Parquet file to write")
    add("--overwrite", action="store_true", help="replace --out if it is there")
    add("--nodes", type=Path, metavar="FILE", help="text file with one node id a line")
    add("--ppr", type=Path, metavar="STORE", help="rows of these nodes")
    add(
        "--explain",
        type=int,
        default=0,
        metavar="M",
        help="name the M neighbours that supplied most of each node's evidence",
    )
    add("--device", default="auto", help="auto, cpu, cuda, ... (default: auto)")
    add("--threads", type=int, metavar="T", help="CPU threads (default: all cores)")
    add_memory_budget(parser)
    return parser


def predict(options: argparse.Namespace) -> None:
    """Loads, predicts, writes."""
    if options.out.exists() and not options.overwrite:
        raise ConfigError(f"--out {options.out} exists already; use --overwrite to replace it")
    if not options.out.parent.is_dir() or options.out.is_dir():
        raise ConfigError(f"--out {options.out} is not a file in a folder that exists")
    if options.nodes is None and (options.ppr is not None or options.explain):
        raise ConfigError("--ppr and --explain are for single nodes: name them with --nodes FILE")
    if options.nodes is not None and options.ppr is None:
        raise ConfigError("--nodes needs the rows of these nodes: give --ppr STORE as well")
    if options.explain < 0:
        raise ConfigError(f"--explain got {options.explain}, expected at least 0")
    if options.threads is not None:
        torch.set_num_threads(checked_threads(options.threads))
    budget = memory_bytes(options.memory_budget)
    classifier = GPNClassifier.load(RunDirectory(options.run).model, device=options.device)
    trained_on = classifier.config.data.dataset
    name = options.dataset or trained_on
    graph = load_graph(name, options.data_dir)
    if name == trained_on:  # the run's split and left-out classes are known of these nodes, too
        graph = prepare_graph(graph, classifier.config)
    if options.nodes is None:
        with ProgressMeter("predict", "node", graph.num_nodes) as meter:
            everything = classifier.predict(
                graph,
                memory_bytes=budget,
                scratch=options.out.parent,
                progress=meter.update,
            )
        write_predictions(options.out, everything, graph)
    else:
        nodes = read_nodes(options.nodes, graph)
        found = classifier.predict_nodes(graph, nodes, options.ppr, explain=options.explain)
        write_predictions(
            options.out, found.prediction, graph, nodes=nodes, further=_further(found)
        )
        _print_nodes(found)
    print(f"written: {options.out}")


def read_nodes(path: Path, graph: Graph) -> NodeIds:
    """Node ids from a text file, one a line.

    Raises:
        ConfigError: the file cannot be read, or an id is not of the graph.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # an empty file, or 1.5 for an id
            nodes: NodeIds = np.loadtxt(path, dtype=np.int64, ndmin=1)
        if nodes.ndim != 1:
            raise ValueError(f"{nodes.shape[1]} numbers a line")
    except (OSError, ValueError, Warning) as error:
        raise ConfigError(
            f"--nodes {path} cannot be read ({error}), expected one node id a line"
        ) from error
    wrong = nodes[(nodes < 0) | (nodes >= graph.num_nodes)]
    if len(wrong):
        raise ConfigError(
            f"--nodes {path} holds node {wrong[0]}, expected ids in [0, {graph.num_nodes})"
        )
    return nodes


def _further(found: NodesPrediction) -> dict[str, np.ndarray]:
    columns: dict[str, np.ndarray] = {
        "alpha_0_lower": found.alpha_0_lower,
        "alpha_0_upper": found.alpha_0_upper,
    }
    if (by := found.contributors) is not None:
        columns |= {
            "contributor": by.node,
            "contributor_share": by.share,
            "contributor_weight": by.weight,
            "contributor_class": by.leading_class,
            "tail_share": by.tail_share,
        }
    return columns


def _print_nodes(found: NodesPrediction) -> None:
    print(f"{'node':>10}  class  probability  {'alpha_0':>10}  certified interval of alpha_0")
    prediction = found.prediction
    for i, node in enumerate(found.node[:_SHOWN]):
        label = prediction.predicted_class[i]
        print(
            f"{node:>10}  {label:>5}  {prediction.probabilities[i, label]:>11.3f}  "
            f"{prediction.alpha_0[i]:>10.4g}  "
            f"{found.alpha_0_lower[i]:.4g} to {found.alpha_0_upper[i]:.4g}"
        )
        if (by := found.contributors) is not None:
            named = np.flatnonzero(by.node[i] >= 0)
            parts = [
                f"{by.node[i, j]} ({by.share[i, j]:.0%}, class {by.leading_class[i, j]})"
                for j in named
            ]
            print(f"{'':>12}evidence from {', '.join(parts)}; tail {by.tail_share[i]:.0%}")
    if len(found.node) > _SHOWN:
        print(f"  ... and {len(found.node) - _SHOWN:,} more in the file")


def main(arguments: Sequence[str] | None = None) -> int:
    """Parses the command line and runs; the exit code is 2 for bad input."""
    options = prediction_parser().parse_args(arguments)
    return exit_code_of(lambda: predict(options))


def start() -> NoReturn:
    """Run the command as a process of its own."""
    leave(main())
