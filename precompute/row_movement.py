"""Bounds on how far the rows of a diffusion moved when its graph changed, from one column.

docs/certificate.md proves the bound. Shapes: N nodes of the new graph.
"""

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse import csgraph

from gpn_scale.config import DiffusionConfig
from gpn_scale.diffusion.transition import Transition, steps_to_tolerance
from precompute.graph_changes import transition_difference, with_isolated_nodes

_UNDISTRIBUTED = 1e-12
"""Mass that the sums of an unlimited diffusion leave out; the bounds include it."""
_SLACK = 1e-6
"""Far above the relative errors of the sums, which have non-negative terms only."""


def row_movement(
    old: Transition, new: Transition, diffusion: DiffusionConfig
) -> NDArray[np.float64]:
    """Return upper bounds on the L1 distance of each node's full row before and after, (N,).

    A row that no change can reach has a bound of 0.

    >>> from gpn_scale import build_graph
    >>> from gpn_scale.diffusion.transition import transition_matrix
    >>> diffusion = DiffusionConfig(teleport=0.5, normalisation="rw", steps=1)
    >>> old = transition_matrix(build_graph([0, 2], [1, 3]), "rw", self_loops=True)
    >>> new = transition_matrix(build_graph([0, 1, 2], [1, 4, 3]), "rw", self_loops=True)
    >>> row_movement(old, new, diffusion).round(2).tolist()
    [0.0, 0.33, 0.0, 0.0, 0.5]

    Args:
        old: S of the old graph, whose nodes are the first ones of the new graph.
        new: S' of the new graph.
        diffusion: Teleport probability, steps and normalisation.
    """
    difference_NN = transition_difference(old, new)
    if not difference_NN.nnz:
        return np.zeros(new.num_nodes)
    before, after = _matrix(with_isolated_nodes(old, new.num_nodes)), _matrix(new)
    if diffusion.steps == "inf":
        moved_N = _of_unlimited(difference_NN, before, after, diffusion)
    else:
        moved_N = _of_steps(difference_NN, before, after, diffusion, diffusion.steps)
    return moved_N * (1.0 + _SLACK)


def _of_steps(
    difference_NN: scipy.sparse.csr_array,
    before: scipy.sparse.csr_array,
    after: scipy.sparse.csr_array,
    diffusion: DiffusionConfig,
    steps: int,
) -> NDArray[np.float64]:
    """Return the bound for K steps: e <- (1 - t) (S' e + |D| b), with b the mass of old rows."""
    teleport = diffusion.teleport
    moved_N, mass_N = np.zeros(after.shape[0]), np.ones(after.shape[0])
    for _ in range(steps):
        moved_N = (1.0 - teleport) * (after @ moved_N + difference_NN @ mass_N)
        if diffusion.normalisation != "rw":  # rows of `rw` always have the mass 1
            mass_N = (1.0 - teleport) * (before @ mass_N) + teleport
    return moved_N


def _of_unlimited(
    difference_NN: scipy.sparse.csr_array,
    before: scipy.sparse.csr_array,
    after: scipy.sparse.csr_array,
    diffusion: DiffusionConfig,
) -> NDArray[np.float64]:
    """Return the bound for infinitely many steps: (1 - t) / t times Pi' |D| b."""
    teleport, num_nodes = diffusion.teleport, after.shape[0]
    steps = steps_to_tolerance(teleport, _UNDISTRIBUTED)
    largest = 1.0 if diffusion.normalisation == "rw" else float(np.sqrt(num_nodes))
    mass_N = np.ones(num_nodes)
    if diffusion.normalisation != "rw":
        mass_N = _diffused(before, mass_N, teleport, steps) + _UNDISTRIBUTED * largest
    source_N = difference_NN @ mass_N
    moved_N = _diffused(after, source_N, teleport, steps)
    # The mass that the sum leaves out can lie anywhere in a component that has changed.
    component_N = csgraph.connected_components(after, directed=True, connection="weak")[1]
    changed = np.zeros(component_N.max() + 1, np.bool_)
    changed[component_N[source_N > 0.0]] = True
    moved_N[changed[component_N]] += _UNDISTRIBUTED * largest * source_N.max()
    return moved_N * ((1.0 - teleport) / teleport)


def _diffused(
    matrix: scipy.sparse.csr_array, start_N: NDArray[np.float64], teleport: float, steps: int
) -> NDArray[np.float64]:
    now_N = start_N
    for _ in range(steps):
        now_N = (1.0 - teleport) * (matrix @ now_N) + teleport * start_N
    return now_N


def _matrix(transition: Transition) -> scipy.sparse.csr_array:
    shape = (transition.num_nodes,) * 2
    arrays = (transition.weight, transition.indices, transition.indptr)
    return scipy.sparse.csr_array(arrays, shape=shape)
