"""Raw files of OGB's node datasets, as `.csv.gz` or, of the largest, as `.npz`.

Files are read in blocks into arrays that may be mapped, so that a graph may be larger than memory.
The names of files and arrays are those of `ogb.io.read_graph_raw`. Deviation: OGB's own loaders are
not used. They unpickle a cache that torch >= 2.6 refuses, and importing `ogb` contacts the network
to look for updates.

Shapes: N nodes, E edges, F features.
"""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv

from gpn_scale.data.building import check_features, graph_with_edges
from gpn_scale.data.compressed_edges import EdgeBlock, EdgeBlocks, compressed_edges
from gpn_scale.data.compressed_edges import edge_list_blocks as blocks_of
from gpn_scale.data.graph import MISSING_LABEL, Graph, Split
from gpn_scale.data.npz_arrays import mapped_arrays
from gpn_scale.errors import FileError, GraphError
from gpn_scale.reading import open_gzip
from gpn_scale.scratch import GrowingArray

_RAW = ("edge", "node-feat", "node-label", "num-node-list", "num-edge-list")
_SUBSETS = ("train", "valid", "test")
_BLOCK_BYTES = 1 << 24


@dataclass(frozen=True, slots=True, kw_only=True)
class OgbDataset:
    """Locations of the raw files of a dataset.

    >>> OGB_DATASETS["ogbn-products"].folder, OGB_DATASETS["ogbn-products"].files[-1]
    ('ogbn_products', 'split/sales_ranking/test.csv.gz')
    """

    name: str
    archive: str
    """Name of the zip file to download, and of the folder in it."""
    split: str
    """Name of the public split."""
    is_binary: bool = False
    """Whether raw files are `.npz` and not `.csv.gz`."""
    is_large: bool = False
    """Whether the graph is kept as a folder of mapped arrays beside its raw files."""

    @property
    def folder(self) -> str:
        """Name of the folder of the files, as OGB calls it."""
        return self.name.replace("-", "_")

    @property
    def files(self) -> tuple[str, ...]:
        """Paths of all files inside the folder."""
        binary = ("data.npz", "node-label.npz")
        raw = binary if self.is_binary else tuple(f"{name}.csv.gz" for name in _RAW)
        split = (f"split/{self.split}/{subset}.csv.gz" for subset in _SUBSETS)
        return (*(f"raw/{name}" for name in raw), *split)


OGB_DATASETS = {
    each.name: each
    for each in (
        OgbDataset(name="ogbn-arxiv", archive="arxiv", split="time"),
        OgbDataset(name="ogbn-products", archive="products", split="sales_ranking", is_large=True),
        OgbDataset(
            name="ogbn-papers100M",
            archive="papers100M-bin",
            split="time",
            is_binary=True,
            is_large=True,
        ),
    )
}
"""The datasets by their names."""


def read_ogb(folder: Path, dataset: OgbDataset, scratch: Path | None, memory_bytes: int) -> Graph:
    """Return the undirected graph of the raw files of a dataset, with its public split.

    >>> from tempfile import TemporaryDirectory
    >>> dataset = OGB_DATASETS["ogbn-papers100M"]
    >>> data = {"edge_index": [[0, 1], [1, 2]], "node_feat": np.ones((3, 2), np.float32)}
    >>> data |= {"num_nodes_list": [3], "num_edges_list": [2]}
    >>> with TemporaryDirectory() as folder:
    ...     for path in (Path(folder, name) for name in dataset.files):
    ...         path.parent.mkdir(parents=True, exist_ok=True)
    ...         if path.suffix == ".gz":
    ...             np.savetxt(path, [["train", "valid", "test"].index(path.name[:-7])], fmt="%d")
    ...     np.savez_compressed(Path(folder, "raw/data.npz"), **data)
    ...     np.savez(Path(folder, "raw/node-label.npz"), node_label=[[0.0], [0.0], [0.0]])
    ...     read_ogb(Path(folder), dataset, None, memory_bytes=0)
    Graph('ogbn-papers100M', nodes=3, edges=4, features=2, classes=1)

    Args:
        folder: Folder of the dataset.
        dataset: The dataset.
        scratch: Folder of temporary files; None for the system's default.
        memory_bytes: Size above which an array is in a file.

    Raises:
        GraphError: a file is damaged, or the files do not fit together.
    """
    read = _read_binary if dataset.is_binary else _read_tables
    raw = read(folder, scratch, memory_bytes)
    train, val, test = (_column(folder / name) for name in dataset.files[-len(_SUBSETS) :])
    check_features(raw.features, dataset.name)
    edges = compressed_edges(
        _checked(raw.edges, raw.num_nodes, dataset.name),
        raw.num_nodes,
        weighted=False,
        directed=False,
        directory=scratch,
        memory_bytes=memory_bytes,
    )
    return graph_with_edges(
        edges,
        name=dataset.name,
        features=raw.features,
        labels=raw.labels,
        split=Split(train=train, val=val, test=test),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _RawGraph:
    edges: EdgeBlocks
    num_nodes: int
    features: NDArray[np.float32]
    labels: NDArray[np.int64]


def _read_tables(folder: Path, scratch: Path | None, memory_bytes: int) -> _RawGraph:
    raw = folder / "raw"
    num_nodes, num_edges = (
        int(_column(raw / f"{name}.csv.gz")[0]) for name in ("num-node-list", "num-edge-list")
    )
    ends = [GrowingArray(np.int64, scratch, memory_bytes) for _ in range(2)]
    path = raw / "edge.csv.gz"
    for block in _csv_blocks(path, pa.int64()):
        _check_shape(path, (num_edges, block.shape[1]), (num_edges, 2))
        for end, column in zip(ends, block.T, strict=True):
            end.append(column)
    _check_shape(path, (len(ends[0]), 2), (num_edges, 2))
    path, width = raw / "node-feat.csv.gz", 0
    numbers = GrowingArray(np.float32, scratch, memory_bytes)
    for block in _csv_blocks(path, pa.float32()):
        width = block.shape[1]
        numbers.append(block.reshape(-1))
    _check_shape(path, (len(numbers) // max(width, 1), width), (num_nodes, width))
    path = raw / "node-label.csv.gz"
    labels = np.concatenate(list(_csv_blocks(path, pa.int64())))
    _check_shape(path, labels.shape, (num_nodes, 1))
    return _RawGraph(
        edges=blocks_of(ends[0].array(), ends[1].array()),
        num_nodes=num_nodes,
        features=numbers.array().reshape(num_nodes, width),
        labels=labels[:, 0],
    )


def _read_binary(folder: Path, scratch: Path | None, memory_bytes: int) -> _RawGraph:
    path = folder / "raw" / "data.npz"
    names = ("edge_index", "node_feat", "num_nodes_list", "num_edges_list")
    arrays = mapped_arrays(path, names, scratch, memory_bytes)
    edge_index, features, *sizes = (arrays[name] for name in names)
    for name, array in (("num_nodes_list", sizes[0]), ("num_edges_list", sizes[1])):
        _check_array(path, name, array, "iu", (1,))
    num_nodes, num_edges = (int(array[0]) for array in sizes)
    _check_array(path, "edge_index", edge_index, "iu", (2, num_edges))
    _check_array(path, "node_feat", features, "f", (num_nodes, features.shape[-1]))
    path = folder / "raw" / "node-label.npz"
    label = mapped_arrays(path, ["node_label"], scratch, memory_bytes)["node_label"]
    _check_array(path, "node_label", label, "fiu", (num_nodes, 1))
    if features.dtype not in (np.float16, np.float32):
        features = features.astype(np.float32)
    return _RawGraph(
        edges=blocks_of(edge_index[0], edge_index[1]),
        num_nodes=num_nodes,
        features=features,
        labels=_whole_labels(path, np.asarray(label[:, 0])),
    )


def _whole_labels(path: Path, labels: NDArray[Any]) -> NDArray[np.int64]:
    """Return labels as integers; NaN, as OGB writes it, means that a node has none."""
    missing = np.isnan(labels)
    whole = np.where(missing, MISSING_LABEL, labels)
    if not (whole == np.floor(whole)).all():
        raise GraphError(f"{path} holds a label that is no whole number: download the file again")
    return whole.astype(np.int64)


def _checked(blocks: EdgeBlocks, num_nodes: int, name: str) -> EdgeBlocks:
    """Return the same blocks, which refuse edges of nodes that do not exist."""

    def checked_blocks() -> Iterator[EdgeBlock]:
        for block in blocks():
            for ends in (block.source, block.target):
                wrong = ends[(ends < 0) | (ends >= num_nodes)]
                if len(wrong):
                    raise GraphError(
                        f"graph {name!r}: an edge names node {wrong[0]}, expected nodes in "
                        f"[0, {num_nodes}): download the files again"
                    )
            yield block

    return checked_blocks


def _check_shape(path: Path, shape: tuple[int, ...], expected: tuple[int, int]) -> None:
    if shape != expected:
        raise GraphError(
            f"{path} holds a table of {shape[0]} rows and {shape[1]} columns, "
            f"expected {expected[0]} and {expected[1]}: download the file again"
        )


def _check_array(
    path: Path, name: str, array: NDArray[Any], kinds: str, expected: tuple[int, ...]
) -> None:
    if array.shape != expected or array.dtype.kind not in kinds:
        raise GraphError(
            f"{path}: {name} is {array.dtype} of shape {array.shape}, expected numbers of shape "
            f"{expected}: download the file again"
        )


def _column(path: Path) -> NDArray[np.int64]:
    """Return the integers in the first column of a small file."""
    return np.concatenate(list(_csv_blocks(path, pa.int64())))[:, 0]


def _csv_blocks(path: Path, kind: pa.DataType) -> Iterator[NDArray[Any]]:
    """Yield the numbers of a `.csv.gz` file without a header, (rows, columns)."""
    with _read_errors(path):
        options = arrow_csv.ReadOptions(autogenerate_column_names=True, block_size=_BLOCK_BYTES)
        with open_gzip(path) as stream, arrow_csv.open_csv(stream, read_options=options) as reader:
            names = reader.schema.names
        types = arrow_csv.ConvertOptions(column_types=dict.fromkeys(names, kind))
        with (
            open_gzip(path) as stream,
            arrow_csv.open_csv(stream, read_options=options, convert_options=types) as reader,
        ):
            for batch in reader:
                if any(column.null_count for column in batch.columns):
                    raise GraphError(
                        f"{path} has an empty field, expected numbers only: download the file again"
                    )
                block = np.empty((batch.num_rows, batch.num_columns), kind.to_pandas_dtype())
                for number, column in enumerate(batch.columns):
                    block[:, number] = column.to_numpy()
                yield block


@contextmanager
def _read_errors(path: Path) -> Iterator[None]:
    """Turn errors of reading `path` into a `GraphError`."""
    try:
        yield
    except (OSError, EOFError, zlib.error, FileError, pa.ArrowException) as error:
        raise GraphError(f"{path} cannot be read ({error}): download the file again") from error
