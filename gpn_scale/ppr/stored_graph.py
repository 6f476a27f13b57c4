"""The structure of a store's graph, kept with its rows so that updates can compare a new graph.

Shapes: N nodes, E stored edges.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.errors import GraphError, StoreError
from gpn_scale.ppr.node_file import read_node_file
from gpn_scale.ppr.sealed import checksum

if TYPE_CHECKING:
    from gpn_scale.data.graph import Graph

INDPTR, INDICES, WEIGHT = "graph_indptr.npy", "graph_indices.npy", "graph_weight.npy"


def graph_facts(graph: "Graph", node_names: str | None = None) -> dict[str, Any]:
    """Return the entry of `build.json` for a graph; `node_names` is as in `StoreWriter.begin`.

    >>> from gpn_scale import build_graph
    >>> graph_facts(build_graph([0, 1], [1, 2]))
    {'directed': False, 'edges': 4, 'node_names': None, 'weighted': False}
    """
    return {
        "directed": graph.directed,
        "edges": graph.num_edges,
        "node_names": node_names or names_checksum(graph.node_names, graph.num_nodes),
        "weighted": graph.edge_weight is not None,
    }


def names_checksum(names: NDArray[np.str_] | None, count: int) -> str | None:
    """Return a hash of the first `count` node names, independent of the array's item size.

    >>> first = names_checksum(np.array(["a", "b"]), 2)
    >>> first == names_checksum(np.array(["a", "b", "longer"]), 2)
    True
    """
    if names is None:
        return None
    return checksum("\0".join(names[:count].tolist()).encode(errors="surrogatepass"))


def graph_arrays(graph: "Graph") -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the name and content of each file that holds a part of the graph's structure.

    >>> from gpn_scale import build_graph
    >>> [name for name, _ in graph_arrays(build_graph([0, 1], [1, 2]))]
    ['graph_indptr.npy', 'graph_indices.npy']
    """
    yield INDPTR, graph.indptr
    yield INDICES, graph.indices
    if graph.edge_weight is not None:
        yield WEIGHT, graph.edge_weight


def structure_bytes(graph: "Graph") -> int:
    """Return the size of the arrays of `graph_arrays`.

    >>> from gpn_scale import build_graph
    >>> structure_bytes(build_graph([0, 1], [1, 2]))  # 4 offsets and 4 edges
    48
    """
    return sum(array.nbytes for _, array in graph_arrays(graph))


def graph_files(facts: Mapping[str, Any] | None) -> list[str]:
    """Return the names of the files of a stored graph.

    >>> graph_files(None)
    []
    """
    if facts is None:
        return []
    return [INDPTR, INDICES, *([WEIGHT] if facts["weighted"] else [])]


def read_stored_graph(
    path: Path, manifest: Mapping[str, Any], graph_fingerprint: str, num_nodes: int
) -> "Graph":
    """Return the structure of the graph of a generation, without features and labels.

    >>> from tempfile import TemporaryDirectory
    >>> from gpn_scale.ppr.example import example_graph, example_store
    >>> with TemporaryDirectory() as folder:
    ...     manifest = example_store(folder).manifest
    ...     fingerprint = example_graph().structure_fingerprint()
    ...     read_stored_graph(Path(folder), manifest, fingerprint, 3)
    Graph('stored', nodes=3, edges=4, features=0, classes=0)

    Args:
        path: Folder of the generation.
        manifest: Its manifest.
        graph_fingerprint: Fingerprint that the graph must have.
        num_nodes: N.

    Raises:
        StoreError: the store does not contain its graph, or the graph is damaged.
    """
    from gpn_scale.data.graph import MISSING_LABEL, Graph  # loads scipy
    from gpn_scale.data.mapped_checks import check_mapped

    facts = manifest["graph"]
    if facts is None:
        raise StoreError(
            f"{path} does not contain its graph, which an update needs for comparison: build the "
            "store again with existing='overwrite'",
            arguments=("existing=overwrite",),
        )
    edges = int(facts["edges"])
    sizes: dict[str, tuple[str, int, float]] = {
        INDPTR: ("<i8", num_nodes + 1, edges + 1),
        INDICES: ("<i4", edges, num_nodes),
        WEIGHT: ("<f4", edges, np.inf),
    }
    arrays = {}
    for name in graph_files(facts):
        dtype, size, below = sizes[name]
        wanted = manifest["files"][name]["checksum"]
        arrays[name] = read_node_file(path / name, wanted, dtype, size, below=below)
    graph = Graph(
        name="stored",
        indptr=arrays[INDPTR],
        indices=arrays[INDICES],
        edge_weight=arrays.get(WEIGHT),
        labels=np.full(num_nodes, MISSING_LABEL, np.int32),
        num_classes=0,
        directed=bool(facts["directed"]),
    )
    try:
        check_mapped(graph)
    except GraphError as error:
        raise StoreError(f"{path}: {error}") from error
    if graph.structure_fingerprint() != graph_fingerprint:
        raise StoreError(
            f"{path} does not contain the graph of its rows: build the store again with "
            "existing='overwrite'",
            arguments=("existing=overwrite",),
        )
    return graph
