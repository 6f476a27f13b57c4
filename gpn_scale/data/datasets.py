"""Load graphs by dataset name, from the data folder or by download.

Sole user of `torch_geometric.datasets`.
"""

import warnings
import zipfile
from difflib import get_close_matches
from http.client import HTTPException
from os.path import isdir, isfile
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from gpn_scale.data.formats import describe_formats, graph_at, graph_called, names_in
from gpn_scale.data.graph import Graph
from gpn_scale.data.ogb import load_ogbn_arxiv
from gpn_scale.data.pyg import graph_from_pyg
from gpn_scale.data.synthetic import NAME as SYNTHETIC
from gpn_scale.data.synthetic import parse_synthetic, synthetic_graph
from gpn_scale.errors import GraphError

_PYG = {
    "CoraML": ("CitationFull", "Cora_ML"),
    "CiteSeer": ("Planetoid", "CiteSeer"),
    "PubMed": ("Planetoid", "PubMed"),
    "AmazonComputers": ("Amazon", "Computers"),
    "AmazonPhotos": ("Amazon", "Photo"),
    "CoauthorCS": ("Coauthor", "CS"),
    "CoauthorPhysics": ("Coauthor", "Physics"),
}
DATASET_NAMES = (*_PYG, "ogbn-arxiv")
"""Names of the paper's datasets, which can be downloaded."""

# Errors of truncated files: PyG writes in place, so an interrupted download leaves one.
_DAMAGED = (zipfile.BadZipFile, UnpicklingError, EOFError, KeyError, ValueError, RuntimeError)


def load_graph(name: str, data_dir: Path | str = "data") -> Graph:
    """Return the graph called `name`: the first of these that exists.

    1. `synthetic` or `synthetic:key=value,...`: generated.
    2. A file or folder of this name in `data_dir`, in one of the formats of
       `gpn_scale.data.formats`: an `.npz` file, a saved graph, tables of edges and nodes.
    3. One of `DATASET_NAMES`: read from PyG's or OGB's files in `data_dir`, downloaded if needed.
    4. `name` as the path of such a file or folder. A name that contains a folder is always such a
       path and never looked up inside `data_dir`.

    >>> from gpn_scale import load_graph
    >>> load_graph("synthetic:nodes=200,classes=3")
    Graph('synthetic', nodes=200, edges=1422, features=32, classes=3)

    Raises:
        ConfigError: `name` is `synthetic:...` with a wrong key or value.
        GraphError: there is no such graph, `data_dir` is a file, the download fails, or the files
            are damaged.
    """
    data_dir = Path(data_dir)
    if name == SYNTHETIC or name.startswith(f"{SYNTHETIC}:"):
        return synthetic_graph(parse_synthetic(name))
    if isfile(data_dir):
        raise GraphError(
            f"the data folder {data_dir} is a file, expected a folder: to read a graph from a "
            "file, pass its path as the name of the dataset",
            arguments=("data_dir", "dataset"),
        )
    plain = name not in ("", ".", "..") and Path(name).name == name
    local = graph_called(name, data_dir) if plain else None
    if local is not None:
        return local
    if name == "ogbn-arxiv":
        return load_ogbn_arxiv(data_dir)
    if name in _PYG:
        return _from_pyg(name, data_dir)
    given = graph_at(Path(name))
    if given is None:
        raise GraphError(_unknown(name, data_dir, plain), arguments=("dataset", "data_dir"))
    return given


def dataset_help() -> str:
    """Return what the name of a dataset may be, for help texts; DIR stands for `data_dir`.

    >>> dataset_help().partition(", ")[0]
    'one of CoraML'
    """
    return (
        f"one of {', '.join(DATASET_NAMES)}; {SYNTHETIC}[:nodes=20000,classes=7,...]; or X for "
        f"{describe_formats('DIR/X')}"
    )


def _unknown(name: str, data_dir: Path, plain: bool) -> str:
    names = list(dict.fromkeys([*DATASET_NAMES, SYNTHETIC, *names_in(data_dir)]))
    folded = {each.casefold(): each for each in names}
    near = [folded[each] for each in get_close_matches(name.casefold(), folded, n=3)]
    hint = f"did you mean {near[0]!r}? " if near else ""
    ordered = ", ".join(dict.fromkeys([*near, *names]))
    if plain:
        files = f"also looked for {describe_formats(str(data_dir / name))}"
        files += "" if isdir(data_dir) else f", but the folder {data_dir} does not exist"
    else:
        files = f"a path must be that of {describe_formats('X')}"
    return f"no dataset {name!r}: {hint}Available datasets are {ordered}; {files}"


def _from_pyg(name: str, data_dir: Path) -> Graph:
    from aiohttp import ClientError  # fsspec, and so PyG, downloads with it

    instead = f"put {name}.npz into {data_dir}"
    try:
        data = _pyg_data(*_PYG[name], data_dir)
    except (OSError, HTTPException, ClientError) as error:
        raise GraphError(
            f"{name} could not be downloaded into {data_dir} ({_brief(error)}): {instead}, "
            "or run once with a network connection"
        ) from error
    except _DAMAGED as error:
        raise GraphError(
            f"{name}: PyG cannot read its files in {data_dir} ({_brief(error)}): "
            f"remove its folder there to download again, or {instead}"
        ) from error
    return graph_from_pyg(data, name)


def _brief(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _pyg_data(dataset: str, part: str, root: Path) -> Any:
    with warnings.catch_warnings():
        # Importing PyG uses parts of torch.jit that torch has deprecated.
        warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)
        from torch_geometric import datasets
    return getattr(datasets, dataset)(str(root), part)[0]
