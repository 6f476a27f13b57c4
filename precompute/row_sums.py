"""Exact sums, up to rounding, of an engine's full rows: per root, and per node over all roots."""

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import NodeIds
from gpn_scale.diffusion.transition import steps_to_tolerance
from precompute.exact_mass import arriving_mass, diffused_columns
from precompute.row_engine import RowEngine

MASS_TOLERANCE = 1e-8
"""Mass that the exact sums of an unlimited diffusion may leave undistributed."""


def sum_steps(engine: RowEngine) -> int:
    """Return the number of steps of the exact sums.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.config import PPRConfig
    >>> from gpn_scale.diffusion.transition import transition_matrix
    >>> from precompute.mpi import SingleProcess
    >>> S = transition_matrix(build_graph([0], [1]), "rw", self_loops=True)
    >>> sum_steps(RowEngine(S, PPRConfig(k=2), SingleProcess(), threads=1))
    10
    """
    diffusion = engine.config.diffusion
    if diffusion.steps == "inf":
        return steps_to_tolerance(diffusion.teleport, MASS_TOLERANCE)
    return diffusion.steps


def row_totals(engine: RowEngine) -> NDArray[np.float64]:
    """Return the sum of every node's full row, (N,); it is 1 for `rw` and is computed for `sym`.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.config import PPRConfig
    >>> from gpn_scale.diffusion.transition import transition_matrix
    >>> from precompute.mpi import SingleProcess
    >>> S = transition_matrix(build_graph([0], [1]), "sym", self_loops=True)
    >>> row_totals(RowEngine(S, PPRConfig(k=2), SingleProcess(), threads=1)).round(6)
    array([1., 1.])
    """
    diffusion = engine.config.diffusion
    if diffusion.normalisation == "rw":
        return np.ones(engine.num_nodes)
    assert engine.exact_weight is not None
    matrix = (engine.indptr, engine.indices, engine.exact_weight)
    ones = np.ones((engine.num_nodes, 1))
    steps = sum_steps(engine)
    return diffused_columns(*matrix, ones, teleport=diffusion.teleport, steps=steps)[:, 0]


def total_mass(engine: RowEngine, roots: NodeIds | None) -> NDArray[np.float64]:
    """Return the mass that the full rows of all roots together put on every node, (N,).

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.config import PPRConfig
    >>> from gpn_scale.diffusion.transition import transition_matrix
    >>> from precompute.mpi import SingleProcess
    >>> S = transition_matrix(build_graph([0], [1], num_nodes=3), "rw", self_loops=True)
    >>> engine = RowEngine(S, PPRConfig(k=2), SingleProcess(), threads=1)
    >>> total_mass(engine, np.array([0, 2])).round(2)  # rows of two roots; 2 is isolated
    array([0.6, 0.4, 1. ])
    """
    start = np.zeros(engine.num_nodes)
    start[slice(None) if roots is None else roots] = 1.0
    matrix = (engine.indptr, engine.indices, engine.weight)
    teleport, steps = engine.config.diffusion.teleport, sum_steps(engine)
    return arriving_mass(*matrix, start, teleport=teleport, steps=steps)
