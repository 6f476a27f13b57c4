"""The paper's benchmark graphs from their published raw files.

The files are stored in the same places as by PyG, and downloaded from PyG's addresses. Deviation:
PyG's own readers are not used. Its Planetoid reader runs any code that a pickle names, its readers
of processed files depend on torch's settings, and its downloads accept any certificate. PyG's
processed files are neither read nor written. The only user of `torch_geometric`'s datasets.
"""

import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from os.path import lexists
from pathlib import Path
from urllib.request import urlopen

from gpn_scale.data.graph import Graph
from gpn_scale.data.matrix_npz import read_matrices
from gpn_scale.data.planetoid import PARTS, read_planetoid
from gpn_scale.errors import GraphError
from gpn_scale.files import make_folder, replacing

_TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RawFiles:
    """The raw files of a graph: their places, their address, and their reader.

    >>> BENCHMARKS["CoraML"].paths(Path("data"))
    [PosixPath('data/cora_ml/raw/cora_ml.npz')]
    """

    folder: str
    """Folder of the files inside the data folder."""
    names: tuple[str, ...]
    """Names of the files."""
    dataset: str
    """PyG's class, whose `url` is the address."""
    read: Callable[[Path, str], Graph]
    """Function from the folder of the files and the graph's name to the graph."""

    def paths(self, data_dir: Path) -> list[Path]:
        """Return the paths of all files."""
        return [data_dir / self.folder / name for name in self.names]


def _matrices(file: str, folder: str, dataset: str) -> RawFiles:
    return RawFiles(
        folder=f"{folder}/raw",
        names=(file,),
        dataset=dataset,
        read=lambda path, name: read_matrices(path / file, name),
    )


def _planetoid(name: str) -> RawFiles:
    prefix = name.lower()
    return RawFiles(
        folder=f"{name}/raw",
        names=tuple(f"ind.{prefix}.{part}" for part in PARTS),
        dataset="Planetoid",
        read=lambda path, graph_name: read_planetoid(path, prefix, graph_name),
    )


BENCHMARKS = {
    "CoraML": _matrices("cora_ml.npz", "cora_ml", "CitationFull"),
    "CiteSeer": _planetoid("CiteSeer"),
    "PubMed": _planetoid("PubMed"),
    "AmazonComputers": _matrices("amazon_electronics_computers.npz", "Computers", "Amazon"),
    "AmazonPhotos": _matrices("amazon_electronics_photo.npz", "Photo", "Amazon"),
    "CoauthorCS": _matrices("ms_academic_cs.npz", "CS", "Coauthor"),
    "CoauthorPhysics": _matrices("ms_academic_phy.npz", "Physics", "Coauthor"),
}
"""The raw files of each graph by its name."""


def load_benchmark(name: str, data_dir: Path) -> Graph:
    """Return one of the graphs in `BENCHMARKS`; missing files are downloaded.

    >>> import numpy as np
    >>> from tempfile import TemporaryDirectory
    >>> pieces = {"data": [1.0], "indices": [1], "indptr": [0, 1, 1], "shape": [2, 2]}
    >>> arrays = {f"{name}_{key}": each for name in ("adj", "attr") for key, each in pieces.items()}
    >>> with TemporaryDirectory() as folder:
    ...     path, = BENCHMARKS["CoraML"].paths(Path(folder))
    ...     path.parent.mkdir(parents=True)
    ...     np.savez(path, labels=[0, 1], **arrays)
    ...     load_benchmark("CoraML", Path(folder))
    Graph('CoraML', nodes=2, edges=2, features=2, classes=2)

    Raises:
        GraphError: the download fails, or the files are incomplete or damaged.
    """
    files = BENCHMARKS[name]
    instead = f"put {name}.npz into {data_dir}"
    missing = [path for path in files.paths(data_dir) if not lexists(path)]
    try:
        for path in missing:
            _download(_address(files, path.name), path)
    except (OSError, HTTPException) as error:
        raise GraphError(
            f"{name} could not be downloaded into {data_dir} ({_brief(error)}): {instead}, "
            "or run once with a network connection",
            arguments=("data_dir",),
        ) from error
    try:
        return files.read(data_dir / files.folder, name)
    except (GraphError, OSError) as error:
        raise GraphError(
            f"{name} cannot be read from its raw files ({error}): remove "
            f"{data_dir / files.folder} to download them again, or {instead}",
            arguments=("data_dir",),
        ) from error


def _brief(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _address(files: RawFiles, name: str) -> str:
    with warnings.catch_warnings():
        # Importing PyG uses parts of torch.jit that torch has deprecated.
        warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)
        from torch_geometric import datasets
    url: str = getattr(datasets, files.dataset).url
    return url.format(Path(name).stem) if "{}" in url else f"{url.rstrip('/')}/{name}"


def _download(url: str, path: Path) -> None:
    """Download a file atomically."""
    make_folder(path.parent)
    with (
        urlopen(url, timeout=_TIMEOUT_SECONDS) as remote,
        replacing(path) as local,
    ):
        shutil.copyfileobj(remote, local)
