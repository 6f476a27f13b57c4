"""ogbn-arxiv from OGB's raw files.

Deviation: OGB's own loaders are not used. They unpickle a cache that torch >= 2.6 refuses, and
importing `ogb` contacts the network to look for updates. The raw `.csv.gz` files need neither.
"""

import csv
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import urlopen

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv

from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import Graph, Split
from gpn_scale.errors import FileError, GraphError
from gpn_scale.files import make_folder, rename, replacing
from gpn_scale.reading import open_gzip, read_text, unpacked_limit

NAME = "ogbn-arxiv"
FOLDER = "ogbn_arxiv"
_ZIP_FOLDER = "arxiv"
_RAW = ("edge", "node-feat", "node-label", "num-node-list", "num-edge-list")
_FILES = tuple(f"raw/{name}.csv.gz" for name in _RAW)
_FILES += tuple(f"split/time/{subset}.csv.gz" for subset in ("train", "valid", "test"))
_TIMEOUT_SECONDS = 60.0


def load_ogbn_arxiv(root: Path, url: str | None = None) -> Graph:
    """Return ogbn-arxiv, made undirected, with its time split; download it if it is missing.

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
    ...         path = Path(root) / FOLDER / f"{name}.csv.gz"
    ...         path.parent.mkdir(parents=True, exist_ok=True)
    ...         np.savetxt(path, table, fmt="%g", delimiter=",")
    ...     load_ogbn_arxiv(Path(root))
    Graph('ogbn-arxiv', nodes=4, edges=6, features=1, classes=2)

    Args:
        root: Folder with the files in `ogbn_arxiv/raw` and `ogbn_arxiv/split/time`.
        url: Address of the zip file; by default the one in the installed package `ogb`.

    Raises:
        GraphError: the download fails, or the files are incomplete or damaged.
    """
    folder = root / FOLDER
    if not folder.exists():
        _download(url or ogbn_arxiv_url(), folder)
    missing = [name for name in _FILES if not (folder / name).is_file()]
    if missing:
        raise GraphError(
            f"{folder} has no {', '.join(missing)}: add what is missing, or remove the folder to "
            "download it again"
        )
    return _read(folder)


def ogbn_arxiv_url() -> str:
    """Return the address of the zip file from the installed ogb's table of datasets.

    >>> ogbn_arxiv_url().endswith("/arxiv.zip")
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
            facts = {row[0]: row[header.index(NAME)] for row in rows if NAME in header}
            if "url" in facts:
                return facts["url"]
    raise GraphError(
        f"the address of {NAME} is not known, since package 'ogb' or its nodeproppred/master.csv "
        "is missing: pip install ogb"
    )


def _download(url: str, folder: Path) -> None:
    """Download and unpack the zip file at `url`; `folder` appears complete or not at all."""
    by_hand = f"put {_FILES[0]} and the other files of {_ZIP_FOLDER}.zip into {folder} by hand"
    try:
        make_folder(folder.parent)
        with TemporaryDirectory(dir=folder.parent, prefix=f".{FOLDER}.") as temporary:
            archive = Path(temporary) / "download.zip"
            with urlopen(url, timeout=_TIMEOUT_SECONDS) as remote, replacing(archive) as local:
                shutil.copyfileobj(remote, local)
            _extract(archive, Path(temporary))
            _move(Path(temporary) / _ZIP_FOLDER, folder)
    except (OSError, HTTPException, zipfile.BadZipFile, zlib.error) as error:
        raise GraphError(
            f"{NAME} could not be downloaded from {url} ({error}): {by_hand}"
        ) from error


def _extract(path: Path, target: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            inside = PurePosixPath(member)
            if inside.parts[:1] != (_ZIP_FOLDER,) or ".." in inside.parts or "\\" in member:
                raise zipfile.BadZipFile(
                    f"the archive holds {member!r}, expected paths inside {_ZIP_FOLDER}/ only"
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


def _read(folder: Path) -> Graph:
    edge, feature, label, num_nodes, num_edges = (
        _read_csv(folder / name, pa.float32() if "feat" in name else pa.int64())
        for name in _FILES[: len(_RAW)]
    )
    train, val, test = (_read_csv(folder / name, pa.int64())[:, 0] for name in _FILES[len(_RAW) :])
    raw = folder / "raw"
    _check_shape(raw / "edge.csv.gz", edge, (int(num_edges[0, 0]), 2))
    _check_shape(raw / "node-feat.csv.gz", feature, (int(num_nodes[0, 0]), feature.shape[1]))
    _check_shape(raw / "node-label.csv.gz", label, (int(num_nodes[0, 0]), 1))
    return build_graph(
        edge[:, 0],
        edge[:, 1],
        name=NAME,
        features=feature,
        labels=label[:, 0],
        split=Split(train=train, val=val, test=test),
    )


def _check_shape(path: Path, array: NDArray[Any], expected: tuple[int, int]) -> None:
    if array.shape != expected:
        raise GraphError(
            f"{path} holds a table of {array.shape[0]} rows and {array.shape[1]} columns, "
            f"expected {expected[0]} and {expected[1]}: download the file again"
        )


def _read_csv(path: Path, kind: pa.DataType) -> NDArray[Any]:
    """Return the numbers of a `.csv.gz` file without a header, (rows, columns)."""
    with _read_errors(path):
        options = arrow_csv.ReadOptions(autogenerate_column_names=True)
        with open_gzip(path) as stream, arrow_csv.open_csv(stream, read_options=options) as blocks:
            names = blocks.schema.names
        types = arrow_csv.ConvertOptions(column_types=dict.fromkeys(names, kind))
        with open_gzip(path) as stream:
            table = arrow_csv.read_csv(stream, read_options=options, convert_options=types)
    if any(column.null_count for column in table.columns):
        raise GraphError(
            f"{path} has an empty field, expected numbers only: download the file again"
        )
    array = np.empty((table.num_rows, table.num_columns), kind.to_pandas_dtype())
    for number, column in enumerate(table.columns):
        array[:, number] = column.to_numpy()
    return array


@contextmanager
def _read_errors(path: Path) -> Iterator[None]:
    """Turn errors of reading `path` into a `GraphError`."""
    try:
        yield
    except (OSError, EOFError, zlib.error, FileError, pa.ArrowException) as error:
        raise GraphError(f"{path} cannot be read ({error}): download the file again") from error
