"""The command `gpn-predict`: predict all nodes of a graph, or some with explanations."""

import argparse
import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from gpn_scale.cli.console import leave, run_command
from gpn_scale.cli.predict_new import add_new_nodes, check_new_nodes, predict_new_nodes
from gpn_scale.cli.remembered import data_dir_of, store_of
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
from gpn_scale.data.datasets import load_graph
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.data.id_list import read_id_list
from gpn_scale.errors import ConfigError, FileError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.known_calibration import ELSEWHERE_CONDITION, LATER_CONDITION
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.evaluation.prediction_table import Origin, write_predictions
from gpn_scale.evaluation.table_writers import check_suffix
from gpn_scale.flags import NEW_NODES_FLAGS
from gpn_scale.inference.some_nodes import NodesPrediction
from gpn_scale.messages import say
from gpn_scale.progress import ProgressMeter
from gpn_scale.reading import read_text
from gpn_scale.train.run_directory import RunDirectory
from gpn_scale.train.run_graph import Relation, RunGraph, has_validation_nodes, related_graph
from gpn_scale.triage.promise import PROMISE_CONDITION, Promise
from gpn_scale.triage.promise_file import model_fingerprint, read_promise

_PRINTED_NODES = 10
_MOST_EXPLAINED = 1_000_000
_PRINTED_FIELDS = ("node", "class", "probability", "alpha_0", "alpha_0_lower", "alpha_0_upper")


def prediction_parser() -> argparse.ArgumentParser:
    """Return the parser of `launch/predict.py`."""
    parser = CommandParser(
        prog=command_name("predict.py"),
        description="Predict all nodes of a graph with a trained model, or new nodes from two "
        "tables, or some nodes from their stored rows, with a certified interval of alpha_0 and "
        "the neighbours that supplied the evidence.",
    )
    add = parser.add_argument
    add_run(parser)
    add("--dataset", metavar="NAME", help="graph to predict (default: the graph of the run)")
    add_data_dir(parser)
    add(
        "--out",
        type=Path,
        required=True,
        metavar="FILE",
        help="table to write; its format follows the suffix .parquet, .csv or .jsonl",
    )
    add("--overwrite", action="store_true", help="replace the file of --out if it exists")
    add(
        "--nodes",
        type=Path,
        metavar="FILE",
        help="text file with the ids of the nodes to predict, as in your table of nodes, one per "
        "line (default: all nodes)",
    )
    add_rows(
        parser,
        "store with the rows of --nodes (default: the store of the run)",
    )
    add(
        "--explain",
        type=int,
        default=0,
        metavar="M",
        help="for each of --nodes, list the M nodes that supplied most of its evidence "
        "(default: %(default)s)",
    )
    add_new_nodes(parser)
    add_device(parser)
    add_memory_budget(parser)
    return parser


def predict(options: argparse.Namespace) -> None:
    """Load model and graph, predict, and write the table."""
    _check_options(options)
    use_threads(options.threads)
    budget = memory_bytes(options.memory_budget)
    classifier = GPNClassifier.load(RunDirectory(options.run).model, device=options.device)
    related = _load_graph(options, classifier)
    aligned = classifier.aligned(related.graph)
    graph = aligned.graph
    is_refreshed = related.relation == "later" and has_validation_nodes(graph)
    promise = _promise_of(RunDirectory(options.run))
    notes = [*related.notes, *aligned.notes]
    notes += _p_value_notes(options, classifier, related.relation, is_refreshed)
    if promise is not None and options.new_nodes is None:
        notes.append(f"Do not use predictions whose column abstain is true. {PROMISE_CONDITION}")
    for note in notes:
        say("note", note, text=f"note: {note}", result=True)
    store = None if options.nodes is None else classifier.open_store(options.ppr, graph)
    if is_refreshed and (store is not None or options.new_nodes is not None):
        classifier.calibrate(graph, memory_bytes=budget)
    if options.new_nodes is not None:
        for note in predict_new_nodes(options, classifier, graph):
            say("note", note, text=f"note: {note}", result=True)
    elif options.nodes is None:
        prediction = _predict_all(classifier, graph, budget, options.out.parent, is_refreshed)
        further = _abstain(promise, prediction)
        write_predictions(
            options.out, prediction, graph, further=further, origin=_origin(options, classifier)
        )
    else:
        assert store is not None
        nodes = read_nodes(options.nodes, graph)
        result = classifier.predict_nodes(graph, nodes, store, explain=options.explain)
        further = _further_columns(result) | _abstain(promise, result.prediction)
        write_predictions(
            options.out,
            result.prediction,
            graph,
            nodes=nodes,
            further=further,
            origin=_origin(options, classifier),
        )
        _print_nodes(result, graph)
    say("written", f"written: {options.out}", result=True, path=options.out)


def _promise_of(directory: RunDirectory) -> Promise | None:
    """Return the promise that `gpn-triage` made for the run, or None if there is none."""
    if not directory.promise.exists():
        return None
    return read_promise(directory.promise, directory.model)


def _abstain(promise: Promise | None, prediction: Prediction) -> dict[str, NDArray[Any]]:
    """Return the column `abstain`, which marks nodes without an answer; {} without a promise."""
    return {} if promise is None else {"abstain": promise.abstains(prediction)}


def _p_value_notes(
    options: argparse.Namespace, classifier: GPNClassifier, relation: Relation, is_refreshed: bool
) -> list[str]:
    """Return notes on p-values of new nodes or of another graph than that of training, or []."""
    calibration = classifier.trained.calibration
    if calibration is None or not calibration.scores:
        return []
    if options.new_nodes is None and is_refreshed:
        return [LATER_CONDITION]
    is_elsewhere = relation != "training" or options.new_nodes is not None
    return [ELSEWHERE_CONDITION] if is_elsewhere else []


def _check_options(options: argparse.Namespace) -> None:
    if options.out.exists() and not options.overwrite:
        raise ConfigError(f"--out {options.out} already exists: use --overwrite to replace it")
    if not options.out.parent.is_dir() or options.out.is_dir():
        raise ConfigError(f"--out {options.out} is not a file in an existing folder")
    check_suffix(options.out)
    check_new_nodes(options)
    if options.nodes is None and (options.ppr is not None or options.explain):
        raise ConfigError("--ppr and --explain only apply to single nodes: add --nodes FILE")
    if options.nodes is not None:
        options.ppr = store_of(RunDirectory(options.run), options.ppr)
        if options.ppr is None:
            raise ConfigError("--nodes needs the rows of these nodes: add --ppr STORE")
    if not 0 <= options.explain <= _MOST_EXPLAINED:
        raise ConfigError(
            f"--explain is {options.explain}, expected at least 0, at most {_MOST_EXPLAINED:,}"
        )


def _load_graph(options: argparse.Namespace, classifier: GPNClassifier) -> RunGraph:
    directory, config = RunDirectory(options.run), classifier.config
    name = options.dataset or config.data.dataset
    graph = load_graph(name, data_dir_of(directory, options.data_dir))
    stores = [path for path in (store_of(directory, None), options.ppr) if path is not None]
    contract = classifier.contract
    return related_graph(directory, graph, config, contract, dataset=name, stores=stores)


def _origin(options: argparse.Namespace, classifier: GPNClassifier) -> Origin:
    """Return the model and graph of the predictions, so that they can be compared later."""
    directory = RunDirectory(options.run)
    return Origin(
        dataset=options.dataset or classifier.config.data.dataset,
        data_dir=str(data_dir_of(directory, options.data_dir).resolve()),
        model=model_fingerprint(directory.model),
    )


def _predict_all(
    classifier: GPNClassifier, graph: Graph, budget: int, scratch: Path, calibrate: bool
) -> Prediction:
    with ProgressMeter("predict", "node", graph.num_nodes) as meter:
        prediction, _ = classifier.predict_with_evidence(
            graph,
            memory_bytes=budget,
            scratch=scratch,
            progress=meter.update,
            calibrate=calibrate,
        )
        return prediction


def read_nodes(path: Path, graph: Graph) -> NodeIds:
    """Return the positions of the nodes whose ids are in a text file, one per line.

    Ids are those of the user's tables; a graph without such ids has positions.

    Raises:
        ConfigError: the file cannot be read, or an id is not in the graph.
    """
    if graph.node_names is not None:
        return _named_nodes(path, graph.node_names)
    try:
        nodes = read_id_list(path)
    except FileError as error:
        raise ConfigError(f"--nodes {error}") from error
    wrong = nodes[(nodes < 0) | (nodes >= graph.num_nodes)]
    if len(wrong):
        raise ConfigError(
            f"--nodes {path} holds node {wrong[0]}, expected ids in [0, {graph.num_nodes})"
        )
    return nodes


def _named_nodes(path: Path, names: NDArray[np.str_]) -> NodeIds:
    """Return the positions of the nodes that a text file names; the names are the graph's ids."""
    try:
        lines = read_text(path).splitlines()
    except (OSError, FileError) as error:
        raise ConfigError(
            f"--nodes {path} cannot be read ({error}), expected one node id per line"
        ) from error
    wanted = [line.strip() for line in lines if line.strip()]
    position = {str(name): node for node, name in enumerate(names)}
    unknown = [name for name in wanted if name not in position]
    if unknown or not wanted:
        near = difflib.get_close_matches(unknown[0], position, n=3) if unknown else []
        hint = f"; similar ids are {', '.join(map(repr, near))}" if near else ""
        given = f"{unknown[0]!r}, which is not an id of the graph" if unknown else "no ids"
        raise ConfigError(f"--nodes {path} holds {given}, expected one id per line{hint}")
    return np.array([position[name] for name in wanted], np.int64)


def _further_columns(result: NodesPrediction) -> dict[str, NDArray[Any]]:
    """Return the additional columns of predictions from stored rows."""
    columns: dict[str, NDArray[Any]] = {
        "alpha_0_lower": result.alpha_0_lower,
        "alpha_0_upper": result.alpha_0_upper,
    }
    if (contributors := result.contributors) is not None:
        columns |= {
            "contributor": contributors.node,
            "contributor_share": contributors.share,
            "contributor_weight": contributors.weight,
            "contributor_class": contributors.leading_class,
            "tail_share": contributors.tail_share,
        }
    return columns


def _print_nodes(result: NodesPrediction, graph: Graph) -> None:
    width = max([5, *(len(_class_name(graph, each)) for each in range(graph.num_classes))])
    head = f"{'class':>{width}}  probability  {'alpha_0':>10}  certified interval of alpha_0"
    lines = [f"{'node':>10}  {head}"]
    nodes, prediction = list[dict[str, Any]](), result.prediction
    for i, node in enumerate(result.node[:_PRINTED_NODES]):
        label = prediction.predicted_class[i]
        name = _node_name(graph, node)
        probability, alpha_0 = prediction.probabilities[i, label], prediction.alpha_0[i]
        interval = (result.alpha_0_lower[i], result.alpha_0_upper[i])
        lines.append(
            f"{name:>10}  {_class_name(graph, label):>{width}}  {probability:>11.3f}  "
            f"{alpha_0:>10.4g}  {interval[0]:.4g} to {interval[1]:.4g}"
        )
        if result.contributors is not None:
            lines.append(f"{'':>12}evidence from {_contributors_line(result, graph, i)}")
        values = (name, label, probability, alpha_0, *interval)
        nodes.append(dict(zip(_PRINTED_FIELDS, values, strict=True)))
    if len(result.node) > _PRINTED_NODES:
        lines.append(f"  ... and {len(result.node) - _PRINTED_NODES:,} more in the file")
    message = f"predicted {len(result.node):,} nodes"
    say("nodes", message, text="\n".join(lines), result=True, count=len(result.node), first=nodes)


def _node_name(graph: Graph, node: int) -> Any:
    """Return the user's id of a node, or its position if the graph has no ids."""
    return node if graph.node_names is None else graph.node_names[node]


def _class_name(graph: Graph, label: int) -> str:
    return str(label if graph.class_names is None else graph.class_names[label])


def _contributors_line(result: NodesPrediction, graph: Graph, i: int) -> str:
    """Return one line that names the contributors to the i-th node's evidence."""
    contributors = result.contributors
    assert contributors is not None
    parts = [
        f"{_node_name(graph, node)} ({share:.0%}, class {_class_name(graph, leading)})"
        for node, share, leading in zip(
            contributors.node[i], contributors.share[i], contributors.leading_class[i], strict=True
        )
        if node >= 0  # -1 fills up rows of nodes with fewer contributors
    ]
    return f"{', '.join(parts)}; tail {contributors.tail_share[i]:.0%}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, run the command, and return its exit code."""
    return run_command(prediction_parser, predict, arguments, NEW_NODES_FLAGS)


def start() -> NoReturn:
    """Run the command and end the process with its exit code."""
    leave(main())
