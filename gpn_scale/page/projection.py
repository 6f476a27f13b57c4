"""Latent positions in two dimensions: by principal components, and by UMAP or t-SNE.

Shapes: L nodes, D latent dimensions.
"""

from importlib import import_module
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits

from gpn_scale.page.node_rows import LatentMap

FEWEST_NODES = 50
MOST_NODES = 1000
_RNG_SEED = 0
_ITERATIONS = 500


def principal_components(
    latent_LD: NDArray[np.float64],
) -> tuple[NDArray[np.float64], tuple[float, float]]:
    """Return positions along the two directions of largest variance.

    Returns:
        The positions, (L, 2), and the fraction of the variance along each direction.
    """
    if len(latent_LD) == 0:
        return np.empty((0, 2)), (0.0, 0.0)
    # Rows and columns of zeros provide the missing axes if there are fewer than two nodes or
    # dimensions.
    padded = np.pad(latent_LD - latent_LD.mean(0, keepdims=True), ((0, 2), (0, 2)))
    _, size, direction = np.linalg.svd(padded, full_matrices=False)
    first = direction[:2]
    first = first * np.sign(first[np.arange(2), np.abs(first).argmax(1)])[:, None]
    variance = np.square(size[:2]) / max(float(np.square(size).sum()), np.finfo(np.float64).tiny)
    return padded[:-2] @ first.T, (float(variance[0]), float(variance[1]))


def components_map(latent_LD: NDArray[np.float64]) -> LatentMap:
    """Place nodes along the two directions of largest variance."""
    position, explained_variance = principal_components(latent_LD)
    return LatentMap(
        position=position, method="principal components", explained_variance=explained_variance
    )


def neighbour_map(latent_LD: NDArray[np.float64]) -> LatentMap | None:
    """Place at most 1,000 nodes so that close nodes stay close; the others are not placed.

    UMAP is used if it is installed, t-SNE otherwise.

    Returns:
        None for fewer than 50 nodes, or if all of them have the same position.
    """
    keep = np.flatnonzero(np.isfinite(latent_LD).all(1))
    if len(keep) > MOST_NODES:
        rng = np.random.default_rng(_RNG_SEED)
        keep = np.sort(rng.choice(keep, MOST_NODES, replace=False))
    if len(keep) < FEWEST_NODES or np.ptp(latent_LD[keep], axis=0).max(initial=0.0) == 0:
        return None
    position = np.full((len(latent_LD), 2), np.nan)
    method, position[keep] = _embedded(latent_LD[keep])
    return LatentMap(position=position, method=method)


def _embedded(latent_LD: NDArray[np.float64]) -> tuple[str, NDArray[np.float64]]:
    with threadpool_limits(1):  # positions must not depend on the number of threads
        if find_spec("umap") is not None:
            mapper = import_module("umap").UMAP(random_state=_RNG_SEED, n_jobs=1)
            return "UMAP", np.asarray(mapper.fit_transform(latent_LD), np.float64)
        mapper = TSNE(init="random", random_state=_RNG_SEED, max_iter=_ITERATIONS)
        return "t-SNE", np.asarray(mapper.fit_transform(latent_LD), np.float64)
