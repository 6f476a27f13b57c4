"""`RunFacts`: everything that the page of a run shows, reduced to what is drawn.

Drawing needs neither a model nor a graph.

Shapes: S points of a curve, L drawn nodes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpn_scale.config import RunConfig
from gpn_scale.evaluation.conformal import ConformalSummary
from gpn_scale.evaluation.detection import UnknownDetection
from gpn_scale.evaluation.metrics import Reliability
from gpn_scale.evaluation.report import Report
from gpn_scale.page.histograms import FloatArray, Histogram


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreCurve:
    """Risk-coverage curve of one score."""

    score: str
    """Name of the score."""
    coverage: FloatArray
    """Fraction of nodes that are predicted, (S,)."""
    risk: FloatArray
    """Fraction of errors among them, (S,)."""
    area: float
    """AURC of the whole curve."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TemperatureFacts:
    """Effect of temperature scaling on the calibration of the probabilities."""

    fitted: float
    """Temperature fitted to the validation nodes."""
    nodes: int
    """Number of validation nodes."""
    ece: float
    """Calibration error on the test nodes at the fitted temperature."""
    nll: float
    """Negative log-likelihood on the test nodes at the fitted temperature."""
    log_temperature: FloatArray
    """log10 of the temperatures of the curve, (S,)."""
    eces: FloatArray
    """Calibration errors on the test nodes at these temperatures, (S,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContributorFacts:
    """A node that supplied evidence to an explained node."""

    name: str
    itself: bool
    """Whether the contributor is the explained node."""
    adjacent: bool
    """Whether an edge joins the contributor to the explained node."""
    leading_class: int
    """Class with the most evidence from the contributor's own features."""
    weight: float
    """Diffusion weight of the contributor."""
    share: float
    """Share of the explained node's evidence that the contributor supplied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedNode:
    """A node and the sources of its evidence."""

    name: str
    marks: tuple[str, ...]
    """Names of the marks that contain the node; none for a known node."""
    label: int
    """Class of the node, or -1 if it is not known."""
    predicted: int
    """Predicted class."""
    probability: float
    """Probability of the predicted class."""
    evidence: float
    """Pseudo-counts of all classes, with network."""
    own_evidence: float
    """Pseudo-counts of all classes, from the node's own features alone."""
    contributors: tuple[ContributorFacts, ...]
    """Nodes that supplied most evidence, by decreasing share."""

    @property
    def rest_share(self) -> float:
        """Share of the evidence that all other nodes supplied."""
        return max(1.0 - sum(each.share for each in self.contributors), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtremeNodes:
    """The nodes that the model is most and least certain about."""

    certain: tuple[ExplainedNode, ...] = ()
    uncertain: tuple[ExplainedNode, ...] = ()
    median_evidence: float = 0.0
    """Median pseudo-counts of the known test nodes."""
    source: str = ""
    """Where the weights come from, as a sentence."""
    absent: str = ""
    """Why no nodes are shown, as a sentence; empty if they are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrangeNode:
    """A node that few validation nodes are as strange as."""

    name: str
    predicted: int
    """Predicted class."""
    probability: float
    """Probability of the predicted class."""
    p_known: float
    p_parts: tuple[float, ...]
    """P-values of the parts."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KnownFacts:
    """What the page shows of the p-values."""

    validation_nodes: int
    notes: tuple[str, ...]
    """What a reader should know, one sentence each."""
    p_known: Histogram | None
    """P-values that a node is known, of known test nodes and of unknown nodes; None for few."""
    distance: float | None
    """Kolmogorov-Smirnov distance of the known test nodes' p-values from uniform ones.

    None for too few nodes.
    """
    parts: tuple[str, ...]
    """Names of the parts."""
    strangest: tuple[StrangeNode, ...]
    """The strangest nodes of the whole graph but for training nodes, the strangest first."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LatentPoints:
    """Latent positions in two dimensions."""

    position: FloatArray
    """Positions, (L, 2)."""
    label: NDArray[np.int64]
    """Class, or -1 if it is not known, (L,)."""
    log_evidence: FloatArray
    """log10 of the pseudo-counts from own features, (L,)."""
    unknown: NDArray[np.bool_]
    """Whether a node is unknown, (L,)."""
    explained_variance: tuple[float, float] | None
    """Fraction of the variance along each axis; None for a method whose axes have no meaning."""
    method: str = "principal components"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PredictionFacts:
    """The facts that need a trained model and its graph."""

    class_names: tuple[str, ...]
    known_nodes: int
    """Number of test nodes without a mark."""
    unknown_nodes: int
    """Number of nodes with a mark."""
    left_out: tuple[str, ...]
    """What is not shown because of too few nodes, one sentence each."""
    detection: UnknownDetection | None
    """Detection of unknown nodes by the four scores; None without marks."""
    detection_intervals: Mapping[str, Any]
    """Intervals of its metrics, and under `marks` those of each mark; too few nodes have none."""
    alpha_0: Histogram | None
    """log10 of the total concentration with network, of known and unknown nodes; None for few."""
    alpha_0_no_network: Histogram | None
    """log10 of the total concentration without network, of known and unknown nodes."""
    reliability: Reliability | None
    """Accuracy by confidence; None for too few test nodes."""
    risk: tuple[ScoreCurve, ...]
    """Risk-coverage curves; () for too few test nodes."""
    conformal: ConformalSummary | None
    """Size and coverage of conformal sets; None for too few test nodes."""
    temperature: TemperatureFacts | None
    """Effect of temperature scaling; None for too few validation or test nodes."""
    vacuity: Histogram | None
    """log10 of the vacuity of known and unknown nodes; None for too few."""
    dissonance: Histogram | None
    """Dissonance of correct and wrong predictions; None for too few."""
    missing_mass: Histogram | None
    """Missing mass of the stored rows; None in exact mode, or if no store was given."""
    extremes: ExtremeNodes
    known: KnownFacts | None
    """P-values that a node is known; None for a model without them."""
    latent: LatentPoints
    neighbours: LatentPoints | None
    """Some of the same nodes, placed so that close ones stay close; None for too few nodes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainingCurves:
    """The epochs of metrics.jsonl, at most a few hundred of them; (S,) each."""

    epoch: FloatArray
    loss: FloatArray
    val_cross_entropy: FloatArray
    val_accuracy: FloatArray
    best_epoch: int
    """Epoch whose weights are kept; 0 if there is none yet."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunFacts:
    """The facts of a run, finished or not."""

    config: RunConfig
    training: TrainingCurves
    report: Report | None = None
    """Report of the run; None if it is not finished."""
    prediction: PredictionFacts | None = None
    """None if the run is not finished, or has neither test nor unknown nodes."""
    missing: tuple[str, ...] = ()
    """What is not shown, and how to get it; one sentence each."""
