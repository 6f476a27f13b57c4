"""Latent positions in two dimensions so that near nodes stay near: UMAP or t-SNE.

Shapes: L sampled nodes, D latent dimensions.
"""

from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits

from gpn_scale.page.facts import LatentPoints

FEWEST_NODES = 50
MOST_NODES = 1000
_RNG_SEED = 0
_ITERATIONS = 500


def neighbour_points(points: LatentPoints, latent_LD: NDArray[np.float64]) -> LatentPoints | None:
    """At most 1,000 of the points, by UMAP where it is installed and else by t-SNE.

    None for so few nodes that neighbours tell nothing, or where they all lie in one place.
    """
    keep = np.flatnonzero(np.isfinite(latent_LD).all(1))
    if len(keep) > MOST_NODES:
        rng = np.random.default_rng(_RNG_SEED)
        keep = np.sort(rng.choice(keep, MOST_NODES, replace=False))
    if len(keep) < FEWEST_NODES or np.ptp(latent_LD[keep], axis=0).max(initial=0.0) == 0:
        return None
    method, position = _placed(latent_LD[keep])
    return replace(
        points,
        position=position,
        label=points.label[keep],
        log_evidence=points.log_evidence[keep],
        marked=points.marked[keep],
        explained=None,
        method=method,
    )


def _placed(latent_LD: NDArray[np.float64]) -> tuple[str, NDArray[np.float64]]:
    with threadpool_limits(1):  # the number of threads must not show in the picture
        if find_spec("umap") is not None:
            mapper = import_module("umap").UMAP(random_state=_RNG_SEED, n_jobs=1)
            return "UMAP", np.asarray(mapper.fit_transform(latent_LD), np.float64)
        mapper = TSNE(init="random", random_state=_RNG_SEED, max_iter=_ITERATIONS)
        return "t-SNE", np.asarray(mapper.fit_transform(latent_LD), np.float64)
