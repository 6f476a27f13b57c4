"""Complete rows of the diffusion for a few nodes, with the weight of every supplier of evidence.

The other implementations apply the diffusion to evidence and never show its matrix, and stored rows
are cut to k entries. An explanation needs every weight of a row, but only of a few nodes.

Shapes: B nodes, N nodes of the graph.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from gpn_scale.config import DiffusionConfig
from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.diffusion.power_iteration import exact_diffusion


def diffusion_rows(graph: Graph, diffusion: DiffusionConfig, nodes: NodeIds) -> NDArray[np.float64]:
    """Return the rows of `nodes` in the diffusion matrix, (B, N).

    Entry (b, v) is the weight of node v's evidence in that of `nodes[b]`. A row is a column of the
    transposed matrix, so the transposed iteration computes it from an indicator vector. Memory is
    24 bytes x N x B, plus about 70 bytes per edge for both matrices.

    >>> from gpn_scale import build_graph
    >>> config = DiffusionConfig(teleport=0.5, normalisation="rw", steps=1, self_loops=False)
    >>> diffusion_rows(build_graph([0, 1], [1, 2]), config, np.array([1]))
    array([[0.25, 0.5 , 0.25]])
    """
    power = exact_diffusion(graph, diffusion, torch.device("cpu"), torch.float64)
    indicator_NB = torch.zeros(graph.num_nodes, len(nodes), dtype=torch.float64)
    indicator_NB[torch.from_numpy(nodes), torch.arange(len(nodes))] = 1.0
    row_NB = power.iterate(indicator_NB, power.transition.transposed())
    return np.asarray(row_NB.numpy().T)
