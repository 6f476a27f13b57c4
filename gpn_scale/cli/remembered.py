"""The record of where a run's graph and store are: written by training, read by later commands."""

from pathlib import Path

from gpn_scale.data.datasets import load_graph
from gpn_scale.errors import RunError
from gpn_scale.files import write_json
from gpn_scale.page.run_record import RunRecord
from gpn_scale.ppr.manifest import MANIFEST
from gpn_scale.reading import read_json
from gpn_scale.train.model_file import load_model
from gpn_scale.train.run_directory import RunDirectory
from gpn_scale.train.run_graph import RunGraph, related_graph

DEFAULT_DATA_DIR = Path("data")
"""Folder of graphs if none is given and none is recorded."""


def remember_inputs(directory: RunDirectory, data_dir: Path, store: Path | None) -> None:
    """Record the folder of the graph and, in minibatch mode, the store of a run."""
    rows = None if store is None else str(store.resolve())
    write_json(directory.inputs, {"data_dir": str(data_dir.resolve()), "ppr": rows})


def data_dir_of(directory: RunDirectory, given: Path | None) -> Path:
    """Return the given folder of graphs, else the one of the run, else the default."""
    remembered = _remembered(directory, "data_dir")
    return given or (DEFAULT_DATA_DIR if remembered is None else Path(remembered))


def store_of(directory: RunDirectory, given: Path | None) -> Path | None:
    """Return the given store, else the one of the run if it still exists, else None."""
    if given is not None:
        return given
    remembered = _remembered(directory, "ppr")
    candidates = [directory.store, *([] if remembered is None else [Path(remembered)])]
    return next((path for path in candidates if (path / MANIFEST).exists()), None)


def graph_of_run(
    directory: RunDirectory,
    record: RunRecord,
    given: Path | None,
    *,
    may_be_later: bool = False,
    dataset: str | None = None,
) -> RunGraph:
    """Return the graph that a finished run was trained on, with its split and left-out classes.

    Args:
        directory: Directory of the run.
        record: What the run has written.
        given: Folder with the graph; None for the folder that the run has recorded.
        may_be_later: Whether the graph may be a later version of the training graph.
        dataset: Name of any other graph to return instead; None for the graph of the run.

    Raises:
        GraphError: the graph does not exist or cannot be loaded.
        RunError: the run is not finished, or the graph has changed since training.
    """
    if record.report is None:
        raise RunError(
            f"{directory.path} is not finished: continue it with gpn-train --resume",
            arguments=("run",),
        )
    name, data_dir = dataset or record.config.data.dataset, data_dir_of(directory, given)
    loaded = load_graph(name, data_dir)
    contract, store = load_model(directory.model).contract, store_of(directory, None)
    related = related_graph(
        directory,
        loaded,
        record.config,
        contract,
        dataset=name,
        stores=() if store is None else (store,),
    )
    if related.relation == "later" and not may_be_later:
        raise RunError(
            f"{name} in {data_dir} has changed since {directory.path} was trained on it: "
            "gpn-predict and gpn-triage accept the changed graph, and gpn-train --warm-start "
            "continues training on it"
        )
    if related.relation == "other" and dataset is None:
        raise RunError(
            f"{name} in {data_dir} is not the graph that {directory.path} was trained on: give "
            "its folder with --data-dir, or train again"
        )
    return related


def _remembered(directory: RunDirectory, key: str) -> str | None:
    """Return an entry of the run's recorded inputs, or None if it has none."""
    if not directory.inputs.exists():
        return None
    try:
        value = read_json(directory.inputs)[key]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(
            f"{directory.inputs} cannot be read ({type(error).__name__}: {error}): remove it, and "
            "name the folder of the data and the store",
            arguments=("data_dir", "store"),
        ) from error
    return None if value is None else str(value)
