"""Applies a table of edge changes to a graph, and saves the result for other commands."""

from dataclasses import replace
from pathlib import Path

from gpn_scale.data.edge_changes import graph_with_changes
from gpn_scale.data.graph import Graph
from gpn_scale.data.graph_folder import is_unfinished, open_graph, save_graph
from gpn_scale.data.import_record import RECORD
from gpn_scale.errors import ConfigError, GraphError
from gpn_scale.files import write_json
from gpn_scale.reading import read_json


def changed_graph(graph: Graph, changes: Path, folder: Path, *, plan_only: bool = False) -> Graph:
    r"""Apply a table of changes to a graph, save the result in a new folder, and return it.

    A folder that already holds the resulting graph is reused, so that an interrupted update can be
    repeated. The record of the old graph's import is copied to the new folder.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale import build_graph
    >>> with TemporaryDirectory() as place:
    ...     table, out = Path(place, "changes.csv"), Path(place, "new")
    ...     _ = table.write_text("source,target,change\n0,2,add\n")
    ...     _ = changed_graph(build_graph([0, 1], [1, 2]), table, out)
    ...     open_graph(out)
    Graph('new', nodes=3, edges=6, features=0, classes=0)

    Args:
        graph: The graph before the changes.
        changes: File of the table; see `graph_with_changes`.
        folder: Folder of the changed graph.
        plan_only: Return the graph without writing anything.

    Raises:
        TableFaults: some changes are impossible; the message lists all of them, and nothing is
            written.
        ConfigError: the folder holds anything else.
        GraphError: the folder cannot be written.
    """
    changed = replace(graph_with_changes(graph, changes), name=folder.resolve().name)
    if plan_only:
        return changed
    try:
        if not _holds(folder, changed):
            save_graph(changed, folder)
        if graph.source is not None and not (folder / RECORD).exists():
            _copy_record(Path(graph.source), folder)
    except OSError as error:
        raise GraphError(
            f"{folder} cannot be written ({error.strerror}): choose another folder",
            arguments=("write_graph",),
        ) from error
    return changed


def _copy_record(source: Path, folder: Path) -> None:
    if (source / RECORD).is_file():
        write_json(folder / RECORD, read_json(source / RECORD))


def _holds(folder: Path, graph: Graph) -> bool:
    """Return whether a folder already holds this graph; refuse one that holds anything else."""
    if not folder.exists() or (folder.is_dir() and is_unfinished(folder)):
        return False
    try:
        if open_graph(folder).fingerprint() == graph.fingerprint():
            return True
    except GraphError:
        pass
    raise ConfigError(
        f"{folder} already exists and does not hold the graph after the changes: choose a new "
        "folder",
        arguments=("write_graph",),
    )
