"""Minimum numbers of nodes for the figures of a report.

Reports, pages and the terminal leave out figures that are based on fewer nodes, with a sentence
that says so. `report.json` keeps all numbers; those without an interval are the ones left out. The
temperature and the p-values of a model have their own limits (`known_calibration`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gpn_scale.data.graph import Graph
from gpn_scale.evaluation.detection import known_test_nodes
from gpn_scale.evaluation.prediction import AbstractPrediction

LEAST_LABELS = 20
"""Labelled nodes of a class below which a warning is given: 60/20/20 leaves 4 of them to test."""
LEAST_BINNED_NODES = 100
"""Nodes for calibration errors: ten for each of ten bins; a perfect model then shows about 8 %."""
LEAST_FITTED_NODES = 50
"""Validation nodes for showing a temperature: with 50, its error is about a quarter of it."""
LEAST_CONFORMAL_NODES = 100
"""Test nodes for conformal sets: of 50 in each half, coverage varies by 4 points either way."""
LEAST_CURVE_NODES = 50
"""Test nodes for curves of risk and rejection: one node is then 2 % of the curve."""
LEAST_OF_A_KIND = 10
"""Positive nodes, and negative ones, for AUC-ROC and AUC-PR: with 10, 50 % may be 23 % or 77 %."""
LEAST_HISTOGRAM_NODES = 20
"""Nodes of a group for its histogram: with fewer, most bins hold one node or none."""
LEAST_MEAN_NODES = 20
"""Nodes for the mean of an error, the Brier score or the NLL: one node may weigh most of it."""


def enough_of_both(positives: int, negatives: int) -> bool:
    """Return whether both kinds have enough nodes to show an area under a curve.

    >>> enough_of_both(10, 500), enough_of_both(9, 500)
    (True, False)
    """
    return min(positives, negatives) >= LEAST_OF_A_KIND


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSizes:
    """The numbers of nodes on which the figures of a run are based.

    >>> sizes = SampleSizes(val=17, test=200, wrong=30, known=200)
    >>> sizes.has_calibration, sizes.has_temperature
    (True, False)
    >>> sizes.left_out
    ('The temperature is not shown: it needs 50 validation nodes, and there are 17.',)
    """

    val: int
    """Validation nodes."""
    test: int
    """Test nodes."""
    wrong: int
    """Test nodes that are classified wrongly."""
    known: int
    """Test nodes without a mark."""
    unknown: Sequence[int] = ()
    """Nodes of each mark."""

    @classmethod
    def of(cls, prediction: AbstractPrediction, graph: Graph) -> "SampleSizes":
        """Count the nodes of a graph with a split.

        >>> import numpy as np
        >>> from gpn_scale.data.building import build_graph
        >>> from gpn_scale.data.graph import Split
        >>> from gpn_scale.evaluation.scored_prediction import ScoredPrediction
        >>> split = Split(train=[0], val=[], test=[1])
        >>> graph = build_graph([], [], labels=[0, 0], split=split)
        >>> prediction = ScoredPrediction(model="GCN", probabilities=np.array([[1.0], [1.0]]))
        >>> SampleSizes.of(prediction, graph).wrong
        0
        """
        assert graph.split is not None
        test = graph.split.test
        wrong = prediction.probabilities[test].argmax(1) != graph.labels[test]
        return cls(
            val=len(graph.split.val),
            test=len(test),
            wrong=int(wrong.sum()),
            known=len(known_test_nodes(graph)),
            unknown=tuple(len(nodes) for nodes in graph.marks.values()),
        )

    @property
    def has_calibration(self) -> bool:
        """Whether calibration errors and the reliability diagram are given."""
        return self.test >= LEAST_BINNED_NODES

    @property
    def has_temperature(self) -> bool:
        """Whether the effect of a temperature is shown."""
        return self.has_calibration and self.val >= LEAST_FITTED_NODES

    @property
    def has_conformal(self) -> bool:
        """Whether conformal sets are measured."""
        return self.test >= LEAST_CONFORMAL_NODES

    @property
    def has_curves(self) -> bool:
        """Whether curves of risk and rejection are drawn."""
        return self.test >= LEAST_CURVE_NODES

    @property
    def left_out(self) -> tuple[str, ...]:
        """Figures that are left out because of too few nodes, one sentence each."""
        sentences = []
        if not self.has_calibration:
            sentences.append(
                "Calibration error, reliability, the effect of a temperature and conformal sets "
                f"are not shown: they need {LEAST_BINNED_NODES} test nodes, and there are "
                f"{self.test}."
            )
        elif not self.has_temperature:
            sentences.append(
                f"The temperature is not shown: it needs {LEAST_FITTED_NODES} validation nodes, "
                f"and there are {self.val}."
            )
        if self.test < LEAST_MEAN_NODES:
            sentences.append(
                f"Brier score and NLL are not shown: they need {LEAST_MEAN_NODES} test nodes, and "
                f"there are {self.test}."
            )
        if not self.has_curves:
            sentences.append(
                f"Curves of risk and rejection are not drawn: they need {LEAST_CURVE_NODES} test "
                f"nodes, and there are {self.test}."
            )
        if small := self._small_groups():
            sentences.append(
                f"Histograms leave out groups of fewer than {LEAST_HISTOGRAM_NODES} nodes: "
                f"{', '.join(small)}."
            )
        if not enough_of_both(self.wrong, self.test - self.wrong):
            sentences.append(
                "How well the scores detect errors is not shown: this needs "
                f"{LEAST_OF_A_KIND} wrong and {LEAST_OF_A_KIND} correct test nodes, and there are "
                f"{self.wrong} and {self.test - self.wrong}."
            )
        if few := [count for count in self.unknown if not enough_of_both(count, self.known)]:
            sentences.append(
                f"How well the scores detect unknown nodes is not shown for {len(few)} of "
                f"{len(self.unknown)} kinds: this needs {LEAST_OF_A_KIND} unknown nodes and "
                f"{LEAST_OF_A_KIND} known test nodes, and there are as few as {min(few)} and "
                f"{self.known}."
            )
        return tuple(sentences)

    def _small_groups(self) -> list[str]:
        """Return the groups of nodes that are too small for a histogram, with their sizes."""
        groups = {
            "known test nodes": self.known,
            "correct predictions": self.test - self.wrong,
            "wrong predictions": self.wrong,
            "unknown nodes": sum(self.unknown),
        }
        return [
            f"{name} ({count})"
            for name, count in groups.items()
            if 0 < count < LEAST_HISTOGRAM_NODES
        ]
