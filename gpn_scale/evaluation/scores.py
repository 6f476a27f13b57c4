"""The uncertainty scores: one definition each, for reports, the page and experiments.

Every score grows with uncertainty. Its `name` is a stable key: metrics are called `auroc_{name}`,
`aupr_{name}` or `aurc_{name}` in `report.json` and in the results of experiments.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """An uncertainty score and its explanation."""

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

ENTROPY = Score(
    name="entropy",
    title="Differential entropy, with network",
    question="How little does the posterior say about the class probabilities?",
    meaning="High if the Dirichlet posterior is spread out: there is little evidence, or it is "
    "divided between classes.",
    uses_network=True,
)
ENTROPY_NO_NETWORK = Score(
    name="entropy_no_network",
    title="Differential entropy, without network",
    question="How little do the node's own features say about the class probabilities?",
    meaning="High if the posterior from the node's own features alone is spread out.",
    uses_network=False,
)
P_FEATURES = Score(
    name="p_features",
    title="Foreign features",
    question="How many of the known nodes have features that look at least this foreign?",
    meaning="High if few validation nodes have as little evidence from their own features.",
    uses_network=False,
)
P_NEIGHBOURHOOD = Score(
    name="p_neighbourhood",
    title="Foreign neighbourhood",
    question="How many of the known nodes have a neighbourhood that looks at least this foreign?",
    meaning="High if few validation nodes have as little evidence from their neighbourhood.",
    uses_network=True,
)
P_OPINION = Score(
    name="p_opinion",
    title="Weak opinion",
    question="For how many of the known nodes do all classes get at least as little support?",
    meaning="High if few validation nodes have logits as small as this node's.",
    uses_network=True,
)
P_LABELS = Score(
    name="p_labels",
    title="No label near",
    question="How many of the known nodes are at least as far from every label?",
    meaning="High if few validation nodes are reached by as little of the training labels.",
    uses_network=True,
)
P_KNOWN = Score(
    name="p_known",
    title="Unknown, all parts together",
    question="How many of the known nodes look at least this strange?",
    meaning="High if few validation nodes are as strange in features, neighbourhood, opinion and "
    "labels taken together.",
    uses_network=True,
)

SCORES: Mapping[str, Score] = {
    score.name: score for score in (ALEATORIC, EPISTEMIC, EPISTEMIC_NO_NETWORK)
}
"""Scores of the paper's tables, by name."""

P_SCORES: Mapping[str, Score] = {
    score.name: score for score in (P_FEATURES, P_NEIGHBOURHOOD, P_OPINION, P_LABELS, P_KNOWN)
}
"""Scores 1 - p of the p-values that a node is known, by name; only GPN+ has them."""

DETECTION_SCORES: Mapping[str, Score] = {
    **SCORES,
    **{score.name: score for score in (ENTROPY, ENTROPY_NO_NETWORK)},
    **P_SCORES,
}
"""Scores that `report.json` and experiments try at the detection of unknown nodes, by name."""

PAGE_SCORES: Mapping[str, Score] = {
    score.name: score
    for score in (ALEATORIC_NO_NETWORK, ALEATORIC, EPISTEMIC_NO_NETWORK, EPISTEMIC)
}
"""The four scores that the page of a run shows, by name and in its order."""
