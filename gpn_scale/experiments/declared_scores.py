"""The score that each model enters the leaderboard with, declared before any result is seen.

A model with several scores would otherwise be measured by the best of them on each graph, which
nobody can know without labels of unknown nodes.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredScores:
    """Names of a model's scores, one per task."""

    errors: str = "aleatoric"
    """Score that detects wrong predictions."""
    unknown: str = "epistemic"
    """Score that detects nodes of left-out classes."""
    perturbed: str = "epistemic"
    """Score that detects nodes whose own features are replaced by noise."""


EPISTEMIC = DeclaredScores()
"""Scores of a model that has an epistemic score; it is what all models have unless listed."""
PROBABILITIES_ONLY = DeclaredScores(unknown="aleatoric", perturbed="aleatoric")
"""Scores of a model that has class probabilities and nothing else."""
GPN_SCORES = DeclaredScores(perturbed="epistemic_no_network")
"""Scores of GPN: the paper detects perturbed features by the evidence without network."""
GPN_PLUS_SCORES = DeclaredScores(unknown="p_known", perturbed="p_features")

_DECLARED: Mapping[str, DeclaredScores] = {
    **dict.fromkeys(("GPN+", "GPN+-minibatch"), GPN_PLUS_SCORES),
    **dict.fromkeys(
        ("GPN", "GPN-minibatch", "PostNet", "PostNet-Diff", "GPN-LOG-beta"), GPN_SCORES
    ),
    **dict.fromkeys(("APPNP", "PPRGo", "VGCN", "VGCN-minibatch", "RGCN"), PROBABILITIES_ONLY),
}
_PROBABILITIES_ONLY_SUFFIX = "+temperature"


def declared_scores(model: str) -> DeclaredScores:
    """Return the scores of a model; changes in brackets do not count.

    >>> declared_scores("APPNP[train.epochs=5]").unknown
    'aleatoric'
    """
    kind = model.partition("[")[0]
    if kind.endswith(_PROBABILITIES_ONLY_SUFFIX):
        return PROBABILITIES_ONLY
    return _DECLARED.get(kind, EPISTEMIC)
