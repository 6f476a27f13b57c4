"""Node datasets of OGB by name: downloaded if missing, and read from their raw files."""

import csv
import os
import shutil
import sys
import zipfile
import zlib
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import urlopen

from gpn_scale.data.graph import Graph
from gpn_scale.data.graph_folder import open_graph, save_graph
from gpn_scale.data.ogb_files import OGB_DATASETS, OgbDataset, read_ogb
from gpn_scale.errors import FileError, GraphError
from gpn_scale.files import make_folder, rename, replacing, write_json
from gpn_scale.locks import claimed
from gpn_scale.reading import read_json, read_text, unpacked_limit
from gpn_scale.scratch import MEMORY_BYTES

_TIMEOUT_SECONDS = 60.0
_KEPT = "processed/gpn_scale"
"""Folder of the converted graph of a large dataset, next to its raw files."""
_RECORD = "raw.json"


def load_ogb(name: str, root: Path, url: str | None = None) -> Graph:
    """Return a dataset of OGB, made undirected, with its public split; download it if missing.

    A large dataset is read from its raw files once, in blocks, and saved as a folder of mapped
    arrays next to them; it is read again if a raw file has changed.

    >>> import numpy as np
    >>> tables = {
    ...     "raw/edge": [[0, 1], [1, 2], [2, 3]],
    ...     "raw/node-feat": [[0.5], [1.0], [1.5], [2.0]],
    ...     "raw/node-label": [[0], [1], [0], [1]],
    ...     "raw/num-node-list": [[4]],
    ...     "raw/num-edge-list": [[3]],
    ...     "split/time/train": [[0], [1]],
    ...     "split/time/valid": [[2]],
    ...     "split/time/test": [[3]],
    ... }
    >>> with TemporaryDirectory() as root:
    ...     for name, table in tables.items():
    ...         path = Path(root) / "ogbn_arxiv" / f"{name}.csv.gz"
    ...         path.parent.mkdir(parents=True, exist_ok=True)
    ...         np.savetxt(path, table, fmt="%g", delimiter=",")
    ...     load_ogb("ogbn-arxiv", Path(root))
    Graph('ogbn-arxiv', nodes=4, edges=6, features=1, classes=2)

    Args:
        name: One of `OGB_DATASETS`.
        root: Folder with the files in `ogbn_arxiv/raw` and `ogbn_arxiv/split`, and so on.
        url: Address of the zip file; by default the one in the installed package `ogb`.

    Raises:
        GraphError: the download fails, or the files are incomplete or damaged.
    """
    dataset = OGB_DATASETS[name]
    folder = root / dataset.folder
    if not folder.exists():
        _download(dataset, url or ogb_url(name), folder)
    missing = [file for file in dataset.files if not (folder / file).is_file()]
    if missing:
        raise GraphError(
            f"{folder} has no {', '.join(missing)}: add what is missing, or remove the folder to "
            "download it again"
        )
    if not dataset.is_large:
        return read_ogb(folder, dataset, None, sys.maxsize)
    return _kept(folder, dataset)


def ogb_url(name: str) -> str:
    """Return the address of a dataset's zip file from the installed ogb's table of datasets.

    >>> ogb_url("ogbn-arxiv").endswith("/arxiv.zip")
    True

    Raises:
        GraphError: ogb is not installed or has no such table.
    """
    spec = find_spec("ogb")  # finds the package without running its __init__
    places = (spec.submodule_search_locations or []) if spec is not None else []
    for place in places:
        table = Path(place) / "nodeproppred" / "master.csv"
        if table.is_file():
            header, *rows = csv.reader(read_text(table).splitlines())
            facts = {row[0]: row[header.index(name)] for row in rows if name in header}
            if "url" in facts:
                return facts["url"]
    raise GraphError(
        f"the address of {name} is not known, since package 'ogb' or its nodeproppred/master.csv "
        "is missing: pip install ogb"
    )


def _kept(folder: Path, dataset: OgbDataset) -> Graph:
    """Return the graph saved next to the raw files; convert it if it is missing or outdated."""
    kept = folder / _KEPT
    try:
        with claimed(kept / ".lock", wait=True):
            facts = _raw_facts(folder, dataset)
            graph = _kept_graph(kept) if _recorded(kept) == facts else None
            if graph is None:
                made = read_ogb(folder, dataset, kept, MEMORY_BYTES)
                save_graph(made, kept)
                write_json(kept / _RECORD, facts)
                graph = open_graph(kept)
    except OSError as error:
        raise GraphError(
            f"{kept} cannot be written ({error.strerror}), expected a folder for the graph of "
            f"{dataset.name}: make it writable, or copy {folder} to another data folder",
            arguments=("data_dir",),
        ) from error
    return graph


def _kept_graph(kept: Path) -> Graph | None:
    try:
        return open_graph(kept)
    except GraphError:  # it is damaged, and can be made again
        return None


def _raw_facts(folder: Path, dataset: OgbDataset) -> dict[str, Any]:
    """Return sizes and times of change of the raw files."""
    facts = {name: (folder / name).stat() for name in dataset.files}
    return {name: [fact.st_size, fact.st_mtime_ns] for name, fact in facts.items()}


def _recorded(kept: Path) -> Any:
    try:
        return read_json(kept / _RECORD)
    except (OSError, FileError):
        return None


def _download(dataset: OgbDataset, url: str, folder: Path) -> None:
    """Download and unpack the zip file at `url`; `folder` appears complete or not at all."""
    by_hand = (
        f"put {dataset.files[0]} and the other files of {dataset.archive}.zip into {folder} by hand"
    )
    try:
        make_folder(folder.parent)
        with TemporaryDirectory(dir=folder.parent, prefix=f".{dataset.folder}.") as temporary:
            archive = Path(temporary) / "download.zip"
            with urlopen(url, timeout=_TIMEOUT_SECONDS) as remote, replacing(archive) as local:
                shutil.copyfileobj(remote, local)
            _extract(archive, Path(temporary), dataset.archive)
            os.unlink(archive)
            _move(Path(temporary) / dataset.archive, folder)
    except (OSError, HTTPException, zipfile.BadZipFile, zlib.error) as error:
        raise GraphError(
            f"{dataset.name} could not be downloaded from {url} ({error}): {by_hand}"
        ) from error


def _extract(path: Path, target: Path, inside: str) -> None:
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            place = PurePosixPath(member)
            if place.parts[:1] != (inside,) or ".." in place.parts or "\\" in member:
                raise zipfile.BadZipFile(
                    f"the archive holds {member!r}, expected paths inside {inside}/ only"
                )
        size = sum(entry.file_size for entry in archive.infolist())
        if size > unpacked_limit(path.stat().st_size):
            raise zipfile.BadZipFile(f"the archive unpacks to {size:,} bytes")
        for entry in archive.infolist():
            file = target / entry.filename
            make_folder(file if entry.is_dir() else file.parent)
            if not entry.is_dir():
                with archive.open(entry) as packed, replacing(file) as unpacked:
                    shutil.copyfileobj(packed, unpacked)


def _move(source: Path, folder: Path) -> None:
    try:
        rename(source, folder)
    except OSError:
        if not folder.is_dir():  # otherwise another process was faster, and its folder is complete
            raise
