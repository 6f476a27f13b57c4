"""Where the encoder places nodes in the latent space, in two dimensions.

Shapes: L sampled nodes, D latent dimensions, C classes.
"""

import numpy as np
from numpy.typing import NDArray

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.estimator import GPNClassifier
from gpn_scale.inference.encoder_inputs import required_features
from gpn_scale.page.facts import LatentPoints
from gpn_scale.page.projection import principal_components

_SAMPLED_NODES = 2000
_RNG_SEED = 0


def latent_points(
    classifier: GPNClassifier, graph: Graph, nodes: NodeIds
) -> tuple[LatentPoints, NDArray[np.float64]]:
    """Return a sample of `nodes` along the two directions of largest variance.

    Returns:
        The points in two dimensions, and the latent positions of the same nodes, (L, D).
    """
    rng = np.random.default_rng(_RNG_SEED)
    nodes = np.sort(rng.choice(nodes, min(len(nodes), _SAMPLED_NODES), replace=False))
    trained, features = classifier.trained, required_features(graph)
    latent_LD = trained.latent(features, nodes).double().cpu().numpy()
    evidence_LC = trained.evidence(features, nodes)
    position, explained_variance = principal_components(latent_LD)
    points = LatentPoints(
        position=position,
        label=graph.labels[nodes].astype(np.int64),
        log_evidence=np.log10(evidence_LC.double().sum(1).cpu().numpy()),
        unknown=np.isin(nodes, graph.marked),
        explained_variance=explained_variance,
    )
    return points, latent_LD
