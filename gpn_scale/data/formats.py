"""The file formats of your own graphs, one entry of `FORMATS` each.

Loading, messages and help texts use this table, so a new format only needs a new entry.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os.path import isdir, isfile
from pathlib import Path

from gpn_scale.data.graph import Graph
from gpn_scale.data.graph_folder import MANIFEST, open_graph
from gpn_scale.data.npz import read_npz
from gpn_scale.data.tables import has_tables, read_tables, table_paths


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphFormat:
    """Functions that find, recognise, read and describe a graph in one format.

    >>> FORMATS[0].suffix, FORMATS[0].name_of(Path("graphs/cities.npz"))
    ('.npz', 'cities')
    """

    suffix: str
    """Suffix of the file's name after the name of the graph; empty for a folder."""
    recognises: Callable[[Path], bool]
    """Return whether a path is a file or folder of this format; false if it does not exist."""
    read: Callable[[Path, str], Graph]
    """Return the graph at a path, called by a name."""
    description: str
    """Description for messages and help; `{}` stands for the path without suffix."""
    files: Callable[[Path], Sequence[Path]] = lambda path: [path]
    """Return the files of which at least one is replaced if the graph at a path changes."""

    def name_of(self, path: Path) -> str:
        """Return the name of the graph at `path`."""
        return path.name.removesuffix(self.suffix) if self.suffix else path.resolve().name


FORMATS = (
    GraphFormat(
        suffix=".npz",
        recognises=lambda path: path.suffix == ".npz" and isfile(path),
        read=read_npz,
        description="a file {}.npz",
    ),
    GraphFormat(
        suffix="",
        recognises=lambda path: isdir(path) and isfile(path / MANIFEST),
        read=lambda path, name: replace(open_graph(path), name=name),
        files=lambda path: [path / MANIFEST],
        description=f"a folder {{}} of a saved graph ({MANIFEST})",
    ),
    GraphFormat(
        suffix="",
        recognises=lambda path: isdir(path) and has_tables(path),
        read=read_tables,
        files=table_paths,
        description="a folder {} with tables of edges and nodes (edges.csv|parquet)",
    ),
)
"""All formats; if there are several graphs of one name, the first format counts."""


def graph_at(path: Path) -> Graph | None:
    """Return the graph in the file or folder `path`, named after it; None if there is none.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale import build_graph
    >>> from gpn_scale.data.graph_folder import save_graph
    >>> with TemporaryDirectory() as folder:
    ...     save_graph(build_graph([0], [1]), Path(folder, "pair"))
    ...     graph_at(Path(folder, "pair")), graph_at(Path(folder, "none"))
    (Graph('pair', nodes=2, edges=2, features=0, classes=0), None)

    Raises:
        GraphError: the format is recognised, but the content is damaged.
    """
    for each in FORMATS:
        if each.recognises(path):
            return replace(each.read(path, each.name_of(path)), source=str(path.resolve()))
    return None


def graph_called(name: str, folder: Path) -> Graph | None:
    """Return the graph `name` in `folder`, with or without a suffix; None if there is none.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale import build_graph
    >>> from gpn_scale.data.graph_folder import save_graph
    >>> with TemporaryDirectory() as folder:
    ...     save_graph(build_graph([0], [1]), Path(folder, "pair"))
    ...     graph_called("pair", Path(folder))
    Graph('pair', nodes=2, edges=2, features=0, classes=0)
    """
    for suffix in dict.fromkeys(each.suffix for each in FORMATS):
        graph = graph_at(folder / f"{name}{suffix}")
        if graph is not None:
            return graph
    return None


def graph_files(name: str, folder: Path) -> list[Path]:
    """Return the files to watch for changes of the graph `name` in `folder`; some may not exist.

    >>> [str(path) for path in graph_files("pair", Path("graphs"))][:2]
    ['graphs/pair.npz', 'graphs/pair/graph.json']
    """
    inside = [file for each in FORMATS for file in each.files(folder / f"{name}{each.suffix}")]
    # The name may be a path by itself.
    return [*inside, *(file for each in FORMATS for file in each.files(Path(name)))]


def names_in(folder: Path) -> list[str]:
    """Return the sorted names of all graphs in `folder`; [] if the folder does not exist.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale import build_graph
    >>> from gpn_scale.data.graph_folder import save_graph
    >>> with TemporaryDirectory() as folder:
    ...     save_graph(build_graph([0], [1]), Path(folder, "pair"))
    ...     names_in(Path(folder)), names_in(Path(folder, "none"))
    (['pair'], [])
    """
    paths = list(folder.glob("*"))
    return sorted(
        {each.name_of(path) for each in FORMATS for path in paths if each.recognises(path)}
    )


def describe_formats(path: str) -> str:
    """Return what `graph_at` reads, for use in a sentence; `path` has no suffix.

    >>> describe_formats("DIR/X").partition(", ")[0]
    'a file DIR/X.npz'
    """
    texts = [each.description.format(path) for each in FORMATS]
    return f"{', '.join(texts[:-1])} or {texts[-1]}"
