"""Predictions of comparison models from Dirichlet parameters, label evidence or samples.

Shapes: N nodes, C classes, S samples.
"""

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn import functional

from gpn_scale.evaluation.scored_prediction import ScoredPrediction


def scored_prediction(
    model: str, probability_NC: Tensor, epistemic_N: Tensor | None = None
) -> ScoredPrediction:
    """Return a prediction in float32 on the CPU.

    Args:
        model: Name of the model, for messages.
        probability_NC: Class probabilities.
        epistemic_N: Score that grows with epistemic uncertainty; None for a model without one.
    """
    score = None if epistemic_N is None else epistemic_N.detach().float().cpu().numpy()
    return ScoredPrediction(
        model=model,
        probabilities=probability_NC.detach().float().cpu().numpy(),
        epistemic_score=score,
    )


def dirichlet_prediction(model: str, alpha_NC: Tensor) -> ScoredPrediction:
    """Return the means of Dirichlet distributions, with -alpha_0 as epistemic score."""
    total_N = alpha_NC.sum(1)
    return scored_prediction(model, alpha_NC / total_N.unsqueeze(1), -total_N)


def label_evidence_prediction(model: str, evidence_NC: Tensor, labels: Tensor) -> ScoredPrediction:
    """Return the means of Dir(1 + evidence), where the evidence comes from labelled nodes.

    A node without evidence gets the most common class. The epistemic score is C - alpha_0: the
    constant C is left out since float32 would keep nothing else where evidence is small.

    Args:
        model: Name of the model, for messages.
        evidence_NC: Evidence in float64.
        labels: Labels of the training nodes.
    """
    num_classes = evidence_NC.shape[1]
    most_common = labels.bincount(minlength=num_classes).argmax()
    total_N = evidence_NC.sum(1)
    # In float32, so that equal evidence is equal in whatever order it was summed.
    winner_N = torch.where(total_N > 0.0, evidence_NC.float().argmax(1), most_common)
    # The winner leads by at least the difference that float32 can distinguish from a tie.
    alpha_NC = 1.0 + evidence_NC
    least_N1 = alpha_NC.topk(2).values[:, 1:] * (1.0 + 3e-7)
    alpha_NC = alpha_NC.maximum(functional.one_hot(winner_N, num_classes) * least_N1)
    return scored_prediction(model, alpha_NC / alpha_NC.sum(1, keepdim=True), -total_N)


def sampled_prediction(model: str, samples_SNC: Iterable[Tensor]) -> ScoredPrediction:
    """Return the mean of sampled class probabilities, with their summed variances as score.

    Mean and variance are empirical, as in GPN's appendix. Only running sums are stored, not the
    samples.
    """
    count, sum_NC, square_NC = 0, torch.zeros(()), torch.zeros(())
    for sample_NC in samples_SNC:
        exact_NC = sample_NC.double()
        count += 1
        sum_NC, square_NC = sum_NC + exact_NC, square_NC + exact_NC.square()
    mean_NC = sum_NC / count
    variance_NC = (square_NC / count - mean_NC.square()).clamp_min(0.0)
    return scored_prediction(model, mean_NC, variance_NC.sum(1))
