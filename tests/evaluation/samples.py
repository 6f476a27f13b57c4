"""Predictions drawn at random, for tests."""

import numpy as np

from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.evaluation.scored_prediction import ScoredPrediction


def prediction_for(graph, rng_seed=0) -> Prediction:
    rng = np.random.default_rng(rng_seed)
    draws = [rng.dirichlet(np.ones(graph.num_classes), graph.num_nodes) for _ in range(2)]
    totals = [rng.gamma(2.0, size=graph.num_nodes) for _ in range(2)]
    return Prediction(
        probabilities=draws[0].astype(np.float32),
        probabilities_no_network=draws[1].astype(np.float32),
        alpha_0=totals[0].astype(np.float32),
        alpha_0_no_network=totals[1].astype(np.float32),
    )


def scored_prediction(num_nodes, num_classes=3, rng_seed=0, *, epistemic=True) -> ScoredPrediction:
    rng = np.random.default_rng(rng_seed)
    return ScoredPrediction(
        model="GCN",
        probabilities=rng.dirichlet(np.ones(num_classes), num_nodes).astype(np.float32),
        epistemic_score=rng.normal(size=num_nodes).astype(np.float32) if epistemic else None,
    )
