"""The uncertainty scores: one definition each, for reports, the page and experiments.

Every score grows with uncertainty. Its `name` is a stable key: metrics are called `auroc_{name}`,
`aupr_{name}` or `aurc_{name}` in `report.json` and in the results of experiments.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """An uncertainty score and what it means."""

    name: str
    """Key in JSON files, and the property of `Prediction` that holds the score."""
    title: str
    """Human-readable heading."""
    question: str
    """The question that the score answers."""
    meaning: str
    """Explanation of when the score is high."""
    uses_network: bool
    """Whether the score depends on other nodes than the one it is computed for."""

    @property
    def label(self) -> str:
        """Short name for columns of tables.

        >>> EPISTEMIC_NO_NETWORK.label
        'epistemic, no network'
        """
        return self.name.replace("_no_network", ", no network").replace("_", " ")


ALEATORIC_NO_NETWORK = Score(
    name="aleatoric_no_network",
    title="Aleatoric, without network",
    question="Do the node's own features fit several classes?",
    meaning="High if the features alone make no class likely: a borderline case between known "
    "classes.",
    uses_network=False,
)
ALEATORIC = Score(
    name="aleatoric",
    title="Aleatoric, with network",
    question="Do the node and its neighbourhood fit several classes?",
    meaning="High if no class is likely even with the evidence of the neighbourhood: classes mix "
    "in this part of the graph.",
    uses_network=True,
)
EPISTEMIC_NO_NETWORK = Score(
    name="epistemic_no_network",
    title="Epistemic, without network",
    question="Do the node's own features resemble the training data?",
    meaning="High if the features alone give little evidence: the node itself is unfamiliar.",
    uses_network=False,
)
EPISTEMIC = Score(
    name="epistemic",
    title="Epistemic, with network",
    question="Does the node's neighbourhood resemble the training data?",
    meaning="High if there is little evidence in total: neither the node nor its neighbourhood is "
    "familiar.",
    uses_network=True,
)
EPISTEMIC_LOCAL = Score(
    name="epistemic_local",
    title="Epistemic, stored row only",
    question="Do the nodes in the node's stored row resemble the training data?",
    meaning="High if the nodes that the row kept give little evidence; what the row cut is not "
    "counted.",
    uses_network=True,
)

SCORES: Mapping[str, Score] = {
    score.name: score for score in (ALEATORIC, EPISTEMIC, EPISTEMIC_NO_NETWORK)
}
"""Scores of `report.json` and of the paper's tables, by name."""

PAGE_SCORES: Mapping[str, Score] = {
    score.name: score
    for score in (ALEATORIC_NO_NETWORK, ALEATORIC, EPISTEMIC_NO_NETWORK, EPISTEMIC)
}
"""The four scores that the page of a run shows, by name and in its order."""
