"""Load graphs by dataset name, from the data folder or by download."""

from difflib import get_close_matches
from os.path import isdir, isfile
from pathlib import Path

from gpn_scale.data.benchmark_files import BENCHMARKS, load_benchmark
from gpn_scale.data.formats import describe_formats, graph_at, graph_called, names_in
from gpn_scale.data.graph import Graph
from gpn_scale.data.ogb import load_ogb
from gpn_scale.data.ogb_files import OGB_DATASETS
from gpn_scale.data.synthetic import NAME as SYNTHETIC
from gpn_scale.data.synthetic import parse_synthetic, synthetic_graph
from gpn_scale.errors import GraphError

DATASET_NAMES = (*BENCHMARKS, "ogbn-arxiv")
"""Names of the paper's datasets, which can be downloaded."""
DOWNLOADED_NAMES = (*BENCHMARKS, *OGB_DATASETS)
"""Names of all datasets that can be downloaded."""


def load_graph(name: str, data_dir: Path | str = "data") -> Graph:
    """Return the graph called `name`: the first of these that exists.

    1. `synthetic` or `synthetic:key=value,...`: generated.
    2. A file or folder of this name in `data_dir`, in one of the formats of
       `gpn_scale.data.formats`: an `.npz` file, a saved graph, tables of edges and nodes.
    3. One of `DOWNLOADED_NAMES`: read from their published raw files in `data_dir`, downloaded if
       needed.
    4. `name` as the path of such a file or folder. A name that contains a folder is always such a
       path and never looked up inside `data_dir`.

    >>> from gpn_scale import load_graph
    >>> load_graph("synthetic:nodes=200,classes=3")
    Graph('synthetic', nodes=200, edges=1422, features=32, classes=3)

    Raises:
        ConfigError: `name` is `synthetic:...` with a wrong key or value.
        GraphError: the graph does not exist, `data_dir` is a file, the download fails, or the files
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
    if name in OGB_DATASETS:
        return load_ogb(name, data_dir)
    if name in BENCHMARKS:
        return load_benchmark(name, data_dir)
    given = graph_at(Path(name))
    if given is None:
        raise GraphError(_unknown(name, data_dir, plain), arguments=("dataset", "data_dir"))
    return given


def dataset_help() -> str:
    """Return a description of dataset names for help texts; DIR stands for `data_dir`.

    >>> dataset_help().partition(", ")[0]
    'one of CoraML'
    """
    return (
        f"one of {', '.join(DOWNLOADED_NAMES)}; {SYNTHETIC}[:nodes=20000,classes=7,...]; or X for "
        f"{describe_formats('DIR/X')}"
    )


def _unknown(name: str, data_dir: Path, plain: bool) -> str:
    names = list(dict.fromkeys([*DOWNLOADED_NAMES, SYNTHETIC, *names_in(data_dir)]))
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
