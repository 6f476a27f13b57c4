"""A graph of three nodes and the store of its rows, small enough to check examples by hand."""

from pathlib import Path

import numpy as np

from gpn_scale.config import DiffusionConfig
from gpn_scale.data.building import build_graph
from gpn_scale.data.graph import Graph, Split
from gpn_scale.ppr.rows import Rows
from gpn_scale.ppr.store import PPRStore
from gpn_scale.ppr.writer import StoreWriter

EXAMPLE_DIFFUSION = DiffusionConfig(teleport=0.5, normalisation="rw", steps=1, self_loops=False)
"""The diffusion of `example_store`: half of a row is on the root, half on its neighbours."""


def example_graph() -> Graph:
    """Return the path 0 - 1 - 2 with one feature, two classes and a split.

    >>> example_graph()
    Graph('example', nodes=3, edges=4, features=1, classes=2)
    """
    return build_graph(
        [0, 1],
        [1, 2],
        name="example",
        features=[[1.0], [0.0], [2.0]],
        labels=[0, 1, 0],
        split=Split(train=np.array([0, 1]), val=np.array([2]), test=np.array([], np.int64)),
    )


def example_store(folder: Path | str) -> PPRStore:
    """Write the rows of `example_graph` to `folder`, and return the opened store.

    Rows keep k = 2 entries, so row 1 loses the 0.25 that it puts on node 2. There are two clusters,
    {0, 1} and {2}.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     rows = example_store(folder).rows([0, 1])
    >>> rows.ids.tolist(), rows.weights.tolist(), rows.missing_mass.tolist()
    ([0, 1, 1, 0], [0.5, 0.5, 0.5, 0.25], [0.0, 0.25])

    Raises:
        StoreError: the folder is not empty, or not writable.
    """
    graph = example_graph()
    writer = StoreWriter.begin(
        folder,
        graph_fingerprint=graph.structure_fingerprint(),
        parameters=EXAMPLE_DIFFUSION.store_parameters,
        num_nodes=graph.num_nodes,
        roots=None,
        num_clusters=2,
        rows_per_shard=graph.num_nodes,
        k=2,
        graph=graph,
    )
    writer.write_clusters(np.array([0, 0, 1], np.int32))
    rows = Rows(
        row_ptr=np.array([0, 2, 4, 6]),
        ids=np.array([0, 1, 1, 0, 2, 1], np.int32),
        weights=np.array([0.5, 0.5, 0.5, 0.25, 0.5, 0.5], np.float32),
        missing_mass=np.array([0.0, 0.25, 0.0], np.float32),
        cut_mass=np.array([[0.0, 0.0], [0.0, 0.25], [0.0, 0.0]], np.float16),
    )
    writer.write_shard(0, rows)
    writer.finish(total_mass=np.array([0.75, 1.5, 0.75]))
    return PPRStore.open(folder)
