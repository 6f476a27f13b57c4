"""One training of `ablation_parts`, its groups of nodes, and p-values by any set of parts.

Shapes: N nodes, V calibration nodes, P parts, M sets of parts, B perturbed nodes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from gpn_scale.data.graph import Graph, NodeIds
from gpn_scale.data.shifts import FeatureNoise, noise_rows
from gpn_scale.estimator import GPNClassifier
from gpn_scale.evaluation.known_calibration import PART_SCORES
from gpn_scale.evaluation.metrics import auroc
from gpn_scale.evaluation.p_values import calibration_p, conformal_p, mean_surprise
from gpn_scale.evaluation.prediction import Prediction
from gpn_scale.inference.all_nodes import averaged, predict_all
from gpn_scale.inference.perturbed import Perturbed

Array = NDArray[np.float64]
Key = tuple[str, str, str]
"""Table, line and column of a measured value."""
Parts = Mapping[str, tuple[str, ...]]
"""Names of the scores that stand for each part."""

ISOLATED_NODES = 100
ROUND_OFF = 1e-6
"""As in `KnownCalibration`: sums of logarithms that differ by less are equal."""
DEFAULT = "all parts (the default)"


def part_sets() -> dict[str, Parts]:
    """Return the compared sets of parts by name."""
    sets: dict[str, Parts] = {DEFAULT: PART_SCORES}
    for part in PART_SCORES:
        sets[f"without {part}"] = {k: v for k, v in PART_SCORES.items() if k != part}
    for part, text, scores in (
        ("neighbourhood", "-alpha_0 only", ("epistemic",)),
        ("neighbourhood", "entropy of GPN+ only", ("entropy",)),
        ("neighbourhood", "entropy of GPN only", ("entropy_gpn",)),
        ("neighbourhood", "-alpha_0 and entropy of GPN", ("epistemic", "entropy_gpn")),
        ("opinion", "-max p instead of energy", ("aleatoric",)),
        ("opinion", "energy and -max p", ("energy", "aleatoric")),
        ("features", "entropy without network", ("entropy_no_network",)),
    ):
        sets[f"{part}: {text}"] = {**PART_SCORES, part: scores}
    names = [name for scores in PART_SCORES.values() for name in scores]
    sets["every score a part of its own"] = {name: (name,) for name in names}
    return sets


JOINS: dict[str, Callable[[Array, float], Array]] = {
    "Fisher": lambda s_PN, half: s_PN.sum(0),
    "Cauchy": lambda s_PN, half: np.tan((0.5 - np.exp(-s_PN) + half) * np.pi).mean(0),
    "minimum": lambda s_PN, half: s_PN.max(0),
    "Stouffer": lambda s_PN, half: norm.isf(np.exp(-s_PN) - half).sum(0),
}
"""Maps the surprise -log p of the parts (P, N) to one statistic (N,) that grows with strangeness.

`half` is half of the smallest p-value, which keeps a p-value of 1 finite."""


@dataclass(frozen=True, eq=False)
class Case:
    """One training, and the validation nodes in three groups. Test nodes are in none of them."""

    classifier: GPNClassifier
    graph: Graph
    """The graph of training, with its split."""
    calibration: NodeIds
    """A random half of the validation nodes."""
    known: NodeIds
    """The other half."""
    unknown: NodeIds
    """Nodes of left-out classes that the split puts into the validation set."""
    rng_seed: int

    @cached_property
    def gpn(self) -> Prediction:
        """Prediction of all nodes by GPN alone."""
        trained = replace(self.classifier.trained, opinion=None, calibration=None)
        return predict_all(trained, self.graph)

    @cached_property
    def plus(self) -> Prediction:
        """Prediction of all nodes by GPN+ that is calibrated on the calibration nodes alone."""
        assert self.graph.split is not None
        split = replace(self.graph.split, val=self.calibration)
        return self.classifier.calibrate(self.graph.with_split(split))

    @cached_property
    def perturbed(self) -> Perturbed:
        """GPN+, calibrated on the calibration nodes, on the graph with other features."""
        assert self.plus.p is not None  # calibrates the classifier
        return self.classifier.perturbed(self.graph)

    @cached_property
    def changed_nodes(self) -> NodeIds:
        """Known nodes that get features of noise, each alone, (B,)."""
        rng, count = np.random.default_rng(self.rng_seed), min(ISOLATED_NODES, len(self.known))
        return np.sort(rng.choice(self.known, count, replace=False))

    @cached_property
    def own_share(self) -> Array:
        """Share of each changed node in the mean over its own row, (B,)."""
        column = np.arange(len(self.changed_nodes))
        unit_NB = np.zeros((self.graph.num_nodes, len(column)), np.float32)
        unit_NB[self.changed_nodes, column] = 1.0
        mean_NB = averaged(self.classifier.trained, self.graph, unit_NB)
        return np.asarray(mean_NB[self.changed_nodes, column], np.float64)

    def isolated(self, kind: FeatureNoise) -> tuple[Prediction, Prediction]:
        """Return the predictions of the changed nodes by GPN+ and by GPN, (B,)."""
        nodes = self.changed_nodes
        rows = noise_rows(kind, len(nodes), self.graph.num_features, self.rng_seed)
        alone = replace(self.classifier.trained, opinion=None, calibration=None)
        gpn = Perturbed(alone, self.graph).isolated(nodes, rows.__getitem__)
        return self.perturbed.isolated(nodes, rows.__getitem__), gpn

    def changed_auroc(self, p_N: NDArray[np.floating], p_B: NDArray[np.floating]) -> float:
        """Return how well p-values separate the changed nodes from themselves before the change."""
        both = np.concatenate([p_N[self.changed_nodes], p_B])
        return auroc(np.arange(len(both)) >= len(p_B), -both)

    @property
    def calibration_labels(self) -> NDArray[np.integer]:
        """Labels of the calibration nodes."""
        return self.graph.labels[self.calibration]

    def auroc(self, score_N: NDArray[np.floating]) -> float:
        """Return how well a score of all nodes separates the unknown from the known nodes."""
        nodes = np.concatenate([self.known, self.unknown])
        return auroc(np.arange(len(nodes)) >= len(self.known), score_N[nodes])

    def scores(self, plus: Prediction, gpn: Prediction) -> dict[str, Array]:
        """Return all scores of all nodes by name; each grows with strangeness."""
        assert plus.energy is not None
        assert plus.label_evidence is not None
        scores = {
            "epistemic": gpn.epistemic,
            "epistemic_no_network": gpn.epistemic_no_network,
            "entropy_gpn": gpn.entropy,
            "entropy_no_network": gpn.entropy_no_network,
            "aleatoric_gpn": gpn.aleatoric,
            "entropy": plus.entropy,
            "aleatoric": plus.aleatoric,
            "energy": plus.energy,
            "label_absence": -plus.label_evidence,
        }
        return {name: np.asarray(score, np.float64) for name, score in scores.items()}

    def own_surprise(self, scores: Mapping[str, Array], parts: Parts) -> Array:
        """Return the surprise of the calibration nodes by each part, (P, V)."""
        return np.stack(
            [
                mean_surprise([calibration_p(scores[name][self.calibration]) for name in names])
                for names in parts.values()
            ]
        )

    def surprise(
        self, scores: Mapping[str, Array], parts: Parts, new: Mapping[str, Array] | None = None
    ) -> Array:
        """Return the surprise by each part of all nodes, or of nodes with `new` scores, (P, N)."""
        return np.stack(
            [
                mean_surprise(
                    [
                        conformal_p(np.sort(scores[name][self.calibration]), (new or scores)[name])
                        for name in names
                    ]
                )
                for names in parts.values()
            ]
        )

    def around(self, surprise: Mapping[str, Array]) -> dict[str, Array]:
        """Return the means over every node's row of values of all nodes, (N,) each."""
        values_NM = np.stack(list(surprise.values()), axis=1).astype(np.float32)
        around_NM = averaged(self.classifier.trained, self.graph, values_NM).astype(np.float64)
        return dict(zip(surprise, around_NM.T, strict=True))


def joint_p(own_V: Array, every_N: Array) -> Array:
    """Return the p-values of statistics against those of the calibration nodes, (N,)."""
    return np.asarray(conformal_p(np.sort(own_V), every_N - ROUND_OFF), np.float64)
