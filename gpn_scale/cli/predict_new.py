"""`gpn-predict --new-nodes`: read new nodes from two tables and predict them."""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from gpn_scale.cli.remembered import data_dir_of
from gpn_scale.data.building import build_graph
from gpn_scale.data.column_roles import ColumnNames
from gpn_scale.data.graph import Graph
from gpn_scale.data.import_record import RECORD, read_record
from gpn_scale.data.table_files import open_table
from gpn_scale.errors import ConfigError
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.prediction_table import write_predictions
from gpn_scale.inference.new_tables import NewTables, read_new_tables
from gpn_scale.train.run_directory import RunDirectory

_COLUMNS = {
    "id": "ids of the new nodes",
    "source": "ids of the nodes where edges start",
    "target": "ids of the nodes where edges end",
    "weight": "weights of the edges",
}


def add_new_nodes(parser: argparse.ArgumentParser) -> None:
    """Add the options of new nodes."""
    group = parser.add_argument_group("new nodes")
    group.add_argument(
        "--new-nodes",
        type=Path,
        metavar="FILE",
        help="table of nodes that are not in the graph, to predict instead (CSV or Parquet)",
    )
    group.add_argument(
        "--new-edges",
        type=Path,
        metavar="FILE",
        help="table of the edges among these nodes and to nodes of the graph (default: no edges)",
    )
    for role, text in _COLUMNS.items():
        help_text = f"column with the {text} (default: as in the graph's import, else {role})"
        group.add_argument(f"--{role}", metavar="COL", help=help_text)


def check_new_nodes(options: argparse.Namespace) -> None:
    """Refuse options that do not go together.

    Raises:
        ConfigError: an option for new nodes is given without `--new-nodes`, or `--nodes` is given
            as well.
    """
    if options.new_nodes is None:
        given = ["new_edges", *_COLUMNS]
        for name in (name for name in given if getattr(options, name) is not None):
            flag = f"--{name.replace('_', '-')}"
            raise ConfigError(f"{flag} only applies to new nodes: add --new-nodes FILE")
    elif options.nodes is not None:
        raise ConfigError(
            "--nodes selects nodes of the graph and --new-nodes adds others: use only one of them"
        )


def predict_new_nodes(
    options: argparse.Namespace, classifier: GPNClassifier, graph: Graph
) -> tuple[str, ...]:
    """Predict the new nodes, write the table, and return notes on their tables.

    Args:
        options: The options of the command.
        classifier: The model.
        graph: The graph that the nodes join, with the model's columns and classes.
    """
    names = _column_names(options, classifier)
    contract = classifier.contract
    new = read_new_tables(options.new_nodes, options.new_edges, graph, contract, names)
    result = classifier.predict_new(
        graph, new.features, new.neighbours, edge_weights=new.edge_weights
    )
    interval = {"alpha_0_lower": result.alpha_0_lower, "alpha_0_upper": result.alpha_0_upper}
    write_predictions(options.out, result.prediction, _alone(new, graph), further=interval)
    return new.notes


def _column_names(options: argparse.Namespace, classifier: GPNClassifier) -> ColumnNames:
    """Return the column names of the options, else of the graph's import, else the defaults."""
    folder = data_dir_of(RunDirectory(options.run), options.data_dir)
    folder /= options.dataset or classifier.config.data.dataset
    names = ColumnNames()
    if (folder / RECORD).exists():
        paths = [options.new_nodes, *([] if options.new_edges is None else [options.new_edges])]
        nodes, *edges = (open_table(path).column_names for path in paths)
        names = read_record(folder).names_in(nodes, edges[0] if edges else ())
    given = {role: getattr(options, role) for role in _COLUMNS}
    return replace(names, **{role: name for role, name in given.items() if name is not None})


def _alone(new: NewTables, graph: Graph) -> Graph:
    """Return a graph of the new nodes alone, without edges, with their ids and the classes."""
    nothing = np.empty(0, np.int64)
    return build_graph(
        nothing,
        nothing,
        name=f"new nodes of {graph.name}",
        num_nodes=len(new.ids),
        num_classes=graph.num_classes,
        node_names=new.ids,
        class_names=graph.class_names,
    )
